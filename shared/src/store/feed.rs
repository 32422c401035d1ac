//! What happened in the whole tenant, in order (docs/adr/0009).

use super::TenantStore;
use super::error::StoreError;
use super::history::entry_of;
use super::keys::{self, Key, Keys, PK, SK};
use super::list_index::late;
use crate::domain::chain::Entry;
use crate::domain::id::EventId;
use crate::domain::json;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;

/// What an answer may weigh before it leaves something out: a Lambda's answer may not exceed 6 MB.
pub const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

/// A part of the tenant's events, oldest first.
#[derive(Debug, Clone)]
pub struct Feed {
    /// The events.
    pub entries: Vec<Entry>,
    /// The last of them.
    pub last: Option<EventId>,
    /// Whether there are more already.
    pub has_more: bool,
}

impl TenantStore {
    /// The tenant's events after `after`, or from the first; only those that are old enough that none can appear
    /// before them any more, so that whoever goes on after the last one misses nothing.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn events(&self, after: Option<EventId>, limit: u32) -> Result<Feed, StoreError> {
        self.admitted().await;
        let mut feed = Feed { entries: Vec::new(), last: after, has_more: false };
        let Some((from, to)) = Keys::events_between(after, self.store.now().plus(-late())) else { return Ok(feed) };
        let limit = limit as usize;
        let query = self.events_query(from, to).limit(i32::try_from(limit + 1).unwrap_or(i32::MAX));
        let mut pages = query.into_paginator().send();
        let mut weight = 0;
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let id = Key::of(&item).as_ref().and_then(keys::event_id);
                let entry = entry_of(&item);
                let length = entry.as_ref().map_or(0, |entry| json::weight(entry.text.as_bytes()));
                if feed.entries.len() == limit || !feed.entries.is_empty() && weight + length > LARGEST_ANSWER {
                    feed.has_more = true;
                    return Ok(feed);
                }
                weight += length;
                feed.last = id.or(feed.last);
                feed.entries.extend(entry);
            }
        }
        Ok(feed)
    }

    /// The tenant's events from one key to another, both included.
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
