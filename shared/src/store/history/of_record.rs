//! The history of one record, newest entry first (docs/adr/0009): pages, verification, and the record's state at an earlier time.
//!
//! The index `history` finds the events of a record, but can lag behind the table. So the record itself, or its tombstone, stores
//! the number of entries and the latest event. Entries missing from the index are looked up among the tenant's recent events. The
//! text of every entry comes from the table.

use crate::domain::assets::asset::{Asset, CatalogNames};
use crate::domain::catalog::AssetKind;
use crate::domain::history::chain::{BrokenLink, Chain, ChainError, ChainHead, HistoryEntry, Verification, is_deletion, subject};
use crate::domain::history::event::{Actor, Event};
use crate::domain::history::past::{PastState, held_state_at, state_at};
use crate::domain::record::{Kind, Record, Stored};
use crate::domain::values::id::{AssetId, EventId, Id, ManufacturerId, UserId};
use crate::domain::values::text::Name;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, HS, Item, Key, Keys, PK, TYPE};
use crate::store::lists::indexed_lists::PageRequest;
use crate::store::table::read::{LAST_EVENT, LAST_HASH, VERSION};
use crate::store::table::unit_of_work::{NewEvent, Purpose, TransactionItem};
use crate::store::{Reader, StoreError, TornReadRetry, max_event_delay, max_secondary_index_delay};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;
use uuid::Uuid;

/// An entry that is still missing from the index after this time counts as lost. The time is far longer than the index ever lags,
/// so that a slow index is not reported as a broken chain.
const LOST_AFTER: TimeDelta = TimeDelta::hours(1);
/// In seconds.
const MAX_RETRY_AFTER: u64 = 60;
/// Maximum number of reads while items contradict each other. Reads of several items aren't isolated from transactions: they can
/// see one item from before a transaction, and a different item from after the transaction.
pub(in crate::store) const MAX_LOOKS: u32 = 5;
/// Backoff before items are read again, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time between a request and the ID of its event. Entries with later IDs need not be read.
const MAX_EVENT_AFTER_REQUEST: TimeDelta = TimeDelta::minutes(1);
pub(in crate::store) const CONCURRENT_HISTORIES: usize = 8;
/// Number of entries searched for the change that set `updated_at`.
const UPDATES_SEARCHED: u32 = 20;
/// Number of entries read at once when verifying a chain.
const ENTRIES_PER_READ: u64 = 1_000;

/// A page of a record's history, newest entry first.
#[derive(Debug, Clone)]
pub struct HistoryPage {
    /// A lost entry leaves a gap in the versions.
    pub entries: Vec<HistoryEntry>,
    pub total: u64,
    pub request: PageRequest,
}

/// The end of a record's history, as stored in the record or its tombstone.
#[derive(Debug, Clone)]
pub(in crate::store) struct HistoryHead {
    /// Number of entries, and hash of the latest entry.
    pub(in crate::store) chain: ChainHead,
    /// Event of the latest entry. Its ID contains the time of the last change or of the deletion.
    pub(in crate::store) last_event: EventId,
}

impl HistoryHead {
    /// The attributes that [`HistoryHead::of`] needs, for a projection.
    pub(in crate::store) const ATTRIBUTES: [(&str, &str); 3] =
        [("#version", VERSION), ("#hash", LAST_HASH), ("#event", LAST_EVENT)];

    pub(in crate::store) fn after(version: u64, entry: &HistoryEntry) -> Self {
        Self { chain: ChainHead { version, last_hash: entry.hash.clone() }, last_event: entry.id }
    }

    pub(in crate::store) fn of(item: &Item) -> Result<Self, StoreError> {
        let text = |name| item.get(name)?.as_s().ok().cloned();
        let version = || item.get(VERSION)?.as_n().ok()?.parse().ok();
        let head = || {
            let chain = ChainHead { version: version()?, last_hash: text(LAST_HASH)? };
            Some(Self { chain, last_event: EventId::from_short(&text(LAST_EVENT)?)? })
        };
        head().ok_or_else(|| StoreError::broken("a record without the head of its history"))
    }
}

/// The facts about a record's history that are known before its entries are read.
pub(in crate::store) struct HistoryState {
    /// The record must be of this kind, because permission to read histories of one kind doesn't cover the others.
    kind: Kind,
    entity: Uuid,
    /// The end of the history, from the record or its tombstone; `None` if both are missing.
    pub(in crate::store) head: Option<HistoryHead>,
    events: BTreeMap<u64, EventId>,
    /// First version read from the index.
    read_from: u64,
    /// The record's entries among the tenant's recent events. `None` until these are read.
    recent: Option<BTreeMap<u64, HistoryEntry>>,
}

