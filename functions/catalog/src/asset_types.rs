//! Asset types (contract 5).

use super::CatalogQuery;
use serde::Serialize;
use serde_json::Value;
use shared::auth::Gate;
use shared::domain::catalog::{AssetKind, AssetType, AssetTypeChange, TypeCode};
use shared::domain::custom_fields::FieldsSchema;
use shared::domain::id::AssetTypeId;
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::text::Name;
use shared::domain::time::Timestamp;
use shared::http::openapi::{DeleteRefusals, GetRefusals, ListRefusals, PatchRefusals, PostRefusals};
use shared::http::reply::{self, Data, List, present};
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
    responses((status = 200, description = "A page of asset types", body = List<AssetTypeView>), ListRefusals))]
pub async fn list_asset_types(gate: Gate) -> Answer {
    let read = async |store: TenantStore| {
        let query: CatalogQuery = gate.query()?;
        let page = params::page(query.page, query.limit);
        Ok(store.list_asset_types(query.q.as_deref(), page).await?)
    };
    let (_, listed) = gate.enter_list(Scope::CatalogRead, read).await?;
    reply::list(listed, AssetTypeView::from)
}

/// Gets one asset type.
#[utoipa::path(get, path = "/catalog/asset-types/{id}", tag = "catalog", params(("id" = AssetTypeId, Path, description = "The asset type")),
    security(("api_key" = ["catalog:read"])),
    responses((status = 200, description = "The asset type", body = Data<AssetTypeView>), GetRefusals))]
pub async fn get_asset_type(gate: Gate) -> Answer {
    let (_, found) = gate.enter(Scope::CatalogRead, async |store| present(store.get::<AssetType>(gate.id()?).await?)).await?;
    reply::record(found.version, AssetTypeView::from(found))
}

/// Creates an asset type.
#[utoipa::path(post, path = "/catalog/asset-types", tag = "catalog", request_body = NewAssetType, security(("api_key" = ["catalog:write"])),
    responses((status = 201, description = "The new asset type", body = Data<AssetTypeView>), PostRefusals))]
pub async fn create_asset_type(gate: Gate) -> Answer {
    let (session, body) = gate.enter(Scope::CatalogWrite, async |_| gate.body::<NewAssetType>()).await?;
    let id = session.store.new_id(session.stamp.at)?;
    let reply = |stored: &Stored<AssetType>| reply::created("catalog/asset-types", id, AssetTypeView::from(stored.clone()));
    let value = AssetType {
        id,
        name: body.name,
        code: body.code,
        kind: body.kind,
        custom_fields_schema: body.custom_fields_schema.or(None),
    };
    session.create(value, reply).await
}

/// Changes an asset type: the fields that are sent.
#[utoipa::path(patch, path = "/catalog/asset-types/{id}", tag = "catalog", params(("id" = AssetTypeId, Path, description = "The asset type")),
    request_body = AssetTypePatch, security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The asset type as it is now", body = Data<AssetTypeView>), PatchRefusals))]
pub async fn update_asset_type(gate: Gate) -> Answer {
    let read = async |store: TenantStore| {
        let id = gate.id()?;
        let change: AssetTypeChange = gate.body::<AssetTypePatch>()?.into();
        Ok((change, present(store.get::<AssetType>(id).await?)?))
    };
    let (session, (change, found)) = gate.enter(Scope::CatalogWrite, read).await?;
    let decide = |old: &AssetType| Ok((old.changed(&change), false));
    let stored = session.update(found, decide).await?;
    reply::record(stored.version, AssetTypeView::from(stored))
}

/// Deletes an asset type that nothing points to; answers it as it was.
#[utoipa::path(delete, path = "/catalog/asset-types/{id}", tag = "catalog", params(("id" = AssetTypeId, Path, description = "The asset type")),
    security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The asset type as it was", body = Data<AssetTypeView>), DeleteRefusals))]
pub async fn delete_asset_type(gate: Gate) -> Answer {
    let (session, found) =
        gate.enter(Scope::CatalogWrite, async |store| present(store.get::<AssetType>(gate.id()?).await?)).await?;
    reply::data(AssetTypeView::from(session.delete(found, |_| Ok(())).await?))
}
