//! Between handlers and domain: reading what a decision needs, and deciding again when somebody was faster.

use crate::instance_wire::{Advance, InstanceView};
use crate::instances::Started;
use crate::views;
use serde_json::{Map, Value, json};
use shared::auth::{Session, TRIES};
use shared::domain::asset::Asset;
use shared::domain::id::{AssetId, Id, InstanceId, ProcessId, UserId};
use shared::domain::instance::{Instance, InstanceStatus, ProcessRefusal, Starter, State, possible_users};
use shared::domain::process::Process;
use shared::domain::record::{Kind, Reference, Stored};
use shared::domain::refusal::Fault;
use shared::domain::text::Notes;
use shared::domain::user::User;
use shared::http::error::{ApiError, ConflictCode};
use shared::http::reply;
use shared::store::{StoreError, TenantStore, Wanted, Work, WriteError, pause};
use std::collections::BTreeSet;

/// A definition and an asset, as they are now.
pub(crate) type Pair = (Stored<Process>, Stored<Asset>);

/// What is submitted, and what is already known to be wrong with the request.
pub(crate) struct Submission {
    pub(crate) data: Map<String, Value>,
    pub(crate) expected: Option<usize>,
    faults: Vec<Fault>,
}

impl From<(Advance, Vec<Fault>)> for Submission {
    fn from((body, faults): (Advance, Vec<Fault>)) -> Self {
        Self { data: body.step_data.0, expected: body.current_step.map(|step| step.0 as usize), faults }
    }
}

impl Submission {
    /// What the domain decides, unless the request has faults: then all of them.
    pub(crate) fn judged<T>(&self, decided: Result<T, ProcessRefusal>) -> Result<T, ApiError> {
        match decided {
            Err(ProcessRefusal::Faults(more)) => Err(ApiError::Invalid([self.faults.clone(), more].concat())),
            _ if !self.faults.is_empty() => Err(ApiError::Invalid(self.faults.clone())),
            decided => decided.map_err(refused),
        }
    }
}

/// Reads a definition and an asset together. `faults` of the request are named with what else is wrong.
pub(crate) async fn pair(
    store: &TenantStore,
    process: ProcessId,
    asset: AssetId,
    mut faults: Vec<Fault>,
) -> Result<Pair, ApiError> {
    let wanted = Wanted::new().with::<Process>(store, Some(process)).with::<Asset>(store, Some(asset));
    let batch = store.batch(wanted).await?;
    let process = batch.get::<Process>(store, Some(process))?.ok_or(ApiError::NotFound)?;
    let asset = batch.get::<Asset>(store, Some(asset))?;
    if asset.is_none() {
        faults.push(Fault::field("asset_id", "names no asset of this tenant"));
    }
    match asset {
        Some(asset) if faults.is_empty() => Ok((process, asset)),
        _ => Err(ApiError::Invalid(faults)),
    }
}

/// Who starts something.
pub(crate) fn starter(session: &Session) -> Starter {
    let by = &session.stamp.by;
    Starter { key: by.key_id, name: by.user_name.clone().unwrap_or_else(|| by.key_name.clone()) }
}