impl HistoryState {
    fn new(kind: Kind, entity: Uuid, head: Option<HistoryHead>, mut events: BTreeMap<u64, EventId>) -> Self {
        let read_from = events.keys().next().copied().unwrap_or(1);
        events.extend(head.as_ref().map(|head| (head.chain.version, head.last_event)));
        Self { kind, entity, head, events, read_from, recent: None }
    }

    /// Returns the highest version according to the record and the index.
    pub(in crate::store) fn total(&self) -> u64 {
        self.events.keys().next_back().copied().unwrap_or(0)
    }

    /// Returns the highest version whose event has an ID from `time` or earlier; 0 if there is none. A version with an unknown
    /// event counts like the next version with a known event.
    fn last_version_until(&self, time: Timestamp) -> u64 {
        let is_later = |(_, id): &(&u64, &EventId)| id.timestamp() > time;
        let first_later = self.events.iter().find(is_later).map(|(version, _)| *version);
        first_later.map_or(self.total(), |version| version - 1)
    }

    /// Returns the latest event according to the record and the index.
    pub(in crate::store) fn last_event(&self) -> Option<EventId> {
        self.events.values().next_back().copied()
    }

    fn is_recent(&self, version: u64) -> bool {
        self.recent.as_ref().is_some_and(|recent| recent.contains_key(&version))
    }

    /// Whether a missing entry is lost, not just late.
    fn is_lost(&self, version: u64, now: Timestamp) -> bool {
        // The entry is at least as old as the next known entry.
        let latest = self.events.range(version..).next().map(|(_, id)| id.timestamp());
        latest.is_none_or(|latest| latest.plus(LOST_AFTER) < now)
    }

    /// Returns the number of seconds after which to retry. Grows with the delay: an entry that is already a minute late is
    /// unlikely to appear within the next second.
    fn retry_after(&self, now: Timestamp) -> u64 {
        let late = self.last_event().map_or(0, |event| now.millis().saturating_sub(event.timestamp().millis()) / 1000);
        u64::try_from(late / 2).unwrap_or(0).clamp(1, MAX_RETRY_AFTER)
    }
}

impl Reader {
    /// Reads a page of a record's history, even if the record was deleted; `None` if the record never existed.
    ///
    /// Takes two round trips for the first page, and three for any other.
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

