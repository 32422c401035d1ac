//! The endpoints that erase the signer of a link who isn't a user (docs/adr/0021-people.md).

use crate::links;
use serde::Serialize;
use serde_json::json;
use shared::auth::Caller;
use shared::auth::caller::UsersWrite;
use shared::domain::keys::api_key::Role;
use shared::domain::people::{GuestObstacle, Removed, pseudonym};
use shared::domain::processes::instance::SubjectId;
use shared::domain::record::StoredResponse;
use shared::domain::values::id::{InstanceId, LinkId, MovementId};
use shared::http::openapi::{GuestErasureConflict, ResourceErrors};
use shared::http::requests::body::NoBody;
use shared::http::requests::params::Path;
use shared::http::responses::{ApiError, ConflictCode, Data, Success};
use utoipa::ToSchema;

/// Progress of the erasure of a signer who isn't a user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SignerErasure)]
pub struct GuestErasure {
    /// The signer's link.
    link_id: LinkId,
    /// Pseudonym that replaces the signer's name, texts and signatures.
    pseudonym: String,
    /// Whether everything has been erased. If false, send the request again. In a dry run: whether everything was counted; if
    /// false, `removed` covers only a part.
    done: bool,
    /// Data removed by this request.
    removed: Removed,
}

/// Erase the signer of a link of a process instance
///
/// For signers who aren't users. Replaces the signer's name, texts and signatures with a pseudonym, and removes the signer's
/// address, also from the tenant's other links. Histories can still be verified. The process must have ended. Send the request
/// again until `done` is true. Requires a key with the effective role `admin`.
#[utoipa::path(
    post,
    path = "/processes/instances/{id}/links/{link_id}/erase",
    tag = "signing",
    responses(ResourceErrors, GuestErasureConflict)
)]
pub async fn erase_instance_signer(
    caller: Caller<UsersWrite>,
    Path(id): Path<InstanceId>,
    Path(link): Path<LinkId>,
    body: NoBody,
) -> Result<Data<GuestErasure>, ApiError> {
    erase(caller, id.into(), link, body).await
}

/// Erase the signer of a link of a movement
///
/// For signers who aren't users. Replaces the signer's name, texts and signatures with a pseudonym, and removes the signer's
/// address, also from the tenant's other links. Histories can still be verified. The process must have ended. Send the request
/// again until `done` is true. Requires a key with the effective role `admin`.
#[utoipa::path(
    post,
    path = "/movements/{id}/links/{link_id}/erase",
    tag = "signing",
    responses(ResourceErrors, GuestErasureConflict)
)]
pub async fn erase_movement_signer(
    caller: Caller<UsersWrite>,
    Path(id): Path<MovementId>,
    Path(link): Path<LinkId>,
    body: NoBody,
) -> Result<Data<GuestErasure>, ApiError> {
    erase(caller, id.into(), link, body).await
}

async fn erase(caller: Caller<UsersWrite>, of: SubjectId, id: LinkId, body: NoBody) -> Result<Data<GuestErasure>, ApiError> {
    let link = links::read_link(&caller.store, of, id).await?;
    let mut caller = caller.verified().await?;
    caller.role.check_rank(Role::Admin)?;
    // Refuses a `dry_run` in a body, because the client doesn't intend to erase. `dry_run` belongs in the query.
    body.check(&caller)?;
    if let Some(precondition) = caller.take_precondition() {
        precondition.expected.check(&link).map_err(ApiError::PreconditionFailed)?;
    }
    let worker = caller.without_idempotency_key();
    if let Some(obstacle) = worker.store.guest_obstacle(&link.value, worker.context.at).await? {
        return Err(refused(of, obstacle));
    }
    let (done, removed) = worker.store.erase_part(id.into(), &worker.context).await?;
    let response = Data { data: GuestErasure { link_id: id, pseudonym: pseudonym(id), done, removed } };
    caller.store_finished(&StoredResponse { is_nameless: true, ..response.to_stored(Vec::new())? }).await?;
    Ok(response)
}

fn refused(of: SubjectId, obstacle: GuestObstacle) -> ApiError {
    let (code, context) = match obstacle {
        GuestObstacle::IsUser(user) => (ConflictCode::Conflict, json!({"user_id": user})),
        GuestObstacle::InProgress(status) => {
            let context = json!({"instance_id": of.instance(), "movement_id": of.movement(), "link_status": status});
            (ConflictCode::ProcessRunning, context)
        }
    };
    ApiError::conflict(code, obstacle.to_string(), context)
}
