//! Counts the requests of API keys and signing links.

use crate::domain::keys::api_key::MAX_RATE_LIMIT;
use crate::domain::keys::rate::{WINDOW_SECONDS, window};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{EXPIRES, TYPE};
use crate::store::table::error::StoreError;
use crate::store::{TenantReads, client};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

const REQUESTS: &str = "requests";
/// The time for which a counter outlives its minute, in seconds.
const KEPT_SECONDS: i64 = 600;
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

impl TenantReads {
    /// Returns the requests of this minute, this one included. Stops counting beyond the highest limit that a key can have. Costs
    /// one write unit.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table throttles or does not respond within [`COUNT_TIMEOUT`].
    pub(crate) async fn count_request(&self, credential: Uuid, at: Timestamp) -> Result<u64, StoreError> {
        let minute = window(at);
        let counted = self
            .store
            .client
            .update_item()
            .table_name(&self.store.table)
            .set_key(Some(self.keys.rate(credential, minute).item()))
            .update_expression("ADD #requests :one SET #expires = :expires, #type = :type")
            .condition_expression("attribute_not_exists(#requests) OR #requests <= :most")
            .expression_attribute_names("#requests", REQUESTS)
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .expression_attribute_values(":most", AttributeValue::N(MAX_RATE_LIMIT.to_string()))
            .expression_attribute_values(
                ":expires",
                AttributeValue::N(((minute + 1) * WINDOW_SECONDS + KEPT_SECONDS).to_string()),
            )
            .expression_attribute_values(":type", AttributeValue::S("rate".to_owned()))
            .return_values(ReturnValue::UpdatedNew)
            .customize()
            .config_override(client::dispensable())
            .send();
        match timeout(COUNT_TIMEOUT, counted).await.map_err(|elapsed| StoreError::Unavailable(elapsed.into()))? {
            Ok(output) => {
                let count = output.attributes.as_ref().and_then(|item| item.get(REQUESTS)?.as_n().ok()?.parse().ok());
                count.ok_or_else(|| StoreError::broken("a request counter without a number"))
            }
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {
                Ok(u64::from(MAX_RATE_LIMIT) + 1)
            }
            Err(error) => Err(error.into()),
        }
    }
}
