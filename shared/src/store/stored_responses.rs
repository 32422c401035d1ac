//! StepValues that are kept for when their request comes again (contract 8; docs/adr/0010).

use super::TenantStore;
use super::error::{StoreError, WriteError};
use super::keys::{EXPIRES, Item, PK, TYPE};
use super::transaction::{Condition, TransactionItem};
use crate::domain::request::{IdempotentRequest, StoredResponse};
use crate::domain::signature_image::data_url;
use crate::domain::time::Timestamp;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// How long an answer is kept, in seconds.
const KEPT_SECONDS: i64 = 24 * 60 * 60;
/// How long an answer may be; an item holds 400 KB.
const MAX_RESPONSE_BYTES: usize = 350 * 1024;
const FINGERPRINT: &str = "fingerprint";
const RESPONSE: &str = "response";

/// What is known of a request that came with an idempotency key.
#[derive(Debug, Clone)]
pub enum PreviousRequest {
    /// It came before; this was the answer.
    Same(Box<StoredResponse>),
    /// Another request came under the same key.
    Another,
}

impl TenantStore {
    /// What is known of a request; `None` when it had no effect yet.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn recall(&self, claim: &IdempotentRequest) -> Result<Option<PreviousRequest>, StoreError> {
        let Some(item) = self.item(&self.keys.stored_response(claim)).await? else { return Ok(None) };
        let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str);
        let expires = item.get(EXPIRES).and_then(|value| value.as_n().ok()?.parse::<i64>().ok());
        if expires.is_none_or(|expires| expires <= seconds(self.store.now())) {
            return Ok(None);
        }
        if text(FINGERPRINT) != Some(&claim.fingerprint) {
            return Ok(Some(PreviousRequest::Another));
        }
        let answer = text(RESPONSE).ok_or_else(|| StoreError::broken("an answer without a text"))?;
        let mut kept: StoredResponse = serde_json::from_str(answer).map_err(StoreError::broken)?;
        if !kept.images.is_empty() {
            kept.body = self.with_images(&kept).await?;
        }
        Ok(Some(PreviousRequest::Same(Box::new(kept))))
    }

    /// The body with the images that the answer had. They are kept once, where their runs have them.
    async fn with_images(&self, kept: &StoredResponse) -> Result<String, StoreError> {
        let names: BTreeSet<_> = kept.images.iter().map(|(_, name)| name.clone()).collect();
        let images = self.signature_images(names).await?;
        let shown: HashMap<(&str, &str), String> = kept
            .images
            .iter()
            .filter_map(|(path, name)| Some(((name.step.as_str(), path.as_str()), data_url(images.get(name)?))))
            .collect();
        let mut body: Value = serde_json::from_str(&kept.body).map_err(StoreError::broken)?;
        show(&mut body, &shown);
        serde_json::to_string(&body).map_err(StoreError::broken)
    }

    /// Keeps an answer, unless there is one.
    pub(super) fn keep(
        &self,
        claim: &IdempotentRequest,
        kept: &StoredResponse,
        at: Timestamp,
    ) -> Result<TransactionItem, WriteError> {
        let answer = serde_json::to_string(kept).map_err(StoreError::broken)?;
        if answer.len() > MAX_RESPONSE_BYTES {
            return Err(WriteError::ResponseTooLong);
        }
        let mut item: Item = self.keys.stored_response(claim).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("stored_response".to_owned()));
        item.insert(FINGERPRINT.to_owned(), AttributeValue::S(claim.fingerprint.clone()));
        item.insert(RESPONSE.to_owned(), AttributeValue::S(answer));
        item.insert(EXPIRES.to_owned(), AttributeValue::N((seconds(at) + KEPT_SECONDS).to_string()));
        let put = Put::builder()
            .table_name(&self.store.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#pk) OR #expires <= :now")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_values(":now", AttributeValue::N(seconds(at).to_string()))
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactionItem { condition: Condition::NoStoredResponse, write: TransactWriteItem::builder().put(put).build() })
    }
}

fn seconds(at: Timestamp) -> i64 {
    at.millis().div_euclid(1000)
}

/// Puts images in the place of the paths that stand for them, wherever a run shows its data.
fn show(value: &mut Value, images: &HashMap<(&str, &str), String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Value::Object(data) if name == "step_data" => {
                        for (step, answer) in data.iter_mut() {
                            let image = answer.as_str().and_then(|path| images.get(&(step.as_str(), path)));
                            if let Some(image) = image {
                                *answer = Value::String(image.clone());
                            }
                        }
                    }
                    other => show(other, images),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| show(value, images)),
        _ => {}
    }
}
