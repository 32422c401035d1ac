//! The assets that the operations of one request read and change: each sees the changes of those before it.

use crate::inputs::AssetInputs;
use shared::domain::assets::asset::{Asset, CatalogNames};
use shared::domain::assets::change::{AssetChange, AssetReferences};
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::record::{Record, Stored};
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::User;
use shared::domain::values::id::{AssetId, AssetTypeId, Id, ManufacturerId, ModelId, UserId};
use shared::fields::serial_number;
use shared::http::error::ApiError;
use shared::store::{BatchGet, BatchResult, SerialMatch, StoreError, TenantStore, UnreadableRecord};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Records<T> = HashMap<<T as Record>::Id, Stored<T>>;

/// The records that the operations of a request need, read together.
#[derive(Default)]
pub(crate) struct AssetsInBulk {
    /// A single operation needs only the records for its decision. Several also need the names that responses show, and the
    /// inputs of later operations.
    is_alone: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tenant: Option<Stored<Tenant>>,
    assets: Records<Asset>,
    types: Records<AssetType>,
    models: Records<Model>,
    manufacturers: Records<Manufacturer>,
    users: Records<User>,
    unreadable: Vec<UnreadableRecord>,
    /// Assets with each serial number that an operation names, by its key.
    by_serial: HashMap<String, SerialMatch>,
    /// The tags that operations bring, as they are compared.
    brought_tags: BTreeSet<String>,
}

