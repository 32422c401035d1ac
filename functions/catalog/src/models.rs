//! The endpoints of models.

use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::{CatalogRead, CatalogWrite};
use shared::domain::catalog::{AssetType, Manufacturer, Model, ModelChange};
use shared::domain::record::Stored;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{AssetTypeId, ManufacturerId, ModelId};
use shared::domain::values::text::{Name, Notes, SearchText};
use shared::domain::values::time::Timestamp;
use shared::http::openapi::{ChangeErrors, DuplicateConflict, InUseConflict, InputErrors, ModelConflict, ResourceErrors};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, Created, Data, Versioned, or_not_found};
use shared::request::unknown_reference;
use shared::store::{BatchGet, BatchResult, ModelFilter, Page};
use utoipa::ToSchema;

shared::query! {
    /// Models to list.
    pub struct ModelQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Search text. Every word must occur in the name.
        q: SearchText as SearchText,
        /// Filter by name (exact match, case-insensitive).
        name: Name as Name,
        /// Filter by manufacturer.
        manufacturer_id: ManufacturerId as ManufacturerId,
        /// Filter by asset type.
        asset_type_id: AssetTypeId as AssetTypeId,
    }
}

impl From<ModelQuery> for ModelFilter {
    fn from(query: ModelQuery) -> Self {
        let ModelQuery { q, name, manufacturer_id, asset_type_id, .. } = query;
        Self { q: q.map(String::from), name, manufacturer_id, asset_type_id }
    }
}

shared::body! {
    /// A new model.
    pub struct NewModel {
        /// Display name, such as `Latitude 7450`.
        required name: Name,
        /// Manufacturer.
        required manufacturer_id: ManufacturerId,
        /// Asset type.
        required asset_type_id: AssetTypeId,
        /// Internal notes.
        nullable notes: Notes,
    }
    read_only: super::READ_ONLY
}

shared::body! {
    /// Fields to change in a model. The manufacturer and type of a model in use can't change.
    pub struct ModelPatch {
        /// Display name, such as `Latitude 7450`.
        optional name: Name,
        /// Manufacturer.
        optional manufacturer_id: ManufacturerId,
        /// Asset type.
        optional asset_type_id: AssetTypeId,
        /// Internal notes.
        nullable notes: Notes,
    }
    unchanged: super::READ_ONLY, into: ModelChange
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub struct ModelView {
    /// Identifier.
    id: ModelId,
    /// Display name, such as `Latitude 7450`.
    name: Name,
    /// Manufacturer.
    manufacturer_id: ManufacturerId,
    /// Asset type.
    asset_type_id: AssetTypeId,
    /// Internal notes.
    #[schema(required)]
    notes: Option<Notes>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change.
    updated_at: Timestamp,
}

impl From<Stored<Model>> for ModelView {
    fn from(stored: Stored<Model>) -> Self {
        let Model { id, name, manufacturer_id, asset_type_id, notes } = stored.value;
        let Stored { created_at, updated_at, .. } = stored;
        Self { id, name, manufacturer_id, asset_type_id, notes, created_at, updated_at }
    }
}

#[derive(Clone, Copy)]
struct References {
    manufacturer: Option<ManufacturerId>,
    asset_type: Option<AssetTypeId>,
}

impl References {
    fn batch(self) -> BatchGet {
        BatchGet::new().with::<Manufacturer>(self.manufacturer).with::<AssetType>(self.asset_type)
    }

    /// Checks that the referenced records exist. Returns an error for each missing record, together with the body's `errors`.
    fn check(self, batch: &BatchResult, mut errors: Vec<FieldError>) -> Result<(), ApiError> {
        if self.manufacturer.is_some() && batch.get::<Manufacturer>(self.manufacturer)?.is_none() {
            errors.push(unknown_reference("manufacturer_id"));
        }
        if self.asset_type.is_some() && batch.get::<AssetType>(self.asset_type)?.is_none() {
            errors.push(unknown_reference("asset_type_id"));
        }
        if errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(errors)) }
    }
}

/// List models
///
/// Newest first.
#[utoipa::path(get, path = "/catalog/models", tag = "catalog", responses(InputErrors))]
pub async fn list_models(caller: Caller<CatalogRead>, Query(query): Query<ModelQuery>) -> Result<Page<ModelView>, ApiError> {
    let page = params::page(query.page, query.limit);
    Ok(caller.store.list_models(&query.into(), page).await?.map(ModelView::from))
}

/// Get a model
///
/// The response has an `ETag`, for changes with `If-Match`.
#[utoipa::path(get, path = "/catalog/models/{id}", tag = "catalog", responses(ResourceErrors))]
pub async fn get_model(caller: Caller<CatalogRead>, Path(id): Path<ModelId>) -> Result<Versioned<ModelView>, ApiError> {
    caller.get::<Model, _>(id).await
}

/// Create a model
///
/// A model has a manufacturer and an asset type.
#[utoipa::path(post, path = "/catalog/models", tag = "catalog", responses(InputErrors, DuplicateConflict))]
pub async fn create_model(caller: Caller<CatalogWrite>, body: JsonBody<NewModel>) -> Result<Created<ModelView>, ApiError> {
    let (body, errors) = body.parse_with_errors(&caller)?;
    let references = References { manufacturer: Some(body.manufacturer_id), asset_type: Some(body.asset_type_id) };
    references.check(&caller.store.batch_get_without_blobs(references.batch()).await?, errors)?;
    let caller = caller.verified().await?;
    let id = caller.store.new_id(caller.context.at)?;
    let NewModel { name, manufacturer_id, asset_type_id, notes } = body;
    let value = Model { id, name, manufacturer_id, asset_type_id, notes: notes.or(None) };
    caller.create(value, |stored| Created::of("catalog/models", stored)).await
}

/// Update a model
///
/// Changes the given fields. The manufacturer and type of a model in use can't change.
#[utoipa::path(patch, path = "/catalog/models/{id}", tag = "catalog", responses(ChangeErrors, ModelConflict))]
pub async fn update_model(
    caller: Caller<CatalogWrite>,
    Path(id): Path<ModelId>,
    body: JsonBody<ModelPatch>,
) -> Result<Versioned<ModelView>, ApiError> {
    let (mut body, mut errors) = body.parse_with_errors(&caller)?;
    let unchanged = std::mem::take(&mut body.unchanged);
    let change = ModelChange::from(body);
    let references = References { manufacturer: change.manufacturer_id, asset_type: change.asset_type_id };
    let batch = caller.store.batch_get_without_blobs(references.batch().with::<Model>(Some(id))).await?;
    let model = or_not_found(batch.get::<Model>(Some(id))?)?;
    caller.expect_read(&model, &unchanged).await?;
    errors.extend(unchanged.errors(&ModelView::from(model.clone()))?);
    references.check(&batch, errors)?;
    let caller = caller.verified().await?;
    let model = caller
        .change(model, |unit, old| {
            let next = old.value.changed(&change);
            let is_another_product = old.value.is_another_product(&next);
            Ok(if is_another_product { unit.update_unreferenced(old, next) } else { unit.update(old, next) }?)
        })
        .await?;
    Ok(model.into())
}

/// Delete a model
///
/// Refused while assets use the model. Returns the model's last state.
#[utoipa::path(delete, path = "/catalog/models/{id}", tag = "catalog", responses(ChangeErrors, InUseConflict))]
pub async fn delete_model(caller: Caller<CatalogWrite>, Path(id): Path<ModelId>) -> Result<Data<ModelView>, ApiError> {
    caller.delete::<Model, _>(id, |_| Ok(())).await
}
