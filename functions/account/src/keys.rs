//! The endpoints of API keys, with their bodies, queries and views.

use serde::Serialize;
use shared::auth::caller::{KeysRead, KeysWrite};
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::keys::api_key::{ApiKey, DEFAULT_RATE_LIMIT, MAX_GRACE_SECONDS, Rate, Scope, Scopes, Secret, Token, prefix};
use shared::domain::record::Stored;
use shared::domain::user::User;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{ApiKeyId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::http::openapi::{ChangeConflict, ChangeErrors, InputErrors, RequestConflict, ResourceErrors};
use shared::http::requests::body::{BoundedInteger, JsonBody, OptionalJsonBody, RateLimit};
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, ConflictCode, Created, CreatedSecret, Data, Success, Versioned, or_not_found};
use shared::request::{Assigned, unknown_reference};
use shared::store::{Page, Reader};
use utoipa::ToSchema;

/// List API keys
///
/// Newest first, without secrets.
#[utoipa::path(get, path = "/keys", tag = "keys", responses(InputErrors))]
pub async fn list_keys(caller: Caller<KeysRead>, Query(query): Query<KeyQuery>) -> Result<Page<KeyView>, ApiError> {
    Ok(caller.store.list_keys(params::page(query.page, query.limit)).await?.map(KeyView::from))
}

/// Get an API key
///
/// Returns the key without its secret.
#[utoipa::path(get, path = "/keys/{id}", tag = "keys", responses(ResourceErrors))]
pub async fn get_key(caller: Caller<KeysRead>, Path(id): Path<ApiKeyId>) -> Result<Versioned<KeyView>, ApiError> {
    caller.get::<ApiKey, _>(id).await
}

/// Create an API key
///
/// The key is returned only once, in this response. A key for a user requires at least the user's role.
#[utoipa::path(post, path = "/keys", tag = "keys", responses(InputErrors, RequestConflict))]
pub async fn create_key(caller: Caller<KeysWrite>, body: JsonBody<NewKey>) -> Result<CreatedSecret<NewKeyView>, ApiError> {
    let (body, mut errors) = body.parse_with_errors(&caller)?;
    let owner = owner(&caller.store, body.user_id.value().copied()).await?;
    let caller = caller.verified().await?;
    let now = caller.context.at;
    match (body.user_id.value(), &owner) {
        (Some(_), None) => errors.push(unknown_reference("user_id")),
        (Some(_), Some(user)) if !user.value.is_active => {
            errors.push(FieldError::field("user_id", "belongs to an inactive user"));
        }
        _ => {}
    }
    if body.expires_at.value().is_some_and(|end| *end <= now) {
        errors.push(FieldError::field("expires_at", "must be in the future"));
    }
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    let secret = Secret::new(caller.store.random()?);
    let own_limit = caller.key.rate_limit_per_minute;
    let rate_limit = body.rate_limit_per_minute.map_or(DEFAULT_RATE_LIMIT.min(own_limit), |limit| limit.0);
    // Fails if this key has too many ancestors that were also created in this minute.
    let first_minute =
        caller.key.limits_of_new_key(now).ok_or_else(|| ApiError::RateLimited(Rate::new(own_limit, None, now).wait))?;
    let key = ApiKey {
        user_id: body.user_id.or(caller.key.user_id),
        expires_at: body.expires_at.or(caller.key.expires_at),
        created_by: caller.context.actor.key_id,
        first_minute,
        ..ApiKey::new(caller.store.new_id(now)?, body.name, body.scopes, secret.hash(), rate_limit)
    };
    let id = key.id;
    let key = create(&caller, key, owner).await?;
    Ok(created(NewKeyView { api_key: expose(&caller, id, secret), record: key.into() }, id))
}

/// Reads the user that a key is or will be bound to.
async fn owner(reads: &Reader, id: Option<UserId>) -> Result<Option<Stored<User>>, ApiError> {
    match id {
        Some(id) => Ok(reads.get::<User>(id).await?),
        None => Ok(None),
    }
}

/// Creates a key, if its owner still has a role that the caller can grant keys of.
async fn create(caller: &VerifiedCaller, key: ApiKey, named: Option<Stored<User>>) -> Result<Stored<ApiKey>, ApiError> {
    let key = &key;
    let attempt = |owner: Option<Stored<User>>| async move {
        check_grantable(caller, key, owner.as_ref())?;
        let mut unit = caller.unit();
        if let Some(owner) = &owner {
            unit.expect(owner);
        }
        let created_key = unit.create(key.clone())?;
        // The stored response must not contain the secret.
        unit.commit_with(|| created(KeyView::from(created_key.clone()), key.id).to_stored(Vec::new())).await?;
        Ok(created_key)
    };
    caller.retry(named, || owner(&caller.store, key.user_id), attempt).await
}

fn expose(caller: &VerifiedCaller, id: ApiKeyId, secret: Secret) -> Assigned<String> {
    caller.assign(Token::new(caller.store.id(), id, secret).expose())
}

fn created<T>(key: T, id: ApiKeyId) -> CreatedSecret<T> {
    Created::new("keys", id, key).with_secret()
}

/// Revoke an API key
///
/// The key stops working with the next request. Any key with `keys:write` can revoke any key, so that a leaked key can be stopped
/// at once. Returns the key's last state.
#[utoipa::path(delete, path = "/keys/{id}", tag = "keys", responses(ChangeErrors, ChangeConflict))]
pub async fn delete_key(caller: Caller<KeysWrite>, Path(id): Path<ApiKeyId>) -> Result<Data<KeyView>, ApiError> {
    caller.delete::<ApiKey, _>(id, |_| Ok(())).await
}

