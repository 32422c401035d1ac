//! What the operations of one request read and change: each sees what those before it have done.

use super::operation::AssetOperation;
use crate::commands::AssetInputs;
use shared::auth::Caller;
use shared::domain::assets::asset::{Asset, CatalogNames};
use shared::domain::assets::change::{AssetChange, AssetReferences};
use shared::domain::assets::tag::TagRange;
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::record::{Record, Stored};
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::User;
use shared::domain::values::id::{AssetId, AssetTypeId, ManufacturerId, ModelId, UserId};
use shared::http::error::ApiError;
use shared::store::{BatchGet, BatchResult, SerialMatch, StoreError, TenantStore, UnreadableRecord};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The records of a kind, by id.
type Records<T> = HashMap<<T as Record>::Id, Stored<T>>;

/// The records that the operations of a request need, read together.
#[derive(Default)]
pub(crate) struct AssetsInBulk(Mutex<State>);

#[derive(Default)]
struct State {
    tenant: Option<Stored<Tenant>>,
    assets: Records<Asset>,
    types: Records<AssetType>,
    models: Records<Model>,
    manufacturers: Records<Manufacturer>,
    users: Records<User>,
    /// Assets that can't be read.
    unreadable: HashMap<AssetId, UnreadableRecord>,
    /// The assets with each serial number that an operation names.
    by_serial: HashMap<String, SerialMatch>,
}

