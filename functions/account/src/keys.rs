//! The endpoints of API keys (contract 3).

use crate::key_wire::{KeyQuery, KeyView, NewKey, NewKeyView, Rotation};
use shared::auth::{Caller, UnverifiedRequest, keep, missing};
use shared::domain::api_key::{ApiKey, DEFAULT_RATE_LIMIT};
use shared::domain::field_error::FieldError;
use shared::domain::id::ApiKeyId;
use shared::domain::record::Stored;
use shared::domain::scope::{Scope, Scopes};
use shared::domain::token::{Secret, Token};
use shared::domain::user::User;
use shared::http::error::ApiError;
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::response::{self, Data, List, Reply, present};
use shared::http::{Answer, params};
use shared::store::WriteError;

/// Lists API keys, newest first; never their secrets.
#[utoipa::path(get, path = "/keys", tag = "keys", params(KeyQuery), security(("api_key" = ["keys:read"])),
    responses((status = 200, description = "A page of keys", body = List<KeyView>), ListErrors))]
pub async fn list_keys(request: UnverifiedRequest) -> Answer {
    let (_, listed) = request
        .enter_list(Scope::KeysRead, async |store| {
            let query: KeyQuery = request.query()?;
            Ok(store.list_keys(params::page(query.page, query.limit)).await?)
        })
        .await?;
    response::list(listed, KeyView::from)
}

/// Gets one API key's record.
#[utoipa::path(get, path = "/keys/{id}", tag = "keys", params(("id" = ApiKeyId, Path, description = "The key")),
    security(("api_key" = ["keys:read"])),
    responses((status = 200, description = "The key", body = Data<KeyView>), GetErrors))]
pub async fn get_key(request: UnverifiedRequest) -> Answer {
    let (_, key) = request.enter(Scope::KeysRead, async |store| present(store.get::<ApiKey>(request.id()?).await?)).await?;
    response::record(key.version, KeyView::from(key))
}

/// Creates an API key; the answer shows it, once: a replay by `Idempotency-Key` does not.
#[utoipa::path(post, path = "/keys", tag = "keys", request_body = NewKey, security(("api_key" = ["keys:write"])),
    responses((status = 201, description = "The new key, with its secret", body = Data<NewKeyView>), PostErrors))]
pub async fn create_key(request: UnverifiedRequest) -> Answer {
    let (caller, (body, mut errors, owner)) = request
        .enter(Scope::KeysWrite, async |store| {
            let (body, errors) = request.body_and_errors::<NewKey>()?;
            let owner = match body.user_id.value() {
                Some(id) => store.get::<User>(*id).await?,
                None => None,
            };
            Ok((body, errors, owner))
        })
        .await?;
    let now = caller.context.at;
    match (body.user_id.value(), owner) {
        (Some(_), None) => errors.push(missing("user_id")),
        (Some(_), Some(user)) if !user.value.is_active => {
            errors.push(FieldError::field("user_id", "names a user who is not active"))
        }
        _ => {}
    }
    if body.expires_at.value().is_some_and(|end| *end <= now) {
        errors.push(FieldError::field("expires_at", "must lie in the future"));
    }
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    grantable(&caller, &body.scopes)?;
    let secret = Secret::new(caller.store.store().random()?);
    let rate_limit = body.rate_limit_per_minute.map_or(DEFAULT_RATE_LIMIT, |limit| limit.0);
    let key = ApiKey {
        user_id: body.user_id.or(None),
        expires_at: body.expires_at.or(None),
        created_by: caller.context.actor.key_id,
        ..ApiKey::new(caller.store.new_id(now)?, body.name, body.scopes, secret.hash(), rate_limit)
    };
    let id = key.id;
    // What is kept for when the request comes again has no secret (contract 8).
    let kept = |key: &Stored<ApiKey>| keep(response::created("keys", id, KeyView::from(key.clone())).map(Reply::untagged));
    let record = KeyView::from(caller.store.create(key, &caller.context, kept).await?);
    let api_key = Token::new(caller.store.id(), id, secret).expose();
    response::created("keys", id, NewKeyView { api_key, record }).map(Reply::untagged)
}

/// Revokes an API key: the very next request with it is refused. StepValues its record as it was.
#[utoipa::path(delete, path = "/keys/{id}", tag = "keys", params(("id" = ApiKeyId, Path, description = "The key")),
    security(("api_key" = ["keys:write"])),
    responses((status = 200, description = "The key as it was", body = Data<KeyView>), DeleteErrors))]
pub async fn delete_key(request: UnverifiedRequest) -> Answer {
    let (caller, key) = request.enter(Scope::KeysWrite, async |store| present(store.get::<ApiKey>(request.id()?).await?)).await?;
    response::data(KeyView::from(caller.delete(key, |_| Ok(())).await?))
}

/// Gives a key a new secret, which the answer shows, once.
///
/// The old one keeps working for `grace_seconds`. A body is not needed.
#[utoipa::path(post, path = "/keys/{id}/rotate", tag = "keys", params(("id" = ApiKeyId, Path, description = "The key")),
    request_body = Option<Rotation>, security(("api_key" = ["keys:write"])),
    responses((status = 200, description = "The key, with its new secret", body = Data<NewKeyView>), PatchErrors))]
pub async fn rotate_key(request: UnverifiedRequest) -> Answer {
    let (caller, (rotation, key)) = request
        .enter(Scope::KeysWrite, async |store| {
            let id = request.id()?;
            let rotation = request.optional_body::<Rotation>()?;
            Ok((rotation, present(store.get::<ApiKey>(id).await?)?))
        })
        .await?;
    // Whoever rotates a key holds it afterwards: that is granting its scopes.
    grantable(&caller, &key.value.scopes)?;
    let now = caller.context.at;
    let grace = rotation.and_then(|rotation| rotation.grace_seconds).map_or(0, |grace| grace.0);
    let until = now.plus_seconds(grace);
    let secret = Secret::new(caller.store.store().random()?);
    let kept = |key: &Stored<ApiKey>| keep(response::data(KeyView::from(key.clone())));
    // Deciding again would end the secret that another rotation has just answered.
    let next = key.value.rotated(secret.hash(), now, until);
    let key = match caller.store.update(&key, next, &caller.context, kept).await {
        Err(WriteError::Stale) if caller.store.get::<ApiKey>(key.value.id).await?.is_none() => return Err(ApiError::NotFound),
        written => written?,
    };
    let api_key = Token::new(caller.store.id(), key.value.id, secret).expose();
    response::data(NewKeyView { api_key, record: KeyView::from(key) })
}

/// Nobody grants what they don't hold.
fn grantable(caller: &Caller, scopes: &Scopes) -> Result<(), ApiError> {
    match ApiKey::first_lacking(scopes, &caller.scopes) {
        Some(scope) => Err(ApiError::Forbidden(scope)),
        None => Ok(()),
    }
}
