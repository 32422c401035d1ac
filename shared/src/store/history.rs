//! What happened to one thing, newest first (docs/adr/0009).
//!
//! The index `history` tells which events are of a thing; it may lag behind the table. Hence the record says how many
//! there must be, what the index lacks is looked for among the tenant's recent events, and every entry comes from the
//! table itself.

use super::TenantStore;
use super::error::StoreError;
use super::filters::PageRequest;
use super::item::{LAST_HASH, UPDATED_AT, VERSION};
use super::keys::{self, HS, Item, Key, Keys, PK};
use super::list_index::{LAG, late};
use crate::domain::chain::{BrokenLink, Chain, ChainError, ChainHead, Entry, Verification, is_deletion, subject};
use crate::domain::id::{EventId, Id};
use crate::domain::record::{Kind, Record};
use crate::domain::time::Timestamp;
use chrono::TimeDelta;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use uuid::Uuid;

/// How long the index may lag before what it lacks counts as lost. Far beyond what it ever takes, so that nobody hears
/// of a broken chain because of a slow index.
const LOST_AFTER: TimeDelta = TimeDelta::hours(1);
/// How many entries are read at once while a chain is checked.
const AT_ONCE: u64 = 1_000;

/// A page of a thing's history, newest first.
#[derive(Debug, Clone)]
pub struct HistoryPage {
    /// The page's entries. One that is lost leaves a gap in the versions.
    pub entries: Vec<Entry>,
    /// How many changes there were.
    pub total: u64,
    /// Which page.
    pub page: PageRequest,
}

/// What is known of a thing's history before its entries are read.
struct HistoryState {
    /// Of what kind the thing must be: whoever may read histories of one kind may not read those of all.
    kind: Kind,
    entity: Uuid,
    head: Option<(ChainHead, Timestamp)>,
    /// From the index.
    rows: BTreeMap<u64, EventId>,
    /// The lowest version from which on every row that the index has was read.
    read_from: u64,
    /// Among the tenant's recent events, once those were looked at.
    recent: Option<BTreeMap<u64, Entry>>,
}

impl HistoryState {
    fn total(&self) -> u64 {
        let head = self.head.as_ref().map_or(0, |(head, _)| head.version);
        let recent = self.recent.as_ref().and_then(|recent| recent.keys().next_back().copied());
        head.max(self.newest_row()).max(recent.unwrap_or(0))
    }

    fn newest_row(&self) -> u64 {
        self.rows.keys().next_back().copied().unwrap_or(0)
    }

    /// Whether an entry that was found nowhere is lost, and not only late.
    fn is_lost(&self, version: u64, now: Timestamp) -> bool {
        // It is older than whatever came after it.
        let later = self.rows.range(version + 1..).next().map(|(_, id)| id.made_at());
        let by = later.or(self.head.as_ref().map(|(_, at)| *at));
        by.is_none_or(|by| by.plus(LOST_AFTER) < now)
    }
}

impl TenantStore {
    /// A page of the history of a thing, deleted ones included; `None` if there never was such a thing.
    ///
    /// Two round trips for the first page, three for others.
    ///
    /// # Errors
    ///
    /// The table; [`StoreError::Unavailable`] also while an entry can't be found yet.
    pub async fn history<T: Record>(&self, id: T::Id, page: PageRequest) -> Result<Option<HistoryPage>, StoreError> {
        let first = if page.number == 1 { page.limit } else { 1 };
        let Some(mut trail) = self.trail::<T>(id, Some(first)).await? else { return Ok(None) };
        let total = trail.total();
        let newest = total.saturating_sub(page.skip() as u64);
        let oldest = newest.saturating_sub(page.limit.into()) + 1;
        let entries = self.entries_of(&mut trail, oldest..=newest).await?;
        Ok(Some(HistoryPage { entries: entries.into_values().rev().collect(), total, page }))
    }

