//! Between handlers and domain: reading what a decision needs, and deciding again when somebody was faster.

use crate::instance_wire::{Advance, InstanceView};
use crate::instances::InstanceOrMovement;
use crate::views;
use serde_json::{Map, Value, json};
use shared::auth::{Caller, TRIES};
use shared::domain::asset::Asset;
use shared::domain::field_error::FieldError;
use shared::domain::id::{AssetId, Id, InstanceId, ProcessId, UserId};
use shared::domain::instance::{Instance, InstanceStatus, ProcessError, StartedBy, State, possible_users};
use shared::domain::process::Process;
use shared::domain::record::{Kind, Reference, Stored};
use shared::domain::text::Notes;
use shared::domain::user::User;
use shared::http::error::{ApiError, ConflictCode};
use shared::http::response;
use shared::store::{BatchGet, StoreError, TenantStore, UnitOfWork, WriteError, pause};
use std::collections::BTreeSet;

/// A definition and an asset, as they are now.
pub(crate) type Pair = (Stored<Process>, Stored<Asset>);

/// What is submitted, and what is already known to be wrong with the request.
pub(crate) struct Submission {
    pub(crate) data: Map<String, Value>,
    pub(crate) expected: Option<usize>,
    errors: Vec<FieldError>,
}

impl From<(Advance, Vec<FieldError>)> for Submission {
    fn from((body, errors): (Advance, Vec<FieldError>)) -> Self {
        Self { data: body.step_data.0, expected: body.current_step.map(|step| step.0 as usize), errors }
    }
}

impl Submission {
    /// What the domain decides, unless the request has errors: then all of them.
    pub(crate) fn judged<T>(&self, decided: Result<T, ProcessError>) -> Result<T, ApiError> {
        match decided {
            Err(ProcessError::Invalid(more)) => Err(ApiError::Invalid([self.errors.clone(), more].concat())),
            _ if !self.errors.is_empty() => Err(ApiError::Invalid(self.errors.clone())),
            decided => decided.map_err(refused),
        }
    }
}

/// Reads a definition and an asset together. `errors` of the request are named with what else is wrong.
pub(crate) async fn pair(
    store: &TenantStore,
    process: ProcessId,
    asset: AssetId,
    mut errors: Vec<FieldError>,
) -> Result<Pair, ApiError> {
    let wanted = BatchGet::new().with::<Process>(store, Some(process)).with::<Asset>(store, Some(asset));
    let batch = store.batch(wanted).await?;
    let process = batch.get::<Process>(store, Some(process))?.ok_or(ApiError::NotFound)?;
    let asset = batch.get::<Asset>(store, Some(asset))?;
    if asset.is_none() {
        errors.push(FieldError::field("asset_id", "names no asset of this tenant"));
    }
    match asset {
        Some(asset) if errors.is_empty() => Ok((process, asset)),
        _ => Err(ApiError::Invalid(errors)),
    }
}

/// Who starts something.
pub(crate) fn starter(caller: &Caller) -> StartedBy {
    let by = &caller.context.actor;
    StartedBy { key: by.key_id, name: by.user_name.clone().unwrap_or_else(|| by.key_name.clone()) }
}

