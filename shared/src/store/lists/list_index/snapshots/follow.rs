//! Bringing a snapshot's index up to the last minute, page by page: for the writer, following is always cheaper than a load.
//!
//! Events that are older than any replica of a partition lags are read with half the units, eventually consistently. The last
//! minute is left for a refresh, which reads consistently and from a little earlier.

use crate::domain::record::Kind;
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::keys::{ENTRY, Item, Keys};
use crate::store::lists::list_index::apply_events::apply_events;
use crate::store::lists::list_index::cache::LoadedIndex;
use crate::store::lists::list_index::change_event::ChangeEvent;
use crate::store::lists::list_index::index::ListIndex;
use crate::store::lists::list_index::refresh_error::RefreshError;
use crate::store::table::delays::{CLOCK_SKEW, SECONDARY_INDEX_LAG, max_event_delay};
use std::collections::HashSet;
use uuid::Uuid;

impl TenantStore {
    /// Applies the events up to a minute before `now`.
    ///
    /// # Errors
    ///
    /// Returns [`RefreshError::Store`] when the table can't be read, and [`RefreshError::Inconsistent`] when this version of the
    /// service can't read an event.
    pub(in crate::store::lists::list_index) async fn follow_old_events<I: ListIndex>(
        &self,
        loaded: &mut LoadedIndex<I>,
        now: Timestamp,
    ) -> Result<(), RefreshError> {
        let (since, end) = (loaded.synced_at.plus(-max_event_delay()), now.plus(-SECONDARY_INDEX_LAG));
        if loaded.synced_at >= end {
            return Ok(());
        }
        let (from, to) = (Keys::events_since(since.plus(-CLOCK_SKEW)).0, Keys::events_since(end).0);
        let query = self.events_query(from, to).consistent_read(false);
        let query = query.projection_expression("#entry").expression_attribute_names("#entry", ENTRY);
        let (mut left, mut removed) = (Vec::new(), HashSet::new());
        let mut start_key = None::<Item>;
        loop {
            let page = self.page(query.clone().set_exclusive_start_key(start_key)).await?;
            let mut events: Vec<ChangeEvent> = left;
            for item in page.items.unwrap_or_default() {
                let entry = item.get(ENTRY).and_then(|entry| entry.as_s().ok()).ok_or(RefreshError::Inconsistent)?;
                events.extend(ChangeEvent::parse(entry)?.ok().filter(|event| I::follows(event.kind)));
            }
            left = apply_page(&mut loaded.index, events, since, &mut removed)?;
            start_key = page.last_evaluated_key;
            if start_key.is_none() {
                // Events that still lack an earlier one are of the last seconds, which are read again.
                loaded.synced_at = end;
                return Ok(());
            }
        }
    }
}

/// Returns the events of records that lack an earlier event, which the next page may have. `removed` remembers records that are
/// gone: clocks differ, so events of them may follow.
fn apply_page<I: ListIndex>(
    index: &mut I,
    events: Vec<ChangeEvent>,
    since: Timestamp,
    removed: &mut HashSet<(Kind, Uuid)>,
) -> Result<Vec<ChangeEvent>, RefreshError> {
    let incomplete: HashSet<_> = apply_events(index, events.clone(), since, removed)?.into_iter().collect();
    Ok(events.into_iter().filter(|event| incomplete.contains(&event.record())).collect())
}
