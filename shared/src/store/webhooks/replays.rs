//! The record of a tenant's replays.

use crate::domain::request::IdempotentRequest;
use crate::domain::webhooks::Replays;
use crate::store::TenantStore;
use crate::store::keys::{PK, TYPE};
use crate::store::table::backoff::pause;
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;

const STATE: &str = "state";
/// A tenant's replays change a few times in a minute.
const MAX_ROUNDS: u32 = 6;

impl TenantStore {
    /// Lets `decide` change the present state, and again if others change it at the same time. Writes only a change, and nothing
    /// in a dry run.
    ///
    /// # Errors
    ///
    /// Those of `decide`, [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when
    /// the record can't be read.
    pub async fn change_replays<T, E: From<StoreError>>(
        &self,
        decide: impl Fn(Replays) -> Result<(Replays, T), E>,
    ) -> Result<T, E> {
        for round in 0..MAX_ROUNDS {
            let item = self.item(&self.keys.replays()).await?;
            let present = item.as_ref().and_then(|item| item.get(STATE)?.as_s().ok()).map(String::as_str);
            let replays: Replays = present.map_or(Ok(Replays::default()), serde_json::from_str).map_err(StoreError::broken)?;
            let (next, result) = decide(replays.clone())?;
            if next == replays || self.is_dry_run() || self.replace_replays(present, &next).await? {
                return Ok(result);
            }
            pause(&self.store, round).await;
        }
        Err(StoreError::Unavailable("the record of replays changes too often".into()).into())
    }

    /// `false` if the state is not `present` any more.
    async fn replace_replays(&self, present: Option<&str>, next: &Replays) -> Result<bool, StoreError> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut item = self.keys.replays().item();
        item.insert(TYPE.to_owned(), text("replays"));
        item.insert(STATE.to_owned(), text(&serde_json::to_string(next).map_err(StoreError::broken)?));
        let put = self.store.client.put_item().table_name(&self.store.table).set_item(Some(item));
        let put = match present {
            None => put.condition_expression("attribute_not_exists(#pk)").expression_attribute_names("#pk", PK),
            Some(present) => put
                .condition_expression("#state = :present")
                .expression_attribute_names("#state", STATE)
                .expression_attribute_values(":present", text(present)),
        };
        match put.send().await {
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => Ok(false),
            result => Ok(result.map(|_| true)?),
        }
    }

    /// Copies of the request under one idempotency key have the same.
    #[must_use]
    pub fn request_identity(&self, request: &IdempotentRequest) -> String {
        self.keys.stored_response(request).sort().to_owned()
    }
}
