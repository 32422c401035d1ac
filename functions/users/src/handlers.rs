//! The endpoints of users.

use crate::changes;
use crate::wire::{NewUser, UserPatch, UserQuery, UserView};
use shared::auth::UnverifiedRequest;
use shared::domain::keys::scope::Scope;
use shared::domain::user::User;
use shared::domain::values::id::UserId;
use shared::http::error::ApiError;
use shared::http::openapi::{ChangeErrors, DuplicateConflict, InUseConflict, InputErrors, ResourceErrors, UniqueConflict};
use shared::http::requests::extract::{JsonBody, PathId, QueryParams};
use shared::http::requests::params;
use shared::http::responses::{Created, Data, Versioned};
use shared::store::Page;

/// List users
///
/// Newest first.
#[utoipa::path(get, path = "/users", tag = "users", security(("api_key" = ["users:read"])), responses(InputErrors))]
pub async fn list_users(request: UnverifiedRequest, query: QueryParams<UserQuery>) -> Result<Page<UserView>, ApiError> {
    let (_, page) = request
        .authorize_with_query(Scope::UsersRead, query, async |store, query| {
            let page = params::page(query.page, query.limit);
            Ok(store.list_users(&query.filter.into(), page).await?)
        })
        .await?;
    Ok(page.map(UserView::from))
}

/// Get a user
///
/// Returns its `ETag`, for a change with `If-Match`.
#[utoipa::path(get, path = "/users/{id}", tag = "users", security(("api_key" = ["users:read"])), responses(ResourceErrors))]
pub async fn get_user(request: UnverifiedRequest, id: PathId<UserId>) -> Result<Versioned<UserView>, ApiError> {
    request.get::<User, _>(Scope::UsersRead, id).await
}

/// Create a user
///
/// E-mail addresses are unique regardless of case.
#[utoipa::path(post, path = "/users", tag = "users", security(("api_key" = ["users:write"])), responses(InputErrors, DuplicateConflict))]
pub async fn create_user(request: UnverifiedRequest, body: JsonBody<NewUser>) -> Result<Created<UserView>, ApiError> {
    let caller = request.authorize(Scope::UsersWrite).await?;
    Ok(Created::of("users", changes::create(&caller, body.parse(&caller)?.into()).await?))
}

/// Update a user
///
/// Changes the fields that are sent.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", security(("api_key" = ["users:write"])), responses(ChangeErrors, UniqueConflict))]
pub async fn update_user(
    request: UnverifiedRequest,
    id: PathId<UserId>,
    body: JsonBody<UserPatch>,
) -> Result<Versioned<UserView>, ApiError> {
    let (caller, user, body) = request.patch::<User, UserView, _>(Scope::UsersWrite, id, body, |_, _, _| None).await?;
    Ok(changes::change(&caller, user, body.into()).await?.into())
}

/// Delete a user
///
/// Refused while assets are assigned to the user. Returns the user as it was.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", security(("api_key" = ["users:write"])), responses(ChangeErrors, InUseConflict))]
pub async fn delete_user(request: UnverifiedRequest, id: PathId<UserId>) -> Result<Data<UserView>, ApiError> {
    request.delete::<User, _>(Scope::UsersWrite, id, |_| Ok(())).await
}
