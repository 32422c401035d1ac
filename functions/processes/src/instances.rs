//! The endpoints for process instances.

use crate::subject::start::StartProcess;
use crate::subject::{self, Advance, Cancel, InstanceOrMovement, InstanceView, Omit, ShowQuery, Start};
use crate::subject::{Submission, advance, cancel};
use shared::auth::Caller;
use shared::auth::caller::{ProcessesRead, ProcessesWrite};
use shared::domain::processes::instance::{Instance, InstanceStatus};
use shared::domain::values::field_error::{ErrorCode, FieldError, ValueError};
use shared::domain::values::id::{AssetId, InstanceId, ProcessId};
use shared::http::openapi::{CancellationConflict, ChangeErrors, InputErrors, ResourceErrors, StartConflict, SubmissionConflict};
use shared::http::requests::body::{JsonBody, OptionalJsonBody};
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query, StepKey};
use shared::http::responses::{ApiError, Created, History, HistoryQuery, Json, Png, Versioned, or_not_found, read_history};
use shared::store::{InstanceFilter, Page};

/// Start a process
///
/// Starts an instance on one asset (`asset_id`), or a movement on several (`asset_ids`). At most one instance can be in
/// progress on an asset. `through` submits steps in the same transaction.
#[utoipa::path(post, path = "/processes/{id}/start", tag = "processes", responses(ResourceErrors, StartConflict))]
pub async fn start_process(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<ProcessId>,
    body: JsonBody<Start>,
) -> Result<Created<InstanceOrMovement>, ApiError> {
    let (body, mut errors) = body.parse_with_errors(&caller)?;
    let assets = match (body.asset_id, body.asset_ids) {
        (Some(asset), None) => vec![asset],
        (None, Some(assets)) => assets.as_slice().to_vec(),
        (Some(_), Some(_)) => {
            errors.push(FieldError::field("asset_ids", "must not be sent together with asset_id"));
            return Err(ApiError::Invalid(errors));
        }
        (None, None) => {
            // For an invalid `asset_id` or `asset_ids`, its own error is enough.
            let is_sent = |error: &FieldError| error.is_at("asset_id") || error.is_at("asset_ids");
            if !errors.iter().any(is_sent) {
                errors.push(FieldError::field("asset_id", ValueError::coded(ErrorCode::Required, "is required, or asset_ids")));
            }
            return Err(ApiError::Invalid(errors));
        }
    };
    let command = StartProcess::new(id, assets, Submission::at_start(body.step_data, body.through, errors));
    let inputs = command.read(&caller.store).await?;
    let caller = caller.verified().await?;
    let subject = command.execute(&caller, inputs).await?;
    subject::respond(&caller.store, subject, false).await
}

/// List process instances
///
/// Newest first. Cancelled instances are listed only with `status=cancelled`.
#[utoipa::path(get, path = "/processes/instances", tag = "processes", responses(InputErrors))]
pub async fn list_instances(
    caller: Caller<ProcessesRead>,
    Query(query): Query<InstanceQuery>,
) -> Result<Page<InstanceView>, ApiError> {
    let page = params::page(query.page, query.limit);
    let page = caller.store.list_instances(InstanceFilter::from(&query), page).await?;
    let Page { items, total, request, unreadable, .. } = page;
    let items = subject::views(&caller.store, items, query.omit.is_some()).await?;
    Ok(Page::new(items, total, request, unreadable))
}

/// Get a process instance
///
/// Includes the steps that the instance was started with, and the submitted values. Signatures are data URLs.
#[utoipa::path(get, path = "/processes/instances/{id}", tag = "processes", responses(ResourceErrors))]
pub async fn get_instance(
    caller: Caller<ProcessesRead>,
    Query(query): Query<ShowQuery>,
    Path(id): Path<InstanceId>,
) -> Result<Versioned<InstanceView>, ApiError> {
    let instance = or_not_found(caller.store.get::<Instance>(id).await?)?;
    subject::respond(&caller.store, instance, query.omit.is_some()).await
}

/// Advance a process instance
///
/// Submits the open step and any following steps up to `through`, and opens the next step. The last step completes the instance
/// and changes the asset.
#[utoipa::path(post, path = "/processes/instances/{id}/advance", tag = "processes", responses(ChangeErrors, SubmissionConflict))]
pub async fn advance_instance(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<InstanceId>,
    body: JsonBody<Advance>,
) -> Result<Versioned<InstanceView>, ApiError> {
    advance(caller, id.into(), body).await
}

/// Cancel a process instance
///
/// Frees the asset and changes nothing else on it. The body is optional.
#[utoipa::path(post, path = "/processes/instances/{id}/cancel", tag = "processes", responses(ChangeErrors, CancellationConflict))]
pub async fn cancel_instance(
    caller: Caller<ProcessesWrite>,
    Path(id): Path<InstanceId>,
    body: OptionalJsonBody<Cancel>,
) -> Result<Versioned<InstanceView>, ApiError> {
    cancel(caller, id.into(), body).await
}

/// Get a signature's image
///
/// The PNG image submitted for a signature step.
#[utoipa::path(get, path = "/processes/instances/{id}/signatures/{key}", tag = "processes", responses(ResourceErrors))]
pub async fn get_signature(
    caller: Caller<ProcessesRead>,
    Path(id): Path<InstanceId>,
    Path(key): Path<StepKey>,
) -> Result<Png, ApiError> {
    let instance = or_not_found(caller.store.get::<Instance>(id).await?)?;
    let (name, _) = or_not_found(instance.value.signatures().find(|(name, _)| name.step == key))?;
    Ok(Png(or_not_found(caller.store.signature_images([name.clone()].into()).await?.remove(&name))?))
}

/// List a process instance's history
///
/// Newest first.
#[utoipa::path(get, path = "/processes/instances/{id}/history", tag = "processes", responses(ResourceErrors))]
pub async fn get_instance_history(
    caller: Caller<ProcessesRead>,
    Query(query): Query<HistoryQuery>,
    Path(id): Path<InstanceId>,
) -> Result<Json<History>, ApiError> {
    Ok(Json(read_history::<Instance>(&caller.store, id, query).await?))
}

shared::query! {
    /// Process instances to list.
    pub struct InstanceQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// `in_progress`, `completed` or `cancelled`. Default: in progress and completed.
        status: InstanceStatus as InstanceStatus,
        /// Filter by asset.
        asset_id: AssetId as AssetId,
        /// Filter by process definition.
        process_id: ProcessId as ProcessId,
        /// `signatures` returns their paths instead of their images.
        omit: Omit as Omit,
    }
}

impl From<&InstanceQuery> for InstanceFilter {
    fn from(query: &InstanceQuery) -> Self {
        Self { status: query.status, asset_id: query.asset_id, process_id: query.process_id }
    }
}
