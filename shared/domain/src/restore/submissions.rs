//! Who submitted the values of an instance, as its history says.

use crate::history::commitments::Commitments;
use crate::history::event::Event;
use crate::processes::instance::Signed;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The author of each step's present value, from the entries of an instance, oldest first.
#[must_use]
pub fn submissions<'a>(entries: impl IntoIterator<Item = (&'a Event, &'a Commitments)>) -> BTreeMap<String, Signed> {
    let mut authors = BTreeMap::new();
    for (event, commitments) in entries {
        let Some(change) = event.changes.get("step_data") else { continue };
        let keys = |side: &str| change.get(side).and_then(Value::as_object).into_iter().flat_map(|values| values.keys());
        let (old, new): (BTreeSet<&String>, BTreeSet<&String>) = (keys("old").collect(), keys("new").collect());
        for key in old.union(&new).filter(|key| commitments.is_changed(&event.changes, &format!("step_data/{key}"))) {
            match new.contains(key) {
                true => authors.insert((*key).clone(), Signed::new(&event.actor, event.at)),
                false => authors.remove(*key),
            };
        }
    }
    authors
}
