//! Creating and changing assets: what is read for the decision, and how it is committed.

use crate::wire::AssetView;
use serde_json::json;
use shared::auth::{Caller, Command, Requester};
use shared::domain::assets::asset::Asset;
use shared::domain::assets::change::{AssetChange, AssetChangeError, AssetReferences};
use shared::domain::assets::custom_fields::SchemaError;
use shared::domain::assets::tag::TagRange;
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::record::{Record, Stored};
use shared::domain::tenants::tenant::{Tenant, Transitions};
use shared::domain::user::User;
use shared::domain::values::id::{AssetId, AssetTypeId, InstanceId};
use shared::domain::values::text::Name;
use shared::http::body::ReadOnlyFields;
use shared::http::error::{ApiError, ConflictCode, Dependency};
use shared::http::response::{Created, Success, Versioned};
use shared::store::{AttemptError, BatchGet, BatchResult, PointReads, StoreError, TenantStore, UnitOfWork, WriteError, retry};

/// After this many taken tags in a row, each step to the next number is twice as long as the one before. Tags of an older
/// template are then passed in a few more steps, at the price of a gap.
const SINGLE_STEPS: u32 = 8;
/// After so many doublings a step is longer than any tenant has tags.
const MAX_DOUBLINGS: u32 = 40;

/// What the decision about an asset needs to know.
pub(crate) struct AssetInputs {
    /// The asset to change; `None` for a creation.
    pub(crate) asset: Option<Stored<Asset>>,
    /// The tenant's settings, where the change depends on them.
    pub(crate) tenant: Option<Stored<Tenant>>,
    pub(crate) references: AssetReferences,
}

impl AssetInputs {
    /// Reads the inputs of a change of the asset `id`, or of a creation. Takes one round trip, and a second one if a
    /// model or an unchanged asset type is needed.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if there is no such asset.
    pub(crate) async fn read(reads: &PointReads, id: Option<AssetId>, change: &AssetChange) -> Result<Self, ApiError> {
        let tenant_id = (id.is_none() || change.status.is_some()).then(|| reads.id());
        let (type_id, model_id) = (change.asset_type_id.value().copied(), change.model_id.value().copied());
        let user_id = change.assigned_to.value().copied();
        let batch = BatchGet::new()
            .with::<Asset>(id)
            .with::<Tenant>(tenant_id)
            .with::<AssetType>(type_id)
            .with::<Model>(model_id)
            .with::<User>(user_id);
        let batch = reads.batch_get(batch).await?;
        let asset = batch.get::<Asset>(id)?;
        if id.is_some() && asset.is_none() {
            return Err(ApiError::NotFound);
        }
        let model = batch.get::<Model>(model_id)?;
        let user = batch.get::<User>(user_id)?;
        let next_type = change.next_type(asset.as_ref().map(|a| &a.value), model.as_ref().map(|m| &m.value));
        let (asset_type, manufacturer) =
            if change.needs_type() { Self::catalog(reads, &batch, next_type, model.as_ref()).await? } else { (None, None) };
        let tenant = batch.get::<Tenant>(tenant_id)?;
        Ok(Self { asset, tenant, references: AssetReferences { asset_type, model, manufacturer, user } })
    }

    /// Returns the asset's next type and the model's manufacturer, and reads them where the first batch lacks them.
    async fn catalog(
        reads: &PointReads,
        batch: &BatchResult,
        type_id: Option<AssetTypeId>,
        model: Option<&Stored<Model>>,
    ) -> Result<(Option<Stored<AssetType>>, Option<Stored<Manufacturer>>), StoreError> {
        let asset_type = batch.get::<AssetType>(type_id)?;
        let manufacturer_id = model.map(|model| model.value.manufacturer_id);
        let missing_type = if asset_type.is_none() { type_id } else { None };
        let second = BatchGet::new().with::<AssetType>(missing_type).with::<Manufacturer>(manufacturer_id);
        let second = reads.batch_get(second).await?;
        Ok((asset_type.or(second.get::<AssetType>(missing_type)?), second.get::<Manufacturer>(manufacturer_id)?))
    }

    /// Returns the range that the tag of a new asset takes its number from.
    pub(crate) fn tag_range(&self, caller: &Caller) -> Result<TagRange, ApiError> {
        let tenant = self.tenant.as_ref().map(|stored| &stored.value);
        let tenant = tenant.ok_or_else(|| ApiError::Internal("a key of a tenant without a record".into()))?;
        let type_code = self.references.asset_type.as_ref().map(|stored| stored.value.code.as_str());
        Ok(tenant.asset_tag_template.range(&tenant.asset_tag_prefix, type_code, caller.context.at))
    }

    /// Returns the changes of status that the tenant permits; `None` if it permits all.
    pub(crate) fn transitions(&self) -> Option<&Transitions> {
        self.tenant.as_ref().and_then(|tenant| tenant.value.status_transitions.as_ref())
    }
}

/// A new asset that is ready to be committed.
struct Draft {
    inputs: AssetInputs,
    asset: Asset,
}

/// The creation of an asset.
pub(crate) struct CreateAsset {
    pub(crate) name: Name,
    pub(crate) change: AssetChange,
}

