//! Creates, changes and deletes assets: one per request, several in one transaction for a batch, or row by row for an import. The
//! records that decisions need are read together.

use crate::handlers::{AssetPatch, AssetView, DELETED, NewAsset};
use serde_json::{Map, Value, json};
use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, Principal};
use shared::domain::assets::asset::{Asset, AssetChange, AssetChangeError, AssetReferences, CatalogNames, Transitions};
use shared::domain::assets::csv_cell;
use shared::domain::catalog::custom_fields::{CustomFields, FieldsSchema, Patterns, composed_value};
use shared::domain::catalog::{AssetType, Manufacturer, Model};
use shared::domain::record::{Expected, ExpectedVersions, Mismatch, Patch, Record, Stored, StoredResponse};
use shared::domain::tenants::tenant::{TagRange, Tenant};
use shared::domain::user::User;
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::{AssetId, AssetTypeId, Id, InstanceId, ManufacturerId, ModelId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::fields::serial_number::{SHORTENED, is_shortened};
use shared::http::bulk::import::{RowChanges, RowResult, row_response};
use shared::http::bulk::rows::{CUSTOM_FIELD, CustomCell};
use shared::http::requests::body::ReadOnlyFields;
use shared::http::responses::{ApiError, ConflictCode, Created, Data, Dependency, Success, Upserted, Versioned, or_not_found};
use shared::store::{
    BatchGet, BatchResult, CommitFailure, Reader, SerialMatch, StoreError, UnitOfWork, UnreadableRecord, WriteError,
};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

/// After this many taken tags in a row, the step to the next number doubles each time, to skip the tags of an earlier template
/// quickly. The cost is a gap in the numbers.
const SINGLE_STEPS: u32 = 8;
/// Number of doublings after which the request fails: no tenant has 2^40 tags.
const MAX_DOUBLINGS: u32 = 40;

/// Creates an asset. `errors` are the errors found in the body. An invalid request uses up no tag number.
///
/// # Errors
///
/// Returns [`ApiError::Invalid`] with every bad field, and [`ApiError::Conflict`] for a tag that another asset has or had.
pub(crate) async fn create(
    caller: &Caller<AssetsWrite>,
    new: NewAsset,
    errors: Vec<FieldError>,
) -> Result<AssetOutcome, ApiError> {
    let write = AssetWrite::new(new, errors);
    let records = AssetRecords::of_one(&caller.store, &Target::New, Some(&write.change)).await?;
    let caller = caller.verified().await?;
    let id = caller.store.new_id(caller.context.at)?;
    let operation = AssetOperation::new(id, Target::New, Action::Write(Box::new(write)));
    let inputs = operation.inputs(&caller, records, false).await?;
    operation.commit(&caller, inputs, AssetOutcome::response).await
}

/// Changes an asset. `errors` are the errors found in the body. Concurrent changes to other fields are kept.
///
/// # Errors
///
/// Returns [`ApiError::NotFound`], [`ApiError::Invalid`] with every bad field, and [`ApiError::Conflict`] for a status or an
/// assignment that can't change.
pub(crate) async fn change(
    caller: &Caller<AssetsWrite>,
    id: AssetId,
    mut patch: AssetPatch,
    errors: Vec<FieldError>,
) -> Result<Stored<Asset>, ApiError> {
    let unchanged = without_users(std::mem::take(&mut patch.unchanged));
    let (mut write, target) = (AssetWrite::new(patch, errors), Target::Id(id));
    let records = AssetRecords::of_one(&caller.store, &target, Some(&write.change)).await?;
    let asset = or_not_found(records.found(&target)?)?;
    if !unchanged.is_empty() {
        let current = view(&caller.store, asset).await?.data;
        write.change.errors.extend(unchanged.errors(&current)?);
    }
    let operation = AssetOperation::new(id, target, Action::Write(Box::new(write))).with_updated_at(unchanged.updated_at());
    let inputs = Inputs { records: Arc::new(records), new: None };
    Ok(operation.commit(&*caller.verified().await?, inputs, AssetOutcome::response).await?.asset)
}

/// Fails with [`ApiError::Conflict`] while a process instance is in progress on the asset.
pub(crate) async fn delete(caller: &Caller<AssetsWrite>, id: AssetId) -> Result<(), ApiError> {
    let asset = or_not_found(caller.store.get::<Asset>(id).await?)?;
    caller.verified().await?.delete(asset, check_deletion).await?;
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    New,
    Id(AssetId),
    /// Finds the asset with this serial number (normalized), or creates one.
    Serial(String),
}

impl Target {
    pub(crate) fn serial(&self) -> Option<&str> {
        if let Self::Serial(serial) = self { Some(serial) } else { None }
    }
}

pub(crate) enum Action {
    Write(Box<AssetWrite>),
    Delete,
    /// Changes nothing, because the operation or row has these errors.
    Refuse(Vec<FieldError>),
}

#[derive(Default)]
pub(crate) struct AssetWrite {
    /// Sets `custom_fields` whenever individual custom fields are set, so that the asset type is read.
    pub(crate) change: AssetChange,
    pub(crate) custom_fields: Vec<(String, CustomCell)>,
    pub(crate) unchanged: ReadOnlyFields,
    /// Whether the values come from a file, in which a spreadsheet may have shortened numbers.
    pub(crate) is_imported: bool,
    /// Fields set by a record's name, with the column of the name: `asset_type_id` with `asset_type_code`, for example.
    pub(crate) named_columns: Vec<(&'static str, &'static str)>,
}

impl AssetWrite {
    pub(crate) fn new(body: impl Into<AssetChange>, errors: Vec<FieldError>) -> Self {
        Self { change: AssetChange { errors, ..body.into() }, ..Self::default() }
    }

    /// Merges the individual custom fields into the asset's current custom fields.
    fn with_custom_fields(&self, current: Option<&Asset>, references: &AssetReferences) -> AssetChange {
        let mut change = self.change.clone();
        if self.is_imported {
            change.errors.extend(self.shortened_numbers(current));
        }
        if self.custom_fields.is_empty() {
            return change;
        }
        let schema = references.asset_type.as_ref().and_then(|stored| stored.value.custom_fields_schema.as_ref());
        let present = current.map(|asset| asset.custom_fields.as_map().clone()).unwrap_or_default();
        let fields = Value::Object(merged(present, &self.custom_fields, schema, &mut change.errors));
        match CustomFields::from_json(&fields.to_string()) {
            Ok(fields) => change.custom_fields = Patch::Value(fields),
            Err(error) => change.errors.push(FieldError::field("custom_fields", error)),
        }
        change
    }

    /// Returns errors for a serial number and a tag that a spreadsheet has shortened, unless the asset already has these values.
    fn shortened_numbers(&self, current: Option<&Asset>) -> Vec<FieldError> {
        let serial = self.change.details.serial_number.value().map(|serial| &**serial);
        let tag = self.change.asset_tag.value().map(|tag| &**tag);
        [
            ("serial_number", serial, current.and_then(|asset| asset.details.serial_number.as_deref())),
            ("asset_tag", tag, current.map(|asset| asset.asset_tag.as_str())),
        ]
        .into_iter()
        .filter(|(_, text, present)| text.is_some_and(is_shortened) && text != present)
        .map(|(field, ..)| FieldError::field(field, SHORTENED))
        .collect()
    }
}

fn merged(
    mut fields: Map<String, Value>,
    cells: &[(String, CustomCell)],
    schema: Option<&FieldsSchema>,
    errors: &mut Vec<FieldError>,
) -> Map<String, Value> {
    for (name, cell) in cells {
        let value = match cell {
            CustomCell::Clear | CustomCell::Value(Value::Null) => {
                fields.shift_remove(name);
                continue;
            }
            // The cell equals the export of the current value, so the value stays, even if the schema has changed since.
            CustomCell::Text(text) if fields.get(name).is_some_and(|present| csv_cell::is_cell_of(text, present)) => continue,
            CustomCell::Text(text) if is_shortened(text) && csv_cell::is_integer(name, schema) => {
                errors.push(FieldError::column(&format!("{CUSTOM_FIELD}{name}"), SHORTENED));
                continue;
            }
            CustomCell::Text(text) => csv_cell::to_value(text, name, schema),
            CustomCell::Value(value) => value.clone(),
        };
        match composed_value(value) {
            Ok(value) => drop(fields.insert(name.clone(), value)),
            Err((_, error)) => errors.push(FieldError::column(&format!("{CUSTOM_FIELD}{name}"), error)),
        }
    }
    fields
}

/// Leaves the tag of the new asset empty unless the request sets a tag.
fn new_asset(id: AssetId, write: &AssetWrite, references: &AssetReferences, patterns: &Patterns) -> Result<Asset, ApiError> {
    let mut change = write.with_custom_fields(None, references);
    write.unchanged.refuse_in_creation(&mut change.errors);
    if change.name.is_none() && !change.errors.iter().any(|error| error.is_about("name")) {
        change.errors.push(FieldError::field("name", ValueError::required()));
    }
    // A missing name is already reported. With a placeholder, the other errors are found too.
    let name = change.name.clone().unwrap_or_else(|| Name::from_stored(String::new()));
    Asset::create(id, name, &change, references, patterns).map_err(change_error)
}

fn changed_asset(
    old: &Stored<Asset>,
    target: &Target,
    write: &AssetWrite,
    records: &AssetRecords,
    patterns: &Patterns,
) -> Result<Asset, ApiError> {
    let references = records.references(Some(&old.value), &write.change)?;
    let mut change = write.with_custom_fields(Some(&old.value), &references);
    if target.serial().is_some() {
        // The asset keeps its spelling of the serial number.
        change.details.serial_number = Patch::Absent;
    }
    if !write.unchanged.is_empty() {
        change.errors.extend(write.unchanged.errors(&AssetView::new(old.clone(), records.names(&old.value)))?);
    }
    old.value.changed(&change, &references, patterns, records.transitions()).map_err(change_error)
}

fn check_deletion(asset: &Asset) -> Result<(), ApiError> {
    asset.running_instance_id.map_or(Ok(()), |instance| Err(process_running(instance, &[])))
}

pub(crate) struct AssetOutcome {
    asset: Stored<Asset>,
    names: CatalogNames,
    result: RowResult,
    is_deleted: bool,
    /// Only for an update in a dry run.
    changes: Option<RowChanges>,
}

impl AssetOutcome {
    fn new(asset: Stored<Asset>, result: RowResult, records: &AssetRecords) -> Self {
        Self { names: records.names(&asset.value), asset, result, is_deleted: false, changes: None }
    }

    fn view(&self) -> AssetView {
        AssetView::new(self.asset.clone(), self.names.clone())
    }

    pub(crate) fn created(&self) -> Created<AssetView> {
        Created::new("assets", self.asset.value.id, self.view())
    }

    /// Returns the response that the operation gets as a single request.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] if the response can't be serialized.
    pub(crate) fn response(&self) -> Result<StoredResponse, StoreError> {
        if self.is_deleted { Data { data: DELETED }.to_stored(Vec::new()) } else { self.upserted().to_stored(Vec::new()) }
    }

    /// Returns the response to a creation or a change.
    pub(crate) fn upserted(&self) -> Upserted<AssetView> {
        match self.result {
            RowResult::Created => Upserted::Created(self.created()),
            _ => Upserted::Changed(Versioned { version: self.asset.tag_version(), data: self.view() }),
        }
    }

    fn row_response(&self) -> Result<StoredResponse, StoreError> {
        row_response(self.result, self.asset.value.id.uuid(), self.changes.as_ref())
    }
}

pub(crate) struct AssetOperation {
    /// Only used if an asset is created.
    new_id: AssetId,
    target: Target,
    action: Action,
    expected: Expected,
    /// Tags that the request's operations set, normalized. Generated tags must differ from them.
    brought_tags: Arc<BTreeSet<String>>,
}

pub(crate) struct Inputs {
    records: Arc<AssetRecords>,
    /// The asset to create, with its tag.
    new: Option<Asset>,
}

impl AssetOperation {
    pub(crate) fn new(new_id: AssetId, target: Target, action: Action) -> Self {
        let updated_at = if let Action::Write(write) = &action { write.unchanged.updated_at() } else { None };
        Self { new_id, target, action, expected: Expected { versions: None, updated_at }, brought_tags: Arc::default() }
    }

    /// Sets what the operation expects of the asset, besides the `updated_at` in its body.
    pub(crate) fn with_if_match(self, versions: Option<ExpectedVersions>) -> Self {
        Self { expected: Expected { versions, ..self.expected }, ..self }
    }

    /// Sets the `updated_at` that the asset must have.
    fn with_updated_at(self, updated_at: Option<Timestamp>) -> Self {
        Self { expected: Expected { updated_at, ..self.expected }, ..self }
    }

    /// Prevents operations from getting a generated tag that another operation of the same request sets.
    pub(crate) fn note_brought_tags(operations: &mut [Self]) {
        let tags = Arc::new(operations.iter().filter_map(|operation| Some(operation.unique_value()?.1)).collect());
        operations.iter_mut().for_each(|operation| operation.brought_tags = Arc::clone(&tags));
    }

    fn change(&self) -> Option<&AssetChange> {
        if let Action::Write(write) = &self.action { Some(&write.change) } else { None }
    }

    fn is_brought(&self, tag: &str) -> bool {
        self.brought_tags.contains(&Asset::unique_tag(tag).value)
    }

    /// Decides all fields of a new asset except its tag. Also returns the tag's number range, unless the request sets the tag.
    fn draft(&self, principal: &Principal, records: &AssetRecords) -> Result<Option<(Asset, Option<TagRange>)>, ApiError> {
        if let Action::Refuse(errors) = &self.action {
            return Err(ApiError::Invalid(errors.clone()));
        }
        let found = records.found(&self.target)?;
        let (Action::Write(write), None) = (&self.action, found) else { return Ok(None) };
        let references = records.references(None, &write.change)?;
        let draft = new_asset(self.new_id, write, &references, &principal.patterns)?;
        let is_generated = draft.asset_tag.is_empty();
        let range = is_generated.then(|| records.tag_range(&references, principal.context.at)).transpose()?;
        Ok(Some((draft, range)))
    }

    /// Reads the inputs of several operations together. Returns the inputs or the error of each. `is_retry` means that a write
    /// conflict preceded. New assets without errors get their tags, in the order of the operations.
    pub(crate) async fn read_all(
        principal: &Principal,
        operations: &[&Self],
        is_retry: bool,
    ) -> Result<Vec<Result<Inputs, ApiError>>, ApiError> {
        let changes: Vec<_> = operations.iter().map(|operation| (&operation.target, operation.change())).collect();
        let records = Arc::new(AssetRecords::of_all(&principal.store, &changes).await?);
        let drafts: Vec<_> = operations.iter().map(|operation| operation.draft(principal, &records)).collect();
        let ranges = drafts.iter().flatten().flatten().filter_map(|(_, range)| range.as_ref());
        let mut numbers = if is_retry { HashMap::new() } else { reserved_numbers(principal, ranges).await? };
        let mut inputs = Vec::new();
        for (operation, draft) in operations.iter().zip(drafts) {
            let new = match draft {
                Ok(Some(draft)) => operation.new_with_tag(principal, draft, &mut numbers, is_retry).await.map(Some),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            inputs.push(new.map(|new| Inputs { records: Arc::clone(&records), new }));
        }
        Ok(inputs)
    }

    /// Reads the inputs. `is_retry` means that a write conflict preceded.
    async fn read(&self, principal: &Principal, is_retry: bool) -> Result<Inputs, ApiError> {
        let records = AssetRecords::of_all(&principal.store, &[(&self.target, self.change())]).await?;
        self.inputs(principal, records, is_retry).await
    }

    /// Builds the inputs from records that were just read. A new asset gets its tag.
    async fn inputs(&self, principal: &Principal, records: AssetRecords, is_retry: bool) -> Result<Inputs, ApiError> {
        let new = match self.draft(principal, &records)? {
            None => None,
            Some(draft) => {
                let range = draft.1.iter().filter(|_| !is_retry);
                let mut numbers = reserved_numbers(principal, range).await?;
                Some(self.new_with_tag(principal, draft, &mut numbers, is_retry).await?)
            }
        };
        Ok(Inputs { records: Arc::new(records), new })
    }

    /// Gives a new asset its tag: the next reserved number, or another if there is none or its tag is taken. A retry also looks
    /// the tag up, because one was already taken.
    async fn new_with_tag(
        &self,
        principal: &Principal,
        (mut draft, range): (Asset, Option<TagRange>),
        numbers: &mut HashMap<String, u64>,
        is_retry: bool,
    ) -> Result<Asset, ApiError> {
        let Some(range) = range else {
            let owner = if is_retry { owner_of_tag(principal, &draft).await? } else { None };
            return match owner {
                Some(owner) => Err(taken_tag(principal, owner).await?),
                None => Ok(draft),
            };
        };
        let reserved = numbers.get_mut(&range.counter()).map(|next| {
            *next += 1;
            range.tag(*next - 1)
        });
        draft.asset_tag = match reserved.filter(|tag| !self.is_brought(tag)) {
            Some(tag) => tag,
            None => free_tag(principal, &range, &draft, |tag| self.is_brought(tag)).await?,
        };
        Ok(draft)
    }

    /// Decides the change and adds it to `unit`. Has no other effect, because it is called again if another writer was faster.
    ///
    /// # Errors
    ///
    /// Returns why the change isn't possible.
    pub(crate) fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        Inputs { records, new }: &Inputs,
    ) -> Result<AssetOutcome, ApiError> {
        if let (Some(new), None) = (new, &self.expected.versions) {
            let asset = unit.create(new.clone())?;
            if let Target::Serial(serial) = &self.target {
                unit.claim_serial(serial, &records.by_serial(serial), new.id);
            }
            return Ok(AssetOutcome::new(asset, RowResult::Created, records));
        }
        // A new asset has no version to match.
        let old = records.found(&self.target)?.ok_or(ApiError::PreconditionFailed(Mismatch::Version))?;
        self.expected.check(&old).map_err(ApiError::PreconditionFailed)?;
        let Action::Write(write) = &self.action else {
            check_deletion(&old.value)?;
            unit.delete(&old)?;
            return Ok(AssetOutcome { is_deleted: true, ..AssetOutcome::new(old, RowResult::Updated, records) });
        };
        let next = changed_asset(&old, &self.target, write, records, &principal.patterns)?;
        let asset = unit.update(&old, next)?;
        let result = if asset.version == old.version { RowResult::Unchanged } else { RowResult::Updated };
        let changes = principal.store.is_dry_run().then(|| RowChanges::of(old.changes_to(&asset.value)));
        Ok(AssetOutcome { changes, ..AssetOutcome::new(asset, result, records) })
    }

    /// Commits the operation alone, from inputs that were just read, and stores the response that `respond` builds.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::retry`].
    pub(crate) async fn commit(
        &self,
        principal: &Principal,
        inputs: Inputs,
        respond: fn(&AssetOutcome) -> Result<StoredResponse, StoreError>,
    ) -> Result<AssetOutcome, ApiError> {
        let attempt = |inputs| async move {
            let mut unit = principal.unit();
            let outcome = self.decide(principal, &mut unit, &inputs)?;
            unit.commit_with(|| respond(&outcome)).await.map_err(commit_failure)?;
            Ok(outcome)
        };
        // Boxed, because the compiler limits how deep future types can nest.
        principal.retry(inputs, || Box::pin(self.read(principal, true)), attempt).await
    }

    /// Like [`AssetOperation::commit`], but reads the inputs first.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::retry`].
    pub(crate) async fn read_and_commit(&self, principal: &Principal) -> Result<AssetOutcome, ApiError> {
        let inputs = Box::pin(self.read(principal, false)).await?;
        self.commit(principal, inputs, AssetOutcome::response).await
    }

    /// Commits a row of an import. Reads the inputs if `inputs` is `None`.
    ///
    /// # Errors
    ///
    /// Same as [`Principal::retry`], with errors in the columns of the row.
    pub(crate) async fn commit_row(
        &self,
        principal: &Principal,
        inputs: Option<Result<Inputs, ApiError>>,
    ) -> Result<StoredResponse, ApiError> {
        let committed = async {
            let inputs = match inputs {
                Some(inputs) => inputs?,
                None => Box::pin(self.read(principal, true)).await?,
            };
            Ok(self.commit(principal, inputs, AssetOutcome::row_response).await?.row_response()?)
        };
        committed.await.map_err(|error| self.locate(error))
    }

    /// Returns the unique field that the operation sets, with its value.
    pub(crate) fn unique_value(&self) -> Option<(&'static str, String)> {
        let unique = Asset::unique_tag(self.change()?.asset_tag.value()?);
        Some((unique.field, unique.value))
    }

    /// Moves each error to the row's column for the field, and turns `NotFound` into an error in `id`.
    fn locate(&self, error: ApiError) -> ApiError {
        let named_columns = if let Action::Write(write) = &self.action { write.named_columns.as_slice() } else { &[] };
        let locate = |error: FieldError| {
            let error = error.in_column();
            match named_columns.iter().find(|(field, _)| error.is_about(field)) {
                Some((_, column)) => {
                    let text = error.reason.text.replacen("is the ID of", "belongs to", 1);
                    FieldError::column(column, ValueError { text, ..error.reason })
                }
                None => error,
            }
        };
        match error {
            ApiError::Invalid(errors) => ApiError::Invalid(errors.into_iter().map(locate).collect()),
            ApiError::NotFound => ApiError::Invalid(vec![FieldError::column("id", "is not the ID of an asset of this tenant")]),
            ApiError::Conflict(mut conflict) => {
                for field in conflict.context.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten() {
                    let column = named_columns.iter().find(|(known, _)| *field == *known);
                    column.into_iter().for_each(|(_, column)| *field = Value::from(*column));
                }
                ApiError::Conflict(conflict)
            }
            other => other,
        }
    }
}

/// Decides whether to retry after a failed commit.
pub(crate) fn commit_failure(error: WriteError) -> CommitFailure<ApiError> {
    match error {
        // The retry generates a different tag, or finds the owner of the requested tag.
        WriteError::Duplicate(..) => CommitFailure::Outdated(WriteError::Stale),
        error => error.into(),
    }
}

/// Returns the first number reserved in each range, by counter.
async fn reserved_numbers<'a>(
    principal: &Principal,
    ranges: impl Iterator<Item = &'a TagRange>,
) -> Result<HashMap<String, u64>, ApiError> {
    let mut counts: HashMap<String, (&TagRange, u64)> = HashMap::new();
    for range in ranges {
        counts.entry(range.counter()).or_insert((range, 0)).1 += 1;
    }
    let mut first = HashMap::new();
    for (counter, (range, count)) in counts {
        first.insert(counter, principal.store.next_number(range, count).await? + 1 - count);
    }
    Ok(first)
}