    /// The whole history of a thing, oldest first; `None` if there never was such a thing.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::history`].
    pub async fn whole_history<T: Record>(&self, id: T::Id) -> Result<Option<Vec<Entry>>, StoreError> {
        let Some(mut trail) = self.trail::<T>(id, None).await? else { return Ok(None) };
        let versions = 1..=trail.total();
        Ok(Some(self.entries_of(&mut trail, versions).await?.into_values().collect()))
    }

    /// Re-computes the chain of a thing, all of it; `None` if there never was such a thing.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::history`].
    pub async fn verify_history<T: Record>(&self, id: T::Id) -> Result<Option<Verification>, StoreError> {
        self.admitted().await;
        let Some(mut trail) = self.trail::<T>(id, None).await? else { return Ok(None) };
        let mut chain = Chain::new(trail.head.as_ref().map(|(head, _)| head.clone()));
        let total = trail.total();
        let mut from = 1;
        while from <= total {
            let to = total.min(from + AT_ONCE - 1);
            for (version, entry) in self.entries_of(&mut trail, from..=to).await? {
                chain.add(version, &entry);
            }
            from = to + 1;
        }
        let mut found = chain.finish();
        // Entries beyond what the record said: it has been changed since, or somebody put them there.
        if let Some((head, _)) = trail.head.filter(|(head, _)| found.valid && found.checked > head.version) {
            let now = self.head_of(self.keys.record(T::KIND, id.uuid())).await?;
            if now.is_some_and(|(now, _)| now.version < found.checked) {
                found.valid = false;
                found.broken = Some(BrokenLink { event_id: None, version: head.version + 1, reason: ChainError::WrongHead });
            }
        }
        Ok(Some(found))
    }

    /// Reads what the record and the index say of a thing's history; `rows`: only so many of the index, the newest.
    async fn trail<T: Record>(&self, id: T::Id, rows: Option<u32>) -> Result<Option<HistoryState>, StoreError> {
        let entity = id.uuid();
        let (head, rows) = tokio::try_join!(self.head_of(self.keys.record(T::KIND, entity)), async {
            self.rows(entity, 0..=keys::LAST_VERSION, rows).await
        })?;
        let read_from = rows.keys().next().copied().unwrap_or(1);
        let mut trail = HistoryState { kind: T::KIND, entity, head, rows, read_from, recent: None };
        let is_told = match &trail.head {
            Some((head, _)) => trail.newest_row() >= head.version,
            // What was made before the index could forget it would be in there.
            None if trail.rows.is_empty() => id.made_at().plus(LAG + late()) < self.store.now(),
            None => match self.newest_entry(&trail).await? {
                Some(entry) if subject(&entry.text).is_some_and(|((kind, _), _)| kind != Some(T::KIND)) => return Ok(None),
                Some(entry) => is_deletion(&entry.text),
                None => false,
            },
        };
        if !is_told {
            self.look_at_recent(&mut trail).await?;
        }
        Ok((trail.total() > 0).then_some(trail))
    }

    /// The version and hash of a record, and when it last changed.
    pub(super) async fn head_of(&self, key: Key) -> Result<Option<(ChainHead, Timestamp)>, StoreError> {
        let request = self.store.client.get_item().table_name(&self.store.table).set_key(Some(key.item()));
        let request = request.consistent_read(true).projection_expression("#version, #hash, #at");
        let request = request.expression_attribute_names("#version", VERSION).expression_attribute_names("#hash", LAST_HASH);
        let Some(item) = request.expression_attribute_names("#at", UPDATED_AT).send().await?.item else { return Ok(None) };
        let broken = || StoreError::broken("a record without its history's end");
        let at = text(&item, UPDATED_AT).and_then(|at| at.parse().ok()).ok_or_else(broken)?;
        Ok(Some((head(&item).ok_or_else(broken)?, at)))
    }

    /// Rows of the index, with the newest if not with all.
    async fn rows(
        &self,
        entity: Uuid,
        versions: RangeInclusive<u64>,
        most: Option<u32>,
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
        let items = match most {
            Some(most) => query.limit(i32::try_from(most).unwrap_or(i32::MAX)).send().await?.items.unwrap_or_default(),
            None => self.every(query).await?,
        };
        items
            .iter()
            .map(|item| Keys::history_row(item).ok_or_else(|| StoreError::broken("a row of the history without event")))
            .collect()
    }

