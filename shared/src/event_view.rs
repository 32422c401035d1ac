//! Events and entries of the change feed as responses and deliveries show them.

use crate::domain::actor::Actor;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::commitments::Commitments;
use crate::domain::history::event::{Event, EventType};
use crate::domain::record::Kind;
use crate::domain::values::id::EventId;
use crate::domain::values::time::Timestamp;
use crate::store::{RecordNames, StoreError, TenantStore};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

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
    /// SHA-256 of the canonical JSON (RFC 8785) of all other members, with digests in place of the values in `commitments`.
    pub hash: String,
    /// What `hash` covers in place of values about people, by their JSON pointers.
    #[serde(skip_serializing_if = "Commitments::is_empty")]
    #[schema(value_type = BTreeMap<String, CommitmentView>, required = false)]
    pub commitments: Commitments,
}

/// How an entry commits to a value: by its `salt`, or by its `digest` if the value was erased.
#[derive(ToSchema)]
#[schema(as = Commitment)]
pub struct CommitmentView {
    /// 128 bits in base64url.
    #[schema(required = false)]
    pub salt: Option<String>,
    /// SHA-256 in base64url, as in SD-JWT (RFC 9901).
    #[schema(required = false)]
    pub digest: Option<String>,
}

impl EventView {
    /// Returns `None`, and logs it, if the entry can't be read.
    #[must_use]
    pub fn read(entry: HistoryEntry) -> Option<Self> {
        let event: Event = match serde_json::from_str(&entry.text) {
            Ok(event) => event,
            Err(_) => {
                tracing::error!(event_id = %entry.id, "an entry of the history can't be read");
                return None;
            }
        };
        Some(Self::new(event, entry.hash, entry.commitments))
    }

    #[must_use]
    pub fn new(event: Event, hash: String, commitments: Commitments) -> Self {
        let Event { id, at, event_type, entity_id, version, actor, changes, previous_hash } = event;
        Self { id, at, event_type, entity_id, version, actor, changes: Some(changes), previous_hash, hash, commitments }
    }
}

/// A change in the feed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedEvent)]
pub struct FeedEntry {
    /// The change, as the history shows it.
    #[serde(flatten)]
    event: EventView,
    /// Name of the resource now; last name if it was deleted. An instance has its asset's, a movement its number. Not part
    /// of what is hashed.
    #[schema(required)]
    entity_name: Option<String>,
    /// Asset tag, of an asset or an instance. Not part of what is hashed.
    #[schema(required)]
    entity_tag: Option<String>,
}

impl FeedEntry {
    /// `names` belong to the changed record.
    #[must_use]
    pub fn new(event: EventView, names: RecordNames) -> Self {
        Self { event, entity_name: names.name, entity_tag: names.tag }
    }

    #[must_use]
    pub fn event(&self) -> &EventView {
        &self.event
    }
}

fn record(event: &EventView) -> Option<(Kind, Uuid)> {
    Some((EventType::parse(&event.event_type)?.kind?, event.entity_id))
}

/// Returns the events with the names of their records. Unreadable events are logged and omitted.
///
/// # Errors
///
/// Returns [`StoreError::Unavailable`] when the table does not respond in time.
pub async fn feed_entries(store: &TenantStore, entries: Vec<HistoryEntry>) -> Result<Vec<FeedEntry>, StoreError> {
    let events: Vec<EventView> = entries.into_iter().filter_map(EventView::read).collect();
    let names = store.record_names(events.iter().filter_map(record).collect()).await?;
    let entry = |event: EventView| {
        let names = record(&event).and_then(|record| names.get(&record).cloned()).unwrap_or_default();
        FeedEntry::new(event, names)
    };
    Ok(events.into_iter().map(entry).collect())
}
