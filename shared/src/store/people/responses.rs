//! Stored responses that name a person.

use super::PartAbout;
use crate::domain::request::StoredResponse;
use crate::domain::values::id::{EventId, Id};
use crate::store::TenantStore;
use crate::store::keys::{Item, Key, STORED_RESPONSES, history_entry};
use crate::store::table::error::{StoreError, unless_condition_failed};
use crate::store::table::stored_responses::{ENTRIES, RESPONSE};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeSet;
use uuid::Uuid;

/// The most pages of 1 MB that one request looks at.
const MAX_PAGES: usize = 8;

impl TenantStore {
    /// Removes the responses that have the id of something that was `found`, tell of a change of it, or were made for a key or a link
    /// with one. A repetition of such a request is told so. Returns how many, and the last key that was looked at if there are more; `from` is
    /// that key of the time before.
    pub(super) async fn erase_responses(
        &self,
        found: &PartAbout,
        from: Option<&str>,
    ) -> Result<(usize, Option<String>), StoreError> {
        let ids = found.ids();
        let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
        let erased = serde_json::to_string(&StoredResponse::erased()).map_err(StoreError::broken)?;
        let (mut count, mut from) = (0, from.map(|from| self.keys.sibling(from)));
        for _ in 0..MAX_PAGES {
            let query = self.beginning(AttributeValue::S(STORED_RESPONSES.to_owned()));
            let page = query.set_exclusive_start_key(from.as_ref().map(Key::item)).send().await?;
            for item in page.items.unwrap_or_default() {
                let (Some(key), Some(AttributeValue::S(text))) = (Key::of(&item), item.get(RESPONSE)) else { continue };
                let by = key.sort().strip_prefix(STORED_RESPONSES).and_then(|rest| EventId::from_short(rest.split('#').next()?));
                let names = by.is_some_and(|by| ids.contains(&by.uuid()))
                    || changes_one(&item, &ids)
                    || texts.iter().any(|id| text.contains(id.as_str()));
                // One that can't be read may name somebody. A request that is in progress says only that it has begun.
                let stays = |response: StoredResponse| response.is_nameless || response.is_in_parts;
                if !names || *text == erased || serde_json::from_str(text).is_ok_and(stays) {
                    continue;
                }
                count += 1;
                if self.is_dry_run() {
                    continue;
                }
                let update = self.store.client.update_item().table_name(&self.store.table).set_key(Some(key.item()));
                let update = update
                    .update_expression("SET #response = :erased")
                    .condition_expression("#response = :present")
                    .expression_attribute_names("#response", RESPONSE)
                    .expression_attribute_values(":present", AttributeValue::S(text.clone()))
                    .expression_attribute_values(":erased", AttributeValue::S(erased.clone()));
                // It fails if the response has expired, or another one took its place.
                unless_condition_failed(update.send().await)?;
            }
            from = page.last_evaluated_key.as_ref().and_then(Key::of);
            if from.is_none() {
                break;
            }
        }
        Ok((count, from.map(|key| key.sort().to_owned())))
    }
}

/// The session of a signing link shows what others have submitted, without the id of the instance.
fn changes_one(response: &Item, ids: &BTreeSet<Uuid>) -> bool {
    let entries = response.get(ENTRIES).and_then(|entries| entries.as_l().ok()).map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(history_entry).any(|(record, _)| ids.contains(&record))
}
