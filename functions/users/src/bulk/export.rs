//! The endpoint for exports.

use crate::handlers::UserFilterQuery;
use axum::extract::RawQuery;
use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::UsersRead;
use shared::domain::keys::api_key::Role;
use shared::domain::record::Stored;
use shared::domain::user::{Email, User};
use shared::domain::values::id::UserId;
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::fields::{Column, USER_COLUMNS};
use shared::http::bulk::export::{Export, ExportQuery, ExportRow, MAX_CHUNKS};
use shared::http::openapi::InputErrors;
use shared::http::requests::params::Query;
use shared::http::responses::ApiError;
use shared::store::has_time_for_operation;

#[derive(Debug, Serialize)]
pub struct UserExportRow {
    id: UserId,
    email: Email,
    display_name: Name,
    role: Role,
    is_active: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Stored<User>> for UserExportRow {
    fn from(stored: Stored<User>) -> Self {
        let Stored { value, created_at, updated_at, .. } = stored;
        let User { id, email, display_name, role, is_active, erased_at: _ } = value;
        Self { id, email, display_name, role, is_active, created_at, updated_at }
    }
}

impl ExportRow for UserExportRow {
    const COLUMNS: &'static [Column] = USER_COLUMNS;
    const FILE_NAME: &'static str = "users";
}

/// Export users
///
/// Sorted by ID, up to 4 MiB. The header `Link` points to the next part. Importing an unchanged export with `match=id` changes
/// nothing.
#[utoipa::path(get, path = "/users/export", tag = "users", responses(InputErrors))]
pub async fn export_users(
    caller: Caller<UsersRead>,
    Query(query): Query<ExportQuery<UserId, UserFilterQuery>>,
    RawQuery(text): RawQuery,
) -> Result<Export<UserExportRow>, ApiError> {
    let text = text.unwrap_or_default();
    let mut export = Export::new(query.form, "/v1/users/export", &text);
    let filter = query.filter.into();
    let mut after = query.after;
    for _ in 0..MAX_CHUNKS {
        let chunk = caller.store.users_after(&filter, after).await?;
        after = export.add(after, chunk, UserExportRow::from)?;
        if after.is_none() || !has_time_for_operation() {
            break;
        }
    }
    Ok(export)
}
