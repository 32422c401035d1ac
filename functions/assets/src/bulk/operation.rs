//! One change of an asset: of a request of its own, or among several.

mod new_asset;

use super::assets_in_bulk::AssetsInBulk;
use super::write::{Action, AssetWrite, Target};
use crate::inputs::{AssetInputs, change_error, process_running, several_assets};
use crate::wire::{AssetView, DELETED};
use new_asset::Reserved;
use shared::auth::{Command, Operation, Principal};
use shared::domain::assets::asset::{Asset, CatalogNames};
use shared::domain::assets::change::AssetChange;
use shared::domain::catalog::custom_fields::Validations;
use shared::domain::record::{Patch, Stored};
use shared::domain::request::{ExpectedVersions, StoredResponse};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::AssetId;
use shared::http::bulk::import::{RowChanges, RowResult};
use shared::http::error::ApiError;
use shared::http::requests::body::ReadOnlyFields;
use shared::http::responses::{Created, Data, Success, Versioned};
use shared::store::{CommitFailure, SerialMatch, StoreError, TenantStore, UnitOfWork, WriteError};
use std::sync::{Arc, OnceLock};

/// An asset after an operation.
#[derive(Clone)]
pub(crate) struct AssetOutcome {
    pub(crate) asset: Stored<Asset>,
    pub(crate) names: CatalogNames,
    pub(crate) result: RowResult,
    pub(crate) is_deleted: bool,
    /// Of an update, in a dry run.
    pub(crate) changes: Option<RowChanges>,
}

impl AssetOutcome {
    pub(crate) fn created(self) -> Created<AssetView> {
        Created::new("assets", self.asset.value.id, AssetView::new(self.asset, self.names))
    }

    fn changed(self) -> Versioned<AssetView> {
        Versioned { version: self.asset.tag_version(), data: AssetView::new(self.asset, self.names) }
    }
}

/// The same response as that of a single request.
fn respond(outcome: &AssetOutcome) -> Result<StoredResponse, StoreError> {
    match outcome.result {
        _ if outcome.is_deleted => Data { data: DELETED }.to_stored(Vec::new()),
        RowResult::Created => outcome.clone().created().to_stored(Vec::new()),
        _ => outcome.clone().changed().to_stored(Vec::new()),
    }
}

pub(crate) struct AssetOperation {
    pub(super) assets: Arc<AssetsInBulk>,
    pub(super) target: Target,
    pub(super) action: Action,
    pub(crate) if_match: Option<ExpectedVersions>,
    /// For the response that is sent and stored.
    pub(crate) respond: fn(&AssetOutcome) -> Result<StoredResponse, StoreError>,
    /// Names the place of an error in the request.
    pub(crate) locate: fn(&AssetWrite, FieldError) -> FieldError,
    /// Names the place of a missing asset in the request.
    pub(crate) missing: fn(ApiError) -> ApiError,
    /// ID, tag and draft of a new asset.
    pub(super) reserved: OnceLock<Reserved>,
}

pub(crate) struct Inputs {
    asset: AssetInputs,
    matched: SerialMatch,
    draft: Option<Asset>,
}

impl AssetOperation {
    /// Without a precondition. Responds as a single request, with errors located in a JSON body.
    pub(crate) fn new(assets: &Arc<AssetsInBulk>, target: Target, action: Action) -> Self {
        let (assets, reserved) = (Arc::clone(assets), OnceLock::new());
        let (locate, missing): (fn(&AssetWrite, FieldError) -> FieldError, _) = (|_, error| error, |error| error);
        Self { assets, target, action, if_match: None, respond, locate, missing, reserved }
    }

    /// The only operation of a request. Its inputs are read with [`Command::read`].
    pub(crate) fn alone(target: Target, action: Action) -> Self {
        Self::new(&Arc::new(AssetsInBulk::alone()), target, action)
    }

