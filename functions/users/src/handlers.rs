//! The endpoints for users, with their bodies, queries and views.

use crate::changes;
use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::{UsersRead, UsersWrite};
use shared::domain::keys::api_key::Role;
use shared::domain::record::Stored;
use shared::domain::user::{Email, User, UserChange};
use shared::domain::values::id::UserId;
use shared::domain::values::text::{Name, SearchText};
use shared::domain::values::time::Timestamp;
use shared::http::openapi::{ChangeErrors, DuplicateConflict, InUseConflict, InputErrors, ResourceErrors, UniqueConflict};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, ChangedUser, Created, Data, Versioned, or_not_found};
use shared::store::{Page, UserFilter};
use utoipa::ToSchema;

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
/// Changes the given fields. Changing an admin requires a key with the effective role `admin`. The response to a
/// deactivation lists the process instances that have picked the user, in `meta.picked_in`.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", responses(ChangeErrors, UniqueConflict))]
pub async fn update_user(
    caller: Caller<UsersWrite>,
    Path(id): Path<UserId>,
    body: JsonBody<UserPatch>,
) -> Result<ChangedUser<UserView>, ApiError> {
    changes::change(&caller, id, body).await
}

/// Delete a user
///
/// Refused while assets are assigned to the user. Deleting an admin requires a key with the effective role `admin`. Returns the
/// user's last state.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", responses(ChangeErrors, InUseConflict))]
pub async fn delete_user(caller: Caller<UsersWrite>, Path(id): Path<UserId>) -> Result<Data<UserView>, ApiError> {
    let user = or_not_found(caller.store.get::<User>(id).await?)?;
    let caller = caller.verified().await?;
    let deleted = caller.delete(user, |user| Ok(caller.role.check_power_over(user.role)?)).await?;
    Ok(Data { data: deleted.into() })
}

const READ_ONLY: &[&str] = &["id", "last_login_at", "erased_at", "created_at", "updated_at"];

shared::body! {
    /// A new user.
    pub struct NewUser {
        /// E-mail address, case-insensitively unique in the tenant.
        required email: Email,
        /// Display name.
        required display_name: Name,
        /// Role, at most your own. Limits the scopes of keys bound to the user. Default `viewer`.
        optional role: Role,
        /// Whether assets can be assigned to the user. Default true.
        optional is_active: bool,
    }
    read_only: READ_ONLY, into: UserChange
}

shared::body! {
    /// Fields to change in a user.
    pub struct UserPatch {
        /// E-mail address, case-insensitively unique in the tenant.
        optional email: Email,
        /// Display name.
        optional display_name: Name,
        /// Role, at most your own. Limits the scopes of keys bound to the user.
        optional role: Role,
        /// Whether assets can be assigned to the user, and whether keys bound to the user work.
        optional is_active: bool,
    }
    unchanged: READ_ONLY, into: UserChange
}

shared::query! {
    /// Users to list or export.
    pub struct UserFilterQuery {
        /// Search text. Every word must occur in the display name or e-mail address.
        q: SearchText as SearchText,
        /// Filter by role.
        role: Role as Role,
        /// Filter by whether users are active.
        is_active: bool as bool,
        /// Filter by e-mail address (exact match, case-insensitive).
        email: Email as Email,
    }
}

shared::query! {
    /// Users to list.
    pub struct UserQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        ..filter: UserFilterQuery,
    }
}

impl From<UserFilterQuery> for UserFilter {
    fn from(query: UserFilterQuery) -> Self {
        let UserFilterQuery { q, role, is_active, email } = query;
        Self { q: q.map(String::from), role, is_active, email }
    }
}

/// A user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    /// ID.
    pub(crate) id: UserId,
    /// E-mail address.
    pub(crate) email: Email,
    /// Display name.
    pub(crate) display_name: Name,
    /// Role. Limits the scopes of keys bound to the user.
    pub(crate) role: Role,
    /// Whether assets can be assigned to the user.
    pub(crate) is_active: bool,
    /// Always null. The service has no login.
    #[schema(required)]
    pub(crate) last_login_at: Option<Timestamp>,
    /// Time of the erasure. Null unless the person was erased.
    #[schema(required)]
    pub(crate) erased_at: Option<Timestamp>,
    /// Time of creation.
    pub(crate) created_at: Timestamp,
    /// Time of the last change.
    pub(crate) updated_at: Timestamp,
}

impl From<Stored<User>> for UserView {
    fn from(stored: Stored<User>) -> Self {
        let User { id, email, display_name, role, is_active, erased_at } = stored.value;
        let Stored { created_at, updated_at, .. } = stored;
        Self { id, email, display_name, role, is_active, last_login_at: None, erased_at, created_at, updated_at }
    }
}
