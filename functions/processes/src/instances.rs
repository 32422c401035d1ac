//! The endpoints of runs (interface 4.7 to 4.9, contract 7).

use crate::commands::Submission;
use crate::instance_wire::{Advance, Cancel, InstanceQuery, InstanceView, MovementView, ShowQuery, Start};
use crate::{commands, movement_commands, movements, views};
use shared::auth::UnverifiedRequest;
use shared::domain::field_error::FieldError;
use shared::domain::id::{InstanceId, ProcessId};
use shared::domain::instance::Instance;
use shared::domain::scope::Scope;
use shared::http::error::ApiError;
use shared::http::history::{self, History};
use shared::http::openapi::{GetErrors, ListErrors, PatchErrors};
use shared::http::response::{self, Data, List, Reply, present};
use shared::http::{Answer, params};
use shared::store::{InstanceFilter, Page};
use utoipa::ToSchema;

/// What a start answers.
#[derive(serde::Serialize, ToSchema)]
#[serde(untagged)]
pub enum InstanceOrMovement {
    /// The new run, for `asset_id`.
    Run(Box<InstanceView>),
    /// The new movement, for `asset_ids`.
    Movement(Box<MovementView>),
}

/// What a start is asked for, and what was read for it.
enum StartInputs {
    Run(Box<commands::Pair>),
    Movement(movement_commands::Group),
}

/// Starts a process on an asset, or as a movement on several. An asset has at most one run at a time.
#[utoipa::path(post, path = "/processes/{id}/start", tag = "processes",
    params(("id" = ProcessId, Path, description = "The definition")), request_body = Start,
    security(("api_key" = ["processes:write"])),
    responses((status = 201, description = "The new run, or the new movement", body = Data<InstanceOrMovement>), PatchErrors))]
pub async fn start_process(request: UnverifiedRequest) -> Answer {
    let (caller, wanted) = request
        .enter(Scope::ProcessesWrite, async |store| {
            let id: ProcessId = request.id()?;
            let (body, mut errors) = request.body_and_errors::<Start>()?;
            match (body.asset_id, body.asset_ids) {
                (Some(asset), None) => Ok(StartInputs::Run(Box::new(commands::pair(&store, id, asset, errors).await?))),
                (None, Some(assets)) => {
                    Ok(StartInputs::Movement(movement_commands::group(&store, id, assets.as_slice(), errors).await?))
                }
                (Some(_), Some(_)) => {
                    errors.push(FieldError::field("asset_ids", "must not be sent together with asset_id"));
                    Err(ApiError::Invalid(errors))
                }
                // Where something can't be read, one of the two may have been meant.
                (None, None) if !errors.is_empty() => Err(ApiError::Invalid(errors)),
                (None, None) => Err(ApiError::Invalid(vec![FieldError::field("asset_id", "is required, or asset_ids")])),
            }
        })
        .await?;
    match wanted {
        StartInputs::Run(found) => {
            let run = commands::start(&caller, *found).await?;
            let view = views::view(&caller.store, run, false).await?;
            response::created("processes/instances", view.id, InstanceOrMovement::Run(Box::new(view)))
        }
        StartInputs::Movement(found) => movements::created(movement_commands::start(&caller, found).await?),
    }
}

/// Lists runs, newest first; cancelled ones only when asked for.
#[utoipa::path(get, path = "/processes/instances", tag = "processes", params(InstanceQuery),
    security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "A page of runs", body = List<InstanceView>), ListErrors))]
pub async fn list_instances(request: UnverifiedRequest) -> Answer {
    let (caller, (query, listed)) = request
        .enter_list(Scope::ProcessesRead, async |store| {
            let query: InstanceQuery = request.query()?;
            let page = params::page(query.page, query.limit);
            let listed = store.list_instances(InstanceFilter::from(&query), page).await?;
            Ok((query, listed))
        })
        .await?;
    let Page { items, total, page } = listed;
    let items = views::views(&caller.store, items, query.omit.is_some()).await?;
    response::list(Page { items, total, page }, |view| view)
}

