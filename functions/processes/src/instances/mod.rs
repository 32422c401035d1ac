//! The endpoints of process instances.

pub(crate) mod wire;

use self::wire::InstanceQuery;
use crate::subject::advance::advance;
use crate::subject::cancel::cancel;
use crate::subject::start::StartProcess;
use crate::subject::submission::Submission;
use crate::subject::views;
use crate::subject::wire::{Advance, Cancel, InstanceOrMovement, InstanceView, ShowQuery, Start};
use shared::auth::{Command, UnverifiedRequest};
use shared::domain::keys::scope::Scope;
use shared::domain::processes::instance::Instance;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{InstanceId, ProcessId};
use shared::http::error::ApiError;
use shared::http::openapi::{CancellationConflict, ChangeErrors, InputErrors, ResourceErrors, StartConflict, SubmissionConflict};
use shared::http::requests::extract::{JsonBody, OptionalJsonBody, PathId, PathStepKey, QueryParams};
use shared::http::requests::params;
use shared::http::responses::history::{self, History, HistoryQuery};
use shared::http::responses::{Created, Json, Png, Versioned, or_not_found};
use shared::store::{InstanceFilter, Page};

/// Start a process
///
/// Starts an instance on one asset (`asset_id`), or a movement on several (`asset_ids`). At most one instance can be in
/// progress on an asset. `through` submits steps in the same transaction.
#[utoipa::path(post, path = "/processes/{id}/start", tag = "processes", security(("api_key" = ["processes:write"])), responses(ResourceErrors, StartConflict))]
pub async fn start_process(
    request: UnverifiedRequest,
    id: PathId<ProcessId>,
    body: JsonBody<Start>,
) -> Result<Created<InstanceOrMovement>, ApiError> {
    let (caller, (command, inputs)) = request
        .authorize_and_read(Scope::ProcessesWrite, async |store| {
            let process = id.parse()?;
            let (body, mut errors) = body.parse_with_errors(&store)?;
            let assets = match (body.asset_id, body.asset_ids) {
                (Some(asset), None) => vec![asset],
                (None, Some(assets)) => assets.as_slice().to_vec(),
                (Some(_), Some(_)) => {
                    errors.push(FieldError::field("asset_ids", "must not be sent together with asset_id"));
                    return Err(ApiError::Invalid(errors));
                }
                (None, None) => {
                    // If one of the two can't be read, its own error suffices.
                    let is_sent = |error: &FieldError| error.is_at("asset_id") || error.is_at("asset_ids");
                    if !errors.iter().any(is_sent) {
                        errors.push(FieldError::field("asset_id", "is required, or asset_ids"));
                    }
                    return Err(ApiError::Invalid(errors));
                }
            };
            let command = StartProcess::new(process, assets, Submission::at_start(body.step_data, body.through, errors));
            let inputs = command.read(&store).await?;
            Ok((command, inputs))
        })
        .await?;
    let subject = command.execute(&caller, inputs).await?;
    views::respond(&caller.store, subject, false).await
}

/// List process instances
///
/// Newest first. Cancelled instances are listed only with `status=cancelled`.
#[utoipa::path(get, path = "/processes/instances", tag = "processes", security(("api_key" = ["processes:read"])), responses(InputErrors))]
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
#[utoipa::path(get, path = "/processes/instances/{id}", tag = "processes", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
pub async fn get_instance(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    query: QueryParams<ShowQuery>,
) -> Result<Versioned<InstanceView>, ApiError> {
    let (caller, (omit, instance)) = request
        .authorize_with_query(Scope::ProcessesRead, query, async |store, query| {
            Ok((query.omit, or_not_found(store.get::<Instance>(id.parse()?).await?)?))
        })
        .await?;
    views::respond(&caller.store, instance, omit.is_some()).await
}

/// Advance a process instance
///
/// Submits the open step, and those that follow up to `through`, and opens the next one. The last step completes the instance and changes the asset.
#[utoipa::path(post, path = "/processes/instances/{id}/advance", tag = "processes", security(("api_key" = ["processes:write"])), responses(ChangeErrors, SubmissionConflict))]
pub async fn advance_instance(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    body: JsonBody<Advance>,
) -> Result<Versioned<InstanceView>, ApiError> {
    advance(request, id, body).await
}

/// Cancel a process instance
///
/// Frees the asset and changes nothing else on it. A body is optional.
#[utoipa::path(post, path = "/processes/instances/{id}/cancel", tag = "processes", security(("api_key" = ["processes:write"])), responses(ChangeErrors, CancellationConflict))]
pub async fn cancel_instance(
    request: UnverifiedRequest,
    id: PathId<InstanceId>,
    body: OptionalJsonBody<Cancel>,
) -> Result<Versioned<InstanceView>, ApiError> {
    cancel(request, id, body).await
}

/// Get a signature's image
///
/// The PNG image that was submitted for a signature step.
#[utoipa::path(get, path = "/processes/instances/{id}/signatures/{key}", tag = "processes", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
pub async fn get_signature(request: UnverifiedRequest, id: PathId<InstanceId>, key: PathStepKey) -> Result<Png, ApiError> {
    let (_, image) = request
        .authorize_and_read(Scope::ProcessesRead, async |store| {
            let instance = or_not_found(store.get::<Instance>(id.parse()?).await?)?;
            let key = key.parse()?;
            let (name, _) = or_not_found(instance.value.signatures().find(|(name, _)| name.step == key))?;
            or_not_found(store.signature_images([name.clone()].into()).await?.remove(&name))
        })
        .await?;
    Ok(Png(image))
}

/// List a process instance's history
///
/// Newest first.
#[utoipa::path(get, path = "/processes/instances/{id}/history", tag = "processes", security(("api_key" = ["processes:read"])), responses(ResourceErrors))]
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
