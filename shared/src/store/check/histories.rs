//! Records, tombstones and stored responses, compared with the events.

use super::derived::DerivedItems;
use super::scan::ScannedChain;
use super::{TenantCheck, from_backup, item_from_backup, named};
use crate::domain::history::chain::{Contradiction, contradiction};
use crate::domain::record::Kind;
use crate::domain::values::id::Id;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{EXPIRES, Item, Key, PK, SK, STORED_RESPONSES, TOMBSTONES, deleted_record, history_entry};
use crate::store::table::error::StoreError;
use crate::store::table::stored_responses::{ENTRIES, FINGERPRINT};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashSet;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(super) struct ResponseFacts {
    /// Its item, without the response itself.
    item: Item,
    /// The entries of histories that were written with it: records and versions.
    entries: Vec<(Uuid, u64)>,
}

impl TenantCheck<'_> {
    /// Compares the records, and the tombstones in the places of deleted ones, with their histories.
    pub(super) async fn check_histories(&mut self) -> Result<(), StoreError> {
        let tenant = (Kind::Tenant, self.store.id().uuid());
        let mut tombstones = DerivedItems::new();
        let mut contradictory = HashSet::new();
        if !self.records.contains_key(&tenant) && !self.chains.contains_key(&tenant.1) {
            self.report(named(tenant), "its record and its history are lost", "restore the table to another moment");
        }
        for (id, ScannedChain { kind, chain, last }) in std::mem::take(&mut self.chains) {
            let Some(kind) = kind else {
                self.unsettled.insert(id);
                self.report(format!("record {id}"), "its type is unknown", "use the release that wrote it");
                continue;
            };
            let record = (kind, id);
            let newest = last.as_ref().map_or(0, |last| last.chain.version);
            let head = self.records.get(&record).map(|facts| &facts.head);
            // A history that is broken in the middle still tells how long it is.
            self.history_lengths.insert(id, newest.max(head.map_or(0, |head| head.chain.version)));
            if self.unsettled.contains(&id) {
                // It can't be read.
                continue;
            }
            let is_named = head.zip(last.as_ref()).is_none_or(|(head, last)| head.last_event == last.last_event);
            let is_deleted = chain.ends_with_deletion();
            let is_settled = head.map_or(is_deleted, |head| head.chain.version >= newest);
            let Some(found) = contradiction(chain, head.map(|head| &head.chain), is_named) else {
                let end = last.filter(|_| is_deleted).map(|head| self.store.tombstone(kind, id, &head));
                let end = end.and_then(|item| Some((Key::of(&item)?.sort().to_owned(), (record, item))));
                tombstones.extend(end);
                continue;
            };
            contradictory.insert(id);
            if !is_settled {
                self.unsettled.insert(id);
            }
            let key = self.store.keys.record(kind, id);
            let advice = match found {
                Contradiction::Broken(_) => from_backup(&format!("the entry or the item {key}")),
                _ => item_from_backup(&key),
            };
            self.report(named(record), found.to_string(), advice);
        }
        let may_stay = |key: &Key, _: &Item| match deleted_record(key) {
            Some((Some(_), id)) => contradictory.contains(&id) || self.unsettled.contains(&id),
            _ => true,
        };
        // Only the history and the tombstone tell how long the history is: neither follows from the other.
        for difference in self.differences("tombstone", TOMBSTONES, tombstones, may_stay).await? {
            self.report(difference.subject, difference.problem, item_from_backup(&difference.key));
        }
        Ok(())
    }

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

    /// Looks for stored responses whose effect is lost. Without the response, a repetition of the request has the effect after
    /// all. The parts of a batch or an import have stored responses of their own, so only the lost ones are executed again.
    ///
    /// The opposite, a lost response whose effect is there, can't be known: nothing else tells that a request had an
    /// idempotency key.
    pub(super) async fn check_responses(&mut self) -> Result<(), StoreError> {
        let is_lost = |(record, version): &(Uuid, u64)| {
            !self.unsettled.contains(record) && self.history_lengths.get(record).is_none_or(|length| length < version)
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
