//! Verification of all hash chains of a tenant against its records, for the operator.

use super::TenantStore;
use super::error::StoreError;
use super::history::{chain_head_in, entry_of};
use super::item::{LAST_HASH, VERSION};
use super::keys::Keys;
use super::list_index::max_event_delay;
use crate::domain::chain::{BrokenLink, Chain, ChainError, ChainHead, HistoryEntry, subject};
use crate::domain::id::{EventId, Id};
use crate::domain::record::Kind;
use crate::domain::time::Timestamp;
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// How often events that were written during the verification are read again.
const MAX_ROUNDS: u32 = 4;

/// The result of verifying a tenant's chains.
#[derive(Debug, Clone)]
pub struct TenantVerification {
    /// How many records exist or existed.
    pub records: usize,
    /// How many events were checked.
    pub events: u64,
    /// The first broken link of each chain that has one, with the kind and the id of the chain's record. Oldest record
    /// first.
    pub broken_links: Vec<(Option<Kind>, Uuid, BrokenLink)>,
}

/// A verification in progress.
struct ChainScan {
    /// When it began. Records and events may have changed since.
    began: Timestamp,
    /// The chains by their record's id, oldest record first.
    chains: BTreeMap<Uuid, (Option<Kind>, Chain)>,
    /// The events that were checked and may be read again.
    recent: HashSet<EventId>,
    /// How many events the records should have.
    expected_events: u64,
    /// How many events were checked.
    events: u64,
    /// The only records to go on with; `None` for all.
    only: Option<HashSet<Uuid>>,
    /// How many chains are finished, and no longer in `chains`.
    closed: usize,
    broken_links: Vec<(Option<Kind>, Uuid, BrokenLink)>,
}

impl TenantStore {
    /// Recomputes every chain of the tenant and compares it with its record. Others may write at the same time.
    ///
    /// `progress` is called with the number of checked events and the number of all events, as far as it is known.
    /// Needs about 350 bytes of memory for each record that exists or existed.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when records or events can't be read.
    pub async fn verify_chains(&self, mut progress: impl FnMut(u64, u64)) -> Result<TenantVerification, StoreError> {
        // Records are read before events, so that the events contain all changes of each record.
        let mut scan = self.begin_scan().await?;
        let recent = scan.began.plus(-max_event_delay());
        self.scan_events(&mut scan, Timestamp::from_millis(0), &mut progress).await?;
        // Events that were written during the scan may have an earlier id than those that were read already. So recent
        // events are read again, and once more for chains that are still incomplete while others keep writing.
        for _ in 0..MAX_ROUNDS {
            self.scan_events(&mut scan, recent, &mut progress).await?;
            let incomplete = self.incomplete_chains(&mut scan).await?;
            if incomplete.is_empty() {
                break;
            }
            scan.only = Some(incomplete);
        }
        Ok(scan.finish())
    }

    /// Returns a scan with all records of the tenant and no events.
    async fn begin_scan(&self) -> Result<ChainScan, StoreError> {
        let (mut chains, mut expected_events, began) = (BTreeMap::new(), 0, self.store.now());
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
                    expected_events += head.version;
                    chains.insert(id, (Some(*kind), Chain::new(Some(head))));
                }
            }
        }
        let (recent, broken_links) = (HashSet::new(), Vec::new());
        Ok(ChainScan { began, chains, recent, expected_events, events: 0, only: None, closed: 0, broken_links })
    }

    /// Adds every event since `since` to its chain.
    async fn scan_events(
        &self,
        scan: &mut ChainScan,
        since: Timestamp,
        progress: &mut impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let (from, to) = Keys::events_since(since);
        let mut pages = self.events_query(from, to).into_paginator().send();
        while let Some(page) = pages.next().await {
            page?.items.unwrap_or_default().iter().filter_map(entry_of).for_each(|entry| scan.add(&entry));
            progress(scan.events, scan.expected_events.max(scan.events));
        }
        Ok(())
    }

    /// Returns the records whose chain has a gap, ends with neither a record nor a deletion, or goes on beyond its
    /// record. Chains of records that were created during the scan and that exist now are finished here.
    async fn incomplete_chains(&self, scan: &mut ChainScan) -> Result<HashSet<Uuid>, StoreError> {
        let mut incomplete: HashSet<Uuid> =
            scan.chains.iter().filter(|(_, (_, chain))| chain.has_gap()).map(|(id, _)| *id).collect();
        let open = scan
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
                Some((head, _)) => scan.close(id, &head),
                // If it was created and deleted during the scan, the next round reads its deletion.
                None => drop(incomplete.insert(id)),
            }
        }
        Ok(incomplete)
    }
}

impl ChainScan {
    fn add(&mut self, entry: &HistoryEntry) {
        if entry.id.timestamp() >= self.began.plus(-max_event_delay()) && !self.recent.insert(entry.id) {
            return;
        }
        let subject = subject(&entry.text);
        if let (Some(only), Some(((_, id), _))) = (&self.only, &subject)
            && !only.contains(id)
        {
            return;
        }
        self.events += 1;
        match subject {
            Some(((kind, id), version)) => {
                self.chains.entry(id).or_insert_with(|| (kind, Chain::default())).1.add(version, entry);
            }
            None => {
                let unreadable = BrokenLink { event_id: Some(entry.id), version: 0, reason: ChainError::Unreadable };
                self.broken_links.push((None, Uuid::nil(), unreadable));
            }
        }
    }

    /// Finishes the chain of a record that was created or changed during the scan. `head` is the record's present state.
    fn close(&mut self, id: Uuid, head: &ChainHead) {
        let Some((kind, chain)) = self.chains.get(&id) else { return };
        let checked = chain.next() - 1;
        // A record that is changed further is verified as far as its events were read.
        let matches = head.version > checked || head.version == checked && chain.hash() == Some(&head.last_hash);
        if !matches {
            let link = BrokenLink { event_id: None, version: checked, reason: ChainError::WrongHead };
            self.broken_links.push((*kind, id, link));
        }
        self.closed += 1;
        self.chains.remove(&id);
    }

    fn finish(self) -> TenantVerification {
        let records = self.chains.len() + self.closed;
        let ends = self.chains.into_iter().filter_map(|(id, (kind, chain))| Some((kind, id, chain.finish().broken?)));
        let mut broken_links = self.broken_links;
        broken_links.extend(ends);
        TenantVerification { records, events: self.events, broken_links }
    }
}