    /// Adds an error for each read-only field whose value differs from the asset's. Names of the catalog take a round trip.
    pub(crate) async fn check_unchanged(
        &mut self,
        unchanged: &ReadOnlyFields,
        inputs: &Inputs,
        reads: &TenantStore,
    ) -> Result<(), ApiError> {
        if let (Some(asset), Action::Write(write), false) = (&inputs.asset.asset, &mut self.action, unchanged.is_empty()) {
            let names = reads.catalog_names(std::slice::from_ref(asset)).await?;
            let present = names.into_iter().next().map(|names| AssetView::new(asset.clone(), names));
            write.change.errors.extend(unchanged.errors(&present)?);
        }
        Ok(())
    }

    fn asset_id(&self) -> Option<AssetId> {
        match &self.target {
            Target::Id(id) => Some(*id),
            Target::Serial(serial) => self.assets.by_serial(serial).assets.first().map(|asset| asset.value.id),
            Target::New => None,
        }
    }

    fn change(&self) -> Option<&AssetChange> {
        if let Action::Write(write) = &self.action { Some(&write.change) } else { None }
    }

    /// The asset is `None` if the operation creates one.
    fn found(&self) -> Result<(Option<Stored<Asset>>, SerialMatch), ApiError> {
        match &self.target {
            Target::New => Ok((None, SerialMatch::default())),
            Target::Id(id) => Ok((Some(self.assets.asset(*id).map_err(self.missing)?), SerialMatch::default())),
            Target::Serial(serial) => {
                let matched = self.assets.by_serial(serial);
                if let Some(record) = matched.unreadable {
                    return Err(ApiError::Unreadable(record));
                }
                match matched.assets.as_slice() {
                    [] => Ok((None, matched)),
                    [asset] => Ok((Some(asset.clone()), matched)),
                    several => Err(several_assets(several)),
                }
            }
        }
    }

    /// As far as they were read: a new asset has neither ID nor tag.
    fn loaded(&self) -> Result<Inputs, ApiError> {
        if let Action::Refuse(errors) = &self.action {
            return Err(ApiError::Invalid(errors.clone()));
        }
        let (found, matched) = self.found()?;
        let asset = self.assets.inputs(found, self.change().unwrap_or(&AssetChange::default()))?;
        Ok(Inputs { asset, matched, draft: None })
    }

    /// Each attempt of a single change has the units of a whole request; the attempts of several changes share them.
    fn validations(&self, principal: &Principal) -> Validations {
        if self.assets.is_alone() { principal.app.validations() } else { principal.validations.clone() }
    }

    /// Puts each field error where the client finds it.
    fn located(&self, write: &AssetWrite, error: ApiError) -> ApiError {
        match error {
            ApiError::Invalid(errors) => ApiError::Invalid(errors.into_iter().map(|error| (self.locate)(write, error)).collect()),
            other => other,
        }
    }

    fn changed(&self, asset: Stored<Asset>, result: RowResult, is_deleted: bool) -> AssetOutcome {
        AssetOutcome { names: self.assets.names(&asset.value), asset, result, is_deleted, changes: None }
    }
}

impl Command for AssetOperation {
    type Inputs = Inputs;
    type Outcome = AssetOutcome;

    async fn read(&self, reads: &TenantStore) -> Result<Inputs, ApiError> {
        self.assets.load(reads, &[(self.asset_id(), self.change())]).await?;
        self.loaded()
    }

