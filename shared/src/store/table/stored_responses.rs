//! Responses stored for retries of their request (docs/adr/0010). Signature images are stored separately from the process instance
//! or movement, so that lists stay small; a stored response contains their paths.

use super::blobs::BlobKind;
use super::read::seconds;
use super::unit_of_work::{Condition, write_error};
use crate::domain::processes::instance::ImageName;
use crate::domain::record::{IdempotentRequest, StoredResponse};
use crate::domain::values::json;
use crate::domain::values::signature_image::data_url;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{EXPIRES, Item, Key, TYPE};
use crate::store::table::unit_of_work::{Purpose, TransactionItem, Write};
use crate::store::{OPERATION_TIMEOUT, Reader, StoreError, WriteError, Writer, unless_condition_failed};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use tokio::time::Instant;

/// Maximum size of a stored response, below DynamoDB's limit of 400 KB per item.
const MAX_RESPONSE_BYTES: usize = 350 * 1024;
/// How long a response is stored for retries of its request: 24 hours (docs/adr/0010).
pub(in crate::store) const STORED_SECONDS: i64 = 24 * 60 * 60;
pub(in crate::store) const FINGERPRINT: &str = "fingerprint";
/// The attribute with the history entries that the request added, as sort keys of the index `history`. A restored table can
/// contain the response without the entries, which `admin check` detects.
pub(in crate::store) const ENTRIES: &str = "entries";
/// The attribute with the PNG file of a signature image.
pub(in crate::store) const IMAGE: &str = "image";
pub(in crate::store) const RESPONSE: &str = "response";

/// An earlier request with the same idempotency key.
#[derive(Debug, Clone)]
pub enum PreviousRequest {
    Same(Box<StoredResponse>),
    /// The idempotency key belongs to a request with a different path or body.
    Different,
}

impl Reader {
    /// Looks up the previous request with the same idempotency key; `None` if no such request has taken effect within 24 hours.
    pub(crate) async fn previous_request(&self, request: &IdempotentRequest) -> Result<Option<PreviousRequest>, StoreError> {
        let Some(item) = self.item(&self.keys.stored_response(request)).await? else { return Ok(None) };
        let Some(previous) = self.previous_in(&item, request)? else { return Ok(None) };
        let PreviousRequest::Same(mut response) = previous else { return Ok(Some(previous)) };
        // The end of the second in which the response was stored.
        let stored_at = Timestamp::from_millis((expiry(&item).unwrap_or_default() - STORED_SECONDS + 1) * 1000);
        if !response.images.is_empty() {
            response.body = self.with_images(&response).await?;
        }
        let steps = response.steps.iter().map(|hash| ((BlobKind::Steps, hash.clone()), stored_at)).collect();
        for ((_, hash), text) in self.blob_texts(steps).await? {
            response.body = response.with_steps(&hash, &text);
        }
        Ok(Some(PreviousRequest::Same(response)))
    }

    /// Reads the stored responses of the first `count` parts. Parts change assets or users, so these responses have neither
    /// images nor steps.
    pub(crate) async fn previous_parts(
        &self,
        request: &IdempotentRequest,
        count: usize,
    ) -> Result<Vec<Option<StoredResponse>>, StoreError> {
        let parts: Vec<IdempotentRequest> = (0..count).map(|index| request.part(index)).collect();
        let keys: Vec<Key> = parts.iter().map(|part| self.keys.stored_response(part)).collect();
        let items = self.items(&keys).await?;
        let previous = parts.iter().zip(&keys).map(|(part, key)| {
            let previous = items.get(key).map(|item| self.previous_in(item, part)).transpose()?.flatten();
            Ok(match previous {
                Some(PreviousRequest::Same(response)) => Some(*response),
                Some(PreviousRequest::Different) | None => None,
            })
        });
        previous.collect()
    }

