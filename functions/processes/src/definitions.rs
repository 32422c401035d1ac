//! The endpoints for process definitions, with their bodies, queries and views.

use crate::subject::{self, InstanceView};
use crate::subject::{CancelSubject, Subject};
use serde::Serialize;
use serde_json::Value;
use shared::auth::caller::{ProcessesRead, ProcessesWrite};
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::assets::asset::Status;
use shared::domain::processes::instance::{Instance, InstanceStatus};
use shared::domain::processes::process::{Process, ProcessChange, ProcessStatus, Slug, Step, Steps};
use shared::domain::record::Stored;
use shared::domain::values::field_error::{ErrorCode, FieldError, ValueError};
use shared::domain::values::id::{Id, InstanceId, ProcessId};
use shared::domain::values::text::{Name, Notes};
use shared::domain::values::time::Timestamp;
use shared::http::openapi::{
    ChangeErrors, DefinitionConflict, DuplicateConflict, InUseConflict, InputErrors, ResourceErrors, add_schema, either,
    schema_or_reference,
};
use shared::http::requests::body::{FromJson, JsonBody};
use shared::http::requests::params::{self, FromParam, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, ConflictCode, Created, Data, PageItems, Success, Versioned, or_not_found};
use shared::store::{BatchGet, Page, PageRequest, ProcessFilter, Reader, WriteError};
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// Default page size: tenants rarely have more definitions.
const DEFAULT_LIMIT: u32 = 100;
/// Default page size if [`DEFAULT_LIMIT`] definitions are too large for a response, which always has room for 20.
const SAFE_LIMIT: u32 = 20;
const FIRST_PAGE: PageRequest = PageRequest { number: 1, limit: DEFAULT_LIMIT };

/// The highest sequential number appended to a slug. Later attempts append random numbers.
const MAX_COUNTED_SLUGS: u32 = 20;
const MAX_RANDOM_SLUGS: u32 = 5;

/// List process definitions
///
/// Newest first. Lists active definitions by default. Without `limit`, a page has 100 definitions, or 20 if the first 100 would
/// exceed 6 MB.
#[utoipa::path(get, path = "/processes", tag = "processes", responses(InputErrors))]
pub async fn list_processes(
    caller: Caller<ProcessesRead>,
    Query(query): Query<ProcessQuery>,
) -> Result<Page<ProcessView>, ApiError> {
    let default_status = if query.slug.is_some() { StatusFilter::All } else { StatusFilter::Active };
    let filter = ProcessFilter { status: query.status.unwrap_or(default_status).into(), slug: query.slug };
    let list = |limit| caller.store.list_processes(&filter, params::page_of(query.page, query.limit, limit));
    let page = list(DEFAULT_LIMIT).await?.map(ProcessView::from);
    // A request without a limit must not fail because of the page size. The first page determines the size of all pages.
    if query.limit.is_some() {
        return Ok(page);
    }
    let first = if query.page.is_none() { None } else { Some(caller.store.list_processes(&filter, FIRST_PAGE).await?) };
    let is_too_large = match first {
        Some(first) => exceeds_response(&first.map(ProcessView::from))?,
        None => exceeds_response(&page)?,
    };
    Ok(if is_too_large { list(SAFE_LIMIT).await?.map(ProcessView::from) } else { page })
}

fn exceeds_response(page: &Page<ProcessView>) -> Result<bool, ApiError> {
    let mut items = PageItems::default();
    page.items.iter().try_for_each(|item| items.push(item))?;
    Ok(items.is_too_large())
}

/// Get a process definition
///
/// System processes are part of every tenant.
#[utoipa::path(get, path = "/processes/{id}", tag = "processes", responses(ResourceErrors))]
pub async fn get_process(caller: Caller<ProcessesRead>, Path(id): Path<ProcessId>) -> Result<Versioned<ProcessView>, ApiError> {
    caller.get::<Process, _>(id).await
}

