//! The endpoints of asset types.

use serde::Serialize;
use serde_json::Value;
use shared::auth::Caller;
use shared::auth::caller::{CatalogRead, CatalogWrite};
use shared::domain::catalog::custom_fields::FieldsSchema;
use shared::domain::catalog::{AssetKind, AssetType, AssetTypeChange, MAX_ASSET_TYPES, TypeCode};
use shared::domain::record::Stored;
use shared::domain::values::id::AssetTypeId;
use shared::domain::values::text::{Name, SearchText};
use shared::domain::values::time::Timestamp;
use shared::http::openapi::{ChangeErrors, DuplicateConflict, InUseConflict, InputErrors, ResourceErrors, UniqueConflict};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params::{self, CodeFilter, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, ConflictCode, Created, Data, Versioned};
use shared::store::{AssetTypeFilter, Page};
use utoipa::ToSchema;

shared::query! {
    /// Asset types to list.
    pub struct AssetTypeQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Search text. Every word must occur in the name or code.
        q: SearchText as SearchText,
        /// Filter by code (exact match, case-insensitive).
        code: CodeFilter as CodeFilter,
    }
}

impl From<AssetTypeQuery> for AssetTypeFilter {
    fn from(query: AssetTypeQuery) -> Self {
        Self { q: query.q.map(String::from), code: query.code.map(|code| code.0) }
    }
}

shared::body! {
    /// A new asset type.
    pub struct NewAssetType {
        /// Display name, such as `Laptop`.
        required name: Name,
        /// Code for asset tags, unique in the tenant.
        required code: TypeCode,
        /// Kind.
        required kind: AssetKind,
        /// Flat JSON Schema (2020-12) for the custom fields of assets of this type. A `default` in it is not applied.
        nullable custom_fields_schema: FieldsSchema,
    }
    read_only: super::READ_ONLY
}

shared::body! {
    /// Fields to change in an asset type.
    pub struct AssetTypePatch {
        /// Display name, such as `Laptop`.
        optional name: Name,
        /// Code for asset tags, unique in the tenant. Existing tags keep the old code.
        optional code: TypeCode,
        /// Kind.
        optional kind: AssetKind,
        /// Flat JSON Schema (2020-12). Existing assets are checked against it when they next change.
        nullable custom_fields_schema: FieldsSchema,
    }
    unchanged: super::READ_ONLY, into: AssetTypeChange
}

/// An asset type.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AssetType)]
pub struct AssetTypeView {
    /// Identifier.
    id: AssetTypeId,
    /// Display name, such as `Laptop`.
    name: Name,
    /// Code for asset tags.
    code: TypeCode,
    /// Kind.
    kind: AssetKind,
    /// JSON Schema for the custom fields of assets of this type.
    #[schema(required, value_type = Option<FieldsSchema>)]
    custom_fields_schema: Option<Value>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change.
    updated_at: Timestamp,
}

impl From<Stored<AssetType>> for AssetTypeView {
    fn from(stored: Stored<AssetType>) -> Self {
        let AssetType { id, name, code, kind, custom_fields_schema } = stored.value;
        let custom_fields_schema = custom_fields_schema.map(|schema| schema.as_value().clone());
        Self { id, name, code, kind, custom_fields_schema, created_at: stored.created_at, updated_at: stored.updated_at }
    }
}

/// List asset types
///
/// Newest first.
#[utoipa::path(get, path = "/catalog/asset-types", tag = "catalog", responses(InputErrors))]
pub async fn list_asset_types(
    caller: Caller<CatalogRead>,
    Query(query): Query<AssetTypeQuery>,
) -> Result<Page<AssetTypeView>, ApiError> {
    let page = params::page(query.page, query.limit);
    Ok(caller.store.list_asset_types(&query.into(), page).await?.map(AssetTypeView::from))
}

/// Get an asset type
///
/// Includes the JSON Schema of its custom fields.
#[utoipa::path(get, path = "/catalog/asset-types/{id}", tag = "catalog", responses(ResourceErrors))]
pub async fn get_asset_type(
    caller: Caller<CatalogRead>,
    Path(id): Path<AssetTypeId>,
) -> Result<Versioned<AssetTypeView>, ApiError> {
    caller.get::<AssetType, _>(id).await
}

/// Create an asset type
///
/// A tenant can have up to 1,000 asset types.
#[utoipa::path(post, path = "/catalog/asset-types", tag = "catalog", responses(InputErrors, DuplicateConflict))]
pub async fn create_asset_type(
    caller: Caller<CatalogWrite>,
    body: JsonBody<NewAssetType>,
) -> Result<Created<AssetTypeView>, ApiError> {
    let body = body.parse(&caller)?;
    let caller = caller.verified().await?;
    if caller.store.count::<AssetType>().await? >= MAX_ASSET_TYPES {
        let detail = format!("A tenant can have at most {MAX_ASSET_TYPES} asset types. Delete unused ones.");
        return Err(ApiError::conflict(ConflictCode::Conflict, detail, Value::Null));
    }
    let value = AssetType {
        id: caller.store.new_id(caller.context.at)?,
        name: body.name,
        code: body.code,
        kind: body.kind,
        custom_fields_schema: body.custom_fields_schema.or(None),
    };
    caller.create(value, |stored| Created::of("catalog/asset-types", stored)).await
}

/// Update an asset type
///
/// Changes the given fields.
#[utoipa::path(patch, path = "/catalog/asset-types/{id}", tag = "catalog", responses(ChangeErrors, UniqueConflict))]
pub async fn update_asset_type(
    caller: Caller<CatalogWrite>,
    Path(id): Path<AssetTypeId>,
    body: JsonBody<AssetTypePatch>,
) -> Result<Versioned<AssetTypeView>, ApiError> {
    let (old, body) = caller.patch::<_, AssetTypeView, _>(id, body, |_, _| None).await?;
    let change = AssetTypeChange::from(body);
    Ok(caller.verified().await?.update(old, |old| Ok(old.changed(&change))).await?.into())
}

/// Delete an asset type
///
/// Refused while models or assets use the type. Returns the type's last state.
#[utoipa::path(delete, path = "/catalog/asset-types/{id}", tag = "catalog", responses(ChangeErrors, InUseConflict))]
pub async fn delete_asset_type(
    caller: Caller<CatalogWrite>,
    Path(id): Path<AssetTypeId>,
) -> Result<Data<AssetTypeView>, ApiError> {
    caller.delete::<AssetType, _>(id, |_| Ok(())).await
}