/// Starts a run: the run, the asset that it runs on and the count of the definition's runs change together.
pub(crate) async fn start(caller: &Caller, mut found: Pair) -> Result<Stored<Instance>, ApiError> {
    let id = caller.store.new_id(caller.context.at)?;
    let starter = starter(caller);
    for round in 0..TRIES {
        let (process, asset) = &found;
        let (run, next) = Instance::start(id, &process.value, &asset.value, &starter).map_err(refused)?;
        let mut work = UnitOfWork::new(&caller.store, &caller.context);
        let run = work.create(run)?;
        work.update(asset, next)?;
        let started =
            |view: InstanceView| response::created("processes/instances", view.id, InstanceOrMovement::Run(Box::new(view)));
        match work.commit_with(|| views::kept(&run, started)).await {
            Ok(()) => return Ok(run),
            Err(WriteError::Stale | WriteError::MissingReference(_)) => {
                pause(round).await;
                found = pair(&caller.store, found.0.value.id, found.1.value.id, Vec::new()).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

/// Reads a run, and which of the users that `data` may pick are active.
pub(crate) async fn run_and_users(
    store: &TenantStore,
    id: InstanceId,
    data: &Map<String, Value>,
) -> Result<(Stored<Instance>, BTreeSet<UserId>), ApiError> {
    let candidates: BTreeSet<UserId> = possible_users(data).collect();
    let wanted = BatchGet::new().with::<Instance>(store, Some(id));
    let wanted = candidates.iter().fold(wanted, |wanted, user| wanted.with::<User>(store, Some(*user)));
    let batch = store.batch(wanted).await?;
    let run = batch.get::<Instance>(store, Some(id))?.ok_or(ApiError::NotFound)?;
    let mut active = BTreeSet::new();
    for user in candidates {
        let found = batch.get::<User>(store, Some(user))?;
        active.extend(found.filter(|found| found.value.is_active).map(|_| user));
    }
    Ok((run, active))
}

/// Submits the open step. The last one changes the asset too, in the same transaction.
pub(crate) async fn advance(
    caller: &Caller,
    found: (Stored<Instance>, BTreeSet<UserId>),
    submission: &Submission,
) -> Result<Stored<Instance>, ApiError> {
    let (mut run, mut active) = found;
    let Submission { data, expected, .. } = submission;
    if let Some(movement) = run.value.movement_id.filter(|_| submission.errors.is_empty()) {
        let detail = "The run is part of a movement, and goes on with it: advance the movement.";
        return Err(ApiError::conflict(ConflictCode::Conflict, detail, json!({"movement_id": movement})));
    }
    let submitted = run.value.open_step().or_else(|refusal| submission.judged(Err(refusal)))?;
    for round in 0..TRIES {
        if round > 0 {
            pause(round - 1).await;
            (run, active) = run_and_users(&caller.store, run.value.id, data).await?;
            still_open(&run.value, submitted)?;
        }
        let next = submission.judged(run.value.advance(data, *expected, &active, caller.context.at))?;
        let mut work = UnitOfWork::new(&caller.store, &caller.context);
        if next.instance.status() == InstanceStatus::Completed {
            let Some(asset) = asset_of(caller, &run.value).await? else { continue };
            complete(&mut work, &asset, &next.instance)?;
        }
        for (step, image) in &next.signatures {
            work.put_signature_image(&caller.store, &run.value.image_name(step, &image.hash()), image)?;
        }
        let stored = work.update(&run, next.instance)?;
        match work.commit_with(|| views::kept(&stored, |view| response::record(stored.version, view))).await {
            Ok(()) => return Ok(stored),
            Err(WriteError::MissingReference("assigned_to")) => return Err(recipient_gone(stored.value.recipient())),
            Err(WriteError::Stale | WriteError::MissingReference(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

/// Refuses to submit to another step what was meant for `submitted`: somebody else was faster.
fn still_open(run: &Instance, submitted: usize) -> Result<(), ApiError> {
    match run.state {
        State::InProgress { step } if step == submitted => Ok(()),
        State::Cancelled { .. } => Err(refused(ProcessError::Closed(run.status()))),
        State::InProgress { .. } | State::Completed { .. } => Err(refused(ProcessError::Moved(run.current_step()))),
    }
}

/// Changes the asset of a run that is completed. Who gets it must be active, and be it who has it already.
pub(crate) fn complete(work: &mut UnitOfWork<'_>, asset: &Stored<Asset>, run: &Instance) -> Result<(), WriteError> {
    if let Some(user) = run.recipient() {
        work.require(Reference::new("assigned_to", Kind::User, user.uuid()));
    }
    work.update(asset, run.released(&asset.value)).map(|_| ())
}

pub(crate) fn recipient_gone(user: Option<UserId>) -> ApiError {
    let detail = "The user who was picked is no longer active. Activate the user, or cancel this run.";
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"user_id": user}))
}

/// Ends a run before its last step and frees its asset.
pub(crate) async fn cancel(
    caller: &Caller,
    mut run: Stored<Instance>,
    reason: Option<Notes>,
) -> Result<Stored<Instance>, ApiError> {
    for round in 0..TRIES {
        if round > 0 {
            pause(round - 1).await;
            run = caller.store.get(run.value.id).await?.ok_or(ApiError::NotFound)?;
        }
        let next = run.value.cancelled(reason.clone(), caller.context.at).map_err(refused)?;
        let Some(asset) = asset_of(caller, &run.value).await? else { continue };
        let mut work = UnitOfWork::new(&caller.store, &caller.context);
        work.update(&asset, next.released(&asset.value))?;
        let stored = work.update(&run, next)?;
        match work.commit_with(|| views::kept(&stored, |view| response::record(stored.version, view))).await {
            Ok(()) => return Ok(stored),
            Err(WriteError::Stale) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

/// The asset of a run, which can't go while it runs: if there is none, the run has just ended, and the next try sees it.
pub(crate) async fn asset_of(caller: &Caller, run: &Instance) -> Result<Option<Stored<Asset>>, StoreError> {
    caller.store.get::<Asset>(run.asset_id).await
}

/// The answer to a refusal of the domain.
pub(crate) fn refused(refusal: ProcessError) -> ApiError {
    let detail = refusal.to_string();
    let (code, context) = match refusal {
        ProcessError::Invalid(errors) => return ApiError::Invalid(errors),
        ProcessError::Inactive => (ConflictCode::ProcessInactive, json!({})),
        ProcessError::Running(asset, run) => (ConflictCode::ProcessRunning, json!({"instance_id": run, "asset_id": asset})),
        ProcessError::WrongStatus { asset, is, needed } => {
            (ConflictCode::WrongAssetStatus, json!({"asset_id": asset, "status_of_asset": is, "trigger_status": needed}))
        }
        ProcessError::Closed(status) => (ConflictCode::InstanceClosed, json!({"instance_status": status})),
        ProcessError::Moved(step) => (ConflictCode::StepMoved, json!({"current_step": step})),
        ProcessError::Submitted(key) => (ConflictCode::StepSubmitted, json!({"step": key})),
    };
    ApiError::conflict(code, detail, context)
}
