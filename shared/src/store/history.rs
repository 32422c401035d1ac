//! The history of one record, newest entry first (docs/adr/0009).
//!
//! The index `history` says which events belong to a record; it may lag behind the table. Hence the record itself says
//! how many entries there must be, entries that the index lacks are looked up among the tenant's recent events, and the
//! text of every entry comes from the table.

use super::error::StoreError;
use super::filters::PageRequest;
use super::item::{LAST_HASH, UPDATED_AT, VERSION};
use super::keys::{self, HS, Item, Key, Keys, PK};
use super::list_index::max_secondary_index_delay;
use super::{PointReads, TenantStore, UnverifiedStore};
use crate::domain::chain::{BrokenLink, Chain, ChainError, ChainHead, HistoryEntry, Verification, is_deletion, subject};
use crate::domain::id::{EventId, Id};
use crate::domain::record::{Kind, Record};
use crate::domain::time::Timestamp;
use chrono::TimeDelta;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use uuid::Uuid;

/// How long the index may lag before an entry that it lacks counts as lost. Far longer than it ever takes, so that a
/// slow index is not reported as a broken chain.
const LOST_AFTER: TimeDelta = TimeDelta::hours(1);
/// How many entries are read at once while a chain is verified.
const ENTRIES_PER_READ: u64 = 1_000;

/// A page of a record's history, newest entry first.
#[derive(Debug, Clone)]
pub struct HistoryPage {
    /// The entries. A lost entry leaves a gap in the versions.
    pub entries: Vec<HistoryEntry>,
    /// How many entries the whole history has.
    pub total: u64,
    /// Which page this is.
    pub request: PageRequest,
}

/// What is known of a record's history before its entries are read.
struct HistoryState {
    /// Which kind the record must be of: permission to read histories of one kind is not permission for all.
    kind: Kind,
    entity: Uuid,
    /// The record's own word on its history, and when the record last changed.
    head: Option<(ChainHead, Timestamp)>,
    /// The events that the index names, by version.
    rows: BTreeMap<u64, EventId>,
    /// The index was read from this version up.
    read_from: u64,
    /// The entries among the tenant's recent events, once those were read.
    recent: Option<BTreeMap<u64, HistoryEntry>>,
}

impl HistoryState {
    /// Returns the highest version that anything speaks of.
    fn total(&self) -> u64 {
        let head = self.head.as_ref().map_or(0, |(head, _)| head.version);
        let recent = self.recent.as_ref().and_then(|recent| recent.keys().next_back().copied());
        head.max(self.newest_row()).max(recent.unwrap_or(0))
    }

    fn newest_row(&self) -> u64 {
        self.rows.keys().next_back().copied().unwrap_or(0)
    }

    fn is_recent(&self, version: u64) -> bool {
        self.recent.as_ref().is_some_and(|recent| recent.contains_key(&version))
    }

    /// Returns whether an entry that was found nowhere is lost, and not only late.
    fn is_lost(&self, version: u64, now: Timestamp) -> bool {
        // The entry is older than whatever follows it.
        let next = self.rows.range(version + 1..).next().map(|(_, id)| id.timestamp());
        let latest = next.or(self.head.as_ref().map(|(_, changed_at)| *changed_at));
        latest.is_none_or(|latest| latest.plus(LOST_AFTER) < now)
    }
}

impl UnverifiedStore {
    /// Returns a page of a record's history, also of a deleted record; `None` if no such record ever existed.
    ///
    /// Takes two round trips for the first page and three for others.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, or an entry can't be found yet.
    pub async fn history<T: Record>(&self, id: T::Id, request: PageRequest) -> Result<Option<HistoryPage>, StoreError> {
        let rows = if request.number == 1 { request.limit } else { 1 };
        let Some(mut state) = self.history_state::<T>(id, Some(rows)).await? else { return Ok(None) };
        let total = state.total();
        let newest = total.saturating_sub(request.skip() as u64);
        let oldest = newest.saturating_sub(request.limit.into()) + 1;
        let entries = self.history_entries(&mut state, oldest..=newest).await?;
        Ok(Some(HistoryPage { entries: entries.into_values().rev().collect(), total, request }))
    }