/// Finds the next tag that no asset has or had, and no other operation of the request sets.
async fn free_tag(
    principal: &Principal,
    range: &TagRange,
    draft: &Asset,
    is_brought: impl Fn(&str) -> bool,
) -> Result<String, ApiError> {
    for step in 0..SINGLE_STEPS + MAX_DOUBLINGS {
        let number = principal.store.next_number(range, 1 << step.saturating_sub(SINGLE_STEPS)).await?;
        let asset = Asset { asset_tag: range.tag(number), ..draft.clone() };
        let mut is_taken = is_brought(&asset.asset_tag);
        for unique in asset.unique() {
            is_taken |= principal.store.is_taken(Asset::KIND, &unique).await?;
        }
        if !is_taken {
            return Ok(asset.asset_tag);
        }
    }
    Err(ApiError::Unavailable(Dependency::AssetTags, "every generated tag was taken".into()))
}

/// Finds a different asset that has or had the tag.
async fn owner_of_tag(principal: &Principal, asset: &Asset) -> Result<Option<AssetId>, StoreError> {
    let owners = principal.store.owners::<Asset>(&asset.unique()).await?;
    Ok(owners.into_values().find(|owner| *owner != asset.id))
}

async fn taken_tag(principal: &Principal, owner: AssetId) -> Result<ApiError, ApiError> {
    let deletions = principal.store.deletions::<Asset>(std::iter::once(owner)).await?;
    let Some(at) = deletions.get(&owner.uuid()) else {
        return Ok(WriteError::Duplicate("asset_tag", Some((Asset::KIND, owner.uuid()))).into());
    };
    let context = json!({"field": "asset_tag", "asset_id": owner, "deleted_at": at});
    Ok(ApiError::conflict(ConflictCode::Duplicate, format!("This asset_tag {}.", tag_of_deleted(*at)), context))
}

