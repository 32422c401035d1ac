//! The endpoint that erases what is held about a person (docs/adr/0021-people.md).

use serde::Serialize;
use serde_json::json;
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::keys::scope::{Role, Scope};
use shared::domain::people::pseudonym;
use shared::domain::record::Stored;
use shared::domain::user::User;
use shared::domain::values::id::{AssetId, UserId};
use shared::http::error::{ApiError, ConflictCode};
use shared::http::openapi::{ErasureConflict, ResourceErrors};
use shared::http::requests::extract::PathId;
use shared::http::responses::{Data, Success};
use shared::store::{PageRequest, Removed, WriteError, max_event_delay};
use utoipa::ToSchema;

/// The longest time of a request, in seconds: that of a function.
const MAX_REQUEST: u32 = 30;
/// The assets that an error names.
const MAX_NAMED: usize = 20;
const FIRST: PageRequest = PageRequest { number: 1, limit: 1 };

/// How far the erasure of a person has come.
#[derive(Debug, Serialize, ToSchema)]
pub struct Erasure {
    /// The user.
    user_id: UserId,
    /// What stands in place of names and texts.
    pseudonym: String,
    /// Whether all is erased. If not, send the request again.
    done: bool,
    /// What this request has removed.
    removed: RemovedView,
}

/// What a request has removed; with `dry_run`, what it would remove.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Removed)]
struct RemovedView {
    /// Resources that said something about the person.
    resources: usize,
    /// Entries of histories.
    entries: usize,
    /// Images of signatures.
    signatures: usize,
    /// Responses that were stored for repeated requests.
    responses: usize,
}

impl From<Removed> for RemovedView {
    fn from(Removed { records, entries, images, responses }: Removed) -> Self {
        Self { resources: records, entries, signatures: images, responses }
    }
}

/// Erase a person
///
/// Replaces everything that names the person by a pseudonym: in the user, histories, processes, links, signatures and stored
/// responses. Histories still verify. The user must be inactive, and nothing may refer to it. Send the request again until
/// `done`. Only for keys that count as `admin`.
#[utoipa::path(post, path = "/users/{id}/erase", tag = "users", security(("api_key" = ["users:write"])), responses(ResourceErrors, ErasureConflict))]
pub async fn erase_user(request: UnverifiedRequest, id: PathId<UserId>) -> Result<Data<Erasure>, ApiError> {
    let (caller, (id, user)) = request
        .authorize_and_read(Scope::UsersWrite, async |store| {
            let id = id.parse()?;
            Ok((id, store.get::<User>(id).await?))
        })
        .await?;
    caller.role.check_rank(Role::Admin)?;
    caller.refuse_precondition()?;
    let worker = caller.without_idempotency_key();
    match user {
        Some(user) if user.value.erased_at.is_none() => erase_record(&worker, &user).await?,
        Some(_) => {}
        // The history of a deleted user still names the person.
        None if worker.store.history::<User>(id, FIRST).await?.is_some() => {}
        None => return Err(ApiError::NotFound),
    }
    let (state, removed) = worker.store.erase_part(id, &worker.context).await?;
    let erasure = Erasure { user_id: id, pseudonym: pseudonym(id), done: state.is_done, removed: removed.into() };
    let response = Data { data: erasure };
    caller.store_finished(&response.to_stored(Vec::new())?).await?;
    Ok(response)
}

async fn erase_record(worker: &Caller, user: &Stored<User>) -> Result<(), ApiError> {
    let conflict = |detail: String, context| Err(ApiError::conflict(ConflictCode::Conflict, detail, context));
    if user.value.is_active {
        return conflict(
            "The user is active. Deactivate it first, with PATCH or by offboarding.".to_owned(),
            json!({"is_active": true}),
        );
    }
    // Requests with the user's own keys can still be running.
    let retry_at = user.updated_at.plus(max_event_delay()).plus_seconds(MAX_REQUEST);
    if worker.context.at < retry_at {
        let detail =
            format!("The user was changed a moment ago, and its requests may still be running. Try again at {retry_at}.");
        return conflict(detail, json!({"retry_at": retry_at}));
    }
    match worker.store.erase_user(user, &worker.context, false).await {
        Err(WriteError::InUse(count)) => in_use(worker, user.value.id, count).await,
        erased => Ok(erased?),
    }
}

/// Names the assets that the user has. The rest are open process instances that the user was picked in.
async fn in_use(worker: &Caller, user: UserId, count: u64) -> Result<(), ApiError> {
    let (assets, _) = worker.store.assets_of_user(user).await?;
    let processes = count.saturating_sub(assets.len() as u64);
    let asset_ids: Vec<AssetId> = assets.iter().take(MAX_NAMED).map(|asset| asset.value.id).collect();
    let detail = format!(
        "The user has {} assets and is picked in {processes} open processes. Return the assets, and complete or cancel the processes.",
        assets.len()
    );
    let context = json!({"asset_count": assets.len(), "process_count": processes, "asset_ids": asset_ids});
    Err(ApiError::conflict(ConflictCode::InUse, detail, context))
}
