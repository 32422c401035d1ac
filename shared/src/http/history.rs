//! The audit trail as responses show it.

use super::error::ApiError;
use super::page::Meta;
use super::params::{self, Limit, PageNumber};
use super::response::found;
use crate::domain::history::chain::{HistoryEntry, Verification};
use crate::domain::history::event::{Actor, Event};
use crate::domain::record::Record;
use crate::domain::values::id::EventId;
use crate::domain::values::json;
use crate::domain::values::time::Timestamp;
use crate::store::{HistoryPage, MAX_BODY_BEFORE_OMISSION, UnverifiedStore};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

crate::query! {
    /// Part of a history.
    pub struct HistoryQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
        /// `true` also recomputes the whole hash chain.
        verify: bool as bool,
    }
}

/// The old and the new value of a field.
#[derive(ToSchema)]
pub struct FieldChange {
    /// The value before the change; null if there was none.
    pub old: Value,
    /// The value after the change; null if there is none.
    pub new: Value,
}

/// Changed fields by name.
#[derive(ToSchema)]
#[schema(value_type = BTreeMap<String, FieldChange>)]
pub struct Changes(());

/// One change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    /// Identifier. Sorts by time.
    pub id: EventId,
    /// When the request came.
    pub at: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(examples("asset.updated"))]
    pub event_type: String,
    /// The resource that changed.
    pub entity_id: Uuid,
    /// Version of the resource after the change, from 1.
    pub version: u64,
    /// Who made the change, with names as they were at the time.
    pub actor: Actor,
    /// Changed fields, each with `old` and `new`. Null if the response would become too long.
    #[schema(required, value_type = Option<Changes>)]
    pub changes: Option<Map<String, Value>>,
    /// Hash of the previous entry. Null for the first one.
    #[schema(required)]
    pub previous_hash: Option<String>,
    /// SHA-256 of the canonical JSON (RFC 8785) of all other members.
    pub hash: String,
}

impl EventView {
    /// Returns the view of a stored entry; `None`, logged, if the entry can't be read.
    #[must_use]
    pub fn read(entry: HistoryEntry) -> Option<Self> {
        let event: Event = match serde_json::from_str(&entry.text) {
            Ok(event) => event,
            Err(_) => {
                tracing::error!(event_id = %entry.id, "an entry of the history can't be read");
                return None;
            }
        };
        Some(Self::new(event, entry.hash))
    }

    /// Returns the view of an event with this hash.
    #[must_use]
    pub fn new(event: Event, hash: String) -> Self {
        let Event { id, at, event_type, entity_id, version, actor, changes, previous_hash } = event;
        Self { id, at, event_type, entity_id, version, actor, changes: Some(changes), previous_hash, hash }
    }
}

/// A page of a resource's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventHistory)]
pub struct History {
    /// Changes, newest first.
    data: Vec<EventView>,
    /// Position of the page.
    meta: Meta,
    /// Result of recomputing the hash chain. Present if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Verification, required = false)]
    verification: Option<Verification>,
}

/// Reads a page of the history of the record `id`.
///
/// # Errors
///
/// Returns [`ApiError::NotFound`] if no such record ever existed, and [`ApiError::Unavailable`] if the table does not
/// respond or an entry can't be found yet.
pub async fn read<T: Record>(store: &UnverifiedStore, id: T::Id, query: HistoryQuery) -> Result<History, ApiError> {
    let request = params::page(query.page, query.limit);
    let verification = async {
        match query.verify {
            Some(true) => store.verified().await.verify_history::<T>(id).await,
            _ => Ok(None),
        }
    };
    let (page, verification) = tokio::try_join!(store.history::<T>(id, request), verification)?;
    let HistoryPage { entries, total, request } = found(page)?;
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    let mut bytes = 0;
    let data = entries.into_iter().filter_map(|entry| {
        bytes += json::escaped_len(entry.text.as_bytes());
        let view = EventView::read(entry)?;
        Some(if bytes > MAX_BODY_BEFORE_OMISSION { EventView { changes: None, ..view } } else { view })
    });
    Ok(History { data: data.collect(), meta: Meta::new(total, request), verification })
}