/// Rotate an API key
///
/// Gives the key a new secret, which only this response shows. The previous secret stays valid for `grace_seconds`. A user's key
/// requires at least the user's role. The body is optional.
#[utoipa::path(post, path = "/keys/{id}/rotate", tag = "keys", responses(ChangeErrors, RequestConflict))]
pub async fn rotate_key(
    caller: Caller<KeysWrite>,
    Path(id): Path<ApiKeyId>,
    body: OptionalJsonBody<Rotation>,
) -> Result<Data<NewKeyView>, ApiError> {
    let key = caller.store.get::<ApiKey>(id).await?;
    let owner = owner(&caller.store, key.as_ref().and_then(|key| key.value.user_id)).await?;
    let rotation = body.parse(&caller)?;
    let key = or_not_found(key)?;
    let caller = caller.verified().await?;
    // The response shows the new secret, so the caller needs all rights of the key.
    check_grantable(&caller, &key.value, owner.as_ref())?;
    if owner.as_ref().is_some_and(|user| user.value.erased_at.is_some()) {
        let detail = "The key's user was erased, so it can only be revoked.";
        return Err(ApiError::conflict(ConflictCode::Conflict, detail, Default::default()));
    }
    let now = caller.context.at;
    let grace = rotation.and_then(|rotation| rotation.grace_seconds).map_or(0, |grace| grace.0);
    let secret = Secret::new(caller.store.random()?);
    let next = key.value.rotated(secret.hash(), now, now.plus_seconds(grace));
    let mut unit = caller.unit();
    if let Some(owner) = &owner {
        unit.expect(owner);
    }
    // The stored response must not contain the secret.
    let rotated = caller.replace(unit, &key, next, |rotated| Data { data: KeyView::from(rotated) }).await?;
    let api_key = expose(&caller, rotated.value.id, secret);
    Ok(Data { data: NewKeyView { api_key, record: rotated.into() } })
}

/// Fails if `key` has more rights than the caller's key, or `owner` a role above the caller's.
fn check_grantable(caller: &VerifiedCaller, key: &ApiKey, owner: Option<&Stored<User>>) -> Result<(), ApiError> {
    caller.key.rights(&caller.scopes).check_grant(&key.rights(&key.scopes))?;
    Ok(owner.map_or(Ok(()), |owner| caller.role.check_key_of(owner.value.role))?)
}

const READ_ONLY: &[&str] = &["id", "prefix", "api_key", "last_used_at", "created_at", "created_by"];

/// How long the previous secret stays valid, in seconds.
type Grace = BoundedInteger<0, MAX_GRACE_SECONDS>;

shared::body! {
    /// A new API key.
    pub struct NewKey as NewApiKey {
        /// Name that says what the key is for.
        required name: Name,
        /// Scopes. Your own key must have all of them.
        required scopes: Scopes,
        /// Active user to bind the key to, with at most your own role. The user's role then limits the key's scopes. Default: your
        /// own key's user. A bound key can only create keys for the same user.
        nullable user_id: UserId,
        /// Time of expiry, not later than your own key's. Default: your own key's.
        nullable expires_at: Timestamp,
        /// Maximum number of requests per minute, at most your own key's. Default 600, or your own key's if that is lower.
        optional rate_limit_per_minute: RateLimit,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// Options for rotating a key.
    pub struct Rotation as KeyRotation {
        /// How many seconds the previous secret stays valid. Default 0, maximum 604800 (7 days).
        optional grace_seconds: Grace,
    }
    read_only: &[]
}

shared::query! {
    /// Page of API keys.
    pub struct KeyQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}

/// An API key without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct KeyView {
    /// Identifier.
    id: ApiKeyId,
    /// Name that says what the key is for.
    name: Name,
    /// Scopes.
    #[schema(value_type = Vec<Scope>)]
    scopes: Scopes,
    /// User that the key is bound to.
    #[schema(required)]
    user_id: Option<UserId>,
    /// First 12 characters of the key, to recognize it.
    prefix: String,
    /// Time of expiry.
    #[schema(required)]
    expires_at: Option<Timestamp>,
    /// Time of the last use, accurate to the hour.
    #[schema(required)]
    last_used_at: Option<Timestamp>,
    /// Maximum number of requests per minute.
    rate_limit_per_minute: u32,
    /// Time of creation.
    created_at: Timestamp,
    /// Key that created this key. Null if the operator created it.
    #[schema(required)]
    created_by: Option<ApiKeyId>,
}

/// An API key with its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKeyWithSecret)]
pub struct NewKeyView {
    /// The key, to send as `Authorization: Bearer …`. Returned only once; a replay by `Idempotency-Key` omits it.
    /// Null in a dry run.
    #[schema(required = false, value_type = Option<String>)]
    api_key: Assigned<String>,
    /// The key without its secret.
    #[serde(flatten)]
    record: KeyView,
}

impl From<Stored<ApiKey>> for KeyView {
    fn from(stored: Stored<ApiKey>) -> Self {
        let key = stored.value;
        Self {
            id: key.id,
            name: key.name,
            scopes: key.scopes,
            user_id: key.user_id,
            prefix: prefix(key.id),
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            rate_limit_per_minute: key.rate_limit_per_minute,
            created_at: stored.created_at,
            created_by: key.created_by,
        }
    }
}
