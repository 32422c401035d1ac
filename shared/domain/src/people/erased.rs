//! The people of whom entries lack something since they were erased.

use super::pseudonym;
use super::traces::{held_by, picked};
use crate::history::commitments::Commitments;
use crate::history::event::Event;
use crate::values::id::{Id, UserId};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Among those whom the entries name by their ids.
#[must_use]
pub fn erased_people(entries: &[(&Event, &Commitments)]) -> BTreeSet<UserId> {
    let named = entries.iter().flat_map(|(event, _)| people(event));
    let pseudonyms: BTreeMap<String, UserId> = named.map(|person| (pseudonym(person), person)).collect();
    let erased = entries.iter().flat_map(|(event, commitments)| {
        let shown = json!({"actor": event.actor, "changes": event.changes});
        let texts = commitments.erased().filter_map(|pointer| pseudonyms.get(shown.pointer(pointer)?.as_str()?).copied());
        texts.collect::<Vec<_>>()
    });
    erased.collect()
}

/// Who acted, who was picked or had the asset, and the user whose record it is.
fn people(event: &Event) -> Vec<UserId> {
    picked(event).chain(held_by(event)).chain(event.actor.user_id).chain([UserId::from_uuid(event.entity_id)]).collect()
}
