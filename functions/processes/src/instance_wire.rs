//! What goes over the wire: bodies, queries and views of runs.

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::domain::field_error::ValueError;
use shared::domain::id::{ApiKeyId, AssetId, InstanceId, MovementId, ProcessId};
use shared::domain::instance::{ImageName, Instance, InstanceStatus, State};
use shared::domain::movement::{AssetIds, Movement, overall_status};
use shared::domain::process::Step;
use shared::domain::record::Stored;
use shared::domain::signature_image::data_url;
use shared::domain::text::{Name, Notes};
use shared::domain::time::Timestamp;
use shared::http::body::{BoundedInteger, StepData};
use shared::http::params::{FromParam, Limit, PageNumber};
use shared::store::InstanceFilter;
use utoipa::ToSchema;

/// The index of a step.
type StepIndex = BoundedInteger<0, 49>;

shared::body! {
    /// On which asset to start: one of the two.
    pub struct Start {
        /// An asset that no process runs on.
        optional asset_id: AssetId,
        /// 2 to 20 such assets, for a movement: all of them start or none.
        optional asset_ids: AssetIds,
    }
    read_only: &[]
}

shared::body! {
    /// What is submitted (interface 4.9).
    pub struct Advance {
        /// The open step's value by its key. Values of later steps are kept for then; those submitted before may be
        /// sent again unchanged.
        required step_data: StepData,
        /// The step that you take for the open one; if it is not, nothing is done.
        optional current_step: StepIndex,
    }
    read_only: &[]
}

shared::body! {
    /// Why a run is cancelled.
    pub struct Cancel {
        /// In your own words.
        nullable reason: Notes,
    }
    read_only: &[]
}

/// What an answer leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Omit {
    /// Signatures' images: the path of each stands for it.
    Signatures,
}

impl FromParam for Omit {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        if text == "signatures" { Ok(Self::Signatures) } else { Err(ValueError::new("must be signatures")) }
    }
}

shared::query! {
    /// Which runs to list (interface 4.7).
    pub struct InstanceQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
        /// `in_progress`, `completed` or `cancelled`; all but cancelled ones when left out.
        status: InstanceStatus as InstanceStatus,
        /// Filter by asset.
        asset_id: AssetId as AssetId,
        /// Filter by process definition.
        process_id: ProcessId as ProcessId,
        /// `signatures`: their paths instead of their images.
        omit: Omit as Omit,
    }
}

impl From<&InstanceQuery> for InstanceFilter {
    fn from(query: &InstanceQuery) -> Self {
        Self { status: query.status, asset_id: query.asset_id, process_id: query.process_id }
    }
}

shared::query! {
    /// Which page of movements.
    pub struct MovementQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
    }
}

shared::query! {
    /// How to show a run.
    pub struct ShowQuery {
        /// `signatures`: their paths instead of their images.
        omit: Omit as Omit,
    }
}

/// A run of a process (interface 2.4).
#[derive(Debug, Serialize, ToSchema)]
pub struct InstanceView {
    /// Identifier.
    pub(crate) id: InstanceId,
    /// Process definition.
    process_id: ProcessId,
    /// The asset.
    asset_id: AssetId,
    /// The movement that it is part of.
    #[schema(required)]
    movement_id: Option<MovementId>,
    /// Where it stands.
    pub(crate) status: InstanceStatus,
    /// Index of the open step, from zero; of the last one once completed.
    pub(crate) current_step: usize,
    /// Submitted data by step key.
    #[schema(value_type = Object)]
    step_data: Map<String, Value>,
    /// The process's name at the start.
    process_name: Name,
    /// The asset's name at the start.
    asset_name: Name,
    /// The asset's tag.
    asset_tag: String,
    /// The key that started it.
    #[schema(required)]
    started_by: Option<ApiKeyId>,
    /// Who started it: the key's user, else the key's name.
    started_by_name: String,
    /// When it was started.
    started_at: Timestamp,
    /// When it was completed.
    #[schema(required)]
    completed_at: Option<Timestamp>,
    /// When it was cancelled.
    #[schema(required)]
    cancelled_at: Option<Timestamp>,
    /// Why it was cancelled.
    #[schema(required)]
    cancel_reason: Option<Notes>,
    /// The steps as they were at the start.
    steps: Vec<Step>,
}

impl InstanceView {
    /// A view with `image` for each signature, or its path where there is none.
    pub(crate) fn new(stored: Stored<Instance>, image: impl Fn(&ImageName) -> Option<Vec<u8>>) -> Self {
        let run = stored.value;
        let mut step_data = run.step_values.as_map().clone();
        for (name, _) in run.signatures() {
            let shown = image(&name).map_or_else(|| run.signature_path(&name.step), |bytes| data_url(&bytes));
            step_data.insert(name.step, json!(shown));
        }
        let (status, current_step) = (run.status(), run.current_step());
        let (completed_at, cancelled_at, cancel_reason) = match run.state {
            State::InProgress { .. } => (None, None, None),
            State::Completed { at } => (Some(at), None, None),
            State::Cancelled { at, reason, .. } => (None, Some(at), reason),
        };
        Self {
            id: run.id,
            process_id: run.process_id,
            asset_id: run.asset_id,
            movement_id: run.movement_id,
            status,
            current_step,
            step_data,
            process_name: run.process_name,
            asset_name: run.asset_name,
            asset_tag: run.asset_tag,
            started_by: run.started_by,
            started_by_name: run.started_by_name,
            started_at: stored.created_at,
            completed_at,
            cancelled_at,
            cancel_reason,
            steps: run.steps.as_slice().to_vec(),
        }
    }
}

/// One process on several assets at once.
#[derive(Debug, Serialize, ToSchema)]
pub struct MovementView {
    /// Identifier.
    pub(crate) id: MovementId,
    /// For people.
    #[schema(examples("MOV-000001"))]
    number: String,
    /// Process definition.
    process_id: ProcessId,
    /// The process's name at the start.
    process_name: Name,
    /// `in_progress` while any of its runs is; `completed` if any was; else `cancelled`.
    status: InstanceStatus,
    /// Index of the open step, from zero; of the last one once completed.
    current_step: usize,
    /// One run for each asset.
    instances: Vec<InstanceView>,
    /// The key that started it.
    #[schema(required)]
    started_by: Option<ApiKeyId>,
    /// Who started it: the key's user, else the key's name.
    started_by_name: String,
    /// When it was started.
    started_at: Timestamp,
}

impl MovementView {
    pub(crate) fn new(stored: Stored<Movement>, instances: Vec<InstanceView>) -> Self {
        let Movement { id, number, process_id, process_name, started_by, started_by_name, .. } = stored.value;
        let (status, current_step) = overall_status(instances.iter().map(|run| (run.status, run.current_step)));
        let started_at = stored.created_at;
        Self { id, number, process_id, process_name, status, current_step, instances, started_by, started_by_name, started_at }
    }
}