pub(crate) fn tag_of_deleted(at: Timestamp) -> String {
    format!("is the tag of an asset that was deleted on {}; tags are never reused", at.date())
}

fn change_error(error: AssetChangeError) -> ApiError {
    match error {
        AssetChangeError::Invalid(errors) => ApiError::Invalid(errors),
        AssetChangeError::Transition { from, to, ref allowed } => ApiError::conflict(
            ConflictCode::TransitionNotAllowed,
            format!("The tenant's settings do not permit changing the status from {from} to {to}."),
            json!({ "allowed": allowed }),
        ),
        AssetChangeError::Running(instance, fields) => process_running(instance, &fields),
    }
}

/// `fields` are those that the request would change; none for a deletion.
fn process_running(instance: InstanceId, fields: &[&str]) -> ApiError {
    let detail = "A process instance is in progress on the asset. Complete or cancel it first.";
    let mut context = json!({ "instance_id": instance });
    if !fields.is_empty() {
        context["fields"] = json!(fields);
    }
    ApiError::conflict(ConflictCode::ProcessRunning, detail, context)
}

pub(crate) fn several_assets(assets: &[Stored<Asset>]) -> ApiError {
    let ids: Vec<AssetId> = assets.iter().map(|asset| asset.value.id).collect();
    let detail = format!("{} assets have this serial number. Use the ID to change one of them.", ids.len());
    ApiError::conflict(ConflictCode::Duplicate, detail, json!({"field": "serial_number", "asset_ids": ids}))
}

