//! Verifies all hash chains of a tenant against its records, for the operator.

use crate::domain::history::chain::{BrokenLink, Chain, ChainError, ChainHead, HistoryEntry, subject};
use crate::domain::record::Kind;
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::history::of_record::{HistoryHead, MAX_LOOKS, may_be_in_flight, pause_before_look};
use crate::store::keys::{self, Item, Key};
use crate::store::{Reader, StoreError, max_event_delay};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct TenantVerification {
    /// Includes deleted records.
    pub records: usize,
    pub events: u64,
    /// The first broken link of each broken chain, with the kind and ID of its record. Oldest record first.
    pub broken_links: Vec<(Option<Kind>, Uuid, BrokenLink)>,
}

struct ChainScan {
    /// The time at which the scan began. Records may have changed since.
    began: Timestamp,
    /// Unfinished chains by record ID, oldest record first.
    chains: BTreeMap<Uuid, (Option<Kind>, Chain)>,
    /// Checked events that may be read again, each with its record.
    recent: HashMap<EventId, Option<Uuid>>,
    /// The number of events that the records should have in total.
    expected_events: u64,
    events: u64,
    /// If set, only these records are still scanned.
    only: Option<HashSet<Uuid>>,
    /// Number of finished chains, which are no longer in `chains`.
    closed: usize,
    broken_links: Vec<(Option<Kind>, Uuid, BrokenLink)>,
    /// Records with a damaged history head. Their chains can't be verified.
    damaged: HashSet<Uuid>,
}

impl Reader {
    /// Recomputes every chain of the tenant, and compares each chain with its record. Tolerates concurrent writes.
    ///
    /// Calls `progress` with the number of checked events and the number of all events known so far. Needs about 350 bytes of
    /// memory per record, including deleted records.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when records or events can't be read, and [`StoreError::Unsettled`] when a chain only seems
    /// broken, because a recent change may not be fully visible yet.
    pub async fn verify_chains(&self, mut progress: impl FnMut(u64, u64)) -> Result<TenantVerification, StoreError> {
        // Read records before events, so that the events contain all changes of each record.
        let mut scan = self.begin_scan().await?;
        let recent = scan.began.plus(-max_event_delay());
        self.scan_events(&mut scan, Timestamp::from_millis(0), &mut progress).await?;
        // Events written during the scan can have lower IDs than events already read. So read recent events again, and repeat
        // this for chains that are still incomplete because of concurrent writes.
        for looks in 1..=MAX_LOOKS {
            self.scan_events(&mut scan, recent, &mut progress).await?;
            let incomplete = self.incomplete_chains(&mut scan).await?;
            if incomplete.is_empty() {
                break;
            }
            if looks == MAX_LOOKS && self.may_be_incomplete(&scan, &incomplete).await? {
                return Err(StoreError::Unsettled("changes of the last seconds are still being written"));
            }
            scan.only = Some(incomplete);
            pause_before_look(looks).await;
        }
        Ok(scan.finish())
    }

    /// Reads all records of the tenant, including deleted records, but no events yet.
    async fn begin_scan(&self) -> Result<ChainScan, StoreError> {
        let mut scan = ChainScan::new(self.store.now());
        for kind in Kind::ALL {
            let record = |item: &Item| {
                let in_key = || keys::record_id(*kind, &Key::of(item)?);
                let own = || item.get("id")?.as_s().ok()?.parse().ok();
                Some((Some(*kind), in_key().or_else(own)?))
            };
            self.scan_heads(&mut scan, self.of_kind(*kind), record).await?;
        }
        // Read tombstones after the records, so that a record deleted in between isn't missed.
        let tombstones = self.beginning(AttributeValue::S(keys::TOMBSTONES.to_owned()));
        self.scan_heads(&mut scan, tombstones, |item| keys::deleted_record(&Key::of(item)?)).await?;
        Ok(scan)
    }

