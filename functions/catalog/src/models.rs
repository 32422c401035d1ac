//! Models (contract 5).

use serde::Serialize;
use shared::auth::{UnverifiedRequest, missing};
use shared::domain::catalog::{AssetType, Manufacturer, Model, ModelChange};
use shared::domain::field_error::FieldError;
use shared::domain::id::{AssetTypeId, ManufacturerId, ModelId};
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::text::{Name, Notes, SearchText};
use shared::domain::time::Timestamp;
use shared::http::error::ApiError;
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::params::{Limit, PageNumber};
use shared::http::response::{self, Data, List, present};
use shared::http::{Answer, params};
use shared::store::{BatchGet, BatchResult, ModelFilter, TenantStore};
use utoipa::ToSchema;

shared::query! {
    /// Which models to list.
    pub struct ModelQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
        /// Search by name; every word must occur.
        q: SearchText as SearchText,
        /// Filter by manufacturer.
        manufacturer_id: ManufacturerId as ManufacturerId,
        /// Filter by asset type.
        asset_type_id: AssetTypeId as AssetTypeId,
    }
}

impl From<ModelQuery> for ModelFilter {
    fn from(query: ModelQuery) -> Self {
        let ModelQuery { q, manufacturer_id, asset_type_id, .. } = query;
        Self { q: q.map(String::from), manufacturer_id, asset_type_id }
    }
}

shared::body! {
    /// What a new model is made from.
    pub struct NewModel {
        /// Such as Latitude 7450.
        required name: Name,
        /// Who makes it.
        required manufacturer_id: ManufacturerId,
        /// What it is.
        required asset_type_id: AssetTypeId,
        /// For your own eyes.
        nullable notes: Notes,
    }
    read_only: super::READ_ONLY
}

shared::body! {
    /// The fields of a model to change. One that assets use keeps its manufacturer and type.
    pub struct ModelPatch {
        /// Such as Latitude 7450.
        optional name: Name,
        /// Who makes it.
        optional manufacturer_id: ManufacturerId,
        /// What it is.
        optional asset_type_id: AssetTypeId,
        /// For your own eyes.
        nullable notes: Notes,
    }
    read_only: super::READ_ONLY
}

impl From<ModelPatch> for ModelChange {
    fn from(patch: ModelPatch) -> Self {
        let ModelPatch { name, manufacturer_id, asset_type_id, notes } = patch;
        Self { name, manufacturer_id, asset_type_id, notes }
    }
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelView {
    /// Identifier.
    id: ModelId,
    /// Such as Latitude 7450.
    name: Name,
    /// Who makes it.
    manufacturer_id: ManufacturerId,
    /// What it is.
    asset_type_id: AssetTypeId,
    /// For your own eyes.
    #[schema(required)]
    notes: Option<Notes>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl From<Stored<Model>> for ModelView {
    fn from(stored: Stored<Model>) -> Self {
        let Model { id, name, manufacturer_id, asset_type_id, notes } = stored.value;
        let Stored { created_at, updated_at, .. } = stored;
        Self { id, name, manufacturer_id, asset_type_id, notes, created_at, updated_at }
    }
}

/// What a body points to, wanted in one batch.
fn wanted(store: &TenantStore, maker: Option<ManufacturerId>, asset_type: Option<AssetTypeId>) -> BatchGet {
    BatchGet::new().with::<Manufacturer>(store, maker).with::<AssetType>(store, asset_type)
}

/// Refuses what a body points to and the batch did not find, together with the `errors` that are known already.
fn check(
    mut errors: Vec<FieldError>,
    store: &TenantStore,
    batch: &BatchResult,
    maker: Option<ManufacturerId>,
    asset_type: Option<AssetTypeId>,
) -> Result<(), ApiError> {
    if maker.is_some() && batch.get::<Manufacturer>(store, maker)?.is_none() {
        errors.push(missing("manufacturer_id"));
    }
    if asset_type.is_some() && batch.get::<AssetType>(store, asset_type)?.is_none() {
        errors.push(missing("asset_type_id"));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(errors)) }
}

/// Lists models, newest first.
#[utoipa::path(get, path = "/catalog/models", tag = "catalog", params(ModelQuery), security(("api_key" = ["catalog:read"])),
    responses((status = 200, description = "A page of models", body = List<ModelView>), ListErrors))]
