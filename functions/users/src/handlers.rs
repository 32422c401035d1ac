//! The endpoints of users.

use crate::wire::{NewUser, UserPatch, UserQuery, UserView};
use shared::auth::{Caller, UnverifiedRequest};
use shared::domain::keys::scope::Scope;
use shared::domain::user::{User, UserChange};
use shared::domain::values::id::UserId;
use shared::http::error::ApiError;
use shared::http::extract::{JsonBody, PathId, QueryParams};
use shared::http::openapi::{
    DeleteErrors, DuplicateConflict, GetErrors, InUseConflict, ListErrors, PatchErrors, PostErrors, UniqueConflict,
};
use shared::http::params;
use shared::http::response::{Created, Data, Versioned, found};
use shared::store::Page;

/// List users
///
/// Newest first.
#[utoipa::path(get, path = "/users", tag = "users", security(("api_key" = ["users:read"])), responses(ListErrors))]
pub async fn list_users(request: UnverifiedRequest, query: QueryParams<UserQuery>) -> Result<Page<UserView>, ApiError> {
    let (_, page) = request
        .authorize_with_query(Scope::UsersRead, query, async |store, query| {
            let page = params::page(query.page, query.limit);
            Ok(store.list_users(&query.into(), page).await?)
        })
        .await?;
    Ok(page.map(UserView::from))
}

/// Get a user
///
/// Returns its `ETag`, for a change with `If-Match`.
#[utoipa::path(get, path = "/users/{id}", tag = "users", security(("api_key" = ["users:read"])), responses(GetErrors))]
pub async fn get_user(request: UnverifiedRequest, id: PathId<UserId>) -> Result<Versioned<UserView>, ApiError> {
    let (_, user) = request.authorize(Scope::UsersRead, async |store| found(store.get::<User>(id.parse()?).await?)).await?;
    Ok(Versioned { version: user.version, data: user.into() })
}

/// Create a user
///
/// E-mail addresses are unique regardless of case.
#[utoipa::path(post, path = "/users", tag = "users", security(("api_key" = ["users:write"])), responses(PostErrors, DuplicateConflict))]
pub async fn create_user(request: UnverifiedRequest, body: JsonBody<NewUser>) -> Result<Created<UserView>, ApiError> {
    let (caller, ()) = request.authorize(Scope::UsersWrite, async |_| Ok(())).await?;
    let body = body.parse(&caller)?;
    let user = body.into_user(caller.store.new_id(caller.context.at)?);
    caller.role.check_grant(None, user.role)?;
    let id = user.id;
    caller.create(user, |user| Created::new("users", id, user.clone().into())).await
}

/// Update a user
///
/// Changes the fields that are sent.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", security(("api_key" = ["users:write"])), responses(PatchErrors, UniqueConflict))]
pub async fn update_user(
    request: UnverifiedRequest,
    id: PathId<UserId>,
    body: JsonBody<UserPatch>,
) -> Result<Versioned<UserView>, ApiError> {
    let (caller, user) = request.authorize(Scope::UsersWrite, async |store| Ok(store.get::<User>(id.parse()?).await?)).await?;
    let (body, errors) = body.parse_with_errors(&caller)?;
    let user = found(user)?;
    body.unchanged.check(&UserView::from(user.clone()), errors)?;
    let change = UserChange::from(body);
    let user = caller.update(user, |old| changed(&caller, old, &change)).await?;
    Ok(Versioned { version: user.version, data: user.into() })
}

/// Returns a user with `change` applied, if the caller may give the role that the user has afterwards.
pub(crate) fn changed(caller: &Caller, old: &User, change: &UserChange) -> Result<User, ApiError> {
    let next = old.changed(change);
    // Whoever becomes active again gets the role again.
    let present = (old.is_active || !next.is_active).then_some(old.role);
    caller.role.check_grant(present, next.role)?;
    Ok(next)
}

/// Delete a user
///
/// Refused while assets are assigned to the user. Returns the user as it was.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", security(("api_key" = ["users:write"])), responses(DeleteErrors, InUseConflict))]
pub async fn delete_user(request: UnverifiedRequest, id: PathId<UserId>) -> Result<Data<UserView>, ApiError> {
    let (caller, user) = request.authorize(Scope::UsersWrite, async |store| found(store.get::<User>(id.parse()?).await?)).await?;
    Ok(Data { data: caller.delete(user, |_| Ok(())).await?.into() })
}
