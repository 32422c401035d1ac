//! The endpoint for imports.

use crate::changes::{Action, Target, UserOperation, UserWrite};
use shared::auth::caller::UsersWrite;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::import::Kind;
use shared::domain::import::parameters::Reading;
use shared::domain::keys::api_key::Role;
use shared::domain::user::{Email, UserChange};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::UserId;
use shared::domain::values::text::Name;
use shared::http::bulk::import::{Executed, ImportResult, ImportedFile, OnError, Received, RowsBody, UserMatch};
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
        ..reading: Reading,
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
///
/// Parameters say how to read the file, as for assets.
#[utoipa::path(post, path = "/users/import", tag = "users", responses(ImportErrors, ImportConflict))]
pub async fn import_users(
    caller: Caller<UsersWrite>,
    Query(query): Query<UserImportQuery>,
    body: RowsBody,
) -> Result<Json<ImportResult>, ApiError> {
    let Received { bytes, format, query } = body.read(&caller, query)?;
    let matching = query.r#match.unwrap_or(UserMatch::None);
    let file = ImportedFile::read((&bytes, format), Kind::Users, &query.reading, matching.field(), query.create_unmatched)?;
    let (caller, rows) = (caller.verified().await?, &file.file.rows);
    let execute = |caller| write_rows(caller, rows, matching);
    let Json(result) = caller.import(query.on_error.unwrap_or(OnError::Skip), execute).await?;
    Ok(Json(result.with_names(&file, caller.store.is_dry_run())))
}

async fn write_rows(caller: VerifiedCaller, rows: &[Row], matching: UserMatch) -> Result<Executed, ApiError> {
    let ids = caller.store.new_ids(caller.context.at, rows.len())?;
    let operations = rows.iter().zip(ids).map(|(row, id)| operation(caller.role, row, id, matching));
    let operations = &operations.collect::<Vec<_>>();
    let rows = caller.rows(operations.len()).await?;
    let left: Vec<&UserOperation> = rows.left().into_iter().map(|index| &operations[index]).collect();
    // Boxed, because the compiler limits how deep future types can nest.
    let inputs = Box::pin(UserOperation::read_all(&caller, &left)).await?;
    let with_names = |(operation, inputs): (&&UserOperation, Result<_, ApiError>)| {
        let names = inputs.as_ref().map(|inputs| operation.names(inputs)).unwrap_or_default();
        (inputs, names)
    };
    let inputs = left.iter().zip(inputs).map(with_names).collect();
    let write = |caller: VerifiedCaller, index: usize, inputs| async move {
        Box::pin(operations[index].commit_row(&caller, inputs)).await
    };
    Ok(rows.write(inputs, write).await)
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
