//! Between the handlers of movements and the domain: all runs of a movement change together.

use crate::commands::{self, Submission};
use crate::instance_wire::MovementView;
use crate::movements::created;
use crate::views;
use serde_json::{Map, Value, json};
use shared::auth::{Caller, TRIES};
use shared::domain::asset::Asset;
use shared::domain::asset_tag::TagTemplate;
use shared::domain::field_error::FieldError;
use shared::domain::id::{AssetId, InstanceId, MovementId, ProcessId, UserId};
use shared::domain::instance::{Instance, InstanceStatus, ProcessError, possible_users};
use shared::domain::movement::{Movement, NUMBERS, fits, said_to, standing};
use shared::domain::process::Process;
use shared::domain::record::Stored;
use shared::domain::text::Notes;
use shared::domain::user::User;
use shared::http::error::ApiError;
use shared::http::response::{self, present};
use shared::store::{BatchGet, StoreError, TenantStore, UnitOfWork, WriteError, pause};
use std::collections::BTreeSet;

/// A definition and the assets that it is to start on.
pub(crate) type Group = (Stored<Process>, Vec<Stored<Asset>>);

/// Reads a definition and assets together. `errors` of the request are named with what else is wrong.
pub(crate) async fn group(
    store: &TenantStore,
    process: ProcessId,
    ids: &[AssetId],
    mut errors: Vec<FieldError>,
) -> Result<Group, ApiError> {
    let wanted = BatchGet::new().with::<Process>(store, Some(process));
    let wanted = ids.iter().fold(wanted, |wanted, id| wanted.with::<Asset>(store, Some(*id)));
    let batch = store.batch(wanted).await?;
    let process = present(batch.get::<Process>(store, Some(process))?)?;
    let mut assets = Vec::new();
    for (place, id) in ids.iter().enumerate() {
        match batch.get::<Asset>(store, Some(*id))? {
            Some(asset) => assets.push(asset),
            None => errors.push(FieldError::within("asset_ids", &format!("/{place}"), "names no asset of this tenant")),
        }
    }
    if errors.is_empty() { Ok((process, assets)) } else { Err(ApiError::Invalid(errors)) }
}