/// Starts a run: the run, the asset that it runs on and the count of the definition's runs change together.
pub(crate) async fn start(session: &Session, mut found: Pair) -> Result<Stored<Instance>, ApiError> {
    let id = session.store.new_id(session.stamp.at)?;
    let starter = starter(session);
    for round in 0..TRIES {
        let (process, asset) = &found;
        let (run, next) = Instance::start(id, &process.value, &asset.value, &starter).map_err(refused)?;
        let mut work = Work::new(&session.store, &session.stamp);
        let run = work.create(run)?;
        work.update(asset, next, false)?;
        let started = |view: InstanceView| reply::created("processes/instances", view.id, Started::Run(Box::new(view)));
        match work.commit_with(|| views::kept(&run, started)).await {
            Ok(()) => return Ok(run),
            Err(WriteError::Stale | WriteError::Dangling(_)) => {
                pause(round).await;
                found = pair(&session.store, found.0.value.id, found.1.value.id, Vec::new()).await?;
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
    let wanted = Wanted::new().with::<Instance>(store, Some(id));
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
    session: &Session,
    found: (Stored<Instance>, BTreeSet<UserId>),
    submission: &Submission,
) -> Result<Stored<Instance>, ApiError> {
    let (mut run, mut active) = found;
    let Submission { data, expected, .. } = submission;
    if let Some(movement) = run.value.movement_id.filter(|_| submission.faults.is_empty()) {
        let detail = "The run is part of a movement, and goes on with it: advance the movement.";
        return Err(ApiError::conflict(ConflictCode::Conflict, detail, json!({"movement_id": movement})));
    }
    let submitted = run.value.open_step().or_else(|refusal| submission.judged(Err(refusal)))?;
    for round in 0..TRIES {
        if round > 0 {
            pause(round - 1).await;
            (run, active) = run_and_users(&session.store, run.value.id, data).await?;
            still_open(&run.value, submitted)?;
        }
        let next = submission.judged(run.value.advance(data, *expected, &active, session.stamp.at))?;
        let mut work = Work::new(&session.store, &session.stamp);
        if next.instance.status() == InstanceStatus::Completed {
            let Some(asset) = asset_of(session, &run.value).await? else { continue };
            complete(&mut work, &asset, &next.instance)?;
        }
        for (step, image) in &next.signatures {
            work.sign(&session.store, &run.value.image_name(step, &image.hash()), image)?;
        }
        let stored = work.update(&run, next.instance, false)?;
        match work.commit_with(|| views::kept(&stored, |view| reply::record(stored.version, view))).await {
            Ok(()) => return Ok(stored),
            Err(WriteError::Dangling("assigned_to")) => return Err(recipient_gone(stored.value.recipient())),
            Err(WriteError::Stale | WriteError::Dangling(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

/// Refuses to submit to another step what was meant for `submitted`: somebody else was faster.
fn still_open(run: &Instance, submitted: usize) -> Result<(), ApiError> {
    match run.state {
        State::InProgress { step } if step == submitted => Ok(()),
        State::Cancelled { .. } => Err(refused(ProcessRefusal::Closed(run.status()))),
        State::InProgress { .. } | State::Completed { .. } => Err(refused(ProcessRefusal::Moved(run.current_step()))),
    }
}

/// Changes the asset of a run that is completed. Who gets it must be active, and be it who has it already.
pub(crate) fn complete(work: &mut Work<'_>, asset: &Stored<Asset>, run: &Instance) -> Result<(), WriteError> {
    if let Some(user) = run.recipient() {
        work.require(Reference::new("assigned_to", Kind::User, user.uuid()));
    }
    work.update(asset, run.released(&asset.value), false).map(|_| ())
}

pub(crate) fn recipient_gone(user: Option<UserId>) -> ApiError {
    let detail = "The user who was picked is no longer active. Activate the user, or cancel this run.";
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"user_id": user}))
}

/// Ends a run before its last step and frees its asset.
pub(crate) async fn cancel(
    session: &Session,
    mut run: Stored<Instance>,
    reason: Option<Notes>,
) -> Result<Stored<Instance>, ApiError> {
    for round in 0..TRIES {
        if round > 0 {
            pause(round - 1).await;
            run = session.store.get(run.value.id).await?.ok_or(ApiError::NotFound)?;
        }
        let next = run.value.cancelled(reason.clone(), session.stamp.at).map_err(refused)?;
        let Some(asset) = asset_of(session, &run.value).await? else { continue };
        let mut work = Work::new(&session.store, &session.stamp);
        work.update(&asset, next.released(&asset.value), false)?;
        let stored = work.update(&run, next, false)?;
        match work.commit_with(|| views::kept(&stored, |view| reply::record(stored.version, view))).await {
            Ok(()) => return Ok(stored),
            Err(WriteError::Stale) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

/// The asset of a run, which can't go while it runs: if there is none, the run has just ended, and the next try sees it.
pub(crate) async fn asset_of(session: &Session, run: &Instance) -> Result<Option<Stored<Asset>>, StoreError> {
    session.store.get::<Asset>(run.asset_id).await
}

/// The answer to a refusal of the domain.
pub(crate) fn refused(refusal: ProcessRefusal) -> ApiError {
    let detail = refusal.to_string();
    let (code, context) = match refusal {
        ProcessRefusal::Faults(faults) => return ApiError::Invalid(faults),
        ProcessRefusal::Inactive => (ConflictCode::ProcessInactive, json!({})),
        ProcessRefusal::Running(asset, run) => (ConflictCode::ProcessRunning, json!({"instance_id": run, "asset_id": asset})),
        ProcessRefusal::WrongStatus { asset, is, needed } => {
            (ConflictCode::WrongAssetStatus, json!({"asset_id": asset, "status_of_asset": is, "trigger_status": needed}))
        }
        ProcessRefusal::Closed(status) => (ConflictCode::InstanceClosed, json!({"instance_status": status})),
        ProcessRefusal::Moved(step) => (ConflictCode::StepMoved, json!({"current_step": step})),
        ProcessRefusal::Submitted(key) => (ConflictCode::StepSubmitted, json!({"step": key})),
    };
    ApiError::conflict(code, detail, context)
}