impl AssetsInBulk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the operations need, and reserves IDs and tags for the assets that they will probably create.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unavailable`] when the table does not respond.
    pub(crate) async fn prepare(&self, caller: &Caller, operations: &[&AssetOperation]) -> Result<(), ApiError> {
        let serials = operations.iter().filter_map(|operation| operation.target.serial().map(str::to_owned)).collect();
        self.load_serials(&caller.store, &serials).await?;
        let changes: Vec<_> = operations.iter().map(|operation| (operation.asset_id(), operation.change())).collect();
        self.load(&caller.store, &changes).await?;
        let unreserved = operations.iter().filter(|operation| operation.reserved.get().is_none());
        self.reserve(caller, &unreserved.copied().collect::<Vec<_>>()).await
    }

    /// Reads the assets with these serial numbers.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub(crate) async fn load_serials(&self, store: &TenantStore, serials: &BTreeSet<String>) -> Result<(), StoreError> {
        let matches = store.assets_by_serial(serials).await?;
        let mut state = self.state();
        for asset in matches.values().flat_map(|matched| &matched.assets) {
            state.assets.insert(asset.value.id, asset.clone());
        }
        state.by_serial.extend(matches);
        Ok(())
    }

    /// Reads what these changes of these assets need, each `None` for a creation. Takes two round trips.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub(crate) async fn load(
        &self,
        store: &TenantStore,
        changes: &[(Option<AssetId>, Option<&AssetChange>)],
    ) -> Result<(), StoreError> {
        let by_serial: BTreeSet<AssetId> =
            self.state().by_serial.values().flat_map(|matched| &matched.assets).map(|asset| asset.value.id).collect();
        let mut wanted = RecordIds::default();
        for (id, change) in changes {
            // Those with the serial number of an operation were just read.
            wanted.assets.extend(id.filter(|id| !by_serial.contains(id)));
            if let Some(change) = change {
                wanted.types.extend(change.asset_type_id.value());
                wanted.models.extend(change.model_id.value());
                wanted.users.extend(change.assigned_to.value());
            }
        }
        let first = store.batch_get(wanted.batch().with::<Tenant>(Some(store.id()))).await?;
        let mut second = RecordIds::default();
        {
            let mut state = self.state();
            state.tenant = first.get::<Tenant>(Some(store.id()))?;
            state.take(&first, &wanted)?;
            for asset in changes.iter().filter_map(|(id, _)| state.assets.get(id.as_ref()?)) {
                second.types.extend(asset.value.asset_type_id);
                second.models.extend(asset.value.model_id);
                second.manufacturers.extend(asset.value.manufacturer_id);
            }
            for model in wanted.models.iter().filter_map(|id| state.models.get(id)) {
                second.types.insert(model.value.asset_type_id);
                second.manufacturers.insert(model.value.manufacturer_id);
            }
            second.types.retain(|id| !wanted.types.contains(id));
            second.models.retain(|id| !wanted.models.contains(id));
        }
        let batch = store.batch_get(second.batch()).await?;
        self.state().take(&batch, &second)
    }

    /// Reserves IDs and tags for the assets that the operations will probably create, both in the order of the operations.
    async fn reserve(&self, caller: &Caller, operations: &[&AssetOperation]) -> Result<(), ApiError> {
        let ids = caller.store.new_ids(caller.context.at, operations.len())?;
        let mut serials = BTreeSet::new();
        // Of several operations with the same serial number, only the first may create an asset.
        let mut is_first =
            |operation: &AssetOperation| operation.target.serial().is_none_or(|serial| serials.insert(serial.to_owned()));
        let new_asset = |(operation, id): (&&AssetOperation, &AssetId)| {
            if is_first(operation) { operation.new_asset(caller, *id) } else { None }
        };
        let (drafts, ranges): (Vec<Option<Asset>>, Vec<Option<TagRange>>) =
            operations.iter().zip(&ids).map(new_asset).map(Option::unzip).unzip();
        let mut counts: HashMap<String, (&TagRange, u64)> = HashMap::new();
        for range in ranges.iter().flatten() {
            counts.entry(range.counter()).or_insert((range, 0)).1 += 1;
        }
        let mut next_numbers = HashMap::new();
        for (pattern, (range, count)) in counts {
            next_numbers.insert(pattern, caller.store.next_number(range, count).await? + 1 - count);
        }
        for (((operation, id), draft), range) in operations.iter().zip(ids).zip(drafts).zip(ranges) {
            let tag = range.and_then(|range| {
                let next = next_numbers.get_mut(&range.counter())?;
                let tag = range.tag(*next);
                *next += 1;
                Some(tag)
            });
            operation.reserve(id, tag, draft);
        }
        Ok(())
    }

    /// Returns the assets with a serial number.
    pub(crate) fn by_serial(&self, serial: &str) -> SerialMatch {
        self.state().by_serial.get(serial).cloned().unwrap_or_default()
    }

    /// Returns an asset.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if it does not exist, and [`ApiError::Unreadable`] if it is damaged.
    pub(crate) fn asset(&self, id: AssetId) -> Result<Stored<Asset>, ApiError> {
        let state = self.state();
        match state.unreadable.get(&id) {
            Some(record) => Err(ApiError::Unreadable(record.clone())),
            None => state.assets.get(&id).cloned().ok_or(ApiError::NotFound),
        }
    }

    /// Returns the inputs of a change of `asset`, or of a creation.
    pub(crate) fn inputs(&self, asset: Option<Stored<Asset>>, change: &AssetChange) -> AssetInputs {
        let state = self.state();
        let model = change.model_id.value().and_then(|id| state.models.get(id)).cloned();
        let user = change.assigned_to.value().and_then(|id| state.users.get(id)).cloned();
        let next_type = change.next_type(asset.as_ref().map(|a| &a.value), model.as_ref().map(|m| &m.value));
        let asset_type = next_type.filter(|_| change.needs_type()).and_then(|id| state.types.get(&id)).cloned();
        let manufacturer = model.as_ref().and_then(|model| state.manufacturers.get(&model.value.manufacturer_id)).cloned();
        let references = AssetReferences { asset_type, model, manufacturer, user };
        AssetInputs { asset, tenant: state.tenant.clone(), references }
    }

    /// Returns the catalog names that an asset shows.
    pub(crate) fn names(&self, asset: &Asset) -> CatalogNames {
        let state = self.state();
        CatalogNames::of(
            asset.asset_type_id.and_then(|id| state.types.get(&id)),
            asset.model_id.and_then(|id| state.models.get(&id)),
            asset.manufacturer_id.and_then(|id| state.manufacturers.get(&id)),
        )
    }

    /// Notes an asset as an operation leaves it.
    pub(crate) fn put(&self, asset: &Stored<Asset>) {
        let mut state = self.state();
        state.assets.insert(asset.value.id, asset.clone());
        for (serial, matched) in &mut state.by_serial {
            matched.assets.retain(|other| other.value.id != asset.value.id);
            if asset.value.serial_number.as_deref() == Some(serial) {
                matched.assets.push(asset.clone());
            }
        }
    }

    /// Notes that an operation has deleted an asset.
    pub(crate) fn remove(&self, id: AssetId) {
        self.state().assets.remove(&id);
    }
}

/// The ids of the records to read.
#[derive(Default)]
struct RecordIds {
    assets: BTreeSet<AssetId>,
    types: BTreeSet<AssetTypeId>,
    models: BTreeSet<ModelId>,
    manufacturers: BTreeSet<ManufacturerId>,
    users: BTreeSet<UserId>,
}

impl RecordIds {
    fn batch(&self) -> BatchGet {
        BatchGet::new()
            .with_all::<Asset>(self.assets.iter().copied())
            .with_all::<AssetType>(self.types.iter().copied())
            .with_all::<Model>(self.models.iter().copied())
            .with_all::<Manufacturer>(self.manufacturers.iter().copied())
            .with_all::<User>(self.users.iter().copied())
    }
}

impl State {
    /// Takes what a batch has found, and forgets what it has not.
    fn take(&mut self, batch: &BatchResult, wanted: &RecordIds) -> Result<(), StoreError> {
        for id in &wanted.assets {
            if let Err(StoreError::Unreadable(record)) = batch.get::<Asset>(Some(*id)) {
                self.unreadable.insert(*id, record);
            }
        }
        take(&mut self.assets, batch, &wanted.assets)?;
        take(&mut self.types, batch, &wanted.types)?;
        take(&mut self.models, batch, &wanted.models)?;
        take(&mut self.manufacturers, batch, &wanted.manufacturers)?;
        take(&mut self.users, batch, &wanted.users)
    }
}

fn take<T: Record>(records: &mut Records<T>, batch: &BatchResult, ids: &BTreeSet<T::Id>) -> Result<(), StoreError>
where
    T::Id: std::hash::Hash + Eq + Ord,
{
    for id in ids {
        // One that can't be read must not make operations fail that don't need it.
        match batch.get_readable::<T>(Some(*id))? {
            Some(record) => records.insert(*id, record),
            None => records.remove(id),
        };
    }
    Ok(())
}
