//! The feed of all changes of a tenant, oldest first (docs/adr/0009).

use super::error::StoreError;
use super::history::entry_of;
use super::keys::{self, Key, Keys, PK, SK};
use super::list_index::max_event_delay;
use super::{PointReads, TenantStore};
use crate::domain::chain::HistoryEntry;
use crate::domain::id::EventId;
use crate::domain::json;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;

/// How many bytes a body may reach before parts of it are left out: images of signatures, changes of a history, further
/// events. Well below the 6 MB that a Lambda response may have.
pub const MAX_BODY_BEFORE_OMISSION: usize = 4 * 1024 * 1024;

/// A part of the tenant's events, oldest first.
#[derive(Debug, Clone)]
pub struct Feed {
    /// The events.
    pub entries: Vec<HistoryEntry>,
    /// The event to continue after: the last of this part, or the requested one.
    pub last: Option<EventId>,
    /// Whether more events follow already.
    pub has_more: bool,
}

impl TenantStore {
    /// Returns up to `limit` events after `after`, or from the first.
    ///
    /// Events of the last seconds are held back, because one with an earlier ID may still be written. A reader that
    /// continues after [`Feed::last`] therefore misses none.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn events(&self, after: Option<EventId>, limit: u32) -> Result<Feed, StoreError> {
        let mut feed = Feed { entries: Vec::new(), last: after, has_more: false };
        let Some((from, to)) = Keys::events_between(after, self.store.now().plus(-max_event_delay())) else { return Ok(feed) };
        let limit = limit as usize;
        let query = self.events_query(from, to).limit(i32::try_from(limit + 1).unwrap_or(i32::MAX));
        let mut pages = query.into_paginator().send();
        let mut bytes = 0;
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let id = Key::of(&item).as_ref().and_then(keys::event_id);
                let entry = entry_of(&item);
                let length = entry.as_ref().map_or(0, |entry| json::escaped_len(entry.text.as_bytes()));
                let is_full = !feed.entries.is_empty() && bytes + length > MAX_BODY_BEFORE_OMISSION;
                if feed.entries.len() == limit || is_full {
                    feed.has_more = true;
                    return Ok(feed);
                }
                bytes += length;
                feed.last = id.or(feed.last);
                feed.entries.extend(entry);
            }
        }
        Ok(feed)
    }
}

impl PointReads {
    /// Returns a query for the tenant's events between two keys, both included.
    pub(super) fn events_query(&self, from: AttributeValue, to: AttributeValue) -> QueryFluentBuilder {
        let query = self.store.client.query().table_name(&self.store.table).consistent_read(true);
        query
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :from AND :to")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", self.keys.partition())
            .expression_attribute_values(":from", from)
            .expression_attribute_values(":to", to)
    }
}
