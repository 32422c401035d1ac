//! Records that contain a single value, without a version or a history: a tenant's replays, and erasures of people.

use crate::store::keys::{Item, Key, PK, TYPE};
use crate::store::{MAX_ROUNDS, StoreError, Writer, pause, unless_condition_failed};
use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Serialize, de::DeserializeOwned};

const STATE: &str = "state";

/// Parses the state in a record; `None` if there is no record.
pub(super) fn state_of<S: DeserializeOwned>(item: Option<&Item>) -> Result<Option<S>, StoreError> {
    text_of(item).map(|text| serde_json::from_str(text).map_err(StoreError::broken)).transpose()
}

fn text_of(item: Option<&Item>) -> Option<&str> {
    item.and_then(|item| item.get(STATE)?.as_s().ok()).map(String::as_str)
}

impl Writer {
    /// Changes the state with `decide`, and retries after a write conflict. Writes nothing if the state stays the same, or
    /// in a dry run.
    pub(super) async fn change_state<S: Serialize + DeserializeOwned + PartialEq + Clone, T, E: From<StoreError>>(
        &self,
        key: &Key,
        item_type: &str,
        decide: impl Fn(Option<S>) -> Result<(S, T), E>,
    ) -> Result<T, E> {
        for round in 0..MAX_ROUNDS {
            let item = self.item(key).await?;
            let current: Option<S> = state_of(item.as_ref())?;
            let (next, result) = decide(current.clone())?;
            let is_same = current.as_ref() == Some(&next);
            if is_same || self.is_dry_run() || self.replace_state(key, item_type, text_of(item.as_ref()), &next).await? {
                return Ok(result);
            }
            pause(&self.store, round).await;
        }
        Err(StoreError::Unavailable(format!("the record {item_type} changes too often").into()).into())
    }

    /// Replaces the state. Returns `false` if the stored state is no longer `current`.
    async fn replace_state(
        &self,
        key: &Key,
        item_type: &str,
        current: Option<&str>,
        next: &impl Serialize,
    ) -> Result<bool, StoreError> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut item = key.item();
        item.insert(TYPE.to_owned(), text(item_type));
        item.insert(STATE.to_owned(), text(&serde_json::to_string(next).map_err(StoreError::broken)?));
        let put = self.store.client.put_item().table_name(&self.store.table).set_item(Some(item));
        let put = match current {
            None => put.condition_expression("attribute_not_exists(#pk)").expression_attribute_names("#pk", PK),
            Some(current) => put
                .condition_expression("#state = :current")
                .expression_attribute_names("#state", STATE)
                .expression_attribute_values(":current", text(current)),
        };
        Ok(unless_condition_failed(put.send().await)?.is_some())
    }
}
