//! The writes of the verification of an API key.

use crate::domain::record::Kind;
use crate::domain::values::id::{ApiKeyId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::PK;
use crate::store::table::error::{StoreError, unless_condition_failed};
use crate::store::{TenantStore, client};
use aws_sdk_dynamodb::types::AttributeValue;
use std::time::Duration;
use tokio::time::timeout;

/// The longest wait of a request for this write.
const TOUCH_TIMEOUT: Duration = Duration::from_millis(250);

impl TenantStore {
    /// Writes no event, since nobody decided it. A request does not wait long for it.
    pub(crate) async fn touch_key(&self, id: ApiKeyId, at: Timestamp) -> Result<(), StoreError> {
        let update = self.store.client.update_item().table_name(&self.store.table);
        let result = update
            .set_key(Some(self.keys.record(Kind::ApiKey, id.uuid()).item()))
            .condition_expression("attribute_exists(#pk)")
            .update_expression("SET #used = :at")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#used", "last_used_at")
            .expression_attribute_values(":at", AttributeValue::S(at.to_string()))
            .customize()
            .config_override(client::dispensable())
            .send();
        let touched = timeout(TOUCH_TIMEOUT, result).await.map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?;
        unless_condition_failed(touched).map(drop)
    }
}
