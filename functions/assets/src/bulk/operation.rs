//! One change of an asset among several in a request.

use super::assets_in_bulk::AssetsInBulk;
use crate::commands::{AssetInputs, change_error, check_deletable, free_tag};
use crate::wire::AssetView;
use serde_json::{Map, Value, json};
use shared::auth::{Caller, Operation};
use shared::domain::assets::asset::{Asset, CatalogNames};
use shared::domain::assets::change::AssetChange;
use shared::domain::assets::csv_cell;
use shared::domain::assets::custom_fields::{CustomFields, FieldsSchema};
use shared::domain::assets::tag::TagRange;
use shared::domain::record::{Patch, Stored};
use shared::domain::request::{ExpectedVersions, StoredResponse};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::AssetId;
use shared::domain::values::text::Name;
use shared::http::body::ReadOnlyFields;
use shared::http::bulk::import::RowResult;
use shared::http::bulk::rows::CustomCell;
use shared::http::error::{ApiError, ConflictCode};
use shared::store::{AttemptError, SerialMatch, StoreError, UnitOfWork, WriteError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Which asset an operation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A new one.
    New,
    /// The one with this id.
    Id(AssetId),
    /// The only one with this serial number, or a new one.
    Serial(String),
}

impl Target {
    /// Returns the serial number that names the asset.
    pub(crate) fn serial(&self) -> Option<&str> {
        if let Self::Serial(serial) = self { Some(serial) } else { None }
    }
}

/// What an operation does with its asset.
pub(crate) enum Action {
    /// Sets fields.
    Write(Box<AssetWrite>),
    /// Deletes it.
    Delete,
    /// Nothing: the request has these errors.
    Refuse(Vec<FieldError>),
}

/// The fields that an operation sets.
#[derive(Default)]
pub(crate) struct AssetWrite {
    /// The name; required for a new asset.
    pub(crate) name: Option<Name>,
    /// All other fields. If there are single custom fields, it sets some, so that the asset type is read.
    pub(crate) change: AssetChange,
    /// Single custom fields.
    pub(crate) custom_fields: Vec<(String, CustomCell)>,
    /// Read-only fields that were sent along.
    pub(crate) unchanged: ReadOnlyFields,
    /// Fields that were given by a name in another column, with this column.
    pub(crate) named_columns: Vec<(&'static str, &'static str)>,
}

/// An asset as an operation leaves it.
pub(crate) struct AssetOutcome {
    pub(crate) asset: Stored<Asset>,
    pub(crate) names: CatalogNames,
    pub(crate) result: RowResult,
    pub(crate) is_deleted: bool,
}

/// An operation.
pub(crate) struct AssetOperation {
    pub(crate) assets: Arc<AssetsInBulk>,
    pub(crate) target: Target,
    pub(crate) action: Action,
    pub(crate) if_match: Option<ExpectedVersions>,
    /// Makes the response that is sent and stored.
    pub(crate) respond: fn(&AssetOutcome) -> Result<StoredResponse, StoreError>,
    /// Makes the errors of the request say where they are.
    pub(crate) locate: fn(&AssetWrite, FieldError) -> FieldError,
    /// Makes the error of an asset that is missing say where it is named.
    pub(crate) missing: fn(ApiError) -> ApiError,
    /// What the asset has, if the operation creates one.
    pub(crate) reserved: OnceLock<Reserved>,
}

/// What is reserved for the asset that an operation may create.
pub(crate) struct Reserved {
    id: AssetId,
    tag: Option<String>,
    /// What it looks like, still without its tag, until it is attempted.
    draft: Mutex<Option<Asset>>,
}

/// What the decision needs.
pub(crate) struct Inputs {
    asset: AssetInputs,
    matched: SerialMatch,
    /// The new asset, if the operation creates one.
    draft: Option<Asset>,
}

impl AssetOperation {
    /// Returns an operation without a precondition that reports errors where they are in a JSON body.
    pub(crate) fn new(
        assets: &Arc<AssetsInBulk>,
        target: Target,
        action: Action,
        respond: fn(&AssetOutcome) -> Result<StoredResponse, StoreError>,
    ) -> Self {
        let (assets, reserved) = (Arc::clone(assets), OnceLock::new());
        let (locate, missing): (fn(&AssetWrite, FieldError) -> FieldError, _) = (|_, error| error, |error| error);
        Self { assets, target, action, if_match: None, respond, locate, missing, reserved }
    }