pub async fn list_models(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let query: ModelQuery = request.query()?;
        let page = params::page(query.page, query.limit);
        Ok(store.list_models(&query.into(), page).await?)
    };
    let (_, listed) = request.enter_list(Scope::CatalogRead, read).await?;
    response::list(listed, ModelView::from)
}

/// Gets one model.
#[utoipa::path(get, path = "/catalog/models/{id}", tag = "catalog", params(("id" = ModelId, Path, description = "The model")),
    security(("api_key" = ["catalog:read"])),
    responses((status = 200, description = "The model", body = Data<ModelView>), GetErrors))]
pub async fn get_model(request: UnverifiedRequest) -> Answer {
    let (_, found) = request.enter(Scope::CatalogRead, async |store| present(store.get::<Model>(request.id()?).await?)).await?;
    response::record(found.version, ModelView::from(found))
}

/// Creates a model.
#[utoipa::path(post, path = "/catalog/models", tag = "catalog", request_body = NewModel, security(("api_key" = ["catalog:write"])),
    responses((status = 201, description = "The new model", body = Data<ModelView>), PostErrors))]
pub async fn create_model(request: UnverifiedRequest) -> Answer {
    let (caller, body) = request
        .enter(Scope::CatalogWrite, async |store| {
            let (body, errors) = request.body_and_errors::<NewModel>()?;
            let (maker, asset_type) = (Some(body.manufacturer_id), Some(body.asset_type_id));
            let batch = store.batch(wanted(&store, maker, asset_type)).await?;
            check(errors, &store, &batch, maker, asset_type)?;
            Ok(body)
        })
        .await?;
    let id = caller.store.new_id(caller.context.at)?;
    let reply = |stored: &Stored<Model>| response::created("catalog/models", id, ModelView::from(stored.clone()));
    let value = Model {
        id,
        name: body.name,
        manufacturer_id: body.manufacturer_id,
        asset_type_id: body.asset_type_id,
        notes: body.notes.or(None),
    };
    caller.create(value, reply).await
}

/// Changes a model: the fields that are sent.
#[utoipa::path(patch, path = "/catalog/models/{id}", tag = "catalog", params(("id" = ModelId, Path, description = "The model")),
    request_body = ModelPatch, security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The model as it is now", body = Data<ModelView>), PatchErrors))]
pub async fn update_model(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let id = request.id()?;
        let (body, errors) = request.body_and_errors::<ModelPatch>()?;
        let change = ModelChange::from(body);
        let (maker, asset_type) = (change.manufacturer_id, change.asset_type_id);
        let batch = store.batch(wanted(&store, maker, asset_type).with::<Model>(&store, Some(id))).await?;
        let found = present(batch.get::<Model>(&store, Some(id))?)?;
        check(errors, &store, &batch, maker, asset_type)?;
        Ok((change, found))
    };
    let (caller, (change, found)) = request.enter(Scope::CatalogWrite, read).await?;
    let decide = |old: &Model| {
        let next = old.changed(&change);
        let unused = old.is_another_product(&next);
        Ok((next, unused))
    };
    let stored = caller.update(found, decide).await?;
    response::record(stored.version, ModelView::from(stored))
}

/// Deletes a model that nothing points to; answers it as it was.
#[utoipa::path(delete, path = "/catalog/models/{id}", tag = "catalog", params(("id" = ModelId, Path, description = "The model")),
    security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The model as it was", body = Data<ModelView>), DeleteErrors))]
pub async fn delete_model(request: UnverifiedRequest) -> Answer {
    let (caller, found) =
        request.enter(Scope::CatalogWrite, async |store| present(store.get::<Model>(request.id()?).await?)).await?;
    response::data(ModelView::from(caller.delete(found, |_| Ok(())).await?))
}
