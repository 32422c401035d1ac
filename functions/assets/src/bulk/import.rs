//! The endpoint for imports.

use super::row::{AssetRowCells, NamedRecords, NamesInRows};
use crate::changes::AssetOperation;
use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::keys::api_key::Scope;
use shared::domain::values::id::AssetId;
use shared::fields::{ASSET_COLUMNS, serial_number};
use shared::http::bulk::import::{AssetMatch, ImportResult, MatchColumn, OnError, RowsBody, SkipBad};
use shared::http::openapi::{ImportConflict, ImportErrors};
use shared::http::requests::params::Query;
use shared::http::responses::{ApiError, Json};

shared::query! {
    /// How to import.
    pub struct AssetImportQuery {
        /// Which asset a row updates: the asset with the row's `id`, `asset_tag` or `serial_number`. Default `none`: every row
        /// creates an asset.
        r#match: AssetMatch as AssetMatch,
        /// Whether a row creates an asset if its matched column is empty or its asset tag is unknown.
        /// Default false: such rows are refused.
        create_unmatched: bool as bool,
        /// `skip` writes valid rows even if others are refused; `abort` then writes nothing. Default `skip`.
        on_error: OnError as OnError,
        /// Columns, such as `assigned_to_email`, whose invalid cells are dropped while the rest of the row is imported. The row
        /// must have no other error.
        skip_bad: SkipBad as SkipBad,
    }
}

/// Import assets
///
/// Takes up to 200 rows as CSV with a header row, or as NDJSON, and returns the outcome of each row. A row can name other records
/// instead of giving their IDs: `asset_type_code`, `model_name` with `manufacturer_name`, `assigned_to_email`. An empty cell
/// leaves a field unchanged, `\N` clears it. `assigned_to_email` needs the scope `users:read`.
#[utoipa::path(post, path = "/assets/import", tag = "assets", responses(ImportErrors, ImportConflict))]
pub async fn import_assets(
    caller: Caller<AssetsWrite>,
    Query(query): Query<AssetImportQuery>,
    body: RowsBody,
) -> Result<Json<ImportResult>, ApiError> {
    let matching = query.r#match.unwrap_or(AssetMatch::None);
    let matched = Some(matching.as_str()).filter(|_| matching != AssetMatch::None);
    let create_unmatched = query.create_unmatched.unwrap_or_default();
    let skip_bad = query.skip_bad.unwrap_or_default().checked(ASSET_COLUMNS, matched)?;
    let mut rows = body.parse(&caller, ASSET_COLUMNS, matched)?;
    if let Some(name) = matched {
        MatchColumn { name, compared: compared(matching), create_unmatched }.check(&mut rows);
    }
    caller
        .verified()
        .await?
        .execute_import(query.on_error.unwrap_or(OnError::Skip), &skip_bad, rows, |caller, rows| {
            let now = caller.context.at;
            let rows = rows.into_iter().map(|row| AssetRowCells::new(row, now)).collect();
            operations(caller, rows, matching, create_unmatched)
        })
        .await
}

/// Returns the function that normalizes values of the matched column, so that two rows for one asset are found.
fn compared(matching: AssetMatch) -> fn(&str) -> String {
    match matching {
        // IDs and tags are case-insensitive.
        AssetMatch::None | AssetMatch::Id | AssetMatch::AssetTag => str::to_lowercase,
        AssetMatch::SerialNumber => serial_number::key,
    }
}

async fn operations(
    caller: VerifiedCaller,
    rows: Vec<AssetRowCells>,
    matching: AssetMatch,
    create_unmatched: bool,
) -> Result<Vec<AssetOperation>, ApiError> {
    let mut names = NamesInRows::default();
    rows.iter().for_each(|row| row.add_names(matching, &mut names));
    if !names.emails.is_empty() {
        // Without this scope, the response would reveal which addresses belong to users.
        caller.check_scope(Scope::UsersRead)?;
    }
    let named = NamedRecords::read(&caller.store, &names).await?;
    let ids = caller.store.new_ids(caller.context.at, rows.len())?;
    let operation = |(row, id): (AssetRowCells, AssetId)| {
        let (target, action) = row.into_action(matching, create_unmatched, &named);
        AssetOperation::new(id, target, action)
    };
    let mut operations: Vec<AssetOperation> = rows.into_iter().zip(ids).map(operation).collect();
    AssetOperation::note_brought_tags(&mut operations);
    Ok(operations)
}