    /// Parses a stored response; `None` if it has expired.
    fn previous_in(&self, item: &Item, request: &IdempotentRequest) -> Result<Option<PreviousRequest>, StoreError> {
        let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str);
        if expiry(item).is_none_or(|expires| expires <= seconds(self.store.now())) {
            return Ok(None);
        }
        if text(FINGERPRINT) != Some(&request.fingerprint) {
            return Ok(Some(PreviousRequest::Different));
        }
        let response = text(RESPONSE).ok_or_else(|| StoreError::broken("a stored response without text"))?;
        Ok(Some(PreviousRequest::Same(Box::new(serde_json::from_str(response).map_err(StoreError::broken)?))))
    }

    /// Returns the images as PNG files. Omits missing images.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the images can't be read.
    pub async fn signature_images(&self, names: BTreeSet<ImageName>) -> Result<HashMap<ImageName, Vec<u8>>, StoreError> {
        let keys: Vec<Key> = names.iter().map(|name| self.keys.signature(name)).collect();
        let mut items = self.items(&keys).await?;
        let image = |item: Item| item.get(IMAGE).and_then(|value| value.as_b().ok()).map(|blob| blob.as_ref().to_vec());
        Ok(names.into_iter().zip(keys).filter_map(|(name, key)| Some((name, image(items.remove(&key)?)?))).collect())
    }

    /// Returns the response's body with its images, which are stored only once, with their instances.
    async fn with_images(&self, response: &StoredResponse) -> Result<String, StoreError> {
        let names: BTreeSet<_> = response.images.iter().map(|(_, name)| name.clone()).collect();
        let images = self.signature_images(names).await?;
        let shown: HashMap<(&str, &str), String> = response
            .images
            .iter()
            .filter_map(|(path, name)| Some(((name.step.as_str(), path.as_str()), data_url(images.get(name)?))))
            .collect();
        let mut body = json::parse(&response.body).map_err(StoreError::broken)?;
        insert_images(&mut body, &shown);
        serde_json::to_string(&body).map_err(StoreError::broken)
    }
}

/// Returns the expiry time of an item, in seconds since 1970.
fn expiry(item: &Item) -> Option<i64> {
    item.get(EXPIRES)?.as_n().ok()?.parse().ok()
}

/// Replaces the paths of images with the images, in the `step_data` of every instance in the body.
fn insert_images(value: &mut Value, images: &HashMap<(&str, &str), String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Value::Object(data) if name == "step_data" => {
                        for (step, value) in data.iter_mut() {
                            let image = value.as_str().and_then(|path| images.get(&(step.as_str(), path)));
                            if let Some(image) = image {
                                *value = Value::String(image.clone());
                            }
                        }
                    }
                    other => insert_images(other, images),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| insert_images(value, images)),
        _ => {}
    }
}

impl Reader {
    /// Stores a response if none is stored yet. `entries` are the sort keys, in the index `history`, of the events that are
    /// written together with the response.
    pub(in crate::store) fn store_response(
        &self,
        request: &IdempotentRequest,
        response: &StoredResponse,
        entries: Vec<AttributeValue>,
        at: Timestamp,
    ) -> Result<TransactionItem, WriteError> {
        let response = serde_json::to_string(response).map_err(StoreError::broken)?;
        if response.len() > MAX_RESPONSE_BYTES {
            return Err(WriteError::ResponseTooLong);
        }
        let mut item: Item = self.keys.stored_response(request).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("stored_response".to_owned()));
        item.insert(FINGERPRINT.to_owned(), AttributeValue::S(request.fingerprint.clone()));
        item.insert(RESPONSE.to_owned(), AttributeValue::S(response));
        item.insert(ENTRIES.to_owned(), AttributeValue::L(entries));
        item.insert(EXPIRES.to_owned(), AttributeValue::N((seconds(at) + STORED_SECONDS).to_string()));
        let condition = Condition::Any(vec![Condition::MISSING, Condition::AtMost(EXPIRES, seconds(at))]);
        Ok(TransactionItem { purpose: Purpose::NoStoredResponse, condition, write: Write::Put(item) })
    }
}

impl Writer {
    /// Stores a response without changing records, for example to record that a request has started.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::AlreadyAnswered`] if a response is already stored, or any error of [`UnitOfWork::commit`].
    pub(crate) async fn store_response_alone(
        &self,
        request: &IdempotentRequest,
        response: &StoredResponse,
    ) -> Result<(), WriteError> {
        let item = self.store_response(request, response, Vec::new(), self.store.now())?;
        self.store.transact(vec![item], Instant::now() + OPERATION_TIMEOUT).await.map_err(write_error)
    }

    /// Replaces a stored response. Returns `false` if the stored response is no longer `current`.
    pub(crate) async fn replace_stored_response(
        &self,
        request: &IdempotentRequest,
        current: &StoredResponse,
        next: &StoredResponse,
    ) -> Result<bool, StoreError> {
        let text = |response| serde_json::to_string(response).map(AttributeValue::S).map_err(StoreError::broken);
        let update = self.store.client.update_item().table_name(&self.store.table);
        let updated = update
            .set_key(Some(self.keys.stored_response(request).item()))
            .update_expression("SET #response = :next")
            .condition_expression("#response = :current AND #fingerprint = :fingerprint")
            .expression_attribute_names("#response", RESPONSE)
            .expression_attribute_names("#fingerprint", FINGERPRINT)
            .expression_attribute_values(":next", text(next)?)
            .expression_attribute_values(":current", text(current)?)
            .expression_attribute_values(":fingerprint", AttributeValue::S(request.fingerprint.clone()))
            .send()
            .await;
        Ok(unless_condition_failed(updated)?.is_some())
    }
}
