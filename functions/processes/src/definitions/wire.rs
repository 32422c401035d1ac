//! Bodies, queries and views of process definitions.

use serde::Serialize;
use shared::domain::assets::asset::Status;
use shared::domain::processes::process::{Process, ProcessChange, ProcessStatus, Slug, Step, Steps};
use shared::domain::record::Stored;
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::ProcessId;
use shared::domain::values::text::{Name, Notes};
use shared::domain::values::time::Timestamp;
use shared::http::requests::body::FromJson;
use shared::http::requests::params::{FromParam, Limit, PageNumber};
use utoipa::ToSchema;

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

/// A status that a PATCH can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = RequestedProcessStatus)]
pub enum RequestedStatus {
    /// The definition can be started.
    Active,
    /// The definition can't be started.
    Inactive,
    /// The instance is cancelled.
    Cancelled,
}

impl FromJson for RequestedStatus {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        match text {
            "\"active\"" => Ok(Self::Active),
            "\"inactive\"" => Ok(Self::Inactive),
            "\"cancelled\"" => Ok(Self::Cancelled),
            _ => Err(ValueError::new("must be active or inactive, or cancelled for a process instance")),
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
            Some(RequestedStatus::Cancelled) => {
                (None, Some(FieldError::field("status", "must be active or inactive: the ID names a definition")))
            }
        };
        let Self { name, description, trigger_status, target_status, steps, .. } = self;
        (ProcessChange { name, description, trigger_status, target_status, steps, status }, field_error)
    }

    /// A process instance can only be cancelled. Includes `errors`.
    pub(crate) fn errors_for_instance(&self, mut errors: Vec<FieldError>) -> Vec<FieldError> {
        let given = [
            ("name", self.name.is_some()),
            ("description", self.description.is_some()),
            ("trigger_status", self.trigger_status.is_some()),
            ("target_status", self.target_status.is_some()),
            ("steps", self.steps.is_some()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        errors.extend(given.map(|(field, _)| FieldError::field(field, "can't be changed: the ID names a process instance")));
        if self.status != Some(RequestedStatus::Cancelled) && !errors.iter().any(|field_error| field_error.is_of("status")) {
            errors.push(FieldError::field("status", "must be cancelled: the ID names a process instance"));
        }
        errors
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
