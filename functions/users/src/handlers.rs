//! The endpoints of users.

use crate::changes;
use crate::wire::{NewUser, UserPatch, UserQuery, UserView};
use shared::auth::Caller;
use shared::auth::caller::{UsersRead, UsersWrite};
use shared::domain::user::User;
use shared::domain::values::id::UserId;
use shared::http::error::ApiError;
use shared::http::openapi::{ChangeErrors, DuplicateConflict, InUseConflict, InputErrors, ResourceErrors, UniqueConflict};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params;
use shared::http::requests::params::{Path, Query};
use shared::http::responses::{Created, Data, Versioned};
use shared::store::Page;

/// List users
///
/// Newest first.
#[utoipa::path(get, path = "/users", tag = "users", responses(InputErrors))]
pub async fn list_users(caller: Caller<UsersRead>, Query(query): Query<UserQuery>) -> Result<Page<UserView>, ApiError> {
    let page = params::page(query.page, query.limit);
    Ok(caller.store.list_users(&query.filter.into(), page).await?.map(UserView::from))
}

/// Get a user
///
/// The response has an `ETag`, for changes with `If-Match`.
#[utoipa::path(get, path = "/users/{id}", tag = "users", responses(ResourceErrors))]
pub async fn get_user(caller: Caller<UsersRead>, Path(id): Path<UserId>) -> Result<Versioned<UserView>, ApiError> {
    caller.get::<User, _>(id).await
}

/// Create a user
///
/// E-mail addresses are case-insensitively unique.
#[utoipa::path(post, path = "/users", tag = "users", responses(InputErrors, DuplicateConflict))]
pub async fn create_user(caller: Caller<UsersWrite>, body: JsonBody<NewUser>) -> Result<Created<UserView>, ApiError> {
    let body = body.parse(&caller)?;
    Ok(Created::of("users", changes::create(&caller, body).await?))
}

/// Update a user
///
/// Changes the given fields.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", responses(ChangeErrors, UniqueConflict))]
pub async fn update_user(
    caller: Caller<UsersWrite>,
    Path(id): Path<UserId>,
    body: JsonBody<UserPatch>,
) -> Result<Versioned<UserView>, ApiError> {
    Ok(changes::change(&caller, id, body).await?.into())
}

/// Delete a user
///
/// Refused while assets are assigned to the user. Returns its last state.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", responses(ChangeErrors, InUseConflict))]
pub async fn delete_user(caller: Caller<UsersWrite>, Path(id): Path<UserId>) -> Result<Data<UserView>, ApiError> {
    caller.delete::<User, _>(id, |_| Ok(())).await
}
