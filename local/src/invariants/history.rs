//! The check of the records' histories. It computes the chains itself, independently of the service's own verification.

use super::{Head, Snapshot, number, string};
use anyhow::{Context, Result};
use serde_json::Value;
use shared::domain::history::event::hash;
use shared::domain::values::id::{EventId, Id};
use shared::store::keys::{Key, deleted_record};
use std::collections::BTreeMap;
use uuid::Uuid;

/// An entry of a history.
struct Entry {
    event: Value,
    computed_hash: String,
    stored_hash: String,
}

impl Snapshot {
    /// Adds what the tombstones say.
    pub(super) fn add_tombstones(&mut self) {
        for item in &self.items {
            let Some((_, id)) = Key::of(item).as_ref().and_then(deleted_record) else { continue };
            let event = string(item, "last_event").and_then(EventId::from_short);
            match (string(item, "last_hash"), number(item, "version"), event) {
                (Some(hash), Some(version), Some(event)) => {
                    self.tombstones.insert(id, Head { hash: hash.to_owned(), version, event });
                }
                _ => self.violations.push(format!("the tombstone of {id} is incomplete")),
            }
        }
    }

    pub(super) fn check_histories(&mut self) -> Result<()> {
        let mut histories: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for item in self.items.iter().filter(|item| string(item, "type") == Some("event")) {
            let text = string(item, "entry").context("an event has no entry")?;
            let event: Value = serde_json::from_str(text)?;
            let stored_hash = string(item, "hash").context("an event has no hash")?.to_owned();
            let record = event["entity_id"].as_str().context("an event has no entity_id")?.to_owned();
            histories.entry(record).or_default().push(Entry { event, computed_hash: hash(text), stored_hash });
        }
        for (record, mut entries) in histories {
            entries.sort_by_key(|entry| entry.event["version"].as_u64());
            self.check_history(&record, &entries)?;
        }
        let without_events = self.chain_heads.drain().chain(self.tombstones.drain());
        self.violations.extend(without_events.map(|(id, _)| format!("{id} has no events")));
        Ok(())
    }

    fn check_history(&mut self, record: &str, entries: &[Entry]) -> Result<()> {
        let mut previous_hash = Value::Null;
        for (version, Entry { event, computed_hash, stored_hash }) in (1..).zip(entries) {
            if event["version"] != version || event["previous_hash"] != previous_hash || computed_hash != stored_hash {
                self.violations.push(format!("the chain of {record} breaks at version {version}"));
                break;
            }
            previous_hash = Value::String(stored_hash.clone());
        }
        let id = record.parse::<Uuid>()?;
        let (head, tombstone) = (self.chain_heads.remove(&id), self.tombstones.remove(&id));
        let Some(Entry { event, stored_hash, .. }) = entries.last() else { return Ok(()) };
        let version = event["version"].as_u64().context("an event has no version")?;
        let last_event = event["id"].as_str().context("an event has no id")?.parse()?;
        let last = Some(Head { hash: stored_hash.clone(), version, event: last_event });
        let is_deleted = event["type"].as_str().is_some_and(|kind| kind.ends_with(".deleted"));
        let (expected, other) = if is_deleted { (&tombstone, &head) } else { (&head, &tombstone) };
        if *expected != last || other.is_some() {
            self.violations.push(format!("{record} has the head {head:?} and the tombstone {tombstone:?}, not its latest event"));
        }
        Ok(())
    }
}