/// Starts one run for each asset, all or none.
pub(crate) async fn start(caller: &Caller, mut found: Group) -> Result<MovementView, ApiError> {
    let store = &caller.store;
    let id: MovementId = store.new_id(caller.context.at)?;
    let starter = commands::starter(caller);
    let template: TagTemplate = NUMBERS.parse().map_err(StoreError::broken)?;
    let number = store.next_movement_number(&template).await?;
    let ids: Vec<AssetId> = found.1.iter().map(|asset| asset.value.id).collect();
    let run_ids: Vec<InstanceId> = ids.iter().map(|_| store.new_id(caller.context.at)).collect::<Result<_, _>>()?;
    for round in 0..TRIES {
        let (process, assets) = &found;
        if !fits(&process.value, assets) {
            let detail = "are assigned to too many different users for one transaction; start fewer of them together";
            return Err(invalid("asset_ids", detail));
        }
        let mut work = UnitOfWork::new(store, &caller.context);
        let (mut runs, mut refusals) = (Vec::new(), Vec::new());
        for (run_id, asset) in run_ids.iter().zip(assets) {
            match Instance::start(*run_id, &process.value, &asset.value, &starter) {
                Ok((run, next)) => {
                    runs.push(work.create(Instance { movement_id: Some(id), ..run })?);
                    work.update(asset, next)?;
                }
                Err(refusal) => refusals.push((asset.value.id, refusal)),
            }
        }
        if !refusals.is_empty() {
            return Err(refused(refusals));
        }
        let movement = Movement {
            id,
            number: number.clone(),
            process_id: process.value.id,
            process_name: process.value.name.clone(),
            runs: run_ids.clone(),
            started_by: starter.key,
            started_by_name: starter.name.clone(),
        };
        let movement = work.create(movement)?;
        match work.commit_with(|| views::kept_movement(&movement, &runs, created)).await {
            Ok(()) => return views::movement(store, movement, runs, false).await,
            Err(WriteError::Stale | WriteError::MissingReference(_)) => {
                pause(round).await;
                found = group(store, found.0.value.id, &ids, Vec::new()).await?;
            }
            Err(WriteError::TooLarge) => {
                let detail =
                    "are too large for one transaction, with their notes and custom fields; start fewer of them together";
                return Err(invalid("asset_ids", detail));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

fn invalid(field: &str, detail: &str) -> ApiError {
    ApiError::Invalid(vec![FieldError::field(field, detail)])
}

/// One 409 for all: the code of the first, and every asset that can't start with its own.
fn refused(refusals: Vec<(AssetId, ProcessError)>) -> ApiError {
    let mut all = Vec::new();
    let mut first = None;
    for (asset, refusal) in refusals {
        let ApiError::Conflict(mut conflict) = commands::refused(refusal) else { continue };
        let mut row = json!({"code": conflict.code.as_str(), "detail": conflict.detail});
        if let Value::Object(row) = &mut row {
            row.append(&mut conflict.context.clone());
            row.insert("asset_id".into(), json!(asset));
        }
        all.push(row);
        if first.is_none() {
            conflict.context = Map::new();
            first = Some(conflict);
        }
    }
    match first {
        Some(mut conflict) => {
            conflict.context.insert("assets".into(), all.into());
            ApiError::Conflict(conflict)
        }
        None => WriteError::Stale.into(),
    }
}

/// Reads a movement with its runs, and which of the users that `data` may pick are active.
pub(crate) async fn read(
    store: &TenantStore,
    id: MovementId,
    data: &Map<String, Value>,
) -> Result<(Stored<Movement>, Vec<Stored<Instance>>, BTreeSet<UserId>), ApiError> {
    let movement = present(store.get::<Movement>(id).await?)?;
    let users: BTreeSet<UserId> = possible_users(data).collect();
    let wanted = users.iter().fold(BatchGet::new(), |wanted, user| wanted.with::<User>(store, Some(*user)));
    let wanted = movement.value.runs.iter().fold(wanted, |wanted, run| wanted.with::<Instance>(store, Some(*run)));
    let batch = store.batch(wanted).await?;
    let runs = movement.value.runs.iter().filter_map(|run| batch.get::<Instance>(store, Some(*run)).transpose());
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let mut active = BTreeSet::new();
    for user in users {
        let found = batch.get::<User>(store, Some(user))?;
        active.extend(found.filter(|found| found.value.is_active).map(|_| user));
    }
    Ok((movement, runs, active))
}

/// The step that is open in all runs that are; `submitted` is the step that was meant, once that is known.
fn open(runs: &[Stored<Instance>], submitted: Option<usize>) -> Result<usize, ProcessError> {
    Err(match (standing(runs.iter().map(|run| (run.value.status(), run.value.current_step()))), submitted) {
        ((InstanceStatus::InProgress, step), None) => return Ok(step),
        ((InstanceStatus::InProgress, step), Some(meant)) if step == meant => return Ok(step),
        ((InstanceStatus::InProgress | InstanceStatus::Completed, step), Some(_)) => ProcessError::Moved(step),
        ((status, _), _) => ProcessError::Closed(status),
    })
}

pub(crate) async fn advance(caller: &Caller, id: MovementId, submission: &Submission) -> Result<MovementView, ApiError> {
    let (store, Submission { data, expected, .. }) = (&caller.store, submission);
    let mut submitted = None;
    'tries: for round in 0..TRIES {
        if round > 0 {
            pause(round - 1).await;
        }
        let (movement, mut runs, active) = read(store, id, data).await?;
        submitted = Some(open(&runs, submitted).or_else(|refusal| submission.judged(Err(refusal)))?);
        let mut work = UnitOfWork::new(store, &caller.context);
        let (mut signed, mut recipient) = (false, None);
        let before = runs.clone();
        for run in runs.iter_mut().filter(|run| run.value.status() == InstanceStatus::InProgress) {
            let said = said_to(&run.value, &before, data);
            let next = submission.judged(run.value.advance(&said, *expected, &active, caller.context.at))?;
            if next.instance.status() == InstanceStatus::Completed {
                let Some(asset) = commands::asset_of(caller, &run.value).await? else { continue 'tries };
                commands::complete(&mut work, &asset, &next.instance)?;
                recipient = next.instance.recipient();
            }
            // One image serves all.
            for (key, image) in next.signatures.iter().filter(|_| !signed) {
                work.put_signature_image(store, &run.value.image_name(key, &image.hash()), image)?;
            }
            signed = true;
            *run = work.update(run, next.instance)?;
        }
        match work.commit_with(|| views::kept_movement(&movement, &runs, response::data)).await {
            Ok(()) => return views::movement(store, movement, runs, false).await,
            Err(WriteError::MissingReference("assigned_to")) => return Err(commands::recipient_gone(recipient)),
            Err(WriteError::TooLarge) => {
                let detail =
                    "makes all runs together too large for one transaction; send less with this step, or cancel some runs";
                return Err(invalid("step_data", detail));
            }
            Err(WriteError::Stale | WriteError::MissingReference(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}

pub(crate) async fn cancel(caller: &Caller, id: MovementId, reason: Option<Notes>) -> Result<MovementView, ApiError> {
    let store = &caller.store;
    'tries: for round in 0..TRIES {
        if round > 0 {
            pause(round - 1).await;
        }
        let (movement, mut runs, _) = read(store, id, &Map::new()).await?;
        open(&runs, None).map_err(commands::refused)?;
        let mut work = UnitOfWork::new(store, &caller.context);
        for run in runs.iter_mut().filter(|run| run.value.status() == InstanceStatus::InProgress) {
            let next = run.value.cancelled(reason.clone(), caller.context.at).map_err(commands::refused)?;
            let Some(asset) = commands::asset_of(caller, &run.value).await? else { continue 'tries };
            work.update(&asset, next.released(&asset.value))?;
            *run = work.update(run, next)?;
        }
        match work.commit_with(|| views::kept_movement(&movement, &runs, response::data)).await {
            Ok(()) => return views::movement(store, movement, runs, false).await,
            Err(WriteError::Stale) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Stale.into())
}