    /// Reads what the record and the index say of a history; of the index at most `rows` rows, the newest.
    async fn history_state<T: Record>(&self, id: T::Id, rows: Option<u32>) -> Result<Option<HistoryState>, StoreError> {
        let entity = id.uuid();
        let (head, rows) = tokio::try_join!(
            self.chain_head(self.keys.record(T::KIND, entity)),
            self.history_rows(entity, 0..=keys::LAST_VERSION, rows)
        )?;
        let read_from = rows.keys().next().copied().unwrap_or(1);
        let mut state = HistoryState { kind: T::KIND, entity, head, rows, read_from, recent: None };
        let is_complete = match &state.head {
            Some((head, _)) => state.newest_row() >= head.version,
            // A record that is older than any lag of the index would have rows.
            None if state.rows.is_empty() => id.timestamp().plus(max_secondary_index_delay()) < self.store.now(),
            None => match self.newest_entry(&state).await? {
                Some(entry) if subject(&entry.text).is_some_and(|((kind, _), _)| kind != Some(T::KIND)) => return Ok(None),
                Some(entry) => is_deletion(&entry.text),
                None => false,
            },
        };
        if !is_complete {
            self.read_recent(&mut state).await?;
        }
        Ok((state.total() > 0).then_some(state))
    }

    /// Returns the newest entry that the index names.
    async fn newest_entry(&self, state: &HistoryState) -> Result<Option<HistoryEntry>, StoreError> {
        let Some((_, id)) = state.rows.last_key_value() else { return Ok(None) };
        Ok(self.items(&[self.keys.event(*id)]).await?.values().next().and_then(entry_of))
    }

    /// Reads the tenant's recent events, as far back as the index may lag, and keeps those of the record.
    async fn read_recent(&self, state: &mut HistoryState) -> Result<(), StoreError> {
        let store = self.verified().await;
        let (from, to) = Keys::events_since(store.store.now().plus(-max_secondary_index_delay()));
        let mut pages = store.events_query(from, to).into_paginator().send();
        let mut recent = BTreeMap::new();
        while let Some(page) = pages.next().await {
            for entry in page?.items.unwrap_or_default().iter().filter_map(entry_of) {
                if let Some(((kind, id), version)) = subject(&entry.text)
                    && (kind, id) == (Some(state.kind), state.entity)
                {
                    recent.insert(version, entry);
                }
            }
        }
        state.recent = Some(recent);
        Ok(())
    }

    /// Returns the entries of these versions. Lost entries are left out, and logged.
    async fn history_entries(
        &self,
        state: &mut HistoryState,
        versions: RangeInclusive<u64>,
    ) -> Result<BTreeMap<u64, HistoryEntry>, StoreError> {
        if versions.is_empty() {
            return Ok(BTreeMap::new());
        }
        if *versions.start() < state.read_from {
            state.rows.extend(self.history_rows(state.entity, versions.clone(), None).await?);
        }
        let named = state.rows.range(versions.clone()).filter(|(version, _)| !state.is_recent(**version));
        let wanted: BTreeMap<u64, Key> = named.map(|(version, id)| (*version, self.keys.event(*id))).collect();
        let keys: Vec<Key> = wanted.values().cloned().collect();
        let mut items = self.items(&keys).await?;
        let read = |(version, key)| Some((version, entry_of(&items.remove(&key)?)?));
        let mut found: BTreeMap<u64, HistoryEntry> = wanted.into_iter().filter_map(read).collect();
        let is_missing = |version: u64| !found.contains_key(&version) && !state.is_recent(version);
        if state.recent.is_none() && versions.clone().any(is_missing) {
            self.read_recent(state).await?;
        }
        if let Some(recent) = &state.recent {
            found.extend(recent.range(versions.clone()).map(|(version, entry)| (*version, entry.clone())));
        }
        let now = self.store.now();
        for version in versions.filter(|version| !found.contains_key(version)) {
            if !state.is_lost(version, now) {
                return Err(StoreError::Unavailable("the index of the history is behind".into()));
            }
            tracing::error!(tenant_id = %self.id, entity_id = %state.entity, version, reason = %ChainError::Missing, "an entry of the history is lost");
        }
        Ok(found)
    }
}

impl TenantStore {
    /// Returns the whole history of a record, oldest entry first; `None` if no such record ever existed.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::history`].
    pub async fn whole_history<T: Record>(&self, id: T::Id) -> Result<Option<Vec<HistoryEntry>>, StoreError> {
        let store = self.as_unverified();
        let Some(mut state) = store.history_state::<T>(id, None).await? else { return Ok(None) };
        let versions = 1..=state.total();
        Ok(Some(store.history_entries(&mut state, versions).await?.into_values().collect()))
    }

