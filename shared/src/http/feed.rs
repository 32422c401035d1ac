//! Entries of the change feed as responses and deliveries show them.

use super::history::EventView;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::EventType;
use crate::domain::record::Kind;
use crate::store::{PointReads, RecordNames, StoreError};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

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
    /// Returns an entry with these names of what it is about.
    #[must_use]
    pub fn new(event: EventView, names: RecordNames) -> Self {
        Self { event, entity_name: names.name, entity_tag: names.tag }
    }

    /// Returns the change.
    #[must_use]
    pub fn event(&self) -> &EventView {
        &self.event
    }
}

fn record(event: &EventView) -> Option<(Kind, Uuid)> {
    Some((EventType::parse(&event.event_type)?.kind?, event.entity_id))
}

/// Returns the events with the names of what they are about. Those that can't be read are left out, and logged.
///
/// # Errors
///
/// Returns [`StoreError::Unavailable`] when the table does not respond in time.
pub async fn feed_entries(store: &PointReads, entries: Vec<HistoryEntry>) -> Result<Vec<FeedEntry>, StoreError> {
    let events: Vec<EventView> = entries.into_iter().filter_map(EventView::read).collect();
    let names = store.record_names(events.iter().filter_map(record).collect()).await?;
    let entry = |event: EventView| {
        let names = record(&event).and_then(|record| names.get(&record).cloned()).unwrap_or_default();
        FeedEntry::new(event, names)
    };
    Ok(events.into_iter().map(entry).collect())
}
