//! The endpoint of exports.

use crate::asset_view::asset_view;
use crate::query::AssetFilterQuery;
use serde::Serialize;
use serde_json::{Map, Value};
use shared::auth::UnverifiedRequest;
use shared::domain::assets::asset::{Asset, Status};
use shared::domain::catalog::{AssetType, TypeCode};
use shared::domain::keys::scope::Scope;
use shared::domain::record::Stored;
use shared::domain::user::{Email, User};
use shared::domain::values::id::{AssetId, AssetTypeId, ModelId, UserId};
use shared::domain::values::money::{Price, PriceNumber};
use shared::domain::values::text::{Line, Name, Notes};
use shared::domain::values::time::{Date, Timestamp};
use shared::fields::{ASSET_COLUMNS, Column};
use shared::http::bulk::export::{Export, ExportFormat, ExportRow, MAX_CHUNKS};
use shared::http::error::ApiError;
use shared::http::openapi::InputErrors;
use shared::http::requests::extract::QueryParams;
use shared::store::{BatchGet, StoreError, TenantStore, has_time_for_operation};
use std::collections::HashMap;
use utoipa::ToSchema;

shared::query! {
    /// Assets to export.
    pub struct AssetExportQuery {
        /// `csv` or `ndjson`. Default `csv`.
        format: ExportFormat as ExportFormat,
        /// The asset after which to go on: given by the header `Link`.
        after: AssetId as AssetId,
        ..filter: AssetFilterQuery,
    }
}

asset_view! {
    /// An asset as an import takes it.
    #[derive(Debug, Serialize, ToSchema)]
    pub struct AssetExportRow {
        id: AssetId = asset.id,
        asset_tag: String = asset.asset_tag,
        name: Name = asset.name,
        status: Status = asset.status,
        asset_type_id: Option<AssetTypeId> = asset.asset_type_id,
        asset_type_code: Option<TypeCode> = asset.asset_type_id.and_then(|id| names.codes.get(&id).cloned().flatten()),
        model_id: Option<ModelId> = asset.model_id,
        manufacturer: Option<Line> = asset.manufacturer,
        model: Option<Line> = asset.model,
        ..asset.details,
        assigned_to: Option<UserId> = asset.assigned_to,
        /// `None` if it can't be read, or the key may not read users: the member is left out. Without an address beside it, the
        /// ID alone says who it is. `Some(None)` if nobody is assigned.
        #[serde(skip_serializing_if = "Option::is_none")]
        assigned_to_email: Option<Option<Email>> = match asset.assigned_to {
            None => Some(None),
            Some(id) => names.emails.get(&id).cloned().flatten().map(Some),
        },
        notes: Option<Notes> = asset.notes,
        created_at: Timestamp = stored.created_at,
        custom_fields: Map<String, Value> = asset.custom_fields.as_map().clone(),
    }

    fn new(stored: Stored<Asset>, names: &ExportNames) -> Self {
        let asset = stored.value;
    }
}

impl ExportRow for AssetExportRow {
    const COLUMNS: &'static [Column] = ASSET_COLUMNS;
    const FILE_NAME: &'static str = "assets";

    fn custom_fields(&self) -> Option<&Map<String, Value>> {
        Some(&self.custom_fields)
    }
}

/// Export assets
///
/// In the order of their IDs, up to 4 MiB. The header `Link` leads to the next part. An import with `match=id` takes what
/// an export writes, and changes nothing.
#[utoipa::path(get, path = "/assets/export", tag = "assets", security(("api_key" = ["assets:read"])), responses(InputErrors))]
pub async fn export_assets(
    request: UnverifiedRequest,
    query: QueryParams<AssetExportQuery>,
) -> Result<Export<AssetExportRow>, ApiError> {
    let text = query.text().to_owned();
    let (caller, query) = request.authorize_with_query(Scope::AssetsRead, query, async |_, query| Ok(query)).await?;
    let mut export = Export::new(query.format.unwrap_or(ExportFormat::Csv), "/v1/assets/export", &text);
    let assets = caller.store.asset_export(query.filter.into()).await?;
    let mut known = ExportNames { has_emails: caller.scopes.contains(&Scope::UsersRead), ..ExportNames::default() };
    let mut after = query.after;
    for _ in 0..MAX_CHUNKS {
        let chunk = caller.store.assets_after(&assets, after).await?;
        known.read(&caller.store, &chunk.records).await?;
        after = export.add(after, chunk, |asset| AssetExportRow::new(asset, &known))?;
        if after.is_none() || !has_time_for_operation() {
            break;
        }
    }
    Ok(export)
}

#[derive(Default)]
struct ExportNames {
    has_emails: bool,
    codes: HashMap<AssetTypeId, Option<TypeCode>>,
    emails: HashMap<UserId, Option<Email>>,
}

impl ExportNames {
    /// Reads names that are not known yet. Records that can't be read have none.
    async fn read(&mut self, store: &TenantStore, assets: &[Stored<Asset>]) -> Result<(), StoreError> {
        let types = assets.iter().filter_map(|asset| asset.value.asset_type_id).filter(|id| !self.codes.contains_key(id));
        let users = assets.iter().filter_map(|asset| asset.value.assigned_to);
        let users = users.filter(|id| self.has_emails && !self.emails.contains_key(id));
        let (types, users): (Vec<_>, Vec<_>) = (types.collect(), users.collect());
        let batch = BatchGet::new().with_all::<AssetType>(types.iter().copied()).with_all::<User>(users.iter().copied());
        let found = store.batch_get_without_blobs(batch).await?;
        for id in types {
            self.codes.insert(id, found.get_readable::<AssetType>(Some(id))?.map(|stored| stored.value.code));
        }
        for id in users {
            self.emails.insert(id, found.get_readable::<User>(Some(id))?.map(|stored| stored.value.email));
        }
        Ok(())
    }
}