    async fn reread(&self, _: Inputs, principal: &Principal) -> Result<Inputs, ApiError> {
        self.inputs_alone(principal, true).await
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        inputs: &Inputs,
    ) -> Result<AssetOutcome, CommitFailure<ApiError>> {
        if let (Some(draft), None) = (&inputs.draft, &self.if_match) {
            let asset = unit.create(draft.clone())?;
            if let Target::Serial(serial) = &self.target {
                unit.claim_serial(&principal.store, serial, &inputs.matched, draft.id);
            }
            return Ok(self.changed(asset, RowResult::Created, false));
        }
        // A new asset has no version to match.
        let old = inputs.asset.asset.as_ref().ok_or(ApiError::PreconditionFailed)?;
        if self.if_match.as_ref().is_some_and(|expected| !expected.contains(old.tag_version())) {
            return Err(ApiError::PreconditionFailed.into());
        }
        let Action::Write(write) = &self.action else {
            if let Some(instance) = old.value.running_instance_id {
                return Err(process_running(instance).into());
            }
            unit.delete(old)?;
            return Ok(self.changed(old.clone(), RowResult::Updated, true));
        };
        let mut change = write.with_custom_fields(Some(&old.value), &inputs.asset);
        if self.target.serial().is_some() {
            // It is the asset's, perhaps in another spelling, which stays.
            change.details.serial_number = Patch::Absent;
        }
        if !write.unchanged.is_empty() {
            change.errors.extend(write.unchanged.errors(&AssetView::new(old.clone(), self.assets.names(&old.value)))?);
        }
        let validations = self.validations(principal);
        let next = old.value.changed(&change, &inputs.asset.references, &validations, inputs.asset.transitions());
        let next = next.map_err(|error| self.located(write, change_error(error)))?;
        let asset = unit.update(old, next)?;
        let result = if asset.version == old.version { RowResult::Unchanged } else { RowResult::Updated };
        let changes = principal.store.is_dry_run().then(|| RowChanges::of(old.changes_to(&asset.value)));
        Ok(AssetOutcome { changes, ..self.changed(asset, result, false) })
    }

    fn stored_response(&self, outcome: &AssetOutcome) -> Result<StoredResponse, StoreError> {
        (self.respond)(outcome)
    }

    fn classify_failure(&self, error: WriteError, _: &AssetOutcome) -> CommitFailure<ApiError> {
        match error {
            // The tag is taken. The next attempt has another number, or finds whose tag it is.
            WriteError::Duplicate(..) => CommitFailure::Outdated(WriteError::Stale),
            error => error.into(),
        }
    }
}

impl Operation for AssetOperation {
    async fn prepare(principal: &Principal, operations: &[&Self]) -> Result<(), ApiError> {
        let Some(first) = operations.first() else { return Ok(()) };
        let serials = operations.iter().filter_map(|operation| operation.target.serial().map(str::to_owned)).collect();
        first.assets.load_serials(&principal.store, &serials).await?;
        let changes: Vec<_> = operations.iter().map(|operation| (operation.asset_id(), operation.change())).collect();
        first.assets.load(&principal.store, &changes).await?;
        let tags = operations.iter().flat_map(|operation| operation.unique_values());
        first.assets.note_tags(tags.map(|(_, tag)| tag));
        let unreserved = operations.iter().filter(|operation| operation.reserved.get().is_none());
        Self::reserve_all(principal, &unreserved.copied().collect::<Vec<_>>()).await
    }

    fn unique_values(&self) -> Vec<(&'static str, String)> {
        let tag = self.change().and_then(|change| change.asset_tag.value());
        tag.map(|tag| Asset::unique_tag(tag)).map(|unique| (unique.field, unique.value)).into_iter().collect()
    }

    fn subjects(&self) -> Vec<String> {
        let serial = self.target.serial().map(|serial| format!("serial {serial}"));
        let tags = self.unique_values().into_iter().map(|(_, tag)| format!("tag {tag}"));
        self.asset_id().map(|id| format!("asset {id}")).into_iter().chain(serial).chain(tags).collect()
    }

    async fn inputs(&self, principal: &Principal, is_retry: bool) -> Result<Inputs, ApiError> {
        self.with_tag(principal, self.loaded()?, is_retry).await
    }

    fn note(&self, outcome: &AssetOutcome) {
        match outcome.is_deleted {
            true => self.assets.remove(outcome.asset.value.id),
            false => self.assets.put(&outcome.asset),
        }
    }
}