/// Create a process definition
///
/// A process starts on assets with its `trigger_status` and takes them through 1 to 50 steps to its `target_status`.
#[utoipa::path(post, path = "/processes", tag = "processes", responses(InputErrors, DuplicateConflict))]
pub async fn create_process(
    caller: Caller<ProcessesWrite>,
    body: JsonBody<NewProcess>,
) -> Result<Created<ProcessView>, ApiError> {
    let body = body.parse(&caller)?;
    let caller = caller.verified().await?;
    let has_own_slug = body.slug.is_some();
    let process = Process {
        id: caller.store.new_id(caller.context.at)?,
        slug: body.slug.unwrap_or_else(|| Slug::from_name(&body.name, 1)),
        name: body.name,
        description: body.description.unwrap_or_default(),
        trigger_status: body.trigger_status,
        target_status: body.target_status,
        is_system: false,
        status: body.status.unwrap_or(ProcessStatus::Active),
        steps: body.steps,
    };
    if has_own_slug {
        return caller.create(process, |stored| Created::of("processes", stored)).await;
    }
    create_with_free_slug(&caller, process).await
}

async fn create_with_free_slug(caller: &VerifiedCaller, process: Process) -> Result<Created<ProcessView>, ApiError> {
    for attempt in 1..=MAX_COUNTED_SLUGS + MAX_RANDOM_SLUGS {
        let is_counted = attempt <= MAX_COUNTED_SLUGS;
        let number = if is_counted { attempt } else { u32::from_le_bytes(caller.store.random()?) };
        let mut unit = caller.unit();
        let stored = unit.create(Process { slug: Slug::from_name(&process.name, number), ..process.clone() })?;
        let created = Created::of("processes", stored);
        match unit.commit_with(|| created.to_stored(Vec::new())).await {
            Err(WriteError::Duplicate(..)) => {}
            committed => return Ok(committed.map(|()| created)?),
        }
    }
    Err(WriteError::Stale.into())
}

/// Update a process definition
///
/// Changes the given fields. For a system process, only the status can change. Instances in progress keep the steps that they
/// were started with. With the ID of a process instance, `{"status": "cancelled"}` cancels it.
#[utoipa::path(patch, path = "/processes/{id}", tag = "processes", responses(ChangeErrors, DefinitionConflict))]
pub async fn update_process(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<ProcessId>,
    body: JsonBody<ProcessPatch>,
) -> Result<Versioned<DefinitionOrInstance>, ApiError> {
    let instance_id = InstanceId::from_uuid(id.uuid());
    let batch = BatchGet::new().with::<Process>(Some(id)).with::<Instance>(Some(instance_id));
    let batch = caller.store.batch_get(batch).await?;
    let (process, instance) = (batch.get::<Process>(Some(id))?, batch.get::<Instance>(Some(instance_id))?);
    match process {
        Some(process) => update_definition(&caller, process, &body).await,
        None => update_instance(&caller, or_not_found(instance)?, &body).await,
    }
}

async fn update_definition(
    caller: &Caller<ProcessesWrite>,
    process: Stored<Process>,
    body: &JsonBody<ProcessPatch>,
) -> Result<Versioned<DefinitionOrInstance>, ApiError> {
    let (body, mut errors) = body.parse_with_errors(caller)?;
    caller.expect_read(&process, &body.unchanged).await?;
    errors.extend(body.unchanged.errors(&ProcessView::from(process.clone()))?);
    let (change, error): (ProcessChange, _) = body.into_change();
    errors.extend(error);
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    let decide = |old: &Process| {
        let next = old.changed(&change);
        next.map_err(|error| ApiError::conflict(ConflictCode::Conflict, error.to_string(), Value::Null))
    };
    let process = caller.verified().await?.update(process, decide).await?;
    Ok(Versioned { version: process.tag_version(), data: DefinitionOrInstance::Definition(Box::new(process.into())) })
}

async fn update_instance(
    caller: &Caller<ProcessesWrite>,
    instance: Stored<Instance>,
    body: &JsonBody<ProcessPatch>,
) -> Result<Versioned<DefinitionOrInstance>, ApiError> {
    let (body, mut errors) = body.parse_as::<InstancePatch>(caller)?;
    let current = RequestedStatus::from(instance.value.status());
    let status = body.status.unwrap_or(current);
    if status != current && status != RequestedStatus::Cancelled {
        errors.push(FieldError::field("status", "must be cancelled: the ID belongs to a process instance"));
    }
    errors.extend(differing(&caller.store, &instance, &body).await?);
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    let subject: Subject = if status == current {
        caller.verified().await?.update(instance, |old| Ok(old.clone())).await?.into()
    } else {
        let command = CancelSubject { id: instance.value.id.into(), reason: None };
        let inputs = command.read(&caller.store).await?;
        let principal = caller.verified().await?;
        command.execute(&principal, inputs).await?
    };
    let Versioned { version, data } = subject::respond(&caller.store, subject, false).await?;
    Ok(Versioned { version, data: DefinitionOrInstance::Instance(Box::new(data)) })
}

