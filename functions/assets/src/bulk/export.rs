//! The endpoint for exports.

use crate::handlers::AssetFilterQuery;
use axum::extract::RawQuery;
use serde::Serialize;
use serde_json::{Map, Value};
use shared::auth::Caller;
use shared::auth::caller::AssetsRead;
use shared::domain::assets::asset::{Asset, AssetDetails, CUSTOM_FIELD, Status};
use shared::domain::assets::bound::{DayBound, Today};
use shared::domain::catalog::{AssetType, TypeCode};
use shared::domain::keys::api_key::Scope;
use shared::domain::record::Stored;
use shared::domain::user::{Email, User};
use shared::domain::values::id::{AssetId, AssetTypeId, ModelId, UserId};
use shared::domain::values::money::{Price, PriceNumber};
use shared::domain::values::text::{Line, Location, Name, Notes, SerialNumber};
use shared::domain::values::time::{Date, Timestamp};
use shared::fields::{ASSET_COLUMNS, Column};
use shared::http::bulk::export::{Export, ExportQuery, ExportRow, MAX_CHUNKS};
use shared::http::openapi::InputErrors;
use shared::http::requests::params::{Query, decode};
use shared::http::responses::ApiError;
use shared::store::{BatchGet, Reader, StoreError, has_time_for_operation};
use std::collections::HashMap;
use utoipa::ToSchema;

/// Parts of the names of parameters that are bounds.
const BOUNDS: [&str; 3] = ["_from", "_before", "_since"];

/// An asset in the import format.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssetExportRow {
    id: AssetId,
    asset_tag: String,
    name: Name,
    status: Status,
    #[schema(required)]
    asset_type_id: Option<AssetTypeId>,
    #[schema(required)]
    asset_type_code: Option<TypeCode>,
    #[schema(required)]
    model_id: Option<ModelId>,
    #[schema(required)]
    manufacturer: Option<Line>,
    #[schema(required)]
    model: Option<Line>,
    #[schema(required)]
    serial_number: Option<SerialNumber>,
    #[schema(required)]
    location: Option<Location>,
    #[schema(required)]
    purchase_date: Option<Date>,
    #[serde(serialize_with = "Price::serialize_number")]
    #[schema(required, value_type = Option<PriceNumber>)]
    purchase_price: Option<Price>,
    #[schema(required)]
    warranty_until: Option<Date>,
    #[schema(required)]
    assigned_to: Option<UserId>,
    /// Absent if the user can't be read or the key may not read users. Null if nobody is assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned_to_email: Option<Option<Email>>,
    #[schema(required)]
    assigned_since: Option<Date>,
    #[schema(required)]
    notes: Option<Notes>,
    #[schema(required)]
    last_seen_at: Option<Timestamp>,
    status_changed_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    custom_fields: Map<String, Value>,
}

impl AssetExportRow {
    fn new(stored: Stored<Asset>, names: &ExportNames) -> Self {
        let Asset {
            id,
            asset_tag,
            name,
            status,
            asset_type_id,
            model_id,
            manufacturer_id: _,
            manufacturer,
            model,
            details: AssetDetails { serial_number, location, purchase_date, purchase_price, warranty_until },
            assigned_to,
            assigned_since,
            last_seen_at,
            status_changed_at,
            scans: _,
            notes,
            custom_fields,
            running_instance_id: _,
        } = stored.value;
        Self {
            id,
            asset_tag,
            name,
            status,
            asset_type_id,
            asset_type_code: asset_type_id.and_then(|id| names.codes.get(&id).cloned().flatten()),
            model_id,
            manufacturer,
            model,
            serial_number,
            location,
            purchase_date,
            purchase_price,
            warranty_until,
            assigned_to,
            assigned_to_email: match assigned_to {
                None => Some(None),
                Some(id) => names.emails.get(&id).cloned().flatten().map(Some),
            },
            assigned_since,
            notes,
            last_seen_at,
            status_changed_at: status_changed_at.unwrap_or(stored.created_at),
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            custom_fields: custom_fields.as_map().clone(),
        }
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
/// Sorted by ID, up to 4 MiB. The header `Link` points to the next part. Importing an unchanged export with `match=id` changes
/// nothing.
#[utoipa::path(get, path = "/assets/export", tag = "assets", responses(InputErrors))]
pub async fn export_assets(
    caller: Caller<AssetsRead>,
    Query(query): Query<ExportQuery<AssetId, AssetFilterQuery>>,
    RawQuery(text): RawQuery,
) -> Result<Export<AssetExportRow>, ApiError> {
    let caller = caller.verified().await?;
    let assets = caller.store.asset_export(query.filter.into()).await?;
    let text = with_fixed_days(&text.unwrap_or_default(), &assets.today);
    let mut export = Export::new(query.form, "/v1/assets/export", &text);
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

/// Replaces the relative days of a query with dates, so that all parts of an export have the same bounds.
fn with_fixed_days(query: &str, today: &Today) -> String {
    let is_bound = |name: &str| !name.starts_with(CUSTOM_FIELD) && BOUNDS.iter().any(|bound| name.contains(bound));
    let fixed = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        decode(name).ok().filter(|name| is_bound(name))?;
        let day: DayBound = decode(value).ok()?.parse().ok()?;
        day.is_relative().then(|| format!("{name}={}", day.on(today)))
    };
    query.split('&').map(|pair| fixed(pair).unwrap_or_else(|| pair.to_owned())).collect::<Vec<_>>().join("&")
}

#[derive(Default)]
struct ExportNames {
    has_emails: bool,
    codes: HashMap<AssetTypeId, Option<TypeCode>>,
    emails: HashMap<UserId, Option<Email>>,
}

impl ExportNames {
    /// Reads the names that haven't been read yet, as `None` for damaged records.
    async fn read(&mut self, store: &Reader, assets: &[Stored<Asset>]) -> Result<(), StoreError> {
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
