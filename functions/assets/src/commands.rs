//! Between handlers and domain: reading what a decision needs, and deciding again when somebody was faster.

use crate::wire::AssetView;
use serde_json::json;
use shared::auth::{Caller, TRIES, keep};
use shared::domain::asset::Asset;
use shared::domain::asset_change::{AssetChange, AssetChangeError, AssetReferences};
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::id::{AssetId, AssetTypeId, InstanceId};
use shared::domain::record::Stored;
use shared::domain::request::StoredResponse;
use shared::domain::tenant::Tenant;
use shared::domain::text::Name;
use shared::domain::user::User;
use shared::http::error::{ApiError, ConflictCode};
use shared::http::{Answer, response};
use shared::store::{BatchGet, BatchResult, StoreError, TenantStore, UnitOfWork, WriteError, pause};

/// How many numbers are tried one after the other when tags of an older template stand in the way. From then on each
/// step is twice as long: however many are taken, a few more tries are past them, at the price of a gap.
const NUMBERS: u32 = 8;
/// How long a step gets; there are not so many tags.
const LONGEST_STEPS: u32 = 40;

/// What a change needs to be decided.
pub(crate) struct AssetInputs {
    pub(crate) asset: Option<Stored<Asset>>,
    tenant: Option<Stored<Tenant>>,
    found: AssetReferences,
}

impl AssetInputs {
    /// Reads it: one round trip, and a second one when a model or an unchanged type must be looked at.
    pub(crate) async fn read(store: &TenantStore, id: Option<AssetId>, change: &AssetChange) -> Result<Self, ApiError> {
        let tenant_id = (id.is_none() || change.status.is_some()).then(|| store.id());
        let (type_id, model_id) = (change.asset_type_id.value().copied(), change.model_id.value().copied());
        let user_id = change.assigned_to.value().copied();
        let wanted = BatchGet::new()
            .with::<Asset>(store, id)
            .with::<Tenant>(store, tenant_id)
            .with::<AssetType>(store, type_id)
            .with::<Model>(store, model_id)
            .with::<User>(store, user_id);
        let batch = store.batch(wanted).await?;
        let asset = batch.get::<Asset>(store, id)?;
        if id.is_some() && asset.is_none() {
            return Err(ApiError::NotFound);
        }
        let model = batch.get::<Model>(store, model_id)?;
        let user = batch.get::<User>(store, user_id)?;
        let next_type = change.next_type(asset.as_ref().map(|a| &a.value), model.as_ref().map(|m| &m.value));
        let (asset_type, manufacturer) =
            if change.needs_type() { Self::catalog(store, &batch, next_type, model.as_ref()).await? } else { (None, None) };
        let tenant = batch.get::<Tenant>(store, tenant_id)?;
        Ok(Self { asset, tenant, found: AssetReferences { asset_type, model, manufacturer, user } })
    }

    /// The next type and the model's manufacturer, where the first batch did not have them.
    async fn catalog(
        store: &TenantStore,
        batch: &BatchResult,
        type_id: Option<AssetTypeId>,
        model: Option<&Stored<Model>>,
    ) -> Result<(Option<Stored<AssetType>>, Option<Stored<Manufacturer>>), StoreError> {
        let asset_type = batch.get::<AssetType>(store, type_id)?;
        let maker_id = model.map(|model| model.value.manufacturer_id);
        let missing_type = if asset_type.is_none() { type_id } else { None };
        let wanted = BatchGet::new().with::<AssetType>(store, missing_type).with::<Manufacturer>(store, maker_id);
        let more = store.batch(wanted).await?;
        Ok((asset_type.or(more.get::<AssetType>(store, missing_type)?), more.get::<Manufacturer>(store, maker_id)?))
    }

    fn tenant(&self) -> Result<&Tenant, ApiError> {
        let tenant = self.tenant.as_ref().map(|stored| &stored.value);
        tenant.ok_or_else(|| ApiError::Internal("a key of a tenant that is not there".into()))
    }
}