/// Compares the read-only fields. The body can have signatures as images or as paths, as a GET returns them.
async fn differing(store: &Reader, instance: &Stored<Instance>, body: &InstancePatch) -> Result<Vec<FieldError>, ApiError> {
    let mut fewest: Option<Vec<FieldError>> = None;
    for omit_signatures in [true, false] {
        let shown = subject::views(store, vec![instance.clone()], omit_signatures).await?;
        let errors = shown.first().map(|view| body.unchanged.errors(view)).transpose()?.unwrap_or_default();
        if errors.is_empty() {
            return Ok(errors);
        }
        fewest = fewest.into_iter().chain([errors]).min_by_key(Vec::len);
    }
    Ok(fewest.unwrap_or_default())
}

/// Delete a process definition
///
/// Refused for system processes, and while instances are in progress. Returns the definition's last state.
#[utoipa::path(delete, path = "/processes/{id}", tag = "processes", responses(ChangeErrors, InUseConflict))]
pub async fn delete_process(caller: Caller<ProcessesWrite>, Path(id): Path<ProcessId>) -> Result<Data<ProcessView>, ApiError> {
    let permit = |process: &Process| match process.is_system {
        true => {
            let detail = "System processes can't be deleted. Set the status to inactive instead.";
            Err(ApiError::conflict(ConflictCode::Conflict, detail, Value::Null))
        }
        false => Ok(()),
    };
    caller.delete(id, permit).await
}

const READ_ONLY: &[&str] = &["id", "is_system", "created_at", "updated_at"];

shared::body! {
    /// A new process definition.
    pub struct NewProcess as NewProcessDefinition {
        /// Display name.
        required name: Name,
        /// URL-safe name, unique in the tenant. Default: derived from the name.
        optional slug: Slug,
        /// Description.
        optional description: Notes,
        /// Status that an asset must have at the start.
        required trigger_status: Status,
        /// Status of the asset after completion.
        required target_status: Status,
        /// 1 to 50 steps, at most 48 of type `user_picker`. A `complete` step must be the last one.
        required steps: Steps,
        /// Whether the process can be started. Default `active`.
        optional status: ProcessStatus,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// Fields to change in a process definition; or, for the ID of a process instance, `{"status": "cancelled"}`.
    pub struct ProcessPatch as ProcessDefinitionPatch {
        /// Display name.
        optional name: Name,
        /// Description.
        optional description: Notes,
        /// Status that an asset must have at the start.
        optional trigger_status: Status,
        /// Status of the asset after completion.
        optional target_status: Status,
        /// Steps of instances started from now on.
        optional steps: Steps,
        /// `active` or `inactive`; for a process instance, `cancelled`.
        optional status: RequestedStatus,
    }
    unchanged: &["id", "slug", "is_system", "created_at", "updated_at"]
}

shared::body! {
    /// Fields of a process instance: a PATCH can only cancel it.
    pub struct InstancePatch {
        /// `cancelled`, or the current status.
        optional status: RequestedStatus,
    }
    unchanged: &[
        "id", "process_id", "asset_id", "movement_id", "current_step", "step_data", "process_name", "asset_name", "asset_tag",
        "started_by", "started_by_name", "started_at", "completed_at", "cancelled_at", "cancel_reason", "steps",
    ]
}

/// A status of a definition, or of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = DefinitionOrInstanceStatus)]
pub enum RequestedStatus {
    /// The definition can be started.
    Active,
    /// The definition can't be started.
    Inactive,
    /// Steps of the instance are open.
    InProgress,
    /// All steps of the instance were submitted.
    Completed,
    /// The instance is cancelled.
    Cancelled,
}

impl From<InstanceStatus> for RequestedStatus {
    fn from(status: InstanceStatus) -> Self {
        match status {
            InstanceStatus::InProgress => Self::InProgress,
            InstanceStatus::Completed => Self::Completed,
            InstanceStatus::Cancelled => Self::Cancelled,
        }
    }
}

impl FromJson for RequestedStatus {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        match text {
            "\"active\"" => Ok(Self::Active),
            "\"inactive\"" => Ok(Self::Inactive),
            "\"in_progress\"" => Ok(Self::InProgress),
            "\"completed\"" => Ok(Self::Completed),
            "\"cancelled\"" => Ok(Self::Cancelled),
            _ => Err(ValueError::coded(
                ErrorCode::UnknownValue,
                "must be active or inactive; for a process instance, cancelled or its current status: in_progress or completed",
            )),
        }
    }
}

