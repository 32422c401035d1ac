//! Stored responses that name a person.

use crate::domain::request::StoredResponse;
use crate::domain::values::id::{EventId, Id};
use crate::store::TenantStore;
use crate::store::keys::{Key, SK, STORED_RESPONSES};
use crate::store::table::error::{StoreError, unless_condition_failed};
use crate::store::table::stored_responses::RESPONSE;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeSet;
use uuid::Uuid;

impl TenantStore {
    /// Removes the responses that have one of these ids, or were made for a key or a link with one. A repetition of such a request
    /// is told so. Returns how many.
    pub(super) async fn erase_responses(&self, ids: &BTreeSet<Uuid>) -> Result<usize, StoreError> {
        let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
        let erased = serde_json::to_string(&StoredResponse::erased()).map_err(StoreError::broken)?;
        let mut count = 0;
        let mut pages = self.beginning(AttributeValue::S(STORED_RESPONSES.to_owned())).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let (Some(key), Some(AttributeValue::S(text))) = (Key::of(&item), item.get(RESPONSE)) else { continue };
                let by = key.sort().strip_prefix(STORED_RESPONSES).and_then(|rest| EventId::from_short(rest.split('#').next()?));
                let is_by = by.is_some_and(|by| ids.contains(&by.uuid()));
                // A request that is in progress says only that it has begun.
                let response: StoredResponse = serde_json::from_str(text).map_err(StoreError::broken)?;
                let names = is_by || texts.iter().any(|id| text.contains(id.as_str()));
                if !names || response.is_nameless || response.is_in_parts || *text == erased {
                    continue;
                }
                count += 1;
                if self.is_dry_run() {
                    continue;
                }
                let update = self.store.client.update_item().table_name(&self.store.table).set_key(Some(key.item()));
                let update = update
                    .update_expression("SET #response = :erased")
                    .condition_expression("attribute_exists(#sk)")
                    .expression_attribute_names("#response", RESPONSE)
                    .expression_attribute_names("#sk", SK)
                    .expression_attribute_values(":erased", AttributeValue::S(erased.clone()));
                // It fails if the response has expired.
                unless_condition_failed(update.send().await)?;
            }
        }
        Ok(count)
    }
}
