//! The feed of all changes of a tenant, oldest first (docs/adr/0009), and human-readable names for the changed records.

use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::Event;
use crate::domain::history::filter::EventFilter;
use crate::domain::record::Kind;
use crate::domain::values::id::EventId;
use crate::domain::values::json;
use crate::domain::values::time::Timestamp;
use crate::store::history::of_record::{HistoryHead, entry_of};
use crate::store::keys::{self, Item, Key, Keys};
use crate::store::{MAX_REQUEST, Reader, StoreError, max_event_delay, max_secondary_index_delay};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Body size in bytes above which parts of a response are omitted: signature images, changes in a history, or further events.
/// Well below Lambda's limit of 6 MB.
pub const MAX_BODY_BEFORE_OMISSION: usize = 4 * 1024 * 1024;
/// Maximum number of events read for one response if not all of them match; the response can then have fewer events than the
/// requested limit.
const MAX_READ: usize = 1_000;
/// Number of events per query if the filter is selective or the first query found too few matches.
const READ_AT_ONCE: usize = 250;
/// Minimum number of events per query if the filter is just a period. The query also reads later events, which can be from slow
/// requests in the period.
const READ_AT_ONCE_IN_PERIOD: usize = 100;

/// A page of the tenant's events, oldest first.
#[derive(Debug, Clone)]
pub struct Feed {
    pub entries: Vec<HistoryEntry>,
    /// The cursor: the last event read for this page, or the requested cursor. With a filter for a record or a time, there may be
    /// no event with this ID.
    pub last: Option<EventId>,
    pub has_more: bool,
    bytes: usize,
}

impl Feed {
    /// Adds an entry. Returns `false` if it doesn't fit in the response, or if there are already `limit` entries.
    fn add(&mut self, entry: HistoryEntry, limit: usize) -> bool {
        let length = json::escaped_len(entry.text.as_bytes());
        let is_full = !self.entries.is_empty() && self.bytes + length > MAX_BODY_BEFORE_OMISSION;
        if self.entries.len() == limit || is_full {
            return false;
        }
        self.bytes += length;
        self.entries.push(entry);
        true
    }
}

/// Returns the exclusive end of the IDs to read: no matching event has an ID from this time or later.
fn end_of(readable: Timestamp, filter: &EventFilter) -> Timestamp {
    filter.until.map_or(readable, |until| readable.min(until.plus(MAX_REQUEST)))
}

impl Reader {
    /// Returns the cursor for new events. It is a few seconds behind the current time, because recent events may still be in
    /// flight. Doesn't read the table.
    #[must_use]
    pub fn end_of_feed(&self) -> EventId {
        Keys::last_event_before(self.feed_end())
    }

    /// Returns the time up to which the feed is complete: no more events can appear with an earlier time in their ID.
    fn feed_end(&self) -> Timestamp {
        self.store.now().plus(-max_event_delay())
    }

    /// Returns the cursor before the first event that can match. An event's ID is never older than its request, so `since`
    /// applies to IDs. The cursor is never in the future, so a client that continues without `since` misses no event.
    fn start_of(&self, after: Option<EventId>, filter: &EventFilter) -> Option<EventId> {
        let since = filter.since.map(|since| Keys::last_event_before(since).min(self.end_of_feed()));
        after.max(since)
    }

    /// Reads events after `after`, or from the start.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::matching_events`].
    pub async fn events(&self, after: Option<EventId>, limit: u32) -> Result<Feed, StoreError> {
        self.matching_events(after, limit, &EventFilter::default()).await
    }

