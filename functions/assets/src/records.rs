//! The records that decisions on assets need, read together; and `expand`, which adds users to assets.

use crate::changes::{Target, several_assets};
use crate::wire::AssetView;
use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::AssetsRead;
use shared::domain::assets::asset::{Asset, AssetChange, AssetReferences, CatalogNames, Transitions};
use shared::domain::assets::tag::TagRange;
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::keys::api_key::Scope;
use shared::domain::record::{Record, Stored};
use shared::domain::tenants::tenant::Tenant;
use shared::domain::user::{Email, User};
use shared::domain::values::field_error::ValueError;
use shared::domain::values::id::{AssetId, AssetTypeId, Id, ManufacturerId, ModelId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::error::ApiError;
use shared::http::requests::body::ReadOnlyFields;
use shared::http::requests::params::FromParam;
use shared::http::responses::Versioned;
use shared::store::{BatchGet, BatchResult, SerialMatch, StoreError, TenantStore, UnreadableRecord};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use utoipa::ToSchema;

type Records<T> = HashMap<<T as Record>::Id, Stored<T>>;

#[derive(Default)]
pub(crate) struct AssetRecords {
    /// The tenant's settings, if a change depends on them.
    tenant: Option<Stored<Tenant>>,
    assets: Records<Asset>,
    types: Records<AssetType>,
    models: Records<Model>,
    manufacturers: Records<Manufacturer>,
    users: Records<User>,
    unreadable: Vec<UnreadableRecord>,
    /// Assets by serial number, in compared form, for the serial numbers that changes name.
    by_serial: HashMap<String, SerialMatch>,
}

impl AssetRecords {
    /// Takes two round trips, or one for a change that doesn't need the asset type.
    pub(crate) async fn of_one(store: &TenantStore, target: &Target, change: Option<&AssetChange>) -> Result<Self, StoreError> {
        Self::read(store, &[(target, change)], false).await
    }

    /// Includes the names that responses show. Takes two round trips, and two more for serial numbers.
    pub(crate) async fn of_all(store: &TenantStore, changes: &[(&Target, Option<&AssetChange>)]) -> Result<Self, StoreError> {
        Self::read(store, changes, true).await
    }

    async fn read(
        store: &TenantStore,
        changes: &[(&Target, Option<&AssetChange>)],
        with_names: bool,
    ) -> Result<Self, StoreError> {
        let serials = changes.iter().filter_map(|(target, _)| target.serial().map(str::to_owned)).collect();
        let mut records = Self { by_serial: store.assets_by_serial(&serials).await?, ..Self::default() };
        let with_serial = records.by_serial.values().flat_map(|matched| &matched.assets);
        records.assets = with_serial.map(|asset| (asset.value.id, asset.clone())).collect();
        let mut first = RecordIds::default();
        let mut needs_tenant = with_names;
        for (target, change) in changes {
            let id = records.id_of(target);
            first.assets.extend(id.filter(|id| !records.assets.contains_key(id)));
            if let Some(change) = change {
                needs_tenant |= id.is_none() || change.status.is_some();
                first.types.extend(change.asset_type_id.value());
                first.models.extend(change.model_id.value());
                first.users.extend(change.assigned_to.value());
            }
        }
        let tenant = needs_tenant.then(|| store.id());
        let found = store.batch_get(first.batch().with::<Tenant>(tenant)).await?;
        records.tenant = found.get::<Tenant>(tenant)?;
        records.take(&found, &first)?;
        let mut second = RecordIds::default();
        for (target, change) in changes {
            let id = records.id_of(target);
            let asset = id.and_then(|id| records.assets.get(&id)).map(|asset| &asset.value);
            if let Some(asset) = asset.filter(|_| with_names) {
                second.types.extend(asset.asset_type_id);
                second.models.extend(asset.model_id);
                second.manufacturers.extend(asset.manufacturer_id);
            }
            if let Some(change) = change.filter(|change| change.needs_type())
                && (id.is_none() || asset.is_some())
            {
                let model = change.model_id.value().and_then(|id| records.models.get(id)).map(|model| &model.value);
                second.types.extend(change.next_type(asset, model));
                second.manufacturers.extend(model.map(|model| model.manufacturer_id));
            }
        }
        second.types.retain(|id| !first.types.contains(id));
        second.models.retain(|id| !first.models.contains(id));
        let found = store.batch_get(second.batch()).await?;
        records.take(&found, &second)?;
        Ok(records)
    }

    fn take(&mut self, batch: &BatchResult, wanted: &RecordIds) -> Result<(), StoreError> {
        let unreadable = &mut self.unreadable;
        take(&mut self.assets, unreadable, batch, &wanted.assets)?;
        take(&mut self.types, unreadable, batch, &wanted.types)?;
        take(&mut self.models, unreadable, batch, &wanted.models)?;
        take(&mut self.manufacturers, unreadable, batch, &wanted.manufacturers)?;
        take(&mut self.users, unreadable, batch, &wanted.users)
    }

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

    /// `None` for a new asset.
    fn id_of(&self, target: &Target) -> Option<AssetId> {
        match target {
            Target::New => None,
            Target::Id(id) => Some(*id),
            Target::Serial(serial) => self.by_serial.get(serial)?.assets.first().map(|asset| asset.value.id),
        }
    }

    pub(crate) fn by_serial(&self, serial: &str) -> SerialMatch {
        self.by_serial.get(serial).cloned().unwrap_or_default()
    }

    /// `None` for a new asset.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if the asset does not exist, [`ApiError::Unreadable`] if it is damaged, and
    /// [`ApiError::Conflict`] if several have the serial number.
    pub(crate) fn found(&self, target: &Target) -> Result<Option<Stored<Asset>>, ApiError> {
        match target {
            Target::New => Ok(None),
            Target::Id(id) => self.record(&self.assets, Some(id))?.map(Some).ok_or(ApiError::NotFound),
            Target::Serial(serial) => match self.by_serial.get(serial) {
                None => Ok(None),
                Some(SerialMatch { unreadable: Some(record), .. }) => Err(ApiError::Unreadable(record.clone())),
                Some(SerialMatch { assets, .. }) => match assets.as_slice() {
                    [] => Ok(None),
                    [asset] => Ok(Some(asset.clone())),
                    several => Err(several_assets(several)),
                },
            },
        }
    }

    /// `asset` is `None` for a creation.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unreadable`] if a referenced record is damaged.
    pub(crate) fn references(&self, asset: Option<&Asset>, change: &AssetChange) -> Result<AssetReferences, ApiError> {
        let model = self.record(&self.models, change.model_id.value())?;
        let user = self.record(&self.users, change.assigned_to.value())?;
        let next_type = change.next_type(asset, model.as_ref().map(|model| &model.value));
        let asset_type = self.record(&self.types, next_type.filter(|_| change.needs_type()).as_ref())?;
        let manufacturer = self.record(&self.manufacturers, model.as_ref().map(|model| &model.value.manufacturer_id))?;
        Ok(AssetReferences { asset_type, model, manufacturer, user })
    }

    pub(crate) fn tag_range(&self, references: &AssetReferences, at: Timestamp) -> Result<TagRange, ApiError> {
        let tenant = self.tenant.as_ref().map(|stored| &stored.value);
        let tenant = tenant.ok_or_else(|| ApiError::Internal("the key's tenant has no record".into()))?;
        let type_code = references.asset_type.as_ref().map(|stored| stored.value.code.as_str());
        Ok(tenant.asset_tag_template.range(&tenant.asset_tag_prefix, type_code, at))
    }

    /// `None` if the tenant permits all changes of status.
    pub(crate) fn transitions(&self) -> Option<&Transitions> {
        self.tenant.as_ref().and_then(|tenant| tenant.value.status_transitions.as_ref())
    }

    pub(crate) fn names(&self, asset: &Asset) -> CatalogNames {
        CatalogNames::of(
            asset.asset_type_id.and_then(|id| self.types.get(&id)),
            asset.model_id.and_then(|id| self.models.get(&id)),
            asset.manufacturer_id.and_then(|id| self.manufacturers.get(&id)),
        )
    }
}

/// The response to a GET. Takes a round trip if the asset has a type or a model.
pub(crate) async fn view(store: &TenantStore, asset: Stored<Asset>) -> Result<Versioned<AssetView>, ApiError> {
    let mut names = store.catalog_names(std::slice::from_ref(&asset)).await?;
    let names = names.pop().ok_or_else(|| ApiError::Internal("no catalog names for an asset".into()))?;
    Ok(Versioned { version: asset.tag_version(), data: AssetView::new(asset, names) })
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
            Ok(None) => {}
            // A damaged record must not block changes that don't need it.
            Err(StoreError::Unreadable(record)) => unreadable.push(record),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Related data to include.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = ExpandedField)]
