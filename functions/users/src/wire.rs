//! What goes over the wire: bodies, queries and views of users.

use serde::Serialize;
use shared::domain::id::UserId;
use shared::domain::record::Stored;
use shared::domain::scope::Role;
use shared::domain::text::{Name, SearchText};
use shared::domain::time::Timestamp;
use shared::domain::user::{Email, User, UserChange};
use shared::http::params::{Limit, PageNumber};
use shared::store::UserFilter;
use utoipa::ToSchema;

/// Fields of a user that nobody sets.
const READ_ONLY: &[&str] = &["id", "last_login_at", "created_at", "updated_at"];

shared::body! {
    /// What a new user is made from.
    pub struct NewUser {
        /// Unique in the tenant, without regard to case.
        required email: Email,
        /// How lists name the user.
        required display_name: Name,
        /// What keys bound to the user may do at most; `viewer` when left out.
        optional role: Role,
        /// Whether the user can be assigned anything; true when left out.
        optional is_active: bool,
    }
    read_only: READ_ONLY
}

shared::body! {
    /// The fields of a user to change.
    pub struct UserPatch {
        /// Unique in the tenant, without regard to case.
        optional email: Email,
        /// How lists name the user.
        optional display_name: Name,
        /// What keys bound to the user may do at most.
        optional role: Role,
        /// Whether the user can be assigned anything.
        optional is_active: bool,
    }
    read_only: READ_ONLY
}

impl NewUser {
    pub(crate) fn into_user(self, id: UserId) -> User {
        let (role, is_active) = (self.role.unwrap_or(Role::Viewer), self.is_active.unwrap_or(true));
        User { id, email: self.email, display_name: self.display_name, role, is_active }
    }
}

impl From<UserPatch> for UserChange {
    fn from(patch: UserPatch) -> Self {
        let UserPatch { email, display_name, role, is_active } = patch;
        Self { email, display_name, role, is_active }
    }
}

shared::query! {
    /// Which users to list.
    pub struct UserQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
        /// Search by display name or e-mail; every word must occur.
        q: SearchText as SearchText,
        /// Filter by role.
        role: Role as Role,
        /// Only active or only inactive ones.
        is_active: bool as bool,
    }
}

impl From<UserQuery> for UserFilter {
    fn from(query: UserQuery) -> Self {
        let UserQuery { q, role, is_active, .. } = query;
        Self { q: q.map(String::from), role, is_active }
    }
}

/// A user.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserView {
    /// Identifier.
    id: UserId,
    /// Unique in the tenant.
    email: Email,
    /// How lists name the user.
    display_name: Name,
    /// What keys bound to the user may do at most.
    role: Role,
    /// Whether the user can be assigned anything.
    is_active: bool,
    /// Always null: there is no login here.
    #[schema(required)]
    last_login_at: Option<Timestamp>,
    /// When the user was created.
    created_at: Timestamp,
    /// When the user was last changed.
    updated_at: Timestamp,
}

impl From<Stored<User>> for UserView {
    fn from(stored: Stored<User>) -> Self {
        let User { id, email, display_name, role, is_active } = stored.value;
        let Stored { created_at, updated_at, .. } = stored;
        Self { id, email, display_name, role, is_active, last_login_at: None, created_at, updated_at }
    }
}
