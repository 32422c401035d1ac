//! Checking every chain of a tenant against the records, for the operator.

use super::TenantStore;
use super::error::StoreError;
use super::history::{chain_head_in, entry_of};
use super::item::{LAST_HASH, VERSION};
use super::keys::Keys;
use super::list_index::late;
use crate::domain::chain::{BrokenLink, Chain, ChainError, ChainHead, HistoryEntry, subject};
use crate::domain::id::{EventId, Id};
use crate::domain::record::Kind;
use crate::domain::time::Timestamp;
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// How often what others write meanwhile is looked at.
const ROUNDS: u32 = 4;

/// What a check of a whole tenant found.
#[derive(Debug, Clone)]
pub struct TenantVerification {
    /// How many things there are or were.
    pub things: usize,
    /// How many changes were looked at.
    pub events: u64,
    /// The histories that do not hold: what each is of, and where it breaks. Oldest thing first.
    pub broken: Vec<(Option<Kind>, Uuid, BrokenLink)>,
}

/// The chains of a tenant while they are checked.
struct ChainScan {
    /// When it began. What was written since may change while it is looked at.
    began: Timestamp,
    /// What each chain is of, oldest first.
    chains: BTreeMap<Uuid, (Option<Kind>, Chain)>,
    /// The events that may come again.
    recent: HashSet<EventId>,
    /// How many changes the records speak of, and how many were looked at.
    expected: u64,
    events: u64,
    /// The only things to follow from now on, if not all.
    only: Option<HashSet<Uuid>>,
    /// How many chains were taken out already.
    closed: usize,
    broken: Vec<(Option<Kind>, Uuid, BrokenLink)>,
}

impl TenantStore {
    /// Re-computes every chain of the tenant and compares it with its record. Others may write meanwhile.
    /// `progress` hears how many changes were looked at, and of how many as far as is known.
    ///
    /// Keeps some 350 bytes for each thing that there is or was.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn inspect(&self, mut progress: impl FnMut(u64, u64)) -> Result<TenantVerification, StoreError> {
        // Records first: whatever they say is in the events by now.
        let mut sweep = self.heads().await?;
        let again = sweep.began.plus(-late());
        self.sweep(&mut sweep, Timestamp::from_millis(0), &mut progress).await?;
        // Once more those that were written meanwhile, with an earlier id than was read perhaps; and again, as long as
        // others write, those of the things that are still in doubt.
        for _ in 0..ROUNDS {
            self.sweep(&mut sweep, again, &mut progress).await?;
            let doubtful = self.doubtful(&mut sweep).await?;
            if doubtful.is_empty() {
                break;
            }
            sweep.only = Some(doubtful);
        }
        Ok(sweep.finish())
    }

    /// The things whose chain has a gap, ends without record or deletion, or goes on beyond its record. Those that were made meanwhile, and whose
    /// record is there by now, are done with.
    async fn doubtful(&self, sweep: &mut ChainScan) -> Result<HashSet<Uuid>, StoreError> {
        let mut doubtful: HashSet<Uuid> =
            sweep.chains.iter().filter(|(_, (_, chain))| chain.has_gap()).map(|(id, _)| *id).collect();
        let open = sweep
            .chains
            .iter()
            .filter(|(_, (_, chain))| chain.ends_open() || chain.is_beyond())
            .map(|(id, (kind, _))| (*id, *kind));
        for (id, kind) in open.collect::<Vec<_>>() {
            let head = match kind {
                Some(kind) => self.chain_head(self.keys.record(kind, id)).await?,
                None => None,
            };
            match head {
                Some((head, _)) => sweep.close(id, &head),
                // Made and deleted meanwhile, perhaps: then its deletion is in the events by now.
                None => drop(doubtful.insert(id)),
            }
        }
        Ok(doubtful)
    }

    /// A sweep that knows the tenant's records and no event yet.
    async fn heads(&self) -> Result<ChainScan, StoreError> {
        let (mut chains, mut expected, began) = (BTreeMap::new(), 0, self.store.now());
        for kind in Kind::ALL {
            let query = self.of_kind(*kind).projection_expression("#id, #version, #hash").expression_attribute_names("#id", "id");
            let query = query.expression_attribute_names("#version", VERSION).expression_attribute_names("#hash", LAST_HASH);
            let mut pages = query.into_paginator().send();
            while let Some(page) = pages.next().await {
                for item in page?.items.unwrap_or_default() {
                    let id = item.get("id").and_then(|id| id.as_s().ok()).and_then(|id| id.parse().ok());
                    let (Some(id), Some(head)) = (id, chain_head_in(&item)) else {
                        return Err(StoreError::broken("a record without id, version or hash"));
                    };
                    expected += head.version;
                    chains.insert(id, (Some(*kind), Chain::new(Some(head))));
                }
            }
        }
        Ok(ChainScan { began, chains, recent: HashSet::new(), expected, events: 0, only: None, closed: 0, broken: Vec::new() })
    }

    /// Adds every event since then to its chain.
    async fn sweep(
        &self,
        sweep: &mut ChainScan,
        since: Timestamp,
        progress: &mut impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let (from, to) = Keys::events_since(since);
        let mut pages = self.events_query(from, to).into_paginator().send();
        while let Some(page) = pages.next().await {
            page?.items.unwrap_or_default().iter().filter_map(entry_of).for_each(|entry| sweep.add(&entry));
            progress(sweep.events, sweep.expected.max(sweep.events));
        }
        Ok(())
    }
}

impl ChainScan {
    fn add(&mut self, entry: &HistoryEntry) {
        if entry.id.timestamp() >= self.began.plus(-late()) && !self.recent.insert(entry.id) {
            return;
        }
        let about = subject(&entry.text);
        if let (Some(only), Some(((_, id), _))) = (&self.only, &about)
            && !only.contains(id)
        {
            return;
        }
        self.events += 1;
        match about {
            Some(((kind, id), version)) => {
                self.chains.entry(id).or_insert_with(|| (kind, Chain::default())).1.add(version, entry);
            }
            None => {
                let unreadable = BrokenLink { event_id: Some(entry.id), version: 0, reason: ChainError::Unreadable };
                self.broken.push((None, Uuid::nil(), unreadable));
            }
        }
    }

    /// Takes out a chain that had no record at first: it was made meanwhile, and this is where it ends now.
    fn close(&mut self, id: Uuid, head: &ChainHead) {
        let Some((kind, chain)) = self.chains.get(&id) else { return };
        let known = chain.next() - 1;
        // One that goes on being changed has been read as far as it went.
        let fits = head.version > known || head.version == known && chain.hash() == Some(&head.last_hash);
        if !fits {
            self.broken.push((*kind, id, BrokenLink { event_id: None, version: known, reason: ChainError::WrongHead }));
        }
        self.closed += 1;
        self.chains.remove(&id);
    }

    fn finish(self) -> TenantVerification {
        let things = self.chains.len() + self.closed;
        let ends = self.chains.into_iter().filter_map(|(id, (kind, chain))| Some((kind, id, chain.finish().broken?)));
        let mut broken = self.broken;
        broken.extend(ends);
        TenantVerification { things, events: self.events, broken }
    }
}