/// Writes a new asset under the next free tag.
pub(crate) async fn create(caller: &Caller, mut known: AssetInputs, name: Name, change: &AssetChange) -> Answer {
    let (store, context) = (&caller.store, &caller.context);
    let id = store.new_id(context.at)?;
    for _ in 0..TRIES {
        let blank = Asset::create(id, name.clone(), change, &known.found, caller.app.schemas()).map_err(refused)?;
        let reply = |asset: &Stored<Asset>| response::created("assets", id, AssetView::new(asset.clone(), known.found.names()));
        match create_tagged(caller, &known, blank, |asset| keep(reply(asset))).await {
            Ok(stored) => return reply(&stored),
            // A type, model or user went while this was decided: look again.
            Err(WriteError::MissingReference(_) | WriteError::Stale) => known = AssetInputs::read(store, None, change).await?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

async fn create_tagged(
    caller: &Caller,
    known: &AssetInputs,
    blank: Asset,
    kept: impl Fn(&Stored<Asset>) -> Result<StoredResponse, StoreError>,
) -> Result<Stored<Asset>, WriteError> {
    let tenant = known.tenant().map_err(|error| WriteError::Store(StoreError::broken(error)))?;
    let code = known.found.asset_type.as_ref().map(|stored| stored.value.code.as_str());
    let range = tenant.asset_tag_template.range(&tenant.asset_tag_prefix, code, caller.context.at);
    for tried in 0..NUMBERS + LONGEST_STEPS {
        let number = caller.store.next_number(&range, 1 << tried.saturating_sub(NUMBERS)).await?;
        let asset = Asset { asset_tag: range.tag(number), ..blank.clone() };
        match caller.store.create(asset, &caller.context, &kept).await {
            Err(WriteError::Duplicate(..)) => {} // an older template gave this tag: the next number
            other => return other,
        }
    }
    Err(StoreError::Unavailable("tags of an older template stand in the way".into()).into())
}

/// Changes an asset, deciding again from fresh data when somebody was faster.
pub(crate) async fn update(
    caller: &Caller,
    id: AssetId,
    mut known: AssetInputs,
    change: &AssetChange,
) -> Result<Stored<Asset>, ApiError> {
    for round in 0..TRIES {
        let old = known.asset.as_ref().ok_or(ApiError::NotFound)?;
        let transitions = known.tenant.as_ref().and_then(|tenant| tenant.value.status_transitions.as_ref());
        let next = old.value.changed(change, &known.found, caller.app.schemas(), transitions).map_err(refused)?;
        let mut work = UnitOfWork::new(&caller.store, &caller.context);
        let stored = work.update(old, next)?;
        match work.commit().await {
            Ok(()) => return Ok(stored),
            Err(WriteError::Stale | WriteError::MissingReference(_)) => {
                pause(round).await;
                known = AssetInputs::read(&caller.store, Some(id), change).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

fn refused(refusal: AssetChangeError) -> ApiError {
    match refusal {
        AssetChangeError::Invalid(errors) => ApiError::Invalid(errors),
        AssetChangeError::Transition { from, to, ref allowed } => ApiError::conflict(
            ConflictCode::TransitionNotAllowed,
            format!("An asset that is {from} may not become {to} in this tenant."),
            json!({ "allowed": allowed }),
        ),
        AssetChangeError::Running(instance) => running(instance),
        AssetChangeError::Schema(error) => ApiError::Internal(error.into()),
    }
}

fn running(instance: InstanceId) -> ApiError {
    ApiError::conflict(
        ConflictCode::ProcessRunning,
        "A process runs on the asset: complete or cancel it first.",
        json!({ "instance_id": instance }),
    )
}

/// Refuses to take an asset away from the process that runs on it.
pub(crate) fn free(asset: &Asset) -> Result<(), ApiError> {
    asset.running_instance_id.map_or(Ok(()), |instance| Err(running(instance)))
}

/// The view of one asset.
pub(crate) async fn view(store: &TenantStore, asset: Stored<Asset>) -> Result<AssetView, ApiError> {
    let mut names = store.catalog_names(std::slice::from_ref(&asset)).await?;
    let names = names.pop().ok_or_else(|| ApiError::Internal("names for an asset".into()))?;
    Ok(AssetView::new(asset, names))
}
