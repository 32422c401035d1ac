//! Applying the events of the change feed to a list index.

use super::change_event::{ChangeEvent, Inconsistent};
use super::index::ListIndex;
use crate::domain::history::event::Verb;
use crate::domain::record::Kind;
use crate::domain::values::id::Id;
use crate::domain::values::time::Timestamp;
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// Applies the events since `since`, and those of a short time before it. They may be in any order, and may have been
/// applied before.
///
/// The clocks of two function instances differ, so a record's deletion may have an earlier id than its creation. The
/// events since `since` alone could then contain the creation without the deletion, and bring the record back. So
/// `events` must begin as long before `since` as clocks may differ. From that time, events of records that the index
/// does not have are ignored: it had them, and removed them. The same is true of later events of older records, if the
/// index removes records that go on existing ([`ListIndex::DROPS_ENDED`]).
///
/// `removed` has the records whose removal is among earlier events of that time, and gets those of these events.
///
/// Returns the records whose events don't follow from the index, because one is missing: it was missed, or its
/// transaction is visible only in part. Their later events are not applied.
///
/// # Errors
///
/// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
pub fn apply_events<I: ListIndex>(
    index: &mut I,
    events: Vec<ChangeEvent>,
    since: Timestamp,
    removed: &mut HashSet<(Kind, Uuid)>,
) -> Result<Vec<(Kind, Uuid)>, Inconsistent> {
    let mut incomplete = Vec::new();
    let mut by_record: BTreeMap<(Kind, Uuid), Vec<ChangeEvent>> = BTreeMap::new();
    for event in events {
        by_record.entry(event.record()).or_default().push(event);
    }
    for ((kind, id), mut events) in by_record {
        if removed.contains(&(kind, id)) || events.iter().any(I::is_removed_by) {
            removed.insert((kind, id));
            index.remove(kind, id);
            continue;
        }
        events.sort_by_key(|event| event.version);
        for event in events {
            let present = index.version(kind, id).unwrap_or(0);
            let is_removed = || event.id.timestamp() < since || I::DROPS_ENDED && event.is_of_older_record(since);
            if event.version <= present || present == 0 && is_removed() {
                continue;
            }
            // Clocks differ, so an event may be read before the one that it follows, but hardly ever without it.
            if event.version > present + 1 || (present == 0) != (event.verb == Verb::Created) {
                incomplete.push((kind, id));
                break;
            }
            index.apply_change(&event)?;
        }
    }
    Ok(incomplete)
}
