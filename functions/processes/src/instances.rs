//! The endpoints of process instances.

use crate::commands::{self, AdvanceInstance, CancelInstance, StartInstance};
use crate::instance_wire::{Advance, Cancel, InstanceOrMovement, InstanceQuery, InstanceView, ShowQuery, Start};
use crate::movement_start::{self, StartMovement};
use crate::submission::Submission;
use crate::views;
use shared::auth::{Command, UnverifiedRequest};
use shared::domain::keys::scope::Scope;
use shared::domain::processes::instance::Instance;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{InstanceId, ProcessId};
use shared::http::error::ApiError;
use shared::http::extract::{JsonBody, OptionalJsonBody, PathId, PathStepKey, QueryParams};
use shared::http::history::{self, History, HistoryQuery};
use shared::http::openapi::{
    ActionErrors, CancellationConflict, GetErrors, ListErrors, PatchErrors, StartConflict, SubmissionConflict,
};
use shared::http::params;
use shared::http::response::{Created, Json, Png, Versioned, found};
use shared::store::{InstanceFilter, Page};

/// A start on one asset or on several, with its inputs.
enum StartTarget {
    Asset(StartInstance, Box<<StartInstance as Command>::Inputs>),
    Assets(StartMovement, Box<<StartMovement as Command>::Inputs>),
}

/// Start a process
///
/// Starts an instance on one asset (`asset_id`), or a movement on several (`asset_ids`). At most one instance can be in
/// progress on an asset. `through` submits steps in the same transaction.
#[utoipa::path(post, path = "/processes/{id}/start", tag = "processes", security(("api_key" = ["processes:write"])), responses(ActionErrors, StartConflict))]
pub async fn start_process(
    request: UnverifiedRequest,
    id: PathId<ProcessId>,
    body: JsonBody<Start>,
) -> Result<Created<InstanceOrMovement>, ApiError> {
    let (caller, target) = request
        .authorize(Scope::ProcessesWrite, async |store| {
            let process = id.parse()?;
            let (body, mut errors) = body.parse_early(&store).await?;
            let submission = |errors| Submission::at_start(body.step_data, body.through, errors);
            match (body.asset_id, body.asset_ids) {
                (Some(asset), None) => {
                    let command = StartInstance { process, asset, submission: submission(errors) };
                    let inputs = command.read(&store).await?;
                    Ok(StartTarget::Asset(command, Box::new(inputs)))
                }
                (None, Some(assets)) => {
                    let (assets, submission) = (assets.as_slice().to_vec(), submission(errors));
                    let command = StartMovement { process, assets, submission, number: String::new() };
                    let inputs = command.read(&store).await?;
                    Ok(StartTarget::Assets(command, Box::new(inputs)))
                }
                (Some(_), Some(_)) => {
                    errors.push(FieldError::field("asset_ids", "must not be sent together with asset_id"));
                    Err(ApiError::Invalid(errors))
                }
                (None, None) => {
                    // If one of the two can't be read, its own error suffices.
                    let is_sent = |error: &FieldError| error.is_at("asset_id") || error.is_at("asset_ids");
                    if !errors.iter().any(is_sent) {
                        errors.push(FieldError::field("asset_id", "is required, or asset_ids"));
                    }
                    Err(ApiError::Invalid(errors))
                }
            }
        })
        .await?;
    match target {
        StartTarget::Asset(command, inputs) => {
            let instance = caller.execute(&command, *inputs).await?;
            Ok(commands::created(views::view(&caller.store, instance, false).await?))
        }
        StartTarget::Assets(command, inputs) => {
            let command = command.numbered(&caller).await?;
            let (movement, instances) = caller.execute(&command, *inputs).await?;
            Ok(movement_start::created(views::movement(&caller.store, movement, instances, false).await?))
        }
    }
}

/// List process instances
///
/// Newest first. Cancelled instances are listed only with `status=cancelled`.
#[utoipa::path(get, path = "/processes/instances", tag = "processes", security(("api_key" = ["processes:read"])), responses(ListErrors))]
pub async fn list_instances(
    request: UnverifiedRequest,
    query: QueryParams<InstanceQuery>,
) -> Result<Page<InstanceView>, ApiError> {
    let (caller, (omit, page)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            let page = params::page(query.page, query.limit);
            Ok((query.omit, store.list_instances(InstanceFilter::from(&query), page).await?))
        })
        .await?;
    let Page { items, total, request, unreadable } = page;
    let items = views::views(&caller.store, items, omit.is_some()).await?;
    Ok(Page { items, total, request, unreadable })
}

