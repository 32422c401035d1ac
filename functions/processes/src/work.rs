//! Between handlers and domain: reading what a decision needs, and deciding again when somebody was faster.

use crate::instance_wire::InstanceView;
use serde_json::{Map, Value, json};
use shared::auth::{Session, TRIES};
use shared::domain::asset::Asset;
use shared::domain::id::{AssetId, InstanceId, ProcessId, UserId};
use shared::domain::instance::{Instance, InstanceStatus, ProcessRefusal, Starter, State, possible_users};
use shared::domain::process::Process;
use shared::domain::record::Stored;
use shared::domain::refusal::Fault;
use shared::domain::text::Notes;
use shared::domain::user::User;
use shared::http::error::{ApiError, ConflictCode};
use shared::store::{LARGEST_ANSWER, TenantStore, Wanted, Work, WriteError};
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// A definition and an asset, as they are now.
pub(crate) type Pair = (Stored<Process>, Stored<Asset>);

/// Reads a definition and an asset together.
pub(crate) async fn pair(store: &TenantStore, process: ProcessId, asset: AssetId) -> Result<Pair, ApiError> {
    let wanted = Wanted::new().with::<Process>(store, Some(process)).with::<Asset>(store, Some(asset));
    let batch = store.batch(wanted).await?;
    let process = batch.get::<Process>(store, Some(process))?.ok_or(ApiError::NotFound)?;
    let missing = || ApiError::Invalid(vec![Fault::field("asset_id", "names no asset of this tenant")]);
    Ok((process, batch.get::<Asset>(store, Some(asset))?.ok_or_else(missing)?))
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
    for _ in 0..TRIES {
        let (process, asset) = &found;
        let (run, next) = Instance::start(id, &process.value, &asset.value, &starter).map_err(refused)?;
        let mut work = Work::new(&session.store, &session.stamp);
        let run = work.create(run)?;
        work.update(asset, next, false)?;
        match work.commit().await {
            Ok(()) => return Ok(run),
            Err(WriteError::Stale | WriteError::Dangling(_)) => {
                found = pair(&session.store, found.0.value.id, found.1.value.id).await?;
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
    data: &Map<String, Value>,
    expected: Option<usize>,
) -> Result<Stored<Instance>, ApiError> {
    let (mut run, mut active) = found;
    if let Some(movement) = run.value.movement_id {
        let detail = "The run is part of a movement, and goes on with it: advance the movement.";
        return Err(ApiError::conflict(ConflictCode::Conflict, detail, json!({"movement_id": movement})));
    }
    let submitted = run.value.open_step().map_err(refused)?;
    for _ in 0..TRIES {
        let next = run.value.advance(data, expected, &active, session.stamp.at).map_err(refused)?;
        let mut work = Work::new(&session.store, &session.stamp);
        if next.instance.status() == InstanceStatus::Completed {
            let asset = asset_of(session, &run.value).await?;
            work.update(&asset, next.instance.released(&asset.value), false)?;
        }
        for (step, image) in &next.signatures {
            work.sign(&session.store, run.value.signature_owner(), step, image)?;
        }
        let stored = work.update(&run, next.instance, false)?;
        match work.commit().await {
            Ok(()) => return Ok(stored),
            Err(WriteError::Dangling("assigned_to")) => return Err(recipient_gone()),
            Err(WriteError::Stale | WriteError::Dangling(_)) => {
                (run, active) = run_and_users(&session.store, run.value.id, data).await?;
                still_open(&run.value, submitted)?;
            }
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

pub(crate) fn recipient_gone() -> ApiError {
    let detail = "The user who was picked is no longer active. Activate the user, or cancel this run.";
    ApiError::conflict(ConflictCode::Conflict, detail, Value::Null)
}

/// Ends a run before its last step and frees its asset.
pub(crate) async fn cancel(
    session: &Session,
    mut run: Stored<Instance>,
    reason: Option<Notes>,
) -> Result<Stored<Instance>, ApiError> {
    for _ in 0..TRIES {
        let next = run.value.cancelled(reason.clone(), session.stamp.at).map_err(refused)?;
        let asset = asset_of(session, &run.value).await?;
        let mut work = Work::new(&session.store, &session.stamp);
        work.update(&asset, next.released(&asset.value), false)?;
        let stored = work.update(&run, next, false)?;
        match work.commit().await {
            Ok(()) => return Ok(stored),
            Err(WriteError::Stale) => run = session.store.get(run.value.id).await?.ok_or(ApiError::NotFound)?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

/// The asset of a run, which can't go while it runs; if the run has just ended, that is for the next try to see.
pub(crate) async fn asset_of(session: &Session, run: &Instance) -> Result<Stored<Asset>, ApiError> {
    session.store.get::<Asset>(run.asset_id).await?.ok_or_else(|| WriteError::Stale.into())
}

/// The views of runs, with as many signatures as an answer can hold.
pub(crate) async fn views(
    store: &TenantStore,
    runs: Vec<Stored<Instance>>,
    omit_signatures: bool,
) -> Result<Vec<InstanceView>, ApiError> {
    let mut wanted = BTreeSet::new();
    if !omit_signatures {
        let bare = |run: &Stored<Instance>| serde_json::to_vec(&InstanceView::new(run.clone(), |_| None)).map(|text| text.len());
        let bare: usize = runs.iter().map(bare).sum::<Result<_, _>>().map_err(|error| ApiError::Internal(error.into()))?;
        let mut weight = bare;
        for run in &runs {
            for (key, length) in run.value.signatures() {
                weight += length;
                if weight <= LARGEST_ANSWER {
                    wanted.insert((run.value.signature_owner(), key.to_owned()));
                }
            }
        }
    }
    let images: HashMap<(Uuid, String), Vec<u8>> = store.signatures(wanted).await?;
    let view = |run: Stored<Instance>| {
        let owner = run.value.signature_owner();
        InstanceView::new(run, |key| images.get(&(owner, key.to_owned())).cloned())
    };
    Ok(runs.into_iter().map(view).collect())
}

/// The view of one run.
pub(crate) async fn view(store: &TenantStore, run: Stored<Instance>, omit_signatures: bool) -> Result<InstanceView, ApiError> {
    let mut views = views(store, vec![run], omit_signatures).await?;
    views.pop().ok_or_else(|| ApiError::Internal("a view for a run".into()))
}

/// The answer to a refusal of the domain.
pub(crate) fn refused(refusal: ProcessRefusal) -> ApiError {
    let (code, detail, context) = match refusal {
        ProcessRefusal::Faults(faults) => return ApiError::Invalid(faults),
        ProcessRefusal::Inactive => (ConflictCode::ProcessInactive, "The process is inactive.".to_owned(), json!({})),
        ProcessRefusal::Running(asset, run) => (
            ConflictCode::ProcessRunning,
            "A process runs on the asset already: complete or cancel it first.".to_owned(),
            json!({"instance_id": run, "asset_id": asset}),
        ),
        ProcessRefusal::WrongStatus { asset, is, needed } => (
            ConflictCode::WrongAssetStatus,
            format!("The asset is {is}; the process begins with an asset that is {needed}."),
            json!({"asset_id": asset, "status_of_asset": is, "trigger_status": needed}),
        ),
        ProcessRefusal::Closed(status) => {
            (ConflictCode::InstanceClosed, format!("The run is {status}."), json!({"instance_status": status}))
        }
        ProcessRefusal::Moved(step) => {
            (ConflictCode::StepMoved, format!("The open step is {step}."), json!({"current_step": step}))
        }
        ProcessRefusal::Submitted(key) => {
            (ConflictCode::StepSubmitted, format!("The step {key} was submitted already and can't change."), json!({"step": key}))
        }
    };
    ApiError::conflict(code, detail, context)
}