/// Gets one run.
#[utoipa::path(get, path = "/processes/instances/{id}", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run"), ShowQuery), security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "The run", body = Data<InstanceView>), GetErrors))]
pub async fn get_instance(request: UnverifiedRequest) -> Answer {
    let (caller, (query, run)) = request
        .enter_list(Scope::ProcessesRead, async |store| {
            let id: InstanceId = request.id()?;
            let query: ShowQuery = request.query()?;
            Ok((query, present(store.get::<Instance>(id).await?)?))
        })
        .await?;
    response::record(run.version, views::view(&caller.store, run, query.omit.is_some()).await?)
}

/// Submits the open step of a run and opens the next; the last one completes it and changes the asset.
#[utoipa::path(post, path = "/processes/instances/{id}/advance", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run")), request_body = Advance,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The run as it is now", body = Data<InstanceView>), PatchErrors))]
pub async fn advance_instance(request: UnverifiedRequest) -> Answer {
    let (caller, (submission, found)) = request
        .enter(Scope::ProcessesWrite, async |store| {
            let id: InstanceId = request.id()?;
            let submission = Submission::from(request.body_and_errors::<Advance>()?);
            let found = commands::run_and_users(&store, id, &submission.data).await?;
            Ok((submission, found))
        })
        .await?;
    let run = commands::advance(&caller, found, &submission).await?;
    response::record(run.version, views::view(&caller.store, run, false).await?)
}

/// Cancels a run: frees the asset and changes nothing else on it. A body is not needed.
#[utoipa::path(post, path = "/processes/instances/{id}/cancel", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run")), request_body = Option<Cancel>,
    security(("api_key" = ["processes:write"])),
    responses((status = 200, description = "The run as it is now", body = Data<InstanceView>), PatchErrors))]
pub async fn cancel_instance(request: UnverifiedRequest) -> Answer {
    let (caller, (body, run)) = request
        .enter(Scope::ProcessesWrite, async |store| {
            let run = present(store.get::<Instance>(request.id()?).await?)?;
            Ok((request.optional_body::<Cancel>()?, run))
        })
        .await?;
    let reason = body.and_then(|body| body.reason.or(None));
    let run = commands::cancel(&caller, run, reason).await?;
    response::record(run.version, views::view(&caller.store, run, false).await?)
}

/// Gets a signature's image.
#[utoipa::path(get, path = "/processes/instances/{id}/signatures/{key}", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run"), ("key" = String, Path, description = "The step's key")),
    security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "The image", body = Vec<u8>, content_type = "image/png"), GetErrors))]
pub async fn get_signature(request: UnverifiedRequest) -> Answer {
    let (_, image) = request
        .enter(Scope::ProcessesRead, async |store| {
            let run = present(store.get::<Instance>(request.id()?).await?)?;
            let key = request.path_parameter("key")?;
            let (wanted, _) = present(run.value.signatures().find(|(name, _)| name.step == key))?;
            present(store.signature_images([wanted.clone()].into()).await?.remove(&wanted))
        })
        .await?;
    Ok(Reply::bytes("image/png", image))
}

/// Tells every change of a run, newest first.
#[utoipa::path(get, path = "/processes/instances/{id}/history", tag = "processes",
    params(("id" = InstanceId, Path, description = "The run"), history::HistoryQuery),
    security(("api_key" = ["processes:read"])),
    responses((status = 200, description = "A page of changes", body = History), GetErrors))]
pub async fn get_instance_history(request: UnverifiedRequest) -> Answer {
    let read = async |store| history::read::<Instance>(&store, request.id()?, request.query()?).await;
    let (_, told) = request.enter_list(Scope::ProcessesRead, read).await?;
    history::answer(&told)
}