    /// The newest entry that the index has.
    async fn newest_entry(&self, trail: &HistoryState) -> Result<Option<Entry>, StoreError> {
        let Some((_, id)) = trail.rows.last_key_value() else { return Ok(None) };
        Ok(self.items(&[self.keys.event(*id)]).await?.values().next().and_then(entry_of))
    }

    /// Reads the tenant's recent events, as far back as the index may lag, and keeps those of the thing.
    async fn look_at_recent(&self, trail: &mut HistoryState) -> Result<(), StoreError> {
        self.admitted().await;
        let (from, to) = Keys::events_since(self.store.now().plus(-(LAG + late())));
        let mut pages = self.events_query(from, to).into_paginator().send();
        let mut recent = BTreeMap::new();
        while let Some(page) = pages.next().await {
            for entry in page?.items.unwrap_or_default().iter().filter_map(entry_of) {
                if let Some(((kind, id), version)) = subject(&entry.text)
                    && (kind, id) == (Some(trail.kind), trail.entity)
                {
                    recent.insert(version, entry);
                }
            }
        }
        trail.recent = Some(recent);
        Ok(())
    }

    /// The entries of these versions, as far as they are to be had.
    async fn entries_of(
        &self,
        trail: &mut HistoryState,
        versions: RangeInclusive<u64>,
    ) -> Result<BTreeMap<u64, Entry>, StoreError> {
        if versions.is_empty() {
            return Ok(BTreeMap::new());
        }
        if *versions.start() < trail.read_from {
            trail.rows.extend(self.rows(trail.entity, versions.clone(), None).await?);
        }
        let known =
            |trail: &HistoryState, version: &u64| trail.recent.as_ref().is_some_and(|recent| recent.contains_key(version));
        let wanted: BTreeMap<u64, Key> = trail
            .rows
            .range(versions.clone())
            .filter(|(version, _)| !known(trail, version))
            .map(|(version, id)| (*version, self.keys.event(*id)))
            .collect();
        let keys: Vec<Key> = wanted.values().cloned().collect();
        let mut items = self.items(&keys).await?;
        let read = |(version, key)| Some((version, entry_of(&items.remove(&key)?)?));
        let mut found: BTreeMap<u64, Entry> = wanted.into_iter().filter_map(read).collect();
        let missing = |found: &BTreeMap<u64, Entry>, trail: &HistoryState| {
            versions.clone().find(|version| !found.contains_key(version) && !known(trail, version))
        };
        if missing(&found, trail).is_some() && trail.recent.is_none() {
            self.look_at_recent(trail).await?;
        }
        if let Some(recent) = &trail.recent {
            let recent = recent.range(versions.clone());
            found.extend(recent.map(|(version, entry)| (*version, entry.clone())));
        }
        let now = self.store.now();
        for version in versions.filter(|version| !found.contains_key(version)) {
            if !trail.is_lost(version, now) {
                return Err(StoreError::Unavailable("the index of the history is behind".into()));
            }
            tracing::error!(tenant_id = %self.id, entity_id = %trail.entity, version, reason = %ChainError::Missing, "an entry of the history is lost");
        }
        Ok(found)
    }
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// What a record's item says of its own history.
pub(super) fn head(item: &Item) -> Option<ChainHead> {
    let version = item.get(VERSION)?.as_n().ok()?.parse().ok()?;
    Some(ChainHead { version, last_hash: text(item, LAST_HASH)?.to_owned() })
}

/// An event's item as it was stored; what an entry lacks is empty, and no good hash.
pub(super) fn entry_of(item: &Item) -> Option<Entry> {
    let id = keys::event_id(&Key::of(item)?)?;
    let text = |name| text(item, name).unwrap_or_default().to_owned();
    Some(Entry { id, text: text("entry"), hash: text("hash") })
}
