//! Stored responses whose effect is lost. Without the response, a repetition of the request has the effect after all. The
//! parts of a batch or an import have stored responses of their own, so only the lost ones are executed again.
//!
//! The opposite, a lost response whose effect is there, can't be known: nothing else tells that a request had an
//! idempotency key.

use super::TenantCheck;
use super::change::Change;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{EXPIRES, Item, Key, PK, SK, STORED_RESPONSES, history_entry};
use crate::store::table::error::StoreError;
use crate::store::table::stored_responses::{ENTRIES, FINGERPRINT};
use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(super) struct ResponseFacts {
    /// Its item, without the response itself.
    item: Item,
    /// The entries of histories that were written with it: records and versions.
    entries: Vec<(Uuid, u64)>,
}

impl TenantCheck<'_> {
    /// Reads every stored response that has not expired, without the responses themselves.
    pub(super) async fn scan_responses(&mut self) -> Result<(), StoreError> {
        let query = self.store.beginning(AttributeValue::S(STORED_RESPONSES.to_owned()));
        let query = query
            .projection_expression("#pk, #sk, #expires, #fingerprint, #entries")
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_names("#fingerprint", FINGERPRINT)
            .expression_attribute_names("#entries", ENTRIES);
        let mut pages = query.into_paginator().send();
        while let Some(page) = pages.next().await {
            let items = page?.items.unwrap_or_default();
            self.responses.extend(items.into_iter().filter(|item| !has_expired(item, self.began)).map(facts));
        }
        Ok(())
    }

    pub(super) async fn check_responses(&mut self) -> Result<(), StoreError> {
        let is_lost = |(record, version): &(Uuid, u64)| {
            !self.unknown.contains(record) && self.history_lengths.get(record).is_none_or(|length| length < version)
        };
        let lost: Vec<Item> =
            self.responses.iter().filter(|it| it.entries.iter().any(is_lost)).map(|it| it.item.clone()).collect();
        for item in lost {
            let Some(key) = Key::of(&item) else { continue };
            let change = self.change().remove(&item)?;
            let problem = "it is the response to a request whose effect is lost";
            let repair = "removes it, so that a repetition of the request takes effect";
            self.repair(format!("stored response {}", key.sort()), problem, repair, change).await?;
        }
        Ok(())
    }

    /// Of responses that tell of the record's version `from` or a later one.
    pub(super) fn remove_responses(&mut self, mut change: Change, record: Uuid, from: u64) -> Result<Change, StoreError> {
        let tells = |it: &ResponseFacts| it.entries.iter().any(|(id, version)| *id == record && *version >= from);
        let (removed, kept) = std::mem::take(&mut self.responses).into_iter().partition(tells);
        self.responses = kept;
        for ResponseFacts { item, .. } in removed {
            change = change.remove(&item)?;
        }
        Ok(change)
    }
}

/// The table may remove an item at any time.
fn has_expired(item: &Item, now: Timestamp) -> bool {
    let expires: Option<i64> = item.get(EXPIRES).and_then(|seconds| seconds.as_n().ok()?.parse().ok());
    expires.is_some_and(|seconds| seconds * 1000 <= now.millis())
}

fn facts(item: Item) -> ResponseFacts {
    let entries = item.get(ENTRIES).and_then(|entries| entries.as_l().ok()).map(Vec::as_slice).unwrap_or_default();
    let entries = entries.iter().filter_map(history_entry).collect();
    ResponseFacts {
        entries,
        item: item.into_iter().filter(|(name, _)| [PK, SK, EXPIRES, FINGERPRINT].contains(&name.as_str())).collect(),
    }
}
