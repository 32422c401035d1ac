//! Bodies, queries and views of process definitions.

use crate::subject::wire::InstanceView;
use serde::Serialize;
use shared::domain::assets::asset::Status;
use shared::domain::processes::instance::InstanceStatus;
use shared::domain::processes::process::{Process, ProcessChange, ProcessStatus, Slug, Step, Steps};
use shared::domain::record::Stored;
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::ProcessId;
use shared::domain::values::text::{Name, Notes};
use shared::domain::values::time::Timestamp;
use shared::http::openapi::describe::{add_schema, either, schema_or_reference};
use shared::http::requests::body::FromJson;
use shared::http::requests::params::{FromParam, Limit, PageNumber};
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

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
    /// Fields of a process definition to change; or, for the ID of a process instance, `{"status": "cancelled"}`.
    pub struct ProcessPatch as ProcessDefinitionPatch {
        /// Display name.
        optional name: Name,
        /// Description.
        optional description: Notes,
        /// Status that an asset must have at the start.
        optional trigger_status: Status,
        /// Status of the asset after completion.
        optional target_status: Status,
        /// Steps of instances that are started from now on.
        optional steps: Steps,
        /// `active` or `inactive`; for a process instance, `cancelled`.
        optional status: RequestedStatus,
    }
    unchanged: &["id", "slug", "is_system", "created_at", "updated_at"]
}

shared::body! {
    /// Fields of a process instance: a PATCH can only cancel it.
    pub struct InstancePatch {
        /// `cancelled`, or the present status.
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
            _ => Err(ValueError::new(
                "must be active or inactive; of a process instance, cancelled, or its present status: in_progress or completed",
            )),
        }
    }
}

impl ProcessPatch {
    /// With the error of a status that no definition has.
    pub(crate) fn into_change(self) -> (ProcessChange, Option<FieldError>) {
        let (status, field_error) = match self.status {
            None => (None, None),
            Some(RequestedStatus::Active) => (Some(ProcessStatus::Active), None),
            Some(RequestedStatus::Inactive) => (Some(ProcessStatus::Inactive), None),
            Some(RequestedStatus::InProgress | RequestedStatus::Completed | RequestedStatus::Cancelled) => {
                (None, Some(FieldError::field("status", "must be active or inactive: the ID names a definition")))
            }
        };
        let Self { name, description, trigger_status, target_status, steps, .. } = self;
        (ProcessChange { name, description, trigger_status, target_status, steps, status }, field_error)
    }
}

/// A changed process definition; for the ID of a process instance, the instance.
#[derive(Serialize)]
#[serde(untagged)]
pub enum DefinitionOrInstance {
    Definition(Box<ProcessView>),
    Instance(Box<InstanceView>),
}

impl PartialSchema for DefinitionOrInstance {
    fn schema() -> RefOr<Schema> {
        let text = "The changed definition or, for the ID of a process instance, the instance, each with all of its fields.";
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

/// The definitions that a list includes.
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
            _ => Err(ValueError::new("must be one of active, inactive, all")),
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
        /// Filter by slug, exactly.
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
    /// Whether every tenant has the process from the start.
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