    /// Reads matching events after `after`, or from the start.
    ///
    /// Events of the last few seconds are held back, because events with earlier IDs may still be in flight. So a client that
    /// continues after [`Feed::last`] misses no event. With a filter, a page reads a bounded number of events, so it can be empty
    /// even if more follow.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn matching_events(&self, after: Option<EventId>, limit: u32, filter: &EventFilter) -> Result<Feed, StoreError> {
        let mut feed = Feed { entries: Vec::new(), last: self.start_of(after, filter), has_more: false, bytes: 0 };
        let end = end_of(self.feed_end(), filter);
        if let Some(entity) = filter.entity {
            self.add_events_of(entity, &mut feed, limit as usize, filter).await?;
        }
        if !feed.has_more {
            self.add_events_until(end, &mut feed, limit as usize, filter).await?;
        }
        Ok(feed)
    }

    /// Adds the events after `feed.last`, in the order of the table.
    async fn add_events_until(
        &self,
        end: Timestamp,
        feed: &mut Feed,
        limit: usize,
        filter: &EventFilter,
    ) -> Result<(), StoreError> {
        let Some((from, to)) = Keys::events_between(feed.last, end) else { return Ok(()) };
        let mut at_once = match filter {
            filter if filter.is_empty() => limit + 1,
            filter if filter.entity.is_some() || filter.is_selective() => READ_AT_ONCE,
            _ => READ_AT_ONCE_IN_PERIOD.max(limit + 1),
        };
        let (query, mut start, mut read) = (self.events_query(from, to), None, 0);
        loop {
            let query = query.clone().limit(i32::try_from(at_once).unwrap_or(i32::MAX)).set_exclusive_start_key(start);
            let page = Box::pin(query.send()).await?;
            for item in page.items.unwrap_or_default() {
                let id = Key::of(&item).as_ref().and_then(keys::event_id);
                let entry = entry_of(&item).filter(|entry| filter.matches(&entry.text));
                if entry.is_some_and(|entry| !feed.add(entry, limit)) {
                    feed.has_more = true;
                    return Ok(());
                }
                feed.last = id.or(feed.last);
                read += 1;
            }
            if page.last_evaluated_key.is_none() {
                return Ok(());
            }
            if read >= MAX_READ {
                feed.has_more = true;
                return Ok(());
            }
            // Few events match, for example among many scans of assets.
            (start, at_once) = (page.last_evaluated_key, at_once.max(READ_AT_ONCE));
        }
    }

    /// Adds the record's events that are old enough to be in the index `history`, without reading the tenant's other events.
    ///
    /// The index sorts events by version. Because of clock skew, their IDs can have a different order, so all rows are read
    /// before any entry.
    async fn add_events_of(&self, entity: Uuid, feed: &mut Feed, limit: usize, filter: &EventFilter) -> Result<(), StoreError> {
        let end = Keys::last_event_before(end_of(self.store.now().plus(-max_secondary_index_delay()), filter));
        if feed.last.is_some_and(|last| last >= end) {
            return Ok(());
        }
        let rows = self.history_rows(entity, 0..=keys::LAST_VERSION, None).await?;
        let mut ids: Vec<EventId> = rows.into_values().filter(|id| feed.last < Some(*id) && *id <= end).collect();
        ids.sort_unstable();
        let mut read = 0;
        let at_once = if filter.is_selective() { READ_AT_ONCE } else { limit };
        for chunk in ids.chunks(at_once) {
            let keys: Vec<Key> = chunk.iter().map(|id| self.keys.event(*id)).collect();
            let items = self.items(&keys).await?;
            for (id, key) in chunk.iter().zip(&keys) {
                // An entry missing from the table is lost, and the feed can't show it.
                let entry = items.get(key).and_then(entry_of).filter(|entry| filter.matches(&entry.text));
                if read == MAX_READ || entry.is_some_and(|entry| !feed.add(entry, limit)) {
                    feed.has_more = true;
                    return Ok(());
                }
                feed.last = Some(*id);
                read += 1;
            }
        }
        feed.last = Some(end);
        Ok(())
    }

    /// Visits the entries of all events since `since`, oldest first, page by page.
    pub(in crate::store) async fn each_page_of_entries(
        &self,
        since: Timestamp,
        mut visit: impl FnMut(Vec<HistoryEntry>),
    ) -> Result<(), StoreError> {
        let (from, to) = Keys::events_since(since);
        let mut pages = self.events_query(from, to).into_paginator().send();
        while let Some(page) = pages.next().await {
            visit(page?.items.unwrap_or_default().iter().filter_map(entry_of).collect());
        }
        Ok(())
    }
}

/// Human-readable names of a record: its current names or, if it was deleted, its last names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordNames {
    /// For an instance, the asset's name; for a movement, its number.
    pub name: Option<String>,
    pub tag: Option<String>,
}

