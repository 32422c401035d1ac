//! The endpoint for imports.

use crate::changes::{Action, Target, UserOperation, UserWrite};
use shared::auth::caller::UsersWrite;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::keys::api_key::Role;
use shared::domain::user::{Email, UserChange};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::UserId;
use shared::domain::values::text::Name;
use shared::fields::USER_COLUMNS;
use shared::fields::compared::compatible;
use shared::http::bulk::import::{ImportResult, MatchColumn, OnError, RowsBody, SkipBad, UserMatch};
use shared::http::bulk::rows::Row;
use shared::http::openapi::{ImportConflict, ImportErrors};
use shared::http::requests::params::Query;
use shared::http::responses::{ApiError, Json};

shared::query! {
    /// How to import.
    pub struct UserImportQuery {
        /// Which user a row updates: the user with the row's `id` or `email`. Default `none`: every row creates a user.
        r#match: UserMatch as UserMatch,
        /// Whether a row whose matched column is empty creates a user. Default false: such rows are refused.
        create_unmatched: bool as bool,
        /// `skip` writes valid rows even if others are refused; `abort` then writes nothing. Default `skip`.
        on_error: OnError as OnError,
        /// Columns, such as `role`, whose invalid cells are dropped while the rest of the row is imported. The row must have no
        /// other error.
        skip_bad: SkipBad as SkipBad,
    }
}

shared::body! {
    /// A row of an import.
    pub struct UserRow {
        /// E-mail address.
        optional email: Email,
        /// Display name.
        optional display_name: Name,
        /// Role.
        optional role: Role,
        /// Whether assets can be assigned to the user.
        optional is_active: bool,
    }
    unchanged: &["id", "created_at", "updated_at"]
}

/// Import users
///
/// Takes up to 200 rows as CSV with a header row, or as NDJSON, and returns the outcome of each row. An empty cell leaves a field
/// unchanged.
#[utoipa::path(post, path = "/users/import", tag = "users", responses(ImportErrors, ImportConflict))]
pub async fn import_users(
    caller: Caller<UsersWrite>,
    Query(query): Query<UserImportQuery>,
    body: RowsBody,
) -> Result<Json<ImportResult>, ApiError> {
    let matching = query.r#match.unwrap_or(UserMatch::None);
    let matched = Some(matching.as_str()).filter(|_| matching != UserMatch::None);
    let create_unmatched = query.create_unmatched.unwrap_or_default();
    let skip_bad = query.skip_bad.unwrap_or_default().checked(USER_COLUMNS, matched)?;
    let mut rows = body.parse(&caller, USER_COLUMNS, matched)?;
    if let Some(name) = matched {
        MatchColumn { name, compared: compatible, create_unmatched }.check(&mut rows);
    }
    let on_error = query.on_error.unwrap_or(OnError::Skip);
    let caller = caller.verified().await?;
    caller.execute_import(on_error, &skip_bad, rows, |caller, rows| operations(caller, rows, matching)).await
}

async fn operations(caller: VerifiedCaller, rows: Vec<Row>, matching: UserMatch) -> Result<Vec<UserOperation>, ApiError> {
    let ids = caller.store.new_ids(caller.context.at, rows.len())?;
    Ok(rows.iter().zip(ids).map(|(row, id)| operation(caller.role, row, id, matching)).collect())
}

fn operation(role: Role, row: &Row, new_id: UserId, matching: UserMatch) -> UserOperation {
    let (fields, mut errors) = row.read::<UserRow>();
    let mut target = Target::New;
    let action = match fields {
        None => Action::Refuse(errors),
        Some(UserRow { email, display_name, role, is_active, unchanged }) => {
            match (matching, row.text("id"), &email) {
                (UserMatch::Id, Some(id), _) => match id.parse() {
                    Ok(id) => target = Target::Id(id),
                    Err(_) => errors.push(FieldError::column("id", "is not the ID of a user of this tenant")),
                },
                (UserMatch::Email, _, Some(email)) => target = Target::Email(email.folded()),
                _ => {}
            }
            let change = UserChange { email, display_name, role, is_active };
            Action::Write(Box::new(UserWrite { change, unchanged, errors }))
        }
    };
    UserOperation::new(role, new_id, target, action)
}
