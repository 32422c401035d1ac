//! `expand`: users beside the assets that are assigned to them.

use serde::Serialize;
use shared::auth::Caller;
use shared::auth::scopes::AssetsRead;
use shared::domain::keys::scope::Scope;
use shared::domain::record::Stored;
use shared::domain::user::{Email, User};
use shared::domain::values::field_error::ValueError;
use shared::domain::values::id::UserId;
use shared::domain::values::text::Name;
use shared::http::error::ApiError;
use shared::http::requests::body::ReadOnlyFields;
use shared::http::requests::params::FromParam;
use shared::store::{BatchGet, BatchResult, StoreError};
use utoipa::ToSchema;

/// What to add to an asset.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = ExpandedField)]
pub enum Expand {
    /// The assigned user.
    AssignedTo,
}

impl FromParam for Expand {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        if text == "assigned_to" { Ok(Self::AssignedTo) } else { Err(ValueError::new("must be assigned_to")) }
    }
}

/// The user whom an asset is assigned to.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssignedUser {
    /// ID.
    id: UserId,
    /// Display name.
    display_name: Name,
    /// E-mail address.
    email: Email,
}

impl From<Stored<User>> for AssignedUser {
    fn from(stored: Stored<User>) -> Self {
        let User { id, display_name, email, .. } = stored.value;
        Self { id, display_name, email }
    }
}

pub(crate) struct ExpandedUsers(Option<BatchResult>);

impl ExpandedUsers {
    /// Reads no users unless `expand` asks for them. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Forbidden`] if the caller may not read users: their names are not the assets' own data.
    pub(crate) async fn read(
        caller: &Caller<AssetsRead>,
        ids: impl IntoIterator<Item = UserId>,
        expand: Option<Expand>,
    ) -> Result<Self, ApiError> {
        let Some(Expand::AssignedTo) = expand else { return Ok(Self(None)) };
        caller.verified().await?.check_scope(Scope::UsersRead)?;
        Ok(Self(Some(caller.store.batch_get_without_blobs(BatchGet::new().with_all::<User>(ids)).await?)))
    }

    /// For an asset that is assigned to this user. Users who are gone or can't be read are shown as null.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] if the user can't be read for another reason than its own.
    pub(crate) fn of(&self, assigned_to: Option<UserId>) -> Result<Option<Option<AssignedUser>>, StoreError> {
        let Some(users) = &self.0 else { return Ok(None) };
        Ok(Some(users.get_readable(assigned_to)?.map(AssignedUser::from)))
    }
}

/// Compares the assigned user with `assigned_to` only: the asset itself has nothing else of the user.
pub(crate) fn without_users(unchanged: ReadOnlyFields) -> ReadOnlyFields {
    unchanged.by_reference("assigned_user", "assigned_to")
}
