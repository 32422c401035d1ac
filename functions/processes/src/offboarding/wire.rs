//! The body and the response of an offboarding.

use serde::Serialize;
use shared::domain::assets::asset::{Asset, Status};
use shared::domain::processes::instance::{Instance, ProcessError};
use shared::domain::processes::process::{Process, Slug};
use shared::domain::user::{Email, User};
use shared::domain::values::id::{AssetId, InstanceId, MovementId, ProcessId, UserId};
use shared::domain::values::text::Name;
use shared::http::error::ConflictCode;
use utoipa::ToSchema;
use uuid::Uuid;

shared::body! {
    /// How to offboard a user.
    pub struct Offboard as OffboardingRequest {
        /// Process to start on the user's assets. Default: the one with the slug `device-return`.
        optional process_id: ProcessId,
        /// Whether the user becomes inactive. Default true.
        optional deactivate: bool,
    }
    read_only: &[]
}

/// What an offboarding has done, and what is left.
#[derive(Debug, Serialize, ToSchema)]
pub struct Offboarding {
    /// The user, as they are now.
    pub(crate) user: OffboardedUser,
    /// The process.
    pub(crate) process: OffboardingProcess,
    /// Movements that were started, each on 2 to 20 assets.
    pub(crate) movements: Vec<StartedMovement>,
    /// Process instances that were started on a single asset.
    pub(crate) instances: Vec<StartedInstance>,
    /// Assets on which this process was in progress already.
    pub(crate) in_progress: Vec<RunningInstance>,
    /// Number of those assets. `in_progress` names at most 500.
    pub(crate) in_progress_count: usize,
    /// Assets that stay with the user, because the process can't be started on them.
    pub(crate) not_started: Vec<NotStarted>,
    /// Number of those assets. `not_started` names at most 500.
    pub(crate) not_started_count: usize,
    /// IDs of the user's assets that can't be read, on which nothing was started.
    pub(crate) unreadable: Vec<Uuid>,
    /// Whether the user has further assets: then send the request again.
    pub(crate) has_more: bool,
}

/// The user of an offboarding.
#[derive(Debug, Serialize, ToSchema)]
pub struct OffboardedUser {
    id: UserId,
    display_name: Name,
    email: Email,
    is_active: bool,
}

impl From<User> for OffboardedUser {
    fn from(user: User) -> Self {
        let User { id, email, display_name, role: _, is_active, erased_at: _ } = user;
        Self { id, display_name, email, is_active }
    }
}

/// The process of an offboarding.
#[derive(Debug, Serialize, ToSchema)]
pub struct OffboardingProcess {
    id: ProcessId,
    name: Name,
    slug: Slug,
}

impl From<&Process> for OffboardingProcess {
    fn from(process: &Process) -> Self {
        Self { id: process.id, name: process.name.clone(), slug: process.slug.clone() }
    }
}

/// A movement that an offboarding has started.
#[derive(Debug, Serialize, ToSchema)]
pub struct StartedMovement {
    /// Null in a dry run.
    #[schema(value_type = Option<MovementId>, required = true)]
    pub(crate) id: MovementId,
    /// Movement number. Null in a dry run.
    #[schema(value_type = Option<String>, required = true, examples("MOV-000001"))]
    pub(crate) number: String,
    /// Its assets.
    pub(crate) assets: Vec<StartedInstance>,
}

/// A process instance that an offboarding has started.
#[derive(Debug, Serialize, ToSchema)]
pub struct StartedInstance {
    asset_id: AssetId,
    asset_tag: String,
    asset_name: Name,
    /// Null in a dry run.
    #[schema(value_type = Option<InstanceId>, required = true)]
    instance_id: InstanceId,
}

impl From<Instance> for StartedInstance {
    fn from(instance: Instance) -> Self {
        let Instance { id, asset_id, asset_tag, asset_name, .. } = instance;
        Self { asset_id, asset_tag, asset_name, instance_id: id }
    }
}

/// An instance of the process that was in progress before.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunningInstance {
    asset_id: AssetId,
    asset_tag: String,
    asset_name: Name,
    instance_id: InstanceId,
    /// Movement that the instance is part of.
    #[schema(required)]
    movement_id: Option<MovementId>,
}

impl From<Instance> for RunningInstance {
    fn from(instance: Instance) -> Self {
        let Instance { id, asset_id, asset_tag, asset_name, movement_id, .. } = instance;
        Self { asset_id, asset_tag, asset_name, instance_id: id, movement_id }
    }
}

/// An asset on which the process can't be started.
#[derive(Debug, Serialize, ToSchema)]
pub struct NotStarted {
    asset_id: AssetId,
    asset_tag: String,
    asset_name: Name,
    status: Status,
    /// Code of the error that a start returns.
    code: &'static str,
    /// The error in words.
    detail: String,
    /// Instance of another process that is in progress on the asset.
    #[schema(required)]
    instance_id: Option<InstanceId>,
}

impl NotStarted {
    pub(crate) fn new(asset: Asset, error: &ProcessError) -> Self {
        let (code, detail) = (ConflictCode::from(error).as_str(), error.to_string());
        let Asset { id, asset_tag, name, status, running_instance_id, .. } = asset;
        Self { asset_id: id, asset_tag, asset_name: name, status, code, detail, instance_id: running_instance_id }
    }
}