impl CreateAsset {
    /// Creates the asset under the next free tag.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with everything that is wrong with the request. Such a request takes no number.
    pub(crate) async fn execute(&self, caller: &Caller, inputs: AssetInputs) -> Result<Created<AssetView>, ApiError> {
        let id = caller.store.new_id(caller.context.at)?;
        let mut draft = self.draft(caller, id, inputs)?;
        let range = draft.inputs.tag_range(caller)?;
        draft.asset.asset_tag = range.tag(caller.store.next_number(&range, 1).await?);
        let redraft = |_: Draft| async move {
            let inputs = AssetInputs::read(&caller.store, None, &self.change).await?;
            let mut draft = self.draft(caller, id, inputs)?;
            draft.asset.asset_tag = free_tag(caller, &draft.inputs.tag_range(caller)?, &draft.asset).await?;
            Ok(draft)
        };
        let decide = |unit: &mut UnitOfWork<'_>, draft: &Draft| {
            let asset = unit.create(draft.asset.clone())?;
            Ok(Created::new("assets", id, AssetView::new(asset, draft.inputs.references.names())))
        };
        let judge = |error, _: &Created<AssetView>| match error {
            // An older template gave this tag.
            WriteError::Duplicate(..) => AttemptError::Outdated(WriteError::Stale),
            error => error.into(),
        };
        let stored_response = |created: &Created<AssetView>| created.to_stored(Vec::new());
        retry(&caller.store, &caller.context, draft, redraft, decide, stored_response, judge).await
    }

    /// Decides what the asset looks like, still without its tag.
    fn draft(&self, caller: &Caller, id: AssetId, inputs: AssetInputs) -> Result<Draft, ApiError> {
        // Each attempt may cost as much as the first.
        let validations = caller.app.validations();
        let asset = Asset::create(id, self.name.clone(), &self.change, &inputs.references, &validations).map_err(change_error)?;
        Ok(Draft { inputs, asset })
    }
}

/// Returns the next tag that no asset has or had.
pub(crate) async fn free_tag(caller: &Caller, range: &TagRange, draft: &Asset) -> Result<String, ApiError> {
    for step in 0..SINGLE_STEPS + MAX_DOUBLINGS {
        let number = caller.store.next_number(range, 1 << step.saturating_sub(SINGLE_STEPS)).await?;
        let asset = Asset { asset_tag: range.tag(number), ..draft.clone() };
        let mut is_taken = false;
        for unique in asset.unique() {
            is_taken |= caller.store.is_taken(Asset::KIND, &unique).await?;
        }
        if !is_taken {
            return Ok(asset.asset_tag);
        }
    }
    Err(ApiError::Unavailable(Dependency::AssetTags, "every tag that was tried is taken".into()))
}

/// The change of an asset.
pub(crate) struct UpdateAsset {
    pub(crate) id: AssetId,
    pub(crate) change: AssetChange,
}

impl UpdateAsset {
    /// Adds an error for each read-only field that is sent along and is not what it is. Names of the catalog take a round
    /// trip.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub(crate) async fn check_unchanged(
        &mut self,
        unchanged: &ReadOnlyFields,
        inputs: &AssetInputs,
        reads: &PointReads,
    ) -> Result<(), ApiError> {
        if let Some(asset) = inputs.asset.as_ref().filter(|_| !unchanged.is_empty()) {
            let names = reads.catalog_names(std::slice::from_ref(asset)).await?;
            let present = names.into_iter().next().map(|names| AssetView::new(asset.clone(), names));
            self.change.errors.extend(unchanged.errors(&present)?);
        }
        Ok(())
    }
}

impl Command for UpdateAsset {
    type Inputs = AssetInputs;
    type Outcome = Stored<Asset>;

    async fn read(&self, reads: &PointReads) -> Result<AssetInputs, ApiError> {
        AssetInputs::read(reads, Some(self.id), &self.change).await
    }

    fn decide(
        &self,
        requester: &Requester,
        unit: &mut UnitOfWork<'_>,
        inputs: &AssetInputs,
    ) -> Result<Stored<Asset>, AttemptError<ApiError>> {
        let old = inputs.asset.as_ref().ok_or(ApiError::NotFound)?;
        // Each attempt may cost as much as the first.
        let validations = requester.app.validations();
        let next = old.value.changed(&self.change, &inputs.references, &validations, inputs.transitions());
        Ok(unit.update(old, next.map_err(change_error)?)?)
    }
}

pub(crate) fn change_error(error: AssetChangeError) -> ApiError {
    match error {
        AssetChangeError::Invalid(errors) => ApiError::Invalid(errors),
        AssetChangeError::Transition { from, to, ref allowed } => ApiError::conflict(
            ConflictCode::TransitionNotAllowed,
            format!("The tenant's settings do not permit changing the status from {from} to {to}."),
            json!({ "allowed": allowed }),
        ),
        AssetChangeError::Running(instance) => process_running(instance),
        AssetChangeError::Schema(SchemaError::BudgetSpent) => ApiError::SchemaBudgetSpent,
        AssetChangeError::Schema(error @ SchemaError::Invalid(_)) => ApiError::Internal(error.into()),
    }
}

fn process_running(instance: InstanceId) -> ApiError {
    ApiError::conflict(
        ConflictCode::ProcessRunning,
        "A process instance is in progress on the asset. Complete or cancel it first.",
        json!({ "instance_id": instance }),
    )
}

/// Refuses to delete an asset while a process instance is in progress on it.
pub(crate) fn check_deletable(asset: &Asset) -> Result<(), ApiError> {
    asset.running_instance_id.map_or(Ok(()), |instance| Err(process_running(instance)))
}

/// Returns the response that shows an asset.
pub(crate) async fn view(store: &TenantStore, asset: Stored<Asset>) -> Result<Versioned<AssetView>, ApiError> {
    let mut names = store.catalog_names(std::slice::from_ref(&asset)).await?;
    let names = names.pop().ok_or_else(|| ApiError::Internal("no catalog names for an asset".into()))?;
    Ok(Versioned { version: asset.version, data: AssetView::new(asset, names) })
}