impl AssetsInBulk {
    pub(crate) fn alone() -> Self {
        Self { is_alone: true, ..Self::default() }
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note_tags(&self, tags: impl IntoIterator<Item = String>) {
        self.state().brought_tags.extend(tags);
    }

    /// Another operation of the request has this tag, so it can't be generated.
    pub(crate) fn is_brought(&self, tag: &str) -> bool {
        self.state().brought_tags.contains(&Asset::unique_tag(tag).value)
    }

    pub(crate) async fn load_serials(&self, store: &TenantStore, serials: &BTreeSet<String>) -> Result<(), StoreError> {
        let matches = store.assets_by_serial(serials).await?;
        let mut state = self.state();
        for asset in matches.values().flat_map(|matched| &matched.assets) {
            state.assets.insert(asset.value.id, asset.clone());
        }
        state.by_serial.extend(matches);
        Ok(())
    }

    /// Reads the records that the changes need. An id is `None` for a creation. Takes two round trips; one for a single change
    /// without a model that leaves the asset type alone.
    pub(crate) async fn load(
        &self,
        reads: &TenantStore,
        changes: &[(Option<AssetId>, Option<&AssetChange>)],
    ) -> Result<(), StoreError> {
        let by_serial: BTreeSet<AssetId> =
            self.state().by_serial.values().flat_map(|matched| &matched.assets).map(|asset| asset.value.id).collect();
        let mut wanted = RecordIds::default();
        let mut needs_tenant = !self.is_alone;
        for (id, change) in changes {
            // Those with the serial number of an operation were just read.
            wanted.assets.extend(id.filter(|id| !by_serial.contains(id)));
            if let Some(change) = change {
                needs_tenant |= id.is_none() || change.status.is_some();
                wanted.types.extend(change.asset_type_id.value());
                wanted.models.extend(change.model_id.value());
                wanted.users.extend(change.assigned_to.value());
            }
        }
        let tenant = needs_tenant.then(|| reads.id());
        let first = reads.batch_get(wanted.batch().with::<Tenant>(tenant)).await?;
        let second = {
            let mut state = self.state();
            state.tenant = first.get::<Tenant>(tenant)?;
            state.take(&first, &wanted)?;
            let mut second = RecordIds::default();
            for (id, change) in changes {
                let asset = id.and_then(|id| state.assets.get(&id)).map(|asset| &asset.value);
                if let Some(asset) = asset.filter(|_| !self.is_alone) {
                    second.types.extend(asset.asset_type_id);
                    second.models.extend(asset.model_id);
                    second.manufacturers.extend(asset.manufacturer_id);
                }
                if let Some(change) = change.filter(|change| change.needs_type())
                    && (id.is_none() || asset.is_some())
                {
                    let model = change.model_id.value().and_then(|id| state.models.get(id)).map(|model| &model.value);
                    second.types.extend(change.next_type(asset, model));
                    second.manufacturers.extend(model.map(|model| model.manufacturer_id));
                }
            }
            second.types.retain(|id| !wanted.types.contains(id));
            second.models.retain(|id| !wanted.models.contains(id));
            second
        };
        let batch = reads.batch_get(second.batch()).await?;
        self.state().take(&batch, &second)
    }

    pub(crate) fn by_serial(&self, serial: &str) -> SerialMatch {
        self.state().by_serial.get(serial).cloned().unwrap_or_default()
    }

    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if it does not exist, and [`ApiError::Unreadable`] if it is damaged.
    pub(crate) fn asset(&self, id: AssetId) -> Result<Stored<Asset>, ApiError> {
        let state = self.state();
        state.record(&state.assets, Some(&id))?.ok_or(ApiError::NotFound)
    }

    /// `asset` is `None` for a creation.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unreadable`] if a record that the decision needs is damaged.
    pub(crate) fn inputs(&self, asset: Option<Stored<Asset>>, change: &AssetChange) -> Result<AssetInputs, ApiError> {
        let state = self.state();
        let model = state.record(&state.models, change.model_id.value())?;
        let user = state.record(&state.users, change.assigned_to.value())?;
        let next_type = change.next_type(asset.as_ref().map(|a| &a.value), model.as_ref().map(|m| &m.value));
        let asset_type = state.record(&state.types, next_type.filter(|_| change.needs_type()).as_ref())?;
        let manufacturer = state.record(&state.manufacturers, model.as_ref().map(|model| &model.value.manufacturer_id))?;
        let references = AssetReferences { asset_type, model, manufacturer, user };
        Ok(AssetInputs { asset, tenant: state.tenant.clone(), references })
    }

    pub(crate) fn names(&self, asset: &Asset) -> CatalogNames {
        let state = self.state();
        CatalogNames::of(
            asset.asset_type_id.and_then(|id| state.types.get(&id)),
            asset.model_id.and_then(|id| state.models.get(&id)),
            asset.manufacturer_id.and_then(|id| state.manufacturers.get(&id)),
        )
    }

    pub(crate) fn put(&self, asset: &Stored<Asset>) {
        let mut state = self.state();
        state.assets.insert(asset.value.id, asset.clone());
        for (serial, matched) in &mut state.by_serial {
            matched.assets.retain(|other| other.value.id != asset.value.id);
            if asset.value.details.serial_number.as_deref().map(serial_number::key).as_ref() == Some(serial) {
                matched.assets.push(asset.clone());
            }
        }
    }

    pub(crate) fn remove(&self, id: AssetId) {
        self.state().assets.remove(&id);
    }
}

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
    fn record<T: Record>(&self, records: &Records<T>, id: Option<&T::Id>) -> Result<Option<Stored<T>>, ApiError>
    where
        T::Id: Hash + Eq,
    {
        let Some(id) = id else { return Ok(None) };
        match self.unreadable.iter().find(|record| record.kind == T::KIND && record.id == Some(id.uuid())) {
            Some(record) => Err(ApiError::Unreadable(record.clone())),
            None => Ok(records.get(id).cloned()),
        }
    }

    /// Forgets wanted records that the batch has not found.
    fn take(&mut self, batch: &BatchResult, wanted: &RecordIds) -> Result<(), StoreError> {
        let unreadable = &mut self.unreadable;
        take(&mut self.assets, unreadable, batch, &wanted.assets)?;
        take(&mut self.types, unreadable, batch, &wanted.types)?;
        take(&mut self.models, unreadable, batch, &wanted.models)?;
        take(&mut self.manufacturers, unreadable, batch, &wanted.manufacturers)?;
        take(&mut self.users, unreadable, batch, &wanted.users)
    }
}

fn take<T: Record>(
    records: &mut Records<T>,
    unreadable: &mut Vec<UnreadableRecord>,
    batch: &BatchResult,
    ids: &BTreeSet<T::Id>,
) -> Result<(), StoreError>
where
    T::Id: Hash + Eq + Ord,
{
    for id in ids {
        match batch.get::<T>(Some(*id)) {
            Ok(Some(record)) => drop(records.insert(*id, record)),
            Ok(None) => drop(records.remove(id)),
            // It must not make operations fail that don't need it.
            Err(StoreError::Unreadable(record)) => unreadable.push(record),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