    /// Notes the ID of the asset that the operation may create and, if it probably does, its tag and what it looks like.
    pub(crate) fn reserve(&self, id: AssetId, tag: Option<String>, draft: Option<Asset>) {
        // Only done once.
        let _ = self.reserved.set(Reserved { id, tag, draft: Mutex::new(draft) });
    }

    /// Returns the id of the asset that the operation changes, as far as that is known.
    pub(crate) fn asset_id(&self) -> Option<AssetId> {
        match &self.target {
            Target::Id(id) => Some(*id),
            Target::Serial(serial) => self.assets.by_serial(serial).assets.first().map(|asset| asset.value.id),
            Target::New => None,
        }
    }

    pub(crate) fn change(&self) -> Option<&AssetChange> {
        if let Action::Write(write) = &self.action { Some(&write.change) } else { None }
    }

    /// Returns what the asset looks like and the range of its tag, if the operation creates one.
    pub(crate) fn new_asset(&self, caller: &Caller, id: AssetId) -> Option<(Asset, TagRange)> {
        let (Action::Write(write), Ok((None, _))) = (&self.action, self.found()) else { return None };
        let inputs = self.assets.inputs(None, &write.change);
        let draft = self.draft(caller, write, &inputs, id).ok()?;
        Some((draft, inputs.tag_range(caller).ok()?))
    }

    /// Returns the asset to change; `None` if the operation creates one.
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

    /// Decides what a new asset looks like, still without its tag.
    fn draft(&self, caller: &Caller, write: &AssetWrite, inputs: &AssetInputs, id: AssetId) -> Result<Asset, ApiError> {
        let mut change = write.with_custom_fields(None, inputs);
        write.unchanged.refuse_in_creation(&mut change.errors);
        if write.name.is_none() && !change.errors.iter().any(|error| error.is_about("name")) {
            change.errors.push(FieldError::field("name", "is required"));
        }
        // Without a name there is an error, and no asset; the others are found nevertheless.
        let name = write.name.clone().unwrap_or_else(|| Name::from_stored(String::new()));
        let created = Asset::create(id, name, &change, &inputs.references, &caller.validations);
        created.map_err(|error| self.located(write, change_error(error)))
    }

    /// Returns the error with each field error where the client finds it.
    fn located(&self, write: &AssetWrite, error: ApiError) -> ApiError {
        match error {
            ApiError::Invalid(errors) => ApiError::Invalid(errors.into_iter().map(|error| (self.locate)(write, error)).collect()),
            other => other,
        }
    }

    fn changed(&self, asset: Stored<Asset>, result: RowResult, is_deleted: bool) -> AssetOutcome {
        AssetOutcome { names: self.assets.names(&asset.value), asset, result, is_deleted }
    }
}

impl AssetWrite {
    /// Returns the fields to set. Single custom fields are set beside those that the asset has.
    fn with_custom_fields(&self, current: Option<&Asset>, inputs: &AssetInputs) -> AssetChange {
        let mut change = self.change.clone();
        if self.custom_fields.is_empty() {
            return change;
        }
        let schema = inputs.references.asset_type.as_ref().and_then(|stored| stored.value.custom_fields_schema.as_ref());
        let present = current.map(|asset| asset.custom_fields.as_map().clone()).unwrap_or_default();
        let fields = Value::Object(merged(present, &self.custom_fields, schema));
        match CustomFields::from_json(&fields.to_string()) {
            Ok(fields) => change.custom_fields = Patch::Value(fields),
            Err(error) => change.errors.push(FieldError::field("custom_fields", error.to_string())),
        }
        change
    }
}

/// Returns custom fields with what the cells of a row say.
fn merged(mut fields: Map<String, Value>, cells: &[(String, CustomCell)], schema: Option<&FieldsSchema>) -> Map<String, Value> {
    for (name, cell) in cells {
        match cell {
            CustomCell::Clear => drop(fields.shift_remove(name)),
            // What an export shows of the present value means this value, also if the schema is newer.
            CustomCell::Text(text) if fields.get(name).is_some_and(|present| csv_cell::value_text(present) == *text) => {}
            CustomCell::Text(text) => drop(fields.insert(name.clone(), csv_cell::to_value(text, name, schema))),
            CustomCell::Value(value) => drop(fields.insert(name.clone(), value.clone())),
        }
    }
    fields
}