    /// Whether the record exists or was deleted.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn ever_existed<T: Record>(&self, id: T::Id) -> Result<bool, StoreError> {
        Ok(self.history_state::<T>(id, Some(1)).await?.is_some())
    }

    /// Reads the record or its tombstone, and the newest `rows` rows of the index. `None` if the record never existed.
    pub(in crate::store) async fn history_state<T: Record>(
        &self,
        id: T::Id,
        rows: Option<u32>,
    ) -> Result<Option<HistoryState>, StoreError> {
        self.history_state_of(T::KIND, id.uuid(), rows).await
    }

    /// Not generic, unlike [`Reader::history_state`].
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
                // A creation or deletion may be in flight, and only partly visible.
                _ => looks += 1,
            }
            if looks == MAX_LOOKS {
                return Ok(Some(state));
            }
            pause_before_look(looks).await;
        }
    }

    /// Reads the entry of one event; `None` if it doesn't exist.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn event_entry(&self, event: EventId) -> Result<Option<HistoryEntry>, StoreError> {
        Ok(self.item(&self.keys.event(event)).await?.as_ref().and_then(entry_of))
    }

    /// Returns who made the change that set a record's `updated_at`. `None` if later changes, such as scans, hide that change, or if
    /// the history is behind.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn actor_of_update(&self, kind: Kind, entity: Uuid, at: Timestamp) -> Result<Option<Actor>, StoreError> {
        let Some(mut state) = self.history_state_of(kind, entity, Some(UPDATES_SEARCHED)).await? else { return Ok(None) };
        let newest = state.total();
        let entries = self.history_entries(&mut state, newest.saturating_sub(UPDATES_SEARCHED.into()) + 1..=newest).await?;
        let events = entries.into_values().rev().filter_map(|entry| serde_json::from_str::<Event>(&entry.text).ok());
        Ok(events.filter(|event| event.at == at && !event.is_scan()).map(|event| event.actor).next())
    }

    async fn last_entry(&self, state: &HistoryState) -> Result<Option<HistoryEntry>, StoreError> {
        let Some(id) = state.last_event() else { return Ok(None) };
        Ok(self.items(&[self.keys.event(id)]).await?.values().next().and_then(entry_of))
    }

    /// Reads the tenant's recent events, as far back as the index can lag, and keeps the record's events.
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

    /// Reads entries by version. Omits lost entries, and logs them.
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
            tracing::error!(tenant_id = %self.id, entity_id = %state.entity, version, reason = %ChainError::Missing, "a history entry is lost");
        }
        Ok(found)
    }

    /// Reads entries by version. Omits events that are missing from the table.
    pub(in crate::store) async fn entries_of<'e>(
        &self,
        events: impl IntoIterator<Item = (&'e u64, &'e EventId)>,
    ) -> Result<BTreeMap<u64, HistoryEntry>, StoreError> {
        let keys: Vec<(u64, Key)> = events.into_iter().map(|(version, id)| (*version, self.keys.event(*id))).collect();
        let mut items = self.items(&keys.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>()).await?;
        Ok(keys.into_iter().filter_map(|(version, key)| Some((version, entry_of(&items.remove(&key)?)?))).collect())
    }

    /// Reads all rows of `versions`, or the newest `limit` of them.
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
            Some(limit) => {
                let query = query.limit(i32::try_from(limit).unwrap_or(i32::MAX));
                Box::pin(query.send()).await?.items.unwrap_or_default()
            }
            None => self.every(query).await?,
        };
        let row = |item| Keys::history_row(item).ok_or_else(|| StoreError::broken("a row of the history without its event"));
        items.iter().map(row).collect()
    }

    /// Reads the record or, if it is missing, its tombstone.
    pub(in crate::store) async fn history_head(&self, kind: Kind, id: Uuid) -> Result<Option<HistoryHead>, StoreError> {
        // Read the record before the tombstone, so that a deletion in between isn't missed.
        match self.history_head_in(self.keys.record(kind, id)).await? {
            Some(head) => Ok(Some(head)),
            None => self.history_head_in(self.keys.tombstone(kind, id)).await,
        }
    }

    /// Reads the deletion times of deleted records, by ID. Takes one round trip, or none if there are no IDs.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] for a damaged
    /// tombstone.
    pub async fn deletions<T: Record>(&self, ids: impl Iterator<Item = T::Id>) -> Result<HashMap<Uuid, Timestamp>, StoreError> {
        let keys: HashMap<Key, Uuid> = ids.map(|id| (self.keys.tombstone(T::KIND, id.uuid()), id.uuid())).collect();
        let tombstones = self.items(&keys.keys().cloned().collect::<Vec<_>>()).await?;
        tombstones
            .iter()
            .filter_map(|(key, item)| Some((*keys.get(key)?, HistoryHead::of(item))))
            .map(|(id, head)| Ok((id, head?.last_event.timestamp())))
            .collect()
    }

    async fn history_head_in(&self, key: Key) -> Result<Option<HistoryHead>, StoreError> {
        let mut request = self.store.client.get_item().table_name(&self.store.table).set_key(Some(key.item()));
        for (name, attribute) in HistoryHead::ATTRIBUTES {
            request = request.expression_attribute_names(name, attribute);
        }
        let request = request.consistent_read(true).projection_expression("#version, #hash, #event");
        Box::pin(request.send()).await?.item.as_ref().map(HistoryHead::of).transpose()
    }

    /// Puts the tombstone of a record. `event` describes the deletion, which creates `version`.
    pub(in crate::store) fn tombstone_item(&self, kind: Kind, id: Uuid, version: u64, event: &NewEvent) -> TransactionItem {
        let chain = ChainHead { version, last_hash: event.hash.clone() };
        let item = self.tombstone(kind, id, &HistoryHead { chain, last_event: event.id });
        TransactionItem::put_new(Purpose::Invariant, item)
    }

    pub(in crate::store) fn tombstone(&self, kind: Kind, id: Uuid, head: &HistoryHead) -> Item {
        let mut item = self.keys.tombstone(kind, id).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("tombstone".to_owned()));
        item.insert(VERSION.to_owned(), AttributeValue::N(head.chain.version.to_string()));
        item.insert(LAST_HASH.to_owned(), AttributeValue::S(head.chain.last_hash.clone()));
        item.insert(LAST_EVENT.to_owned(), AttributeValue::S(head.last_event.short()));
        item
    }

    /// Reconstructs an asset as of `at`, with the catalog names at that time; `None` if the asset did not exist.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when an entry of a history is lost or can't be read, or any error of
    /// [`Reader::history`].
    pub async fn asset_as_of(&self, id: AssetId, at: Timestamp) -> Result<Option<(Stored<Asset>, CatalogNames)>, StoreError> {
        let Some(state) = self.past_state(Asset::KIND, id.uuid(), at).await? else { return Ok(None) };
        let mut assets = self.past_assets(vec![(id, state)], at).await?;
        Ok(assets.pop())
    }

    /// Reconstructs a record's state as of `at`; `None` if the record did not exist.
    ///
    /// Not generic, to avoid one copy of the code per kind.
    pub(in crate::store) async fn past_state(
        &self,
        kind: Kind,
        id: Uuid,
        at: Timestamp,
    ) -> Result<Option<PastState>, StoreError> {
        let entries = self.entries_until(kind, id, at.plus(MAX_EVENT_AFTER_REQUEST)).await?;
        state_at(&entries, at).map_err(StoreError::broken)
    }

    /// Reconstructs the state of an asset that the user had at `at`; `None` if neither the asset's history nor an import shows
    /// that the user had the asset.
    pub(in crate::store) async fn held_state(
        &self,
        id: AssetId,
        at: Timestamp,
        user: UserId,
    ) -> Result<Option<PastState>, StoreError> {
        let entries = self.entries_until(Asset::KIND, id.uuid(), self.store.now().plus(MAX_EVENT_AFTER_REQUEST)).await?;
        held_state_at(&entries, at, user).map_err(StoreError::broken)
    }

    /// Reads the entries of a record's history whose IDs are from `end` or earlier.
    async fn entries_until(&self, kind: Kind, id: Uuid, end: Timestamp) -> Result<Vec<HistoryEntry>, StoreError> {
        let Some(mut state) = self.history_state_of(kind, id, None).await? else { return Ok(Vec::new()) };
        let last = state.last_version_until(end);
        let entries: Vec<HistoryEntry> = self.history_entries(&mut state, 1..=last).await?.into_values().collect();
        if entries.len() as u64 != last {
            return Err(StoreError::broken(format!("the history of {} {id} lacks an entry", kind.as_str())));
        }
        Ok(entries)
    }

    /// Reconstructs assets in the order of `states`, with their catalog names at `at`. Reads the history of each catalog entry
    /// once.
    pub(in crate::store) async fn past_assets(
        &self,
        states: Vec<(AssetId, PastState)>,
        at: Timestamp,
    ) -> Result<Vec<(Stored<Asset>, CatalogNames)>, StoreError> {
        let states_only = || states.iter().map(|(_, state)| state);
        let types = self.past_states(Kind::AssetType, ids_in("asset_type_id", states_only()), at);
        let catalog = async {
            let models = self.past_states(Kind::Model, ids_in("model_id", states_only()), at).await?;
            let manufacturers = ids_in("manufacturer_id", models.values());
            let manufacturers = self.past_states(Kind::Manufacturer, manufacturers, at).await?;
            Ok((models, manufacturers))
        };
        let (types, (models, manufacturers)) = tokio::try_join!(types, catalog)?;
        let asset = |(id, state): (AssetId, PastState)| {
            let asset_type = state.id_in::<Uuid>("asset_type_id").and_then(|id| types.get(&id));
            let model = state.id_in::<Uuid>("model_id").and_then(|id| models.get(&id));
            let manufacturer_id = model.and_then(|model| model.id_in::<ManufacturerId>("manufacturer_id"));
            let names = CatalogNames {
                asset_type: asset_type.and_then(name_in),
                kind: asset_type.and_then(|state| state.text_in("kind")?.parse().ok()).unwrap_or(AssetKind::Physical),
                model: model.and_then(name_in),
                manufacturer: manufacturer_id.and_then(|id| manufacturers.get(&id.uuid())).and_then(name_in),
            };
            Ok((state.into_asset(id, manufacturer_id).map_err(StoreError::broken)?, names))
        };
        states.into_iter().map(asset).collect()
    }

    /// Reconstructs the states of records at `at`, by ID. Omits records that did not exist.
    async fn past_states(&self, kind: Kind, ids: BTreeSet<Uuid>, at: Timestamp) -> Result<HashMap<Uuid, PastState>, StoreError> {
        let states = stream::iter(ids).map(async |id| {
            let state = self.past_state(kind, id, at).await?;
            Ok::<_, StoreError>(state.map(|state| (id, state)))
        });
        let states: Vec<_> = states.buffered(CONCURRENT_HISTORIES).try_collect().await?;
        Ok(states.into_iter().flatten().collect())
    }

    /// Reads all entries, oldest first. `None` if the record never existed.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::history`].
    pub async fn whole_history<T: Record>(&self, id: T::Id) -> Result<Option<Vec<HistoryEntry>>, StoreError> {
        let Some(mut state) = self.history_state::<T>(id, None).await? else { return Ok(None) };
        let versions = 1..=state.total();
        Ok(Some(self.history_entries(&mut state, versions).await?.into_values().collect()))
    }

    /// Recomputes the whole hash chain of a record. `None` if the record never existed.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::history`], and [`StoreError::Unsettled`] instead of a broken chain if an entry may just be late.
    pub async fn verify_history<T: Record>(&self, id: T::Id) -> Result<Option<Verification>, StoreError> {
        let Some(mut state) = self.history_state::<T>(id, None).await? else { return Ok(None) };
        let mut chain = Chain::new(state.head.as_ref().map(|head| head.chain.clone()));
        let total = state.total();
        let mut from = 1;
        while from <= total {
            let to = total.min(from + ENTRIES_PER_READ - 1);
            for (version, entry) in self.history_entries(&mut state, from..=to).await? {
                chain.add(version, &entry);
            }
            from = to + 1;
        }
        let is_beyond = chain.is_beyond() && !self.record_follows::<T>(id, &chain).await?;
        let mut verification = chain.finish();
        if let Some(head) = state.head.as_ref().filter(|_| is_beyond) {
            let broken = BrokenLink { event_id: None, version: head.chain.version + 1, reason: ChainError::WrongHead };
            verification = Verification { valid: false, broken: Some(broken), ..verification };
        }
        let is_gone = verification.broken.as_ref().is_some_and(|broken| broken.reason == ChainError::Gone);
        let is_in_flight = || state.last_event().is_some_and(|event| may_be_in_flight(event, self.store.now()));
        if (is_beyond || is_gone) && is_in_flight() {
            return Err(StoreError::Unsettled("the record of a history may just be changing"));
        }
        Ok(Some(verification))
    }

    /// Whether the record or its tombstone now agrees with a chain that was ahead of it. If so, the record changed while the
    /// entries were read; otherwise, the chain has too many entries.
    async fn record_follows<T: Record>(&self, id: T::Id, chain: &Chain) -> Result<bool, StoreError> {
        for looks in 1..=MAX_LOOKS {
            let head = self.history_head(T::KIND, id.uuid()).await?;
            if chain.agrees_with(head.as_ref().map(|head| &head.chain)) {
                return Ok(true);
            }
            if looks < MAX_LOOKS {
                pause_before_look(looks).await;
            }
        }
        Ok(false)
    }
}

/// Parses an entry. A missing text or hash becomes empty, which no verification accepts.
pub(in crate::store) fn entry_of(item: &Item) -> Option<HistoryEntry> {
    let id = keys::event_id(&Key::of(item)?)?;
    let text = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
    Some(HistoryEntry { id, text: text(keys::ENTRY), commitments: keys::commitments_of(item), hash: text("hash") })
}

/// Whether other items of the event's transaction may not be visible yet.
pub(in crate::store) fn may_be_in_flight(event: EventId, now: Timestamp) -> bool {
    event.timestamp().plus(max_event_delay()) > now
}

/// Waits before contradictory items are read again, longer each time.
pub(in crate::store) async fn pause_before_look(looks: u32) {
    tokio::time::sleep(FIRST_PAUSE * (1 << looks.saturating_sub(1).min(MAX_LOOKS))).await;
}

fn ids_in<'s>(field: &str, states: impl Iterator<Item = &'s PastState>) -> BTreeSet<Uuid> {
    states.filter_map(|state| state.id_in(field)).collect()
}

fn name_in(state: &PastState) -> Option<Name> {
    state.text_in("name").map(|name| Name::from_stored(name.to_owned()))
}
