//! The endpoint that offboards a user: it starts a return process on all of the user's assets.

use crate::subject::start::StartProcess;
use crate::subject::{Subject, Submission, process_error};
use serde::Serialize;
use shared::auth::caller::{AssetsRead, ProcessesWrite, UsersWrite};
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::assets::asset::{Asset, Status};
use shared::domain::processes::instance::{Instance, ProcessError, check_startable};
use shared::domain::processes::movement::Movement;
use shared::domain::processes::process::{Process, ProcessStatus, Slug};
use shared::domain::record::Stored;
use shared::domain::user::{Email, User};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetId, InstanceId, MovementId, ProcessId, UserId};
use shared::domain::values::text::Name;
use shared::http::openapi::{OffboardingConflict, ResourceErrors};
use shared::http::requests::body::OptionalJsonBody;
use shared::http::requests::params::Path;
use shared::http::responses::{ApiError, ConflictCode, Deactivation, Json, Success, or_not_found};
use shared::request::unknown_reference;
use shared::store::{BatchGet, MAX_TRANSACTION_ITEMS, PageRequest, ProcessFilter, StoreError, has_time_for_operation};
use std::collections::{HashMap, VecDeque};
use utoipa::ToSchema;
use uuid::Uuid;

/// Slug of the default process.
const DEFAULT_PROCESS: &str = "device-return";
/// Maximum number of movements and single instances started per request. For the remaining assets, the response has `has_more`.
const MAX_STARTS: usize = 10;
/// Maximum number of assets listed in `not_started`, and in `in_progress`. The counts include the assets left out.
const MAX_LISTED: usize = 500;

/// Offboard a user
///
/// Deactivates the user and starts a process on all of the user's assets, in movements of up to 20. The response lists the
/// remaining assets, with the reasons, and in `meta.picked_in` the process instances that have picked the user. Safe to repeat: assets on which the process is already in progress are skipped. Also needs
/// the scopes `processes:write` and `assets:read` and, for an admin, a key with the effective role `admin`.
#[utoipa::path(post, path = "/users/{id}/offboard", tag = "users", responses(ResourceErrors, OffboardingConflict))]
pub async fn offboard_user(
    caller: Caller<(UsersWrite, ProcessesWrite, AssetsRead)>,
    Path(id): Path<UserId>,
    body: OptionalJsonBody<Offboard>,
) -> Result<Json<OffboardingResult>, ApiError> {
    let user = caller.store.get::<User>(id).await?;
    let caller = caller.verified().await?;
    caller.refuse_precondition()?;
    let user = or_not_found(user)?;
    caller.role.check_power_over(user.value.role)?;
    let (process_id, deactivate) = match body.parse(&caller)? {
        Some(body) => (body.process_id, body.deactivate.unwrap_or(true)),
        None => (None, true),
    };
    let process = process(&caller, process_id).await?;
    // Each change is idempotent, so none needs the idempotency key. The response is stored at the end.
    let worker = caller.without_idempotency_key();
    // The user is deactivated first, so that no more assets can be assigned.
    let user = match deactivate {
        true => {
            let deactivated = |user: &User| {
                worker.role.check_power_over(user.role)?;
                Ok(User { is_active: false, ..user.clone() })
            };
            worker.update(user, deactivated).await?
        }
        false => user,
    };
    let plan = Plan::new(&worker, &process, user.value.id);
    let data = plan.execute(user.value).await?;
    let meta = Deactivation { picked_in: worker.store.picked_in(id).await? };
    let response = Json(OffboardingResult { data, meta });
    caller.store_finished(&response.to_stored(Vec::new())?).await?;
    Ok(response)
}

/// Reads the process to start. Fails if it is inactive, before anything is changed.
async fn process(caller: &VerifiedCaller, id: Option<ProcessId>) -> Result<Stored<Process>, ApiError> {
    let missing = |detail: &str| ApiError::Invalid(vec![FieldError::field("process_id", detail)]);
    let process = match id {
        Some(id) => {
            let process = caller.store.get::<Process>(id).await?;
            process.ok_or_else(|| ApiError::Invalid(vec![unknown_reference("process_id")]))?
        }
        None => {
            let slug = Some(DEFAULT_PROCESS.parse().map_err(StoreError::broken)?);
            let filter = ProcessFilter { slug, ..ProcessFilter::default() };
            let page = caller.store.list_processes(&filter, PageRequest { number: 1, limit: 1 }).await?;
            page.items.into_iter().next().ok_or_else(|| missing("is required: no process has the slug device-return"))?
        }
    };
    if process.value.status == ProcessStatus::Inactive {
        return Err(process_error(ProcessError::Inactive));
    }
    Ok(process)
}

