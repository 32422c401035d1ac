//! The endpoints of runs (interface 4.7 to 4.9, contract 7).

use crate::instance_wire::{Advance, Cancel, InstanceQuery, InstanceView, MovementView, ShowQuery, Start};
use crate::work::Submission;
use crate::{movement_work, movements, views, work};
use shared::auth::Gate;
use shared::domain::id::{InstanceId, ProcessId};
use shared::domain::instance::Instance;
use shared::domain::refusal::Fault;
use shared::domain::scope::Scope;
use shared::http::error::ApiError;
use shared::http::history::{self, History};
use shared::http::openapi::{GetRefusals, ListRefusals, PatchRefusals};
use shared::http::reply::{self, Data, List, Reply, present};
use shared::http::{Answer, params};
use shared::store::{InstanceFilter, Listed};
use utoipa::ToSchema;

/// What a start answers.
#[derive(serde::Serialize, ToSchema)]
#[serde(untagged)]
pub enum Started {
    /// The new run, for `asset_id`.
    Run(Box<InstanceView>),
    /// The new movement, for `asset_ids`.
    Movement(Box<MovementView>),
}

/// What a start is asked for, and what was read for it.
enum Wanted {
    Run(Box<work::Pair>),
    Movement(movement_work::Group),
}

/// Starts a process on an asset, or as a movement on several. An asset has at most one run at a time.
#[utoipa::path(post, path = "/processes/{id}/start", tag = "processes",
    params(("id" = ProcessId, Path, description = "The definition")), request_body = Start,
    security(("api_key" = ["processes:write"])),
    responses((status = 201, description = "The new run, or the new movement", body = Data<Started>), PatchRefusals))]
pub async fn start_process(gate: Gate) -> Answer {
    let (session, wanted) = gate
        .enter(Scope::ProcessesWrite, async |store| {
            let id: ProcessId = gate.id()?;
            let (body, mut faults) = gate.body_and_faults::<Start>()?;
            match (body.asset_id, body.asset_ids) {
                (Some(asset), None) => Ok(Wanted::Run(Box::new(work::pair(&store, id, asset, faults).await?))),
                (None, Some(assets)) => Ok(Wanted::Movement(movement_work::group(&store, id, assets.as_slice(), faults).await?)),
                (Some(_), Some(_)) => {
                    faults.push(Fault::field("asset_ids", "must not be sent together with asset_id"));
                    Err(ApiError::Invalid(faults))
                }
                // Where something can't be read, one of the two may have been meant.
                (None, None) if !faults.is_empty() => Err(ApiError::Invalid(faults)),
                (None, None) => Err(ApiError::Invalid(vec![Fault::field("asset_id", "is required, or asset_ids")])),
            }
        })
        .await?;
    match wanted {
        Wanted::Run(found) => {
            let run = work::start(&session, *found).await?;
            let view = views::view(&session.store, run, false).await?;
            reply::created("processes/instances", view.id, Started::Run(Box::new(view)))
        }
        Wanted::Movement(found) => movements::created(movement_work::start(&session, found).await?),
    }
}

/// Lists runs, newest first; cancelled ones only when asked for.
#[utoipa::path(get, path = "/processes/instances", tag = "processes", params(InstanceQuery),
    security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "A page of runs", body = List<InstanceView>), ListRefusals))]
pub async fn list_instances(gate: Gate) -> Answer {
    let (session, (query, listed)) = gate
        .enter_list(Scope::ProcessesRead, async |store| {
            let query: InstanceQuery = gate.query()?;
            let page = params::page(query.page, query.limit);
            let listed = store.list_instances(InstanceFilter::from(&query), page).await?;
            Ok((query, listed))
        })
        .await?;
    let Listed { items, total, page } = listed;
    let items = views::views(&session.store, items, query.omit.is_some()).await?;
    reply::list(Listed { items, total, page }, |view| view)
}

/// Gets one run.
#[utoipa::path(get, path = "/processes/instances/{id}", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run"), ShowQuery), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "The run", body = Data<InstanceView>), GetRefusals))]
pub async fn get_instance(gate: Gate) -> Answer {
    let (session, (query, run)) = gate
        .enter_list(Scope::ProcessesRead, async |store| {
            let id: InstanceId = gate.id()?;
            let query: ShowQuery = gate.query()?;
            Ok((query, present(store.get::<Instance>(id).await?)?))
        })
        .await?;
    reply::record(run.version, views::view(&session.store, run, query.omit.is_some()).await?)
}

/// Submits the open step of a run and opens the next; the last one completes it and changes the asset.
#[utoipa::path(post, path = "/processes/instances/{id}/advance", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run")), request_body = Advance,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The run as it is now", body = Data<InstanceView>), PatchRefusals))]
pub async fn advance_instance(gate: Gate) -> Answer {
    let (session, (submission, found)) = gate
        .enter(Scope::ProcessesWrite, async |store| {
            let id: InstanceId = gate.id()?;
            let submission = Submission::from(gate.body_and_faults::<Advance>()?);
            let found = work::run_and_users(&store, id, &submission.data).await?;
            Ok((submission, found))
        })
        .await?;
    let run = work::advance(&session, found, &submission).await?;
    reply::record(run.version, views::view(&session.store, run, false).await?)
}

/// Cancels a run: frees the asset and changes nothing else on it. A body is not needed.
#[utoipa::path(post, path = "/processes/instances/{id}/cancel", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run")), request_body = Option<Cancel>,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The run as it is now", body = Data<InstanceView>), PatchRefusals))]
pub async fn cancel_instance(gate: Gate) -> Answer {
    let (session, (body, run)) = gate
        .enter(Scope::ProcessesWrite, async |store| {
            let run = present(store.get::<Instance>(gate.id()?).await?)?;
            Ok((gate.optional_body::<Cancel>()?, run))
        })
        .await?;
    let reason = body.and_then(|body| body.reason.or(None));
    let run = work::cancel(&session, run, reason).await?;
    reply::record(run.version, views::view(&session.store, run, false).await?)
}

/// Gets a signature's image.
#[utoipa::path(get, path = "/processes/instances/{id}/signatures/{key}", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run"), ("key" = String, Path, description = "The step's key")),
    security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "The image", body = Vec<u8>, content_type = "image/png"), GetRefusals))]
pub async fn get_signature(gate: Gate) -> Answer {
    let (_, image) = gate
        .enter(Scope::ProcessesRead, async |store| {
            let run = present(store.get::<Instance>(gate.id()?).await?)?;
            let key = gate.path_parameter("key")?;
            let (wanted, _) = present(run.value.signatures().find(|(name, _)| name.step == key))?;
            present(store.signatures([wanted.clone()].into()).await?.remove(&wanted))
        })
        .await?;
    Ok(Reply::bytes("image/png", image))
}

/// Tells every change of a run, newest first.
#[utoipa::path(get, path = "/processes/instances/{id}/history", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run"), history::HistoryQuery),
    security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "A page of changes", body = History), GetRefusals))]
pub async fn get_instance_history(gate: Gate) -> Answer {
    let read = async |store| history::read::<Instance>(&store, gate.id()?, gate.query()?).await;
    let (_, told) = gate.enter_list(Scope::ProcessesRead, read).await?;
    history::answer(&told)
}
