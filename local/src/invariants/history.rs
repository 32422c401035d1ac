//! The check of the records' histories. It computes the chains itself, independently of the service's own verification.

use super::{Snapshot, string};
use anyhow::{Context, Result};
use serde_json::Value;
use shared::domain::event::hash;
use std::collections::BTreeMap;
use uuid::Uuid;

/// An entry of a history.
struct Entry {
    event: Value,
    computed_hash: String,
    stored_hash: String,
}

impl Snapshot {
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
        self.violations.extend(self.chain_heads.drain().map(|(id, _)| format!("{id} has no events")));
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
        let head = self.chain_heads.remove(&record.parse::<Uuid>()?);
        let last = entries.last();
        let is_deleted = last.is_some_and(|last| last.event["type"].as_str().is_some_and(|kind| kind.ends_with(".deleted")));
        let expected = last.map(|last| (last.stored_hash.clone(), last.event["version"].as_u64().unwrap_or(0)));
        if head != expected.filter(|_| !is_deleted) {
            self.violations.push(format!("{record} has the head {head:?}, which is not its latest event"));
        }
        Ok(())
    }
}