/// Get a process instance
///
/// Shows the steps that it was started with, and what has been submitted. Signatures are paths of images.
#[utoipa::path(get, path = "/processes/instances/{id}", tag = "processes", security(("api_key" = ["processes:read"])), responses(GetErrors))]
pub async fn get_instance(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    query: QueryParams<ShowQuery>,
) -> Result<Versioned<InstanceView>, ApiError> {
    let (caller, (omit, instance)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            Ok((query.omit, found(store.get::<Instance>(id.parse()?).await?)?))
        })
        .await?;
    let version = instance.version;
    Ok(Versioned { version, data: views::view(&caller.store, instance, omit.is_some()).await? })
}

/// Advance a process instance
///
/// Submits the open step, and those that follow up to `through`, and opens the next one. The last step completes the instance and changes the asset.
#[utoipa::path(post, path = "/processes/instances/{id}/advance", tag = "processes", security(("api_key" = ["processes:write"])), responses(PatchErrors, SubmissionConflict))]
pub async fn advance_instance(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    body: JsonBody<Advance>,
) -> Result<Versioned<InstanceView>, ApiError> {
    let (caller, (command, inputs)) = request
        .authorize(Scope::ProcessesWrite, async |store| {
            let id = id.parse()?;
            let command = AdvanceInstance { id, submission: Submission::from(body.parse_early(&store).await?) };
            let inputs = command.read(&store).await?;
            Ok((command, inputs))
        })
        .await?;
    let instance = caller.execute(&command, inputs).await?;
    let version = instance.version;
    Ok(Versioned { version, data: views::view(&caller.store, instance, false).await? })
}

/// Cancel a process instance
///
/// Frees the asset and changes nothing else on it. A body is optional.
#[utoipa::path(post, path = "/processes/instances/{id}/cancel", tag = "processes", security(("api_key" = ["processes:write"])), responses(PatchErrors, CancellationConflict))]
pub async fn cancel_instance(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    body: OptionalJsonBody<Cancel>,
) -> Result<Versioned<InstanceView>, ApiError> {
    let (caller, (command, inputs)) = request
        .authorize(Scope::ProcessesWrite, async |store| {
            let command = CancelInstance { id: id.parse()?, reason: None };
            let inputs = command.read(&store).await?;
            Ok((command, inputs))
        })
        .await?;
    let reason = body.parse(&caller)?.and_then(|body| body.reason.or(None));
    let command = CancelInstance { reason, ..command };
    let instance = caller.execute(&command, inputs).await?;
    let version = instance.version;
    Ok(Versioned { version, data: views::view(&caller.store, instance, false).await? })
}

/// Get a signature's image
///
/// The PNG image that was submitted for a signature step.
#[utoipa::path(get, path = "/processes/instances/{id}/signatures/{key}", tag = "processes", security(("api_key" = ["processes:read"])), responses(GetErrors))]
pub async fn get_signature(request: UnverifiedRequest, id: PathId<InstanceId>, key: PathStepKey) -> Result<Png, ApiError> {
    let (_, image) = request
        .authorize(Scope::ProcessesRead, async |store| {
            let instance = found(store.get::<Instance>(id.parse()?).await?)?;
            let key = key.parse()?;
            let (name, _) = found(instance.value.signatures().find(|(name, _)| name.step == key))?;
            found(store.signature_images([name.clone()].into()).await?.remove(&name))
        })
        .await?;
    Ok(Png(image))
}

/// List a process instance's history
///
/// Newest first.
#[utoipa::path(get, path = "/processes/instances/{id}/history", tag = "processes", security(("api_key" = ["processes:read"])), responses(GetErrors))]
pub async fn get_instance_history(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    query: QueryParams<HistoryQuery>,
) -> Result<Json<History>, ApiError> {
    let (_, history) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            history::read::<Instance>(&store, id.parse()?, query).await
        })
        .await?;
    Ok(Json(history))
}
