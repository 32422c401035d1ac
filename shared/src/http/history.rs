//! The audit trail as answers show it (contract 6).

use super::Answer;
use super::error::ApiError;
use super::params::{self, Limit, PageNumber};
use super::response::{self, Meta, present};
use crate::domain::chain::{HistoryEntry, Verification};
use crate::domain::event::{Actor, Event};
use crate::domain::id::EventId;
use crate::domain::record::Record;
use crate::domain::time::Timestamp;
use crate::store::{HistoryPage, LARGEST_ANSWER, TenantStore};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

crate::query! {
    /// Which part of a history.
    pub struct HistoryQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
        /// `true`: re-compute the whole chain of hashes, too.
        verify: bool as bool,
    }
}

/// One change (contract 6).
#[derive(Debug, Serialize, ToSchema)]
pub struct EventView {
    /// Identifier; sorts by time.
    pub id: EventId,
    /// When the change was asked for.
    pub at: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(examples("asset.updated"))]
    pub kind: String,
    /// What it happened to.
    pub entity_id: Uuid,
    /// The version that the change made, from 1.
    pub version: u64,
    /// Who made it, with the names of then.
    pub actor: Actor,
    /// What changed: an object with `old` and `new` for each field. Null when the answer would have become too long.
    #[schema(required, value_type = Option<Object>)]
    pub changes: Option<Map<String, Value>>,
    /// The hash of the entry before; null for the first.
    #[schema(required)]
    pub previous_hash: Option<String>,
    /// SHA-256 over the canonical JSON (RFC 8785) of all the members above.
    pub hash: String,
}

impl EventView {
    /// The view of a stored entry; `None` when it can't be read.
    #[must_use]
    pub fn read(entry: HistoryEntry) -> Option<Self> {
        let event: Event = match serde_json::from_str(&entry.text) {
            Ok(event) => event,
            Err(_) => {
                tracing::error!(event_id = %entry.id, "an entry of the history can't be read");
                return None;
            }
        };
        let Event { id, at, event_type, entity_id, version, actor, changes, previous_hash } = event;
        Some(Self {
            id,
            at,
            kind: event_type,
            entity_id,
            version,
            actor,
            changes: Some(changes),
            previous_hash,
            hash: entry.hash,
        })
    }
}

/// A page of a thing's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct History {
    /// The changes, newest first.
    data: Vec<EventView>,
    /// Where the page stands.
    meta: Meta,
    /// What checking the whole chain found; present if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<Verification>,
}

/// Reads a page of the history of the thing `id`.
///
/// # Errors
///
/// 404 if there never was such a thing; the table's.
pub async fn read<T: Record>(store: &TenantStore, id: T::Id, query: HistoryQuery) -> Result<History, ApiError> {
    let page = params::page(query.page, query.limit);
    let verified = async {
        match query.verify {
            Some(true) => store.verify_history::<T>(id).await,
            _ => Ok(None),
        }
    };
    let (told, verification) = tokio::try_join!(store.history::<T>(id, page), verified)?;
    let HistoryPage { entries, total, page } = present(told)?;
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    let mut weight = 0;
    let data = entries.into_iter().filter_map(|entry| {
        weight += response::escaped_len(entry.text.as_bytes());
        let view = EventView::read(entry)?;
        Some(if weight > LARGEST_ANSWER { EventView { changes: None, ..view } } else { view })
    });
    let meta = Meta { total, page: page.number, limit: page.limit, total_pages: total.div_ceil(page.limit as usize) };
    Ok(History { data: data.collect(), meta, verification })
}

/// 200 with a page of a history.
///
/// # Errors
///
/// As [`response::json`].
pub fn answer(history: &History) -> Answer {
    response::json(history)
}