    /// Adds the records or tombstones found by a query. `record` returns the kind and ID of an item.
    async fn scan_heads(
        &self,
        scan: &mut ChainScan,
        query: QueryFluentBuilder,
        record: impl Fn(&Item) -> Option<(Option<Kind>, Uuid)>,
    ) -> Result<(), StoreError> {
        let mut query =
            query.projection_expression("#pk, #sk, #id, #version, #hash, #event").expression_attribute_names("#id", "id");
        for (name, attribute) in HistoryHead::ATTRIBUTES {
            query = query.expression_attribute_names(name, attribute);
        }
        let mut pages = query.into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let head = HistoryHead::of(&item).ok();
                let (Some((kind, id)), Some(HistoryHead { chain: head, .. })) = (record(&item), head) else {
                    // A damaged item must not hide problems with other items.
                    let (kind, id) = record(&item).unwrap_or((None, Uuid::nil()));
                    scan.damaged.insert(id);
                    let link = BrokenLink { event_id: None, version: 0, reason: ChainError::WrongHead };
                    scan.broken_links.push((kind, id, link));
                    continue;
                };
                scan.expected_events += head.version;
                scan.chains.insert(id, (kind, Chain::new(Some(head))));
            }
        }
        Ok(())
    }

    /// Adds every event since `since` to its chain.
    async fn scan_events(
        &self,
        scan: &mut ChainScan,
        since: Timestamp,
        progress: &mut impl FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let add = |entries: Vec<HistoryEntry>| {
            entries.iter().for_each(|entry| scan.add(entry));
            progress(scan.events, scan.expected_events.max(scan.events));
        };
        self.each_page_of_entries(since, add).await
    }

    /// Returns records whose chain has a gap, ends without a record or a deletion, or is ahead of its record. Finishes the chains
    /// of records created or changed during the scan, once the current record agrees with them.
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
                Some(kind) => self.history_head(kind, id).await?,
                None => None,
            };
            if !scan.close(id, head.map(|head| head.chain).as_ref()) {
                // If the record was created and deleted during the scan, the next round reads its deletion.
                incomplete.insert(id);
            }
        }
        Ok(incomplete)
    }

    /// Whether a transaction may not be fully visible yet.
    async fn may_be_incomplete(&self, scan: &ChainScan, incomplete: &HashSet<Uuid>) -> Result<bool, StoreError> {
        let now = self.store.now();
        let in_flight = scan.recent.iter().filter(|(event, _)| may_be_in_flight(**event, now));
        if in_flight.filter_map(|(_, record)| *record).any(|record| incomplete.contains(&record)) {
            return Ok(true);
        }
        for id in incomplete {
            let Some((Some(kind), _)) = scan.chains.get(id) else { continue };
            let head = self.history_head(*kind, *id).await?;
            if head.is_some_and(|head| may_be_in_flight(head.last_event, now)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl ChainScan {
    fn new(began: Timestamp) -> Self {
        Self {
            began,
            chains: BTreeMap::new(),
            recent: HashMap::new(),
            expected_events: 0,
            events: 0,
            only: None,
            closed: 0,
            broken_links: Vec::new(),
            damaged: HashSet::new(),
        }
    }

    fn add(&mut self, entry: &HistoryEntry) {
        if self.recent.contains_key(&entry.id) {
            return;
        }
        let subject = subject(&entry.text);
        if entry.id.timestamp() >= self.began.plus(-max_event_delay()) {
            self.recent.insert(entry.id, subject.map(|((_, id), _)| id));
        }
        if let (Some(only), Some(((_, id), _))) = (&self.only, &subject)
            && !only.contains(id)
        {
            return;
        }
        self.events += 1;
        match subject {
            Some(((_, id), _)) if self.damaged.contains(&id) => {}
            Some(((kind, id), version)) => {
                self.chains.entry(id).or_insert_with(|| (kind, Chain::default())).1.add(version, entry);
            }
            None => {
                let unreadable = BrokenLink { event_id: Some(entry.id), version: 0, reason: ChainError::Unreadable };
                self.broken_links.push((None, Uuid::nil(), unreadable));
            }
        }
    }

    /// Finishes the chain of a record that was created, changed or deleted during the scan, if `head`, the record's current head,
    /// has reached the end of the chain. Otherwise returns `false`.
    fn close(&mut self, id: Uuid, head: Option<&ChainHead>) -> bool {
        let Some((kind, chain)) = self.chains.get(&id) else { return true };
        let checked = chain.next() - 1;
        if !chain.agrees_with(head) {
            if head.is_none_or(|head| head.version < checked) {
                return false;
            }
            let link = BrokenLink { event_id: None, version: checked, reason: ChainError::WrongHead };
            self.broken_links.push((*kind, id, link));
        }
        self.closed += 1;
        self.chains.remove(&id);
        true
    }

    fn finish(self) -> TenantVerification {
        let records = self.chains.len() + self.closed;
        let ends = self.chains.into_iter().filter_map(|(id, (kind, chain))| {
            let beyond = BrokenLink { event_id: None, version: chain.next() - 1, reason: ChainError::WrongHead };
            let beyond = chain.is_beyond().then_some(beyond);
            Some((kind, id, beyond.or(chain.finish().broken)?))
        });
        let mut broken_links = self.broken_links;
        broken_links.extend(ends);
        TenantVerification { records, events: self.events, broken_links }
    }
}