impl ProcessPatch {
    /// Returns the change, and the error for a status that definitions can't have.
    fn into_change(self) -> (ProcessChange, Option<FieldError>) {
        let (status, field_error) = match self.status {
            None => (None, None),
            Some(RequestedStatus::Active) => (Some(ProcessStatus::Active), None),
            Some(RequestedStatus::Inactive) => (Some(ProcessStatus::Inactive), None),
            Some(RequestedStatus::InProgress | RequestedStatus::Completed | RequestedStatus::Cancelled) => {
                (None, Some(FieldError::field("status", "must be active or inactive: the ID belongs to a definition")))
            }
        };
        let Self { name, description, trigger_status, target_status, steps, .. } = self;
        (ProcessChange { name, description, trigger_status, target_status, steps, status }, field_error)
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum DefinitionOrInstance {
    Definition(Box<ProcessView>),
    Instance(Box<InstanceView>),
}

impl PartialSchema for DefinitionOrInstance {
    fn schema() -> RefOr<Schema> {
        let text = "The changed definition or, for the ID of a process instance, the instance, with all fields.";
        let mut schema = either::<ProcessView, InstanceView>(text);
        schema.properties.insert("status".to_owned(), schema_or_reference::<RequestedStatus>());
        schema.into()
    }
}

impl ToSchema for DefinitionOrInstance {
    fn name() -> Cow<'static, str> {
        "UpdatedProcess".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ProcessView::schemas(schemas);
        InstanceView::schemas(schemas);
        add_schema::<RequestedStatus>(schemas);
    }
}

/// Filter for the status of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = ProcessStatusFilter)]
pub enum StatusFilter {
    /// Active definitions.
    Active,
    /// Inactive definitions.
    Inactive,
    /// All definitions.
    All,
}

impl FromParam for StatusFilter {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        match text {
            "active" => Ok(Self::Active),
            "inactive" => Ok(Self::Inactive),
            "all" => Ok(Self::All),
            _ => Err(ValueError::not_one_of(["active", "inactive", "all"])),
        }
    }
}

impl From<StatusFilter> for Option<ProcessStatus> {
    fn from(shown: StatusFilter) -> Self {
        match shown {
            StatusFilter::Active => Some(ProcessStatus::Active),
            StatusFilter::Inactive => Some(ProcessStatus::Inactive),
            StatusFilter::All => None,
        }
    }
}

shared::query! {
    /// Process definitions to list.
    pub struct ProcessQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default and maximum 100.
        limit: Limit as Limit,
        /// `active`, `inactive` or `all`. Default `active`, or `all` with `slug`.
        status: StatusFilter as StatusFilter,
        /// Filter by slug (exact match).
        slug: Slug as Slug,
    }
}

/// A process definition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProcessDefinition)]
pub struct ProcessView {
    /// ID.
    id: ProcessId,
    /// Display name.
    name: Name,
    /// URL-safe name.
    slug: Slug,
    /// Description.
    description: Notes,
    /// Status that an asset must have at the start.
    trigger_status: Status,
    /// Status of the asset after completion.
    target_status: Status,
    /// Whether the process is built in, so that every tenant has it.
    is_system: bool,
    /// Whether the process can be started.
    status: ProcessStatus,
    /// Steps, in order.
    steps: Vec<Step>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change.
    updated_at: Timestamp,
}

impl From<Stored<Process>> for ProcessView {
    fn from(stored: Stored<Process>) -> Self {
        let Stored { value: process, created_at, updated_at, .. } = stored;
        Self {
            id: process.id,
            name: process.name,
            slug: process.slug,
            description: process.description,
            trigger_status: process.trigger_status,
            target_status: process.target_status,
            is_system: process.is_system,
            status: process.status,
            steps: process.steps.as_slice().to_vec(),
            created_at,
            updated_at,
        }
    }
}
