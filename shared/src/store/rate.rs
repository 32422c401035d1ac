//! Counts the requests of keys.

use super::TenantStore;
use super::error::StoreError;
use super::keys::{EXPIRES, TYPE};
use crate::domain::api_key::MAX_RATE_LIMIT;
use crate::domain::id::ApiKeyId;
use crate::domain::rate::{WINDOW_SECONDS, window};
use crate::domain::time::Timestamp;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

const REQUESTS: &str = "requests";
/// How long a count stays after its minute, in seconds.
const KEPT: i64 = 600;

impl TenantStore {
    /// Counts a request that came with a secret, hashed, and gives how many came in this minute; beyond the largest
    /// limit that a key can have it counts no further. One write unit.
    ///
    /// # Errors
    ///
    /// The table.
    pub(crate) async fn count_request(&self, key: ApiKeyId, secret: &str, at: Timestamp) -> Result<u64, StoreError> {
        let minute = window(at);
        let counted = self
            .store
            .client
            .update_item()
            .table_name(&self.store.table)
            .set_key(Some(self.keys.rate(key, minute, secret).item()))
            .update_expression("ADD #requests :one SET #expires = :expires, #type = :type")
            .condition_expression("attribute_not_exists(#requests) OR #requests <= :most")
            .expression_attribute_names("#requests", REQUESTS)
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .expression_attribute_values(":most", AttributeValue::N(MAX_RATE_LIMIT.to_string()))
            .expression_attribute_values(":expires", AttributeValue::N(((minute + 1) * WINDOW_SECONDS + KEPT).to_string()))
            .expression_attribute_values(":type", AttributeValue::S("rate".to_owned()))
            .return_values(ReturnValue::UpdatedNew)
            .send()
            .await;
        match counted {
            Ok(output) => {
                let count = output.attributes.as_ref().and_then(|item| item.get(REQUESTS)?.as_n().ok()?.parse().ok());
                count.ok_or_else(|| StoreError::broken("a count without a number"))
            }
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {
                Ok(u64::from(MAX_RATE_LIMIT) + 1)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// How many requests came with a secret in this minute; for the other secret of a key that was just rotated.
    ///
    /// # Errors
    ///
    /// The table.
    pub(crate) async fn counted_requests(&self, key: ApiKeyId, secret: &str, at: Timestamp) -> Result<u64, StoreError> {
        let item = self.item(&self.keys.rate(key, window(at), secret)).await?;
        Ok(item.and_then(|item| item.get(REQUESTS)?.as_n().ok()?.parse().ok()).unwrap_or(0))
    }
}
