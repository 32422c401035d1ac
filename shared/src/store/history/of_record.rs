//! The history of one record, newest entry first (docs/adr/0009).
//!
//! The index `history` says which events belong to a record; it may lag behind the table. Hence the record itself, or its
//! tombstone, says how many entries there must be and which is the latest. Entries that the index lacks are looked up
//! among the tenant's recent events, and the text of every entry comes from the table.

use crate::domain::history::chain::{ChainError, HistoryEntry, is_deletion, subject};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::history::history_head::{HistoryHead, MAX_LOOKS, may_be_in_flight, pause_before_look};
use crate::store::keys::{self, HS, Item, Key, Keys, PK};
use crate::store::lists::page::PageRequest;
use crate::store::table::delays::max_secondary_index_delay;
use crate::store::table::error::StoreError;
use crate::store::table::torn_reads::TornReadRetry;
use chrono::TimeDelta;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use uuid::Uuid;

/// The longest lag of the index before an entry that it lacks counts as lost. Far longer than it ever takes, so that a
/// slow index is not reported as a broken chain.
const LOST_AFTER: TimeDelta = TimeDelta::hours(1);
/// In seconds.
const MAX_RETRY_AFTER: u64 = 60;

/// A page of a record's history, newest entry first.
#[derive(Debug, Clone)]
pub struct HistoryPage {
    /// The entries. A lost entry leaves a gap in the versions.
    pub entries: Vec<HistoryEntry>,
    pub total: u64,
    pub request: PageRequest,
}

/// Facts about a record's history, read before its entries.
pub(in crate::store) struct HistoryState {
    /// The record must be of this kind: permission to read histories of one kind is not permission for all.
    kind: Kind,
    entity: Uuid,
    /// The head that the record or its tombstone names; `None` if both are missing.
    pub(in crate::store) head: Option<HistoryHead>,
    /// Known events by version, not yet read.
    events: BTreeMap<u64, EventId>,
    /// The index was read from this version up.
    read_from: u64,
    /// The entries among the tenant's recent events, once those were read.
    recent: Option<BTreeMap<u64, HistoryEntry>>,
}

impl HistoryState {
    fn new(kind: Kind, entity: Uuid, head: Option<HistoryHead>, mut events: BTreeMap<u64, EventId>) -> Self {
        let read_from = events.keys().next().copied().unwrap_or(1);
        events.extend(head.as_ref().map(|head| (head.chain.version, head.last_event)));
        Self { kind, entity, head, events, read_from, recent: None }
    }

    /// The highest version that the record or the index speaks of.
    pub(in crate::store) fn total(&self) -> u64 {
        self.events.keys().next_back().copied().unwrap_or(0)
    }

    /// The highest version whose event has an id of `time` or earlier; 0 if there is none. Versions whose event is unknown count
    /// with the next one.
    pub(in crate::store) fn last_version_until(&self, time: Timestamp) -> u64 {
        let is_later = |(_, id): &(&u64, &EventId)| id.timestamp() > time;
        let first_later = self.events.iter().find(is_later).map(|(version, _)| *version);
        first_later.map_or(self.total(), |version| version - 1)
    }

    /// The latest event that the record or the index speaks of.
    pub(in crate::store) fn last_event(&self) -> Option<EventId> {
        self.events.values().next_back().copied()
    }

    fn is_recent(&self, version: u64) -> bool {
        self.recent.as_ref().is_some_and(|recent| recent.contains_key(&version))
    }

    /// An entry that was found nowhere is lost, and not only late.
    fn is_lost(&self, version: u64, now: Timestamp) -> bool {
        // The entry is not newer than whatever follows it.
        let latest = self.events.range(version..).next().map(|(_, id)| id.timestamp());
        latest.is_none_or(|latest| latest.plus(LOST_AFTER) < now)
    }

    /// In seconds: an entry that has been late for a minute will hardly be there a second later.
    fn retry_after(&self, now: Timestamp) -> u64 {
        let late = self.last_event().map_or(0, |event| now.millis().saturating_sub(event.timestamp().millis()) / 1000);
        u64::try_from(late / 2).unwrap_or(0).clamp(1, MAX_RETRY_AFTER)
    }
}

impl TenantStore {
    /// Also of a deleted record; `None` if no such record ever existed.
    ///
    /// Takes two round trips for the first page and three for others.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::HistoryBehind`] when an
    /// entry can't be found yet.
    pub async fn history<T: Record>(&self, id: T::Id, request: PageRequest) -> Result<Option<HistoryPage>, StoreError> {
        let rows = if request.number == 1 { request.limit } else { 1 };
        let Some(mut state) = self.history_state::<T>(id, Some(rows)).await? else { return Ok(None) };
        let total = state.total();
        let newest = total.saturating_sub(request.skip() as u64);
        let oldest = newest.saturating_sub(request.limit.into()) + 1;
        let entries = self.history_entries(&mut state, oldest..=newest).await?;
        Ok(Some(HistoryPage { entries: entries.into_values().rev().collect(), total, request }))
    }

