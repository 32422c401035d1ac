//! JSON form of events and feed entries in responses and deliveries.

use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::{Actor, Commitments};
use crate::domain::history::event::{Event, EventType};
use crate::domain::record::Kind;
use crate::domain::values::id::EventId;
use crate::domain::values::time::Timestamp;
use crate::store::{Reader, RecordNames, StoreError};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// Old and new value of a field.
#[derive(ToSchema)]
pub struct FieldChange {
    /// Value before the change; null if there was none.
    pub old: Value,
    /// Value after the change; null if there is none.
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
    /// Event ID. IDs sort by time.
    pub id: EventId,
    /// When the request arrived.
    pub at: Timestamp,
    /// Event type.
    #[serde(rename = "type")]
    #[schema(examples("asset.updated"))]
    pub event_type: String,
    /// The resource that changed.
    pub entity_id: Uuid,
    /// Version of the resource after the change, from 1.
    pub version: u64,
    /// Who made the change, with the names at the time of the change.
    pub actor: Actor,
    /// Changed fields, each with `old` and `new`. Null if they would make the response too long.
    #[schema(required, value_type = Option<Changes>)]
    pub changes: Option<Map<String, Value>>,
    /// Hash of the previous entry. Null for the first entry.
    #[schema(required)]
    pub previous_hash: Option<String>,
    /// SHA-256 of the canonical JSON (RFC 8785) of all other members, with digests in place of the values in `commitments`.
    pub hash: String,
    /// Commitments to values about people, by JSON pointer. `hash` covers these instead of the values.
    #[serde(skip_serializing_if = "Commitments::is_empty")]
    #[schema(value_type = BTreeMap<String, CommitmentView>, required = false)]
    pub commitments: Commitments,
}

/// Commitment to a value: the `salt`, or the `digest` if the value was erased.
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
    /// Logs an unreadable entry and returns `None`.
    #[must_use]
    pub fn read(entry: HistoryEntry) -> Option<Self> {
        let event: Event = match serde_json::from_str(&entry.text) {
            Ok(event) => event,
            Err(_) => {
                tracing::error!(event_id = %entry.id, "a history entry can't be read");
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

/// A change in the change feed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedEvent)]
pub struct FeedEntry {
    /// The change, as in the history.
    #[serde(flatten)]
    event: EventView,
    /// Current name of the resource, or its last name if it was deleted. For an instance, the name of its asset; for a movement,
    /// its number. Not covered by `hash`.
    #[schema(required)]
    entity_name: Option<String>,
    /// Asset tag, for an asset or an instance. Not covered by `hash`.
    #[schema(required)]
    entity_tag: Option<String>,
}

impl FeedEntry {
    /// Adds the changed record's names to an event.
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
/// Returns [`StoreError::Unavailable`] if the table doesn't respond in time.
pub async fn feed_entries(store: &Reader, entries: Vec<HistoryEntry>) -> Result<Vec<FeedEntry>, StoreError> {
    let events: Vec<EventView> = entries.into_iter().filter_map(EventView::read).collect();
    let names = store.record_names(events.iter().filter_map(record).collect()).await?;
    let entry = |event: EventView| {
        let names = record(&event).and_then(|record| names.get(&record).cloned()).unwrap_or_default();
        FeedEntry::new(event, names)
    };
    Ok(events.into_iter().map(entry).collect())
}
