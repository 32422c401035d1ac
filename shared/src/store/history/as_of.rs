//! Records as they were at an earlier time, from their histories alone.

use crate::domain::assets::asset::{Asset, CatalogNames};
use crate::domain::catalog::AssetKind;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::past::{PastState, held_state_at, state_at};
use crate::domain::record::{Kind, Record, Stored};
use crate::domain::values::id::{AssetId, Id, ManufacturerId, UserId};
use crate::domain::values::text::Name;
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::table::error::StoreError;
use chrono::TimeDelta;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// The longest time from a request to the id of the event of its change. Entries that are later need not be read.
const MAX_EVENT_AFTER_REQUEST: TimeDelta = TimeDelta::minutes(1);
/// The number of histories that are read at the same time.
pub(in crate::store) const CONCURRENT_HISTORIES: usize = 8;

impl TenantStore {
    /// The asset as it was at `at`, and the catalog names that it showed then; `None` if it did not exist.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when an entry of a history is lost or can't be read. As [`TenantStore::history`]
    /// otherwise.
    pub async fn asset_as_of(&self, id: AssetId, at: Timestamp) -> Result<Option<(Stored<Asset>, CatalogNames)>, StoreError> {
        let Some(state) = self.past_state(Asset::KIND, id.uuid(), at).await? else { return Ok(None) };
        let mut assets = self.past_assets(vec![(id, state)], at).await?;
        Ok(assets.pop())
    }

    /// `None` if the record did not exist.
    ///
    /// Not generic, like all that follows, so that a function links it once, and nothing that only some kinds need.
    pub(in crate::store) async fn past_state(
        &self,
        kind: Kind,
        id: Uuid,
        at: Timestamp,
    ) -> Result<Option<PastState>, StoreError> {
        let entries = self.entries_until(kind, id, at.plus(MAX_EVENT_AFTER_REQUEST)).await?;
        state_at(&entries, at).map_err(StoreError::broken)
    }

    /// The asset as it was when the user had it at `at`; `None` if neither its history nor an import says so.
    pub(in crate::store) async fn held_state(
        &self,
        id: AssetId,
        at: Timestamp,
        user: UserId,
    ) -> Result<Option<PastState>, StoreError> {
        let entries = self.entries_until(Asset::KIND, id.uuid(), self.store.now().plus(MAX_EVENT_AFTER_REQUEST)).await?;
        held_state_at(&entries, at, user).map_err(StoreError::broken)
    }

    /// The beginning of a record's history, without events whose IDs are later.
    async fn entries_until(&self, kind: Kind, id: Uuid, end: Timestamp) -> Result<Vec<HistoryEntry>, StoreError> {
        let Some(mut state) = self.history_state_of(kind, id, None).await? else { return Ok(Vec::new()) };
        let last = state.last_version_until(end);
        let entries: Vec<HistoryEntry> = self.history_entries(&mut state, 1..=last).await?.into_values().collect();
        if entries.len() as u64 != last {
            return Err(StoreError::broken(format!("the history of {} {id} lacks an entry", kind.noun())));
        }
        Ok(entries)
    }

    /// In the order of `states`, with the names of the catalog entries at `at`. Each entry's history is read once.
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
                asset_type: asset_type.and_then(name),
                kind: asset_type.and_then(|state| state.text_in("kind")?.parse().ok()).unwrap_or(AssetKind::Physical),
                model: model.and_then(name),
                manufacturer: manufacturer_id.and_then(|id| manufacturers.get(&id.uuid())).and_then(name),
            };
            Ok((state.into_asset(id, manufacturer_id).map_err(StoreError::broken)?, names))
        };
        states.into_iter().map(asset).collect()
    }

    /// Of those records that existed.
    async fn past_states(&self, kind: Kind, ids: BTreeSet<Uuid>, at: Timestamp) -> Result<HashMap<Uuid, PastState>, StoreError> {
        let states = stream::iter(ids).map(async |id| {
            let state = self.past_state(kind, id, at).await?;
            Ok::<_, StoreError>(state.map(|state| (id, state)))
        });
        let states: Vec<_> = states.buffered(CONCURRENT_HISTORIES).try_collect().await?;
        Ok(states.into_iter().flatten().collect())
    }
}

fn ids_in<'s>(field: &str, states: impl Iterator<Item = &'s PastState>) -> BTreeSet<Uuid> {
    states.filter_map(|state| state.id_in(field)).collect()
}

fn name(state: &PastState) -> Option<Name> {
    state.text_in("name").map(|name| Name::from_stored(name.to_owned()))
}
