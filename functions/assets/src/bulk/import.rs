//! The endpoint for imports.

use super::row::{AssetRowCells, NamedRecords, NamesInRows};
use crate::changes::AssetOperation;
use shared::auth::caller::AssetsWrite;
use shared::auth::{Caller, VerifiedCaller};
use shared::domain::import::Kind;
use shared::domain::import::parameters::Reading;
use shared::domain::keys::api_key::Scope;
use shared::domain::values::id::AssetId;
use shared::http::bulk::import::{AssetMatch, Executed, ImportResult, ImportedFile, OnError, Received, RowsBody};
use shared::http::bulk::rows::Row;
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
        ..reading: Reading,
    }
}

/// Import assets
///
/// Takes up to 200 rows as CSV with a header row, or as NDJSON, and returns the outcome of each row. A row can name other records
/// instead of giving their IDs: `asset_type_code`, `model_name` with `manufacturer_name`, `assigned_to_email`, `assigned_to_name`. An
/// empty cell leaves a field unchanged, `\N` clears it. Naming users needs the scope `users:read`.
///
/// Parameters say how to read the file: `map` for columns, `value` for values, and so on. If they are too long for a URL, send a JSON
/// body with all parameters except `dry_run`, and the text.
#[utoipa::path(post, path = "/assets/import", tag = "assets", responses(ImportErrors, ImportConflict))]
pub async fn import_assets(
    caller: Caller<AssetsWrite>,
    Query(query): Query<AssetImportQuery>,
    body: RowsBody,
) -> Result<Json<ImportResult>, ApiError> {
    let Received { bytes, format, query } = body.read(&caller, query)?;
    let matching = query.r#match.unwrap_or(AssetMatch::None);
    let create_unmatched = query.create_unmatched.unwrap_or_default();
    let file = ImportedFile::read((&bytes, format), Kind::Assets, &query.reading, matching.field(), query.create_unmatched)?;
    let (caller, rows) = (caller.verified().await?, &file.file.rows);
    let execute = |caller| write_rows(caller, rows, matching, create_unmatched);
    let Json(result) = caller.import(query.on_error.unwrap_or(OnError::Skip), execute).await?;
    Ok(Json(result.with_names(&file, caller.store.is_dry_run())))
}

async fn write_rows(
    caller: VerifiedCaller,
    rows: &[Row],
    matching: AssetMatch,
    create_unmatched: bool,
) -> Result<Executed, ApiError> {
    let operations = &operations(&caller, rows, matching, create_unmatched).await?;
    let rows = caller.rows(operations.len()).await?;
    let left: Vec<&AssetOperation> = rows.left().into_iter().map(|index| &operations[index]).collect();
    // Boxed, because the compiler limits how deep future types can nest.
    let inputs = Box::pin(AssetOperation::read_all(&caller, &left, false)).await?;
    // Each row updates a different asset, so only the tags of new assets can collide.
    let tags = left.iter().map(|operation| operation.unique_value().into_iter().map(|(_, tag)| tag).collect());
    let inputs = inputs.into_iter().zip(tags).collect();
    let write = |caller: VerifiedCaller, index: usize, inputs| async move {
        Box::pin(operations[index].commit_row(&caller, inputs)).await
    };
    Ok(rows.write(inputs, write).await)
}

async fn operations(
    caller: &VerifiedCaller,
    rows: &[Row],
    matching: AssetMatch,
    create_unmatched: bool,
) -> Result<Vec<AssetOperation>, ApiError> {
    let now = caller.context.at;
    let rows: Vec<AssetRowCells> = rows.iter().map(|row| AssetRowCells::new(row.clone(), now)).collect();
    let mut names = NamesInRows::default();
    rows.iter().for_each(|row| row.add_names(matching, &mut names));
    if !names.emails.is_empty() || !names.people.is_empty() {
        // Without this scope, the response would reveal who the users are.
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
