//! The endpoint of exports.

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
use shared::domain::values::money::Price;
use shared::domain::values::text::{Line, Name, Notes};
use shared::domain::values::time::{Date, Timestamp};
use shared::fields::{ASSET_COLUMNS, Column};
use shared::http::bulk::export::{Export, ExportFormat, ExportRow, MAX_CHUNKS};
use shared::http::error::ApiError;
use shared::http::openapi::ListErrors;
use shared::http::requests::extract::QueryParams;
use shared::store::{BatchGet, StoreError, TenantStore, has_time_for_operation};
use std::collections::HashMap;

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

/// In the form that an import takes.
#[derive(Debug, Serialize)]
pub struct AssetExportRow {
    id: AssetId,
    asset_tag: String,
    name: Name,
    status: Status,
    asset_type_id: Option<AssetTypeId>,
    asset_type_code: Option<TypeCode>,
    model_id: Option<ModelId>,
    manufacturer: Option<Line>,
    model: Option<Line>,
    serial_number: Option<Line>,
    purchase_date: Option<Date>,
    #[serde(serialize_with = "Price::serialize_number")]
    purchase_price: Option<Price>,
    warranty_until: Option<Date>,
    assigned_to: Option<UserId>,
    /// `None` if it can't be read, or the key may not read users: the member is left out. `Some(None)` if nobody is assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned_to_email: Option<Option<Email>>,
    notes: Option<Notes>,
    created_at: Timestamp,
    custom_fields: Map<String, Value>,
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
#[utoipa::path(get, path = "/assets/export", tag = "assets", security(("api_key" = ["assets:read"])), responses(ListErrors))]
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
        after = export.add(after, chunk, |asset| known.row(asset))?;
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

    fn row(&self, stored: Stored<Asset>) -> AssetExportRow {
        let asset = stored.value;
        AssetExportRow {
            id: asset.id,
            asset_tag: asset.asset_tag,
            name: asset.name,
            status: asset.status,
            asset_type_id: asset.asset_type_id,
            asset_type_code: asset.asset_type_id.and_then(|id| self.codes.get(&id).cloned().flatten()),
            model_id: asset.model_id,
            manufacturer: asset.manufacturer,
            model: asset.model,
            serial_number: asset.serial_number,
            purchase_date: asset.purchase_date,
            purchase_price: asset.purchase_price,
            warranty_until: asset.warranty_until,
            assigned_to: asset.assigned_to,
            // Without an address beside it, the ID alone says who it is.
            assigned_to_email: match asset.assigned_to {
                None => Some(None),
                Some(id) => self.emails.get(&id).cloned().flatten().map(Some),
            },
            notes: asset.notes,
            created_at: stored.created_at,
            custom_fields: asset.custom_fields.as_map().clone(),
        }
    }
}