pub enum Expand {
    /// The assigned user.
    AssignedTo,
}

impl FromParam for Expand {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        if text == "assigned_to" { Ok(Self::AssignedTo) } else { Err(ValueError::new("must be assigned_to")) }
    }
}

/// The user that an asset is assigned to.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssignedUser {
    /// ID.
    id: UserId,
    /// Display name.
    display_name: Name,
    /// E-mail address.
    email: Email,
}

impl From<Stored<User>> for AssignedUser {
    fn from(stored: Stored<User>) -> Self {
        let User { id, display_name, email, .. } = stored.value;
        Self { id, display_name, email }
    }
}

pub(crate) struct ExpandedUsers(Option<BatchResult>);

impl ExpandedUsers {
    /// Reads no users unless `expand` asks for them. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Forbidden`] if the caller may not read users.
    pub(crate) async fn read(
        caller: &Caller<AssetsRead>,
        ids: impl IntoIterator<Item = UserId>,
        expand: Option<Expand>,
    ) -> Result<Self, ApiError> {
        let Some(Expand::AssignedTo) = expand else { return Ok(Self(None)) };
        caller.verified().await?.check_scope(Scope::UsersRead)?;
        Ok(Self(Some(caller.store.batch_get_without_blobs(BatchGet::new().with_all::<User>(ids)).await?)))
    }

    /// The `assigned_user` of an asset. Null for a user that doesn't exist any more or can't be read.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] if reading failed, except for a damaged user.
    pub(crate) fn of(&self, assigned_to: Option<UserId>) -> Result<Option<Option<AssignedUser>>, StoreError> {
        let Some(users) = &self.0 else { return Ok(None) };
        Ok(Some(users.get_readable(assigned_to)?.map(AssignedUser::from)))
    }
}

/// Compares `assigned_user` by its ID only: the asset has no other data of the user.
pub(crate) fn without_users(unchanged: ReadOnlyFields) -> ReadOnlyFields {
    unchanged.by_reference("assigned_user", "assigned_to")
}