    /// Recomputes the whole hash chain of a record; `None` if no such record ever existed.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::history`].
    pub async fn verify_history<T: Record>(&self, id: T::Id) -> Result<Option<Verification>, StoreError> {
        let store = self.as_unverified();
        let Some(mut state) = store.history_state::<T>(id, None).await? else { return Ok(None) };
        let mut chain = Chain::new(state.head.as_ref().map(|(head, _)| head.clone()));
        let total = state.total();
        let mut from = 1;
        while from <= total {
            let to = total.min(from + ENTRIES_PER_READ - 1);
            for (version, entry) in store.history_entries(&mut state, from..=to).await? {
                chain.add(version, &entry);
            }
            from = to + 1;
        }
        let mut verification = chain.finish();
        // Entries beyond the version that the record had: the record has changed since, or somebody put them there.
        if let Some((head, _)) = state.head.filter(|(head, _)| verification.valid && verification.checked > head.version) {
            let present = self.chain_head(self.keys.record(T::KIND, id.uuid())).await?;
            if present.is_some_and(|(present, _)| present.version < verification.checked) {
                verification.valid = false;
                let broken = BrokenLink { event_id: None, version: head.version + 1, reason: ChainError::WrongHead };
                verification.broken = Some(broken);
            }
        }
        Ok(Some(verification))
    }
}

impl PointReads {
    /// Returns the version and the last hash of a record, and when the record last changed.
    pub(super) async fn chain_head(&self, key: Key) -> Result<Option<(ChainHead, Timestamp)>, StoreError> {
        let request = self.store.client.get_item().table_name(&self.store.table).set_key(Some(key.item()));
        let request = request.consistent_read(true).projection_expression("#version, #hash, #at");
        let request = request.expression_attribute_names("#version", VERSION).expression_attribute_names("#hash", LAST_HASH);
        let Some(item) = request.expression_attribute_names("#at", UPDATED_AT).send().await?.item else { return Ok(None) };
        let broken = || StoreError::broken("a record without the head of its history");
        let changed_at = text(&item, UPDATED_AT).and_then(|at| at.parse().ok()).ok_or_else(broken)?;
        Ok(Some((chain_head_in(&item).ok_or_else(broken)?, changed_at)))
    }

    /// Returns rows of the index: all those of `versions`, or the newest `limit` of them.
    async fn history_rows(
        &self,
        entity: Uuid,
        versions: RangeInclusive<u64>,
        limit: Option<u32>,
    ) -> Result<BTreeMap<u64, EventId>, StoreError> {
        let query = self.store.client.query().table_name(&self.store.table).index_name(keys::HISTORY);
        let query = query
            .key_condition_expression("#pk = :pk AND #hs BETWEEN :from AND :to")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#hs", HS)
            .expression_attribute_values(":pk", self.keys.partition())
            .expression_attribute_values(":from", Keys::history(entity, *versions.start()))
            .expression_attribute_values(":to", Keys::history(entity, *versions.end()))
            .scan_index_forward(false);
        let items = match limit {
            Some(limit) => query.limit(i32::try_from(limit).unwrap_or(i32::MAX)).send().await?.items.unwrap_or_default(),
            None => self.every(query).await?,
        };
        let row = |item| Keys::history_row(item).ok_or_else(|| StoreError::broken("a row of the history without its event"));
        items.iter().map(row).collect()
    }
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// Returns what a record's item says of its own history.
pub(super) fn chain_head_in(item: &Item) -> Option<ChainHead> {
    let version = item.get(VERSION)?.as_n().ok()?.parse().ok()?;
    Some(ChainHead { version, last_hash: text(item, LAST_HASH)?.to_owned() })
}

/// Returns the entry that an event's item holds. A missing text or hash becomes empty, which no verification accepts.
pub(super) fn entry_of(item: &Item) -> Option<HistoryEntry> {
    let id = keys::event_id(&Key::of(item)?)?;
    let text = |name| text(item, name).unwrap_or_default().to_owned();
    Some(HistoryEntry { id, text: text("entry"), hash: text("hash") })
}