/// Returns the names of the fields with a record's name and tag.
const fn name_fields(kind: Kind) -> (Option<&'static str>, Option<&'static str>) {
    match kind {
        Kind::Asset => (Some("name"), Some("asset_tag")),
        Kind::Instance => (Some("asset_name"), Some("asset_tag")),
        Kind::User => (Some("display_name"), None),
        Kind::Movement => (Some("number"), None),
        Kind::Tenant | Kind::ApiKey | Kind::AssetType | Kind::Manufacturer | Kind::Model | Kind::Process => (Some("name"), None),
        Kind::ReceiptKeys | Kind::Link | Kind::Webhook => (None, None),
    }
}

impl RecordNames {
    fn of(kind: Kind, text: impl Fn(&str) -> Option<String>) -> Self {
        let (name, tag) = name_fields(kind);
        Self { name: name.and_then(&text), tag: tag.and_then(&text) }
    }

    fn of_item(kind: Kind, item: &Item) -> Self {
        Self::of(kind, |field| item.get(field)?.as_s().ok().cloned())
    }

    fn of_deleted(kind: Kind, changes: &Map<String, Value>) -> Self {
        Self::of(kind, |field| Some(changes.get(field)?["old"].as_str()?.to_owned()))
    }
}

impl Reader {
    /// Reads the names of records. Takes one round trip, or three if some records were deleted. Omits records that never existed.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn record_names(&self, records: HashSet<(Kind, Uuid)>) -> Result<HashMap<(Kind, Uuid), RecordNames>, StoreError> {
        let of_record = |(kind, id): (Kind, Uuid)| (self.keys.record(kind, id), (kind, id));
        let keys: HashMap<Key, (Kind, Uuid)> = records.into_iter().map(of_record).collect();
        let items = self.items_by_record(keys.clone()).await?;
        let mut names: HashMap<_, _> =
            items.into_iter().map(|(record, item)| (record, RecordNames::of_item(record.0, &item))).collect();
        let missing = keys.into_values().filter(|record| !names.contains_key(record));
        let tombstones = missing.map(|(kind, id)| (self.keys.tombstone(kind, id), (kind, id))).collect();
        let mut deletions = HashMap::new();
        for (record, tombstone) in self.items_by_record(tombstones).await? {
            // Skip a damaged tombstone: the feed must not fail because of a name.
            deletions.extend(HistoryHead::of(&tombstone).ok().map(|head| (self.keys.event(head.last_event), record)));
        }
        for (record, item) in self.items_by_record(deletions).await? {
            let event = entry_of(&item).and_then(|entry| serde_json::from_str::<Event>(&entry.text).ok());
            names.extend(event.map(|event| (record, RecordNames::of_deleted(record.0, &event.changes))));
        }
        Ok(names)
    }

    async fn items_by_record(&self, keys: HashMap<Key, (Kind, Uuid)>) -> Result<Vec<((Kind, Uuid), Item)>, StoreError> {
        let items = self.items(&keys.keys().cloned().collect::<Vec<_>>()).await?;
        Ok(items.into_iter().filter_map(|(key, item)| Some((*keys.get(&key)?, item))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::types::AttributeValue;
    use serde_json::json;

    #[test]
    fn a_deletion_says_what_the_record_was_called() {
        let Value::Object(changes) = json!({"name": {"old": "a", "new": null}, "asset_tag": {"old": "T-1", "new": null}}) else {
            unreachable!()
        };
        let names = RecordNames { name: Some("a".to_owned()), tag: Some("T-1".to_owned()) };
        assert_eq!(RecordNames::of_deleted(Kind::Asset, &changes), names);
        assert_eq!(RecordNames::of_deleted(Kind::Process, &changes), RecordNames { tag: None, ..names });
        assert_eq!(RecordNames::of_deleted(Kind::User, &Map::new()), RecordNames::default());
    }

    #[test]
    fn an_item_says_what_the_record_is_called() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let item = Item::from([("asset_name".to_owned(), text("a")), ("asset_tag".to_owned(), text("T-1"))]);
        let names = RecordNames { name: Some("a".to_owned()), tag: Some("T-1".to_owned()) };
        assert_eq!(RecordNames::of_item(Kind::Instance, &item), names);
        assert_eq!(RecordNames::of_item(Kind::ReceiptKeys, &item), RecordNames::default());
    }
}
