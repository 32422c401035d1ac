//! What goes over the wire: bodies, queries and views of process definitions.

use serde::Serialize;
use shared::domain::asset::Status;
use shared::domain::field_error::{FieldError, ValueError};
use shared::domain::id::ProcessId;
use shared::domain::process::{Process, ProcessChange, ProcessStatus, Slug, Step, Steps};
use shared::domain::record::Stored;
use shared::domain::text::{Name, Notes};
use shared::domain::time::Timestamp;
use shared::http::body::FromJson;
use shared::http::params::{FromParam, Limit, PageNumber};
use utoipa::ToSchema;

/// Fields of a definition that nobody sets.
const READ_ONLY: &[&str] = &["id", "is_system", "created_at", "updated_at"];

shared::body! {
    /// What a new definition is made from.
    pub struct NewProcess {
        /// What it is called.
        required name: Name,
        /// Its name in URLs, unique; made of the name when left out.
        optional slug: Slug,
        /// What it is for.
        optional description: Notes,
        /// The status that an asset must have for it to start.
        required trigger_status: Status,
        /// The status that the asset has once it is completed.
        required target_status: Status,
        /// 1 to 50 steps; `complete` only last.
        required steps: Steps,
        /// `active` when left out.
        optional status: ProcessStatus,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// The fields of a definition to change. For the id of a run: `{"status": "cancelled"}`, which cancels it.
    pub struct ProcessPatch {
        /// What it is called.
        optional name: Name,
        /// What it is for.
        optional description: Notes,
        /// The status that an asset must have for it to start.
        optional trigger_status: Status,
        /// The status that the asset has once it is completed.
        optional target_status: Status,
        /// The steps of what is started from now on.
        optional steps: Steps,
        /// `active` or `inactive`; `cancelled` for a run.
        optional status: RequestedStatus,
    }
    read_only: &["id", "slug", "is_system", "created_at", "updated_at"]
}

/// A status that a PATCH can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum RequestedStatus {
    /// A definition that can be started.
    Active,
    /// A definition that can't be started.
    Inactive,
    /// A run that ends here.
    Cancelled,
}

impl FromJson for RequestedStatus {
    fn from_json(text: &str) -> Result<Self, ValueError> {
        match text {
            "\"active\"" => Ok(Self::Active),
            "\"inactive\"" => Ok(Self::Inactive),
            "\"cancelled\"" => Ok(Self::Cancelled),
            _ => Err(ValueError::new("must be active or inactive, or cancelled for a run")),
        }
    }
}

impl ProcessPatch {
    /// What it says of a definition, and what is wrong with it for one.
    pub(crate) fn of_definition(self) -> (ProcessChange, Option<FieldError>) {
        let (status, field_error) = match self.status {
            None => (None, None),
            Some(RequestedStatus::Active) => (Some(ProcessStatus::Active), None),
            Some(RequestedStatus::Inactive) => (Some(ProcessStatus::Inactive), None),
            Some(RequestedStatus::Cancelled) => {
                (None, Some(FieldError::field("status", "must be active or inactive: this is no run")))
            }
        };
        let Self { name, description, trigger_status, target_status, steps, .. } = self;
        (ProcessChange { name, description, trigger_status, target_status, steps, status }, field_error)
    }

    /// What is wrong with it for a run, which can only be cancelled, beside the `errors` that are known.
    pub(crate) fn errors_for_instance(&self, mut errors: Vec<FieldError>) -> Vec<FieldError> {
        let given = [
            ("name", self.name.is_some()),
            ("description", self.description.is_some()),
            ("trigger_status", self.trigger_status.is_some()),
            ("target_status", self.target_status.is_some()),
            ("steps", self.steps.is_some()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        errors.extend(given.map(|(field, _)| FieldError::field(field, "is no field of a run that can be set")));
        if self.status != Some(RequestedStatus::Cancelled) && !errors.iter().any(|field_error| field_error.is_of("status")) {
            errors.push(FieldError::field("status", "must be cancelled: this is a run"));
        }
        errors
    }
}

/// Which definitions a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum StatusFilter {
    /// Those that can be started.
    Active,
    /// Those that can't.
    Inactive,
    /// All.
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
    /// Which definitions to list.
    pub struct ProcessQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default and maximum 100.
        limit: Limit as Limit,
        /// `active` (the default), `inactive` or `all`.
        status: StatusFilter as StatusFilter,
    }
}

/// A process definition (interface 2.3).
#[derive(Debug, Serialize, ToSchema)]
pub struct ProcessView {
    /// Identifier.
    id: ProcessId,
    /// Display name.
    name: Name,
    /// Its name in URLs.
    slug: Slug,
    /// What it is for.
    description: Notes,
    /// The status that an asset must have for it to start.
    trigger_status: Status,
    /// The status that the asset has once it is completed.
    target_status: Status,
    /// Whether every tenant has it from the start.
    is_system: bool,
    /// Whether it can be started.
    status: ProcessStatus,
    /// Ordered steps.
    steps: Vec<Step>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
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