/// The progress of starting a process on a user's assets.
struct Plan<'c> {
    caller: &'c VerifiedCaller,
    process: &'c Stored<Process>,
    user: UserId,
    movements: Vec<StartedMovement>,
    instances: Vec<StartedInstance>,
    in_progress: Vec<RunningInstance>,
    not_started: Vec<NotStarted>,
}

impl<'c> Plan<'c> {
    fn new(caller: &'c VerifiedCaller, process: &'c Stored<Process>, user: UserId) -> Self {
        let (movements, instances, in_progress, not_started) = Default::default();
        Self { caller, process, user, movements, instances, in_progress, not_started }
    }

    async fn execute(mut self, user: User) -> Result<Offboarding, ApiError> {
        let (assets, unreadable) = self.caller.store.assets_of_user(self.user).await?;
        let startable = self.sort_out(assets).await?;
        let mut groups: VecDeque<_> = Movement::groups(&self.process.value, startable, MAX_TRANSACTION_ITEMS).into();
        while self.movements.len() + self.instances.len() < MAX_STARTS && has_time_for_operation() {
            let Some(group) = groups.pop_front() else { break };
            match self.start(&group).await {
                Ok(()) => {}
                // A concurrent request changed some of the assets.
                Err(ApiError::Conflict(conflict)) => {
                    let refused = asset_ids(&conflict.context);
                    let (changed, rest): (Vec<_>, _) = group.into_iter().partition(|asset| refused.contains(&asset.value.id));
                    if changed.is_empty() {
                        return Err(ApiError::Conflict(conflict));
                    }
                    let changed = self.read_again(&changed).await?;
                    let still_startable = self.sort_out(changed).await?;
                    // The process definition has changed since it was read.
                    if !still_startable.is_empty() {
                        return Err(ApiError::Conflict(conflict));
                    }
                    groups.extend(Movement::groups(&self.process.value, rest, MAX_TRANSACTION_ITEMS));
                }
                // An asset was deleted, or the group is too large for a transaction.
                Err(ApiError::Invalid(errors)) => {
                    let mut present = self.read_again(&group).await?;
                    if present.len() == group.len() && group.len() == 1 {
                        return Err(ApiError::Invalid(errors));
                    }
                    let second = present.split_off(present.len() / 2);
                    groups.extend([present, second].into_iter().filter(|group| !group.is_empty()));
                }
                Err(error) => return Err(error),
            }
        }
        let (in_progress_count, not_started_count) = (self.in_progress.len(), self.not_started.len());
        self.in_progress.truncate(MAX_LISTED);
        self.not_started.truncate(MAX_LISTED);
        Ok(Offboarding {
            user: user.into(),
            process: (&self.process.value).into(),
            movements: self.movements,
            instances: self.instances,
            in_progress: self.in_progress,
            in_progress_count,
            not_started: self.not_started,
            not_started_count,
            unreadable,
            has_more: !groups.is_empty(),
        })
    }

    /// Returns the startable assets, and records the others with the reason.
    async fn sort_out(&mut self, assets: Vec<Stored<Asset>>) -> Result<Vec<Stored<Asset>>, ApiError> {
        let running = assets.iter().filter_map(|asset| asset.value.running_instance_id);
        let running = self.caller.store.batch_get(BatchGet::new().with_all::<Instance>(running)).await?;
        let mut startable = Vec::new();
        for asset in assets {
            let Err(error) = check_startable(&self.process.value, &asset.value) else {
                startable.push(asset);
                continue;
            };
            let instance = running.get_readable::<Instance>(asset.value.running_instance_id)?;
            match instance.filter(|instance| instance.value.process_id == self.process.value.id) {
                Some(instance) => self.in_progress.push(instance.value.into()),
                None => self.not_started.push(NotStarted::new(asset.value, &error)),
            }
        }
        Ok(startable)
    }

    /// Reads the assets again, and drops any that are no longer assigned to the user.
    async fn read_again(&self, assets: &[Stored<Asset>]) -> Result<Vec<Stored<Asset>>, ApiError> {
        let ids: Vec<AssetId> = assets.iter().map(|asset| asset.value.id).collect();
        let batch = self.caller.store.batch_get(BatchGet::new().with_all::<Asset>(ids.iter().copied())).await?;
        let mut assets: HashMap<AssetId, Stored<Asset>> =
            batch.get_all::<Asset>(ids.iter().copied())?.into_iter().map(|asset| (asset.value.id, asset)).collect();
        assets.retain(|_, asset| asset.value.assigned_to == Some(self.user));
        Ok(ids.iter().filter_map(|id| assets.remove(id)).collect())
    }