fn several_assets(assets: &[Stored<Asset>]) -> ApiError {
    let ids: Vec<AssetId> = assets.iter().map(|asset| asset.value.id).collect();
    let detail = format!("{} assets have this serial number. Change one of them by its ID.", ids.len());
    ApiError::conflict(ConflictCode::Duplicate, detail, json!({"field": "serial_number", "asset_ids": ids}))
}

impl Operation for AssetOperation {
    type Inputs = Inputs;
    type Outcome = AssetOutcome;

    async fn prepare(caller: &Caller, operations: &[&Self]) -> Result<(), ApiError> {
        match operations.first() {
            Some(first) => first.assets.prepare(caller, operations).await,
            None => Ok(()),
        }
    }

    fn subjects(&self) -> Vec<String> {
        let serial = self.target.serial().map(|serial| format!("serial {serial}"));
        self.asset_id().map(|id| format!("asset {id}")).into_iter().chain(serial).collect()
    }

    /// A new asset gets its tag here, once nothing else is wrong with it.
    async fn inputs(&self, caller: &Caller, is_retry: bool) -> Result<Inputs, ApiError> {
        let write = match &self.action {
            Action::Refuse(errors) => return Err(ApiError::Invalid(errors.clone())),
            Action::Write(write) => Some(write),
            Action::Delete => None,
        };
        let (found, matched) = self.found()?;
        let change = write.map(|write| write.change.clone()).unwrap_or_default();
        let is_new = found.is_none();
        let asset = self.assets.inputs(found, &change);
        let Some(write) = write.filter(|_| is_new) else { return Ok(Inputs { asset, matched, draft: None }) };
        let reserved = self.reserved.get().ok_or_else(|| ApiError::Internal("an operation without an ID".into()))?;
        let drafted = reserved.draft.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut draft = match drafted.filter(|_| !is_retry) {
            Some(draft) => draft,
            None => self.draft(caller, write, &asset, reserved.id)?,
        };
        let range = asset.tag_range(caller)?;
        draft.asset_tag = match &reserved.tag {
            _ if is_retry => free_tag(caller, &range, &draft).await?,
            Some(tag) => tag.clone(),
            None => range.tag(caller.store.next_number(&range, 1).await?),
        };
        Ok(Inputs { asset, matched, draft: Some(draft) })
    }

    fn decide(
        &self,
        caller: &Caller,
        unit: &mut UnitOfWork<'_>,
        inputs: &Inputs,
    ) -> Result<AssetOutcome, AttemptError<ApiError>> {
        if let (Some(draft), None) = (&inputs.draft, &self.if_match) {
            let asset = unit.create(draft.clone())?;
            if let Target::Serial(serial) = &self.target {
                unit.claim_serial(&caller.store, serial, &inputs.matched, draft.id)?;
            }
            return Ok(self.changed(asset, RowResult::Created, false));
        }
        // What is only created has no version that it could be expected to have.
        let old = inputs.asset.asset.as_ref().ok_or(ApiError::PreconditionFailed)?;
        if self.if_match.as_ref().is_some_and(|expected| !expected.contains(old.version)) {
            return Err(ApiError::PreconditionFailed.into());
        }
        let Action::Write(write) = &self.action else {
            check_deletable(&old.value)?;
            unit.delete(old)?;
            return Ok(self.changed(old.clone(), RowResult::Updated, true));
        };
        let mut change = write.with_custom_fields(Some(&old.value), &inputs.asset);
        change.name = write.name.clone();
        if !write.unchanged.is_empty() {
            change.errors.extend(write.unchanged.errors(&AssetView::new(old.clone(), self.assets.names(&old.value)))?);
        }
        let next = old.value.changed(&change, &inputs.asset.references, &caller.validations, inputs.asset.transitions());
        let next = next.map_err(|error| self.located(write, change_error(error)))?;
        let asset = unit.update(old, next)?;
        let result = if asset.version == old.version { RowResult::Unchanged } else { RowResult::Updated };
        Ok(self.changed(asset, result, false))
    }

    fn judge(error: WriteError) -> AttemptError<ApiError> {
        match error {
            // An older template gave a tag.
            WriteError::Duplicate(..) => AttemptError::Outdated(WriteError::Stale),
            error => error.into(),
        }
    }

    fn respond(&self, changed: &AssetOutcome) -> Result<StoredResponse, StoreError> {
        (self.respond)(changed)
    }

    fn note(&self, changed: &AssetOutcome) {
        match changed.is_deleted {
            true => self.assets.remove(changed.asset.value.id),
            false => self.assets.put(&changed.asset),
        }
    }
}
