//! Asset types (contract 5).

use super::CatalogQuery;
use serde::Serialize;
use serde_json::Value;
use shared::auth::UnverifiedRequest;
use shared::domain::catalog::{AssetKind, AssetType, AssetTypeChange, TypeCode};
use shared::domain::custom_fields::FieldsSchema;
use shared::domain::id::AssetTypeId;
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::text::Name;
use shared::domain::time::Timestamp;
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::response::{self, Data, List, present};
use shared::http::{Answer, params};
use shared::store::TenantStore;
use utoipa::ToSchema;

shared::body! {
    /// What a new asset type is made from.
    pub struct NewAssetType {
        /// Such as Laptop.
        required name: Name,
        /// For tags; unique.
        required code: TypeCode,
        /// Physical or logical.
        required kind: AssetKind,
        /// A JSON Schema (2020-12) for the custom fields of its assets.
        nullable custom_fields_schema: FieldsSchema,
    }
    read_only: super::READ_ONLY
}

shared::body! {
    /// The fields of an asset type to change.
    pub struct AssetTypePatch {
        /// Such as Laptop.
        optional name: Name,
        /// For tags; unique. Tags already given stay.
        optional code: TypeCode,
        /// Physical or logical.
        optional kind: AssetKind,
        /// A JSON Schema (2020-12); assets are checked by it at their next change.
        nullable custom_fields_schema: FieldsSchema,
    }
    read_only: super::READ_ONLY
}

impl From<AssetTypePatch> for AssetTypeChange {
    fn from(patch: AssetTypePatch) -> Self {
        let AssetTypePatch { name, code, kind, custom_fields_schema } = patch;
        Self { name, code, kind, custom_fields_schema }
    }
}

/// An asset type.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssetTypeView {
    /// Identifier.
    id: AssetTypeId,
    /// Such as Laptop.
    name: Name,
    /// For tags.
    code: TypeCode,
    /// Physical or logical.
    kind: AssetKind,
    /// A JSON Schema for the custom fields of its assets.
    #[schema(required, value_type = Option<Object>)]
    custom_fields_schema: Option<Value>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl From<Stored<AssetType>> for AssetTypeView {
    fn from(stored: Stored<AssetType>) -> Self {
        let AssetType { id, name, code, kind, custom_fields_schema } = stored.value;
        let custom_fields_schema = custom_fields_schema.map(|schema| schema.as_value().clone());
        Self { id, name, code, kind, custom_fields_schema, created_at: stored.created_at, updated_at: stored.updated_at }
    }
}

/// Lists asset types, newest first.
#[utoipa::path(get, path = "/catalog/asset-types", tag = "catalog", params(CatalogQuery), security(("api_key" = ["catalog:read"])),
    responses((status = 200, description = "A page of asset types", body = List<AssetTypeView>), ListErrors))]
pub async fn list_asset_types(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let query: CatalogQuery = request.query()?;
        let page = params::page(query.page, query.limit);
        Ok(store.list_asset_types(query.q.as_deref(), page).await?)
    };
    let (_, listed) = request.enter_list(Scope::CatalogRead, read).await?;
    response::list(listed, AssetTypeView::from)
}

/// Gets one asset type.
#[utoipa::path(get, path = "/catalog/asset-types/{id}", tag = "catalog", params(("id" = AssetTypeId, Path, description = "The asset type")),
    security(("api_key" = ["catalog:read"])),
    responses((status = 200, description = "The asset type", body = Data<AssetTypeView>), GetErrors))]
pub async fn get_asset_type(request: UnverifiedRequest) -> Answer {
    let (_, found) =
        request.enter(Scope::CatalogRead, async |store| present(store.get::<AssetType>(request.id()?).await?)).await?;
    response::record(found.version, AssetTypeView::from(found))
}

/// Creates an asset type.
#[utoipa::path(post, path = "/catalog/asset-types", tag = "catalog", request_body = NewAssetType, security(("api_key" = ["catalog:write"])),
    responses((status = 201, description = "The new asset type", body = Data<AssetTypeView>), PostErrors))]
pub async fn create_asset_type(request: UnverifiedRequest) -> Answer {
    let (caller, body) = request.enter(Scope::CatalogWrite, async |_| request.body::<NewAssetType>()).await?;
    let id = caller.store.new_id(caller.context.at)?;
    let reply = |stored: &Stored<AssetType>| response::created("catalog/asset-types", id, AssetTypeView::from(stored.clone()));
    let value = AssetType {
        id,
        name: body.name,
        code: body.code,
        kind: body.kind,
        custom_fields_schema: body.custom_fields_schema.or(None),
    };
    caller.create(value, reply).await
}

/// Changes an asset type: the fields that are sent.
#[utoipa::path(patch, path = "/catalog/asset-types/{id}", tag = "catalog", params(("id" = AssetTypeId, Path, description = "The asset type")),
    request_body = AssetTypePatch, security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The asset type as it is now", body = Data<AssetTypeView>), PatchErrors))]
pub async fn update_asset_type(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let id = request.id()?;
        let change: AssetTypeChange = request.body::<AssetTypePatch>()?.into();
        Ok((change, present(store.get::<AssetType>(id).await?)?))
    };
    let (caller, (change, found)) = request.enter(Scope::CatalogWrite, read).await?;
    let decide = |old: &AssetType| Ok((old.changed(&change), false));
    let stored = caller.update(found, decide).await?;
    response::record(stored.version, AssetTypeView::from(stored))
}

/// Deletes an asset type that nothing points to; answers it as it was.
#[utoipa::path(delete, path = "/catalog/asset-types/{id}", tag = "catalog", params(("id" = AssetTypeId, Path, description = "The asset type")),
    security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The asset type as it was", body = Data<AssetTypeView>), DeleteErrors))]
pub async fn delete_asset_type(request: UnverifiedRequest) -> Answer {
    let (caller, found) =
        request.enter(Scope::CatalogWrite, async |store| present(store.get::<AssetType>(request.id()?).await?)).await?;
    response::data(AssetTypeView::from(caller.delete(found, |_| Ok(())).await?))
}