    /// Starts the process on all assets of a group, or on none.
    async fn start(&mut self, group: &[Stored<Asset>]) -> Result<(), ApiError> {
        let assets = group.iter().map(|asset| asset.value.id).collect();
        let command = StartProcess::new(self.process.value.id, assets, Submission::at_start(None, None, Vec::new()));
        let inputs = command.read(&self.caller.store).await?;
        let Subject { movement, instances } = command.execute(self.caller, inputs).await?;
        let instances = instances.into_iter().map(|instance| instance.value.into());
        match movement {
            None => self.instances.extend(instances),
            Some(Stored { value: Movement { id, number, .. }, .. }) => {
                self.movements.push(StartedMovement { id, number, assets: instances.collect() });
            }
        }
        Ok(())
    }
}

fn asset_ids(context: &serde_json::Map<String, serde_json::Value>) -> Vec<AssetId> {
    let several = context.get("assets").and_then(|assets| assets.as_array()).into_iter().flatten();
    let named = several.filter_map(|asset| asset.get("asset_id")).chain(context.get("asset_id"));
    named.filter_map(|id| id.as_str()?.parse().ok()).collect()
}

shared::body! {
    /// How to offboard a user.
    pub struct Offboard as OffboardingRequest {
        /// Process to start on the user's assets. Default: the process with the slug `device-return`.
        optional process_id: ProcessId,
        /// Whether the user becomes inactive. Default true.
        optional deactivate: bool,
    }
    read_only: &[]
}

/// The result of an offboarding, with the other processes that wait for the user.
#[derive(Debug, Serialize, ToSchema)]
pub struct OffboardingResult {
    data: Offboarding,
    meta: Deactivation,
}

/// The result of an offboarding.
#[derive(Debug, Serialize, ToSchema)]
pub struct Offboarding {
    /// The user after the request.
    user: OffboardedUser,
    /// The process.
    process: OffboardingProcess,
    /// Movements started, each of 2 to 20 assets.
    movements: Vec<StartedMovement>,
    /// Process instances started on single assets.
    instances: Vec<StartedInstance>,
    /// Assets on which this process was already in progress.
    in_progress: Vec<RunningInstance>,
    /// Total number of assets on which the process was already in progress. `in_progress` lists at most 500.
    in_progress_count: usize,
    /// Assets on which the process can't be started. They stay with the user.
    not_started: Vec<NotStarted>,
    /// Total number of assets on which the process can't be started. `not_started` lists at most 500.
    not_started_count: usize,
    /// IDs of the user's assets that can't be read. Nothing was started on them.
    unreadable: Vec<Uuid>,
    /// Whether the user has more assets. If so, send the request again.
    has_more: bool,
}

/// The offboarded user.
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

/// The process that was started.
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

/// A movement started by an offboarding.
#[derive(Debug, Serialize, ToSchema)]
pub struct StartedMovement {
    /// ID of the movement. Null in a dry run.
    #[schema(value_type = Option<MovementId>, required = true)]
    id: MovementId,
    /// Movement number. Null in a dry run.
    #[schema(value_type = Option<String>, required = true, examples("MOV-000001"))]
    number: String,
    /// The assets and their instances.
    assets: Vec<StartedInstance>,
}

/// A process instance started by an offboarding.
#[derive(Debug, Serialize, ToSchema)]
pub struct StartedInstance {
    asset_id: AssetId,
    asset_tag: String,
    asset_name: Name,
    /// ID of the process instance. Null in a dry run.
    #[schema(value_type = Option<InstanceId>, required = true)]
    instance_id: InstanceId,
}

impl From<Instance> for StartedInstance {
    fn from(instance: Instance) -> Self {
        let Instance { id, asset_id, asset_tag, asset_name, .. } = instance;
        Self { asset_id, asset_tag, asset_name, instance_id: id }
    }
}

/// An instance that was already in progress, of the process to start.
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
    /// Human-readable error.
    detail: String,
    /// Instance of a different process that is in progress on the asset.
    #[schema(required)]
    instance_id: Option<InstanceId>,
}

impl NotStarted {
    fn new(asset: Asset, error: &ProcessError) -> Self {
        let (code, detail) = (ConflictCode::from(error).as_str(), error.to_string());
        let Asset { id, asset_tag, name, status, running_instance_id, .. } = asset;
        Self { asset_id: id, asset_tag, asset_name: name, status, code, detail, instance_id: running_instance_id }
    }
}