type Records<T> = HashMap<<T as Record>::Id, Stored<T>>;

#[derive(Default)]
pub(crate) struct AssetRecords {
    /// Read if a change depends on the tenant's settings.
    tenant: Option<Stored<Tenant>>,
    assets: Records<Asset>,
    types: Records<AssetType>,
    models: Records<Model>,
    manufacturers: Records<Manufacturer>,
    users: Records<User>,
    unreadable: Vec<UnreadableRecord>,
    /// By normalized serial number.
    by_serial: HashMap<String, SerialMatch>,
}

impl AssetRecords {
    /// Takes two round trips, or one for a change that doesn't need the asset type.
    pub(crate) async fn of_one(store: &Reader, target: &Target, change: Option<&AssetChange>) -> Result<Self, StoreError> {
        Self::read(store, &[(target, change)], false).await
    }

    /// Also reads the names shown in responses. Takes two round trips, and two more for serial numbers.
    pub(crate) async fn of_all(store: &Reader, changes: &[(&Target, Option<&AssetChange>)]) -> Result<Self, StoreError> {
        Self::read(store, changes, true).await
    }

    async fn read(store: &Reader, changes: &[(&Target, Option<&AssetChange>)], with_names: bool) -> Result<Self, StoreError> {
        let serials = changes.iter().filter_map(|(target, _)| target.serial().map(str::to_owned)).collect();
        let mut records = Self { by_serial: store.assets_by_serial(&serials).await?, ..Self::default() };
        let with_serial = records.by_serial.values().flat_map(|matched| &matched.assets);
        records.assets = with_serial.map(|asset| (asset.value.id, asset.clone())).collect();
        let mut first = RecordIds::default();
        let mut needs_tenant = with_names && !changes.is_empty();
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

    /// Returns `None` for a new asset.
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

    /// Returns `None` for a new asset.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] if the asset does not exist, [`ApiError::Unreadable`] if it is damaged, and
    /// [`ApiError::Conflict`] if several assets have the serial number.
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

    /// Returns the records that the change refers to. `asset` is `None` for a creation.
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

    /// Returns `None` if the tenant permits every status change.
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

/// Builds the response to a GET. Takes a round trip if the asset has a type or a model.
pub(crate) async fn view(store: &Reader, asset: Stored<Asset>) -> Result<Versioned<AssetView>, ApiError> {
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

/// Compares `assigned_user` by ID only, because the asset stores no other data about the user.
pub(crate) fn without_users(unchanged: ReadOnlyFields) -> ReadOnlyFields {
    unchanged.by_reference("assigned_user", "assigned_to")
}