    /// Whether there is or was such a record.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn ever_existed<T: Record>(&self, id: T::Id) -> Result<bool, StoreError> {
        Ok(self.history_state::<T>(id, Some(1)).await?.is_some())
    }

    /// From the record or its tombstone, and from the newest `rows` rows of the index. `None` if there never was such a record.
    pub(in crate::store) async fn history_state<T: Record>(
        &self,
        id: T::Id,
        rows: Option<u32>,
    ) -> Result<Option<HistoryState>, StoreError> {
        self.history_state_of(T::KIND, id.uuid(), rows).await
    }

    /// [`TenantStore::history_state`] of a record of this kind.
    pub(in crate::store) async fn history_state_of(
        &self,
        kind: Kind,
        entity: Uuid,
        rows: Option<u32>,
    ) -> Result<Option<HistoryState>, StoreError> {
        let mut looks = 0;
        loop {
            let head = self.history_head(kind, entity);
            let rows = self.history_rows(entity, 0..=keys::LAST_VERSION, rows);
            let (head, rows) = tokio::try_join!(head, rows)?;
            let state = HistoryState::new(kind, entity, head, rows);
            if state.head.is_some() || state.events.is_empty() {
                return Ok((state.total() > 0).then_some(state));
            }
            match self.last_entry(&state).await? {
                Some(entry) if subject(&entry.text).is_some_and(|((found, _), _)| found != Some(kind)) => return Ok(None),
                Some(entry) if is_deletion(&entry.text) => return Ok(Some(state)),
                // The record may just be created or deleted, which these reads may see in part.
                _ => looks += 1,
            }
            if looks == MAX_LOOKS {
                return Ok(Some(state));
            }
            pause_before_look(looks).await;
        }
    }

    /// The entry of one event; `None` if there is no such event.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn event_entry(&self, event: EventId) -> Result<Option<HistoryEntry>, StoreError> {
        Ok(self.item(&self.keys.event(event)).await?.as_ref().and_then(entry_of))
    }

    async fn last_entry(&self, state: &HistoryState) -> Result<Option<HistoryEntry>, StoreError> {
        let Some(id) = state.last_event() else { return Ok(None) };
        Ok(self.items(&[self.keys.event(id)]).await?.values().next().and_then(entry_of))
    }

    /// Reads the tenant's recent events, as far back as the index may lag, and keeps those of the record.
    async fn read_recent(&self, state: &mut HistoryState) -> Result<(), StoreError> {
        let mut recent = BTreeMap::new();
        let of_record = |entry: HistoryEntry| {
            let ((kind, id), version) = subject(&entry.text)?;
            ((kind, id) == (Some(state.kind), state.entity)).then_some((version, entry))
        };
        let since = self.store.now().plus(-max_secondary_index_delay());
        self.each_page_of_entries(since, |entries| recent.extend(entries.into_iter().filter_map(of_record))).await?;
        state.recent = Some(recent);
        Ok(())
    }

    /// Lost entries are left out, and logged.
    pub(in crate::store) async fn history_entries(
        &self,
        state: &mut HistoryState,
        versions: RangeInclusive<u64>,
    ) -> Result<BTreeMap<u64, HistoryEntry>, StoreError> {
        if versions.is_empty() {
            return Ok(BTreeMap::new());
        }
        if *versions.start() < state.read_from {
            let rows = self.history_rows(state.entity, versions.clone(), None).await?;
            for (version, id) in rows {
                state.events.entry(version).or_insert(id);
            }
        }
        let named = state.events.range(versions.clone()).filter(|(version, _)| !state.is_recent(**version));
        let mut found = self.entries_of(named).await?;
        let is_missing = |version: u64| !found.contains_key(&version) && !state.is_recent(version);
        if state.recent.is_none() && versions.clone().any(is_missing) {
            self.read_recent(state).await?;
        }
        if let Some(recent) = &state.recent {
            found.extend(recent.range(versions.clone()).map(|(version, entry)| (*version, entry.clone())));
        }
        let mut torn_read_retry = TornReadRetry::default();
        loop {
            // The record may be visible before the event of the same transaction.
            let is_late =
                |(version, event): &(&u64, &EventId)| !found.contains_key(version) && may_be_in_flight(**event, self.store.now());
            let late: Vec<_> = state.events.range(versions.clone()).filter(is_late).collect();
            if late.is_empty() || !torn_read_retry.pause(&self.store).await {
                break;
            }
            found.extend(self.entries_of(late).await?);
        }
        let now = self.store.now();
        for version in versions.filter(|version| !found.contains_key(version)) {
            if !state.is_lost(version, now) {
                return Err(StoreError::HistoryBehind(state.retry_after(now)));
            }
            tracing::error!(tenant_id = %self.id, entity_id = %state.entity, version, reason = %ChainError::Missing, "an entry of the history is lost");
        }
        Ok(found)
    }

    /// By version. Those that the table does not have are left out.
    pub(in crate::store) async fn entries_of<'e>(
        &self,
        events: impl IntoIterator<Item = (&'e u64, &'e EventId)>,
    ) -> Result<BTreeMap<u64, HistoryEntry>, StoreError> {
        let keys: Vec<(u64, Key)> = events.into_iter().map(|(version, id)| (*version, self.keys.event(*id))).collect();
        let mut items = self.items(&keys.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>()).await?;
        Ok(keys.into_iter().filter_map(|(version, key)| Some((version, entry_of(&items.remove(&key)?)?))).collect())
    }

    /// All those of `versions`, or the newest `limit` of them.
    pub(in crate::store) async fn history_rows(
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

/// A missing text or hash becomes empty, which no verification accepts.
pub(in crate::store) fn entry_of(item: &Item) -> Option<HistoryEntry> {
    let id = keys::event_id(&Key::of(item)?)?;
    let text = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
    Some(HistoryEntry { id, text: text(keys::ENTRY), commitments: keys::commitments_of(item), hash: text("hash") })
}
