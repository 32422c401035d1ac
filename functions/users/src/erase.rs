//! The endpoint that erases a person's data (docs/adr/0021-people.md).

use serde::Serialize;
use serde_json::json;
use shared::auth::Caller;
use shared::auth::caller::UsersWrite;
use shared::domain::keys::api_key::Role;
use shared::domain::people::{Obstacle, Removed, pseudonym};
use shared::domain::record::{Mismatch, StoredResponse};
use shared::domain::user::User;
use shared::domain::values::id::UserId;
use shared::http::openapi::{ErasureConflict, ResourceErrors};
use shared::http::requests::body::NoBody;
use shared::http::requests::params::Path;
use shared::http::responses::{ApiError, ConflictCode, Data, Success};
use utoipa::ToSchema;

/// Maximum number of assets, and of process instances, that an error lists. The counts include the rest.
const MAX_NAMED: usize = 20;

/// Progress of an erasure.
#[derive(Debug, Serialize, ToSchema)]
pub struct Erasure {
    /// The user.
    user_id: UserId,
    /// Pseudonym that replaces the person's name and any text about the person.
    pseudonym: String,
    /// Whether everything has been erased. If false, send the request again. In a dry run: whether everything was counted; if
    /// false, `removed` covers only a part.
    done: bool,
    /// Data removed by this request.
    removed: Removed,
}

/// Erase a person
///
/// Replaces everything that names the person with a pseudonym: in the user, histories, processes, links, signatures and stored
/// responses, and removes an equal address in links of people who aren't users. Histories can still be verified. The user must be inactive, and nothing may refer to the user. Send the request
/// again until `done` is true. Requires a key with the effective role `admin`.
#[utoipa::path(post, path = "/users/{id}/erase", tag = "users", responses(ResourceErrors, ErasureConflict))]
pub async fn erase_user(caller: Caller<UsersWrite>, Path(id): Path<UserId>, body: NoBody) -> Result<Data<Erasure>, ApiError> {
    let user = caller.store.get::<User>(id).await?;
    let mut caller = caller.verified().await?;
    caller.role.check_rank(Role::Admin)?;
    // Refuses a `dry_run` in a body, because the client doesn't intend to erase. `dry_run` belongs in the query.
    body.check(&caller)?;
    if let Some(precondition) = caller.take_precondition() {
        let user = user.as_ref().ok_or(ApiError::PreconditionFailed(Mismatch::Version))?;
        precondition.expected.check(user).map_err(ApiError::PreconditionFailed)?;
    }
    let worker = caller.without_idempotency_key();
    if let Some(obstacle) = worker.store.erase_unhindered(id, user.as_ref(), &worker.context).await? {
        return Err(refused(&obstacle));
    }
    let (done, removed) = worker.store.erase_part(id.into(), &worker.context).await?;
    let erasure = Erasure { user_id: id, pseudonym: pseudonym(id), done, removed };
    let response = Data { data: erasure };
    caller.store_finished(&StoredResponse { is_nameless: true, ..response.to_stored(Vec::new())? }).await?;
    Ok(response)
}

fn refused(obstacle: &Obstacle) -> ApiError {
    let (code, context) = match obstacle {
        Obstacle::Unknown => return ApiError::NotFound,
        Obstacle::Active => (ConflictCode::Conflict, json!({"is_active": true})),
        Obstacle::Changed(retry_at) => (ConflictCode::Conflict, json!({"retry_at": retry_at})),
        Obstacle::InUse { assets, processes, instances } => {
            let assets_named = &assets[..assets.len().min(MAX_NAMED)];
            let instances_named = &instances[..instances.len().min(MAX_NAMED)];
            let context = json!({
                "asset_count": assets.len(), "asset_ids": assets_named,
                "process_count": processes, "instance_ids": instances_named
            });
            (ConflictCode::InUse, context)
        }
    };
    ApiError::conflict(code, obstacle.to_string(), context)
}
