//! Checking every chain of a tenant against the records, for the operator.

use super::TenantStore;
use super::directory::late;
use super::error::StoreError;
use super::history::{entry_of, head};
use super::keys::Keys;
use crate::domain::chain::{Broken, Chain, Flaw, subject};
use crate::domain::id::{EventId, Id};
use crate::domain::record::Kind;
use crate::domain::time::Timestamp;
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// What a check of a whole tenant found.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// How many things there are or were.
    pub things: usize,
    /// How many changes were looked at.
    pub events: u64,
    /// The histories that do not hold: what each is of, and where it breaks. Oldest thing first.
    pub broken: Vec<(Option<Kind>, Uuid, Broken)>,
}

/// A chain and what it is of.
type Chains = BTreeMap<Uuid, (Option<Kind>, Chain)>;

impl TenantStore {
    /// Re-computes every chain of the tenant and compares it with its record. Others may write meanwhile.
    /// `progress` hears how many changes were looked at, and of how many as far as is known.
    ///
    /// Keeps some 350 bytes for each thing that there is or was.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn inspect(&self, mut progress: impl FnMut(u64, u64)) -> Result<Inspection, StoreError> {
        let began = self.store.now();
        // Records first: whatever they say is in the events by now.
        let (mut chains, expected) = self.heads().await?;
        let mut recent = HashSet::new();
        let (mut events, mut broken) = (0, Vec::new());
        // From the first event on; then once more those that were written meanwhile with an earlier id than was read.
        for since in [Timestamp::from_millis(0), began.plus(-late())] {
            let (from, to) = Keys::events_since(since);
            let mut pages = self.events_query(from, to).into_paginator().send();
            while let Some(page) = pages.next().await {
                for entry in page?.items.unwrap_or_default().iter().filter_map(entry_of) {
                    if entry.id.made_at() >= began.plus(-late()) && !recent.insert(entry.id) {
                        continue;
                    }
                    events += 1;
                    match subject(&entry.text) {
                        Some(((kind, id), version)) => {
                            chains.entry(id).or_insert_with(|| (kind, Chain::default())).1.add(version, &entry);
                        }
                        None => broken.push((None, Uuid::nil(), unreadable(entry.id))),
                    }
                }
                progress(events, expected.max(events));
            }
        }
        let things = chains.len();
        for (id, (kind, chain)) in chains {
            let found = if chain.ends_open() { self.open_end(kind, id, chain).await? } else { chain.finish().broken };
            broken.extend(found.map(|found| (kind, id, found)));
        }
        Ok(Inspection { things, events, broken })
    }

    /// A chain without an end yet for each record; and how many changes these had in all.
    async fn heads(&self) -> Result<(Chains, u64), StoreError> {
        let (mut chains, mut expected) = (Chains::new(), 0);
        for kind in Kind::ALL {
            let query = self.of_kind(*kind).projection_expression("#id, #version, #hash").expression_attribute_names("#id", "id");
            let query = query.expression_attribute_names("#version", super::item::VERSION);
            let mut pages = query.expression_attribute_names("#hash", super::item::LAST_HASH).into_paginator().send();
            while let Some(page) = pages.next().await {
                for item in page?.items.unwrap_or_default() {
                    let id = item.get("id").and_then(|id| id.as_s().ok()).and_then(|id| id.parse().ok());
                    let (Some(id), Some(head)) = (id, head(&item)) else {
                        return Err(StoreError::broken("a record without id, version or hash"));
                    };
                    expected += head.version;
                    chains.insert(id, (Some(*kind), Chain::new(Some(head))));
                }
            }
        }
        Ok((chains, expected))
    }

    /// The end of a chain that had no record at first and no deletion: the thing was made meanwhile, or it is gone.
    async fn open_end(&self, kind: Option<Kind>, id: Uuid, chain: Chain) -> Result<Option<Broken>, StoreError> {
        let head = match kind {
            Some(kind) => self.head_of(self.keys.record(kind, id)).await?.map(|(head, _)| head),
            None => None,
        };
        let known = chain.next() - 1;
        Ok(match head {
            // It goes on being changed while it is checked.
            Some(head) if head.version > known => None,
            Some(head) if head.version == known && chain.hash() == Some(&head.last_hash) => None,
            Some(_) => Some(Broken { event_id: None, version: known, reason: Flaw::WrongHead }),
            None => chain.finish().broken,
        })
    }
}

fn unreadable(id: EventId) -> Broken {
    Broken { event_id: Some(id), version: 0, reason: Flaw::Unreadable }
}
