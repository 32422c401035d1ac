//! The endpoints of manufacturers.

use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::{CatalogRead, CatalogWrite};
use shared::domain::catalog::{Manufacturer, ManufacturerChange, Website};
use shared::domain::record::Stored;
use shared::domain::values::id::ManufacturerId;
use shared::domain::values::text::{Name, Notes, SearchText};
use shared::domain::values::time::Timestamp;
use shared::http::openapi::{ChangeErrors, DuplicateConflict, InUseConflict, InputErrors, ResourceErrors, UniqueConflict};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params::{self, Limit, PageNumber, Path, Query};
use shared::http::responses::{ApiError, Created, Data, Versioned};
use shared::store::{ManufacturerFilter, Page};
use utoipa::ToSchema;

shared::query! {
    /// Manufacturers to list.
    pub struct ManufacturerQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Search text. Every word must occur in the name.
        q: SearchText as SearchText,
        /// Filter by name (exact match, case-insensitive).
        name: Name as Name,
    }
}

impl From<ManufacturerQuery> for ManufacturerFilter {
    fn from(query: ManufacturerQuery) -> Self {
        Self { q: query.q.map(String::from), name: query.name }
    }
}

shared::body! {
    /// A new manufacturer.
    pub struct NewManufacturer {
        /// Name, case-insensitively unique in the tenant.
        required name: Name,
        /// Website.
        nullable website: Website,
        /// Internal notes.
        nullable notes: Notes,
    }
    read_only: super::READ_ONLY
}

shared::body! {
    /// Fields to change in a manufacturer.
    pub struct ManufacturerPatch {
        /// Name, case-insensitively unique in the tenant.
        optional name: Name,
        /// Website.
        nullable website: Website,
        /// Internal notes.
        nullable notes: Notes,
    }
    unchanged: super::READ_ONLY, into: ManufacturerChange
}

/// A manufacturer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Manufacturer)]
pub struct ManufacturerView {
    /// Identifier.
    id: ManufacturerId,
    /// Name.
    name: Name,
    /// Website.
    #[schema(required)]
    website: Option<Website>,
    /// Internal notes.
    #[schema(required)]
    notes: Option<Notes>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change.
    updated_at: Timestamp,
}

impl From<Stored<Manufacturer>> for ManufacturerView {
    fn from(stored: Stored<Manufacturer>) -> Self {
        let Manufacturer { id, name, website, notes } = stored.value;
        Self { id, name, website, notes, created_at: stored.created_at, updated_at: stored.updated_at }
    }
}

/// List manufacturers
///
/// Newest first.
#[utoipa::path(get, path = "/catalog/manufacturers", tag = "catalog", responses(InputErrors))]
pub async fn list_manufacturers(
    caller: Caller<CatalogRead>,
    Query(query): Query<ManufacturerQuery>,
) -> Result<Page<ManufacturerView>, ApiError> {
    let page = params::page(query.page, query.limit);
    Ok(caller.store.list_manufacturers(&query.into(), page).await?.map(ManufacturerView::from))
}

/// Get a manufacturer
///
/// The response has an `ETag`, for changes with `If-Match`.
#[utoipa::path(get, path = "/catalog/manufacturers/{id}", tag = "catalog", responses(ResourceErrors))]
pub async fn get_manufacturer(
    caller: Caller<CatalogRead>,
    Path(id): Path<ManufacturerId>,
) -> Result<Versioned<ManufacturerView>, ApiError> {
    caller.get::<Manufacturer, _>(id).await
}

/// Create a manufacturer
///
/// Names are case-insensitively unique.
#[utoipa::path(post, path = "/catalog/manufacturers", tag = "catalog", responses(InputErrors, DuplicateConflict))]
pub async fn create_manufacturer(
    caller: Caller<CatalogWrite>,
    body: JsonBody<NewManufacturer>,
) -> Result<Created<ManufacturerView>, ApiError> {
    let body = body.parse(&caller)?;
    let caller = caller.verified().await?;
    let id = caller.store.new_id(caller.context.at)?;
    let value = Manufacturer { id, name: body.name, website: body.website.or(None), notes: body.notes.or(None) };
    caller.create(value, |stored| Created::of("catalog/manufacturers", stored)).await
}

/// Update a manufacturer
///
/// Changes the given fields.
#[utoipa::path(patch, path = "/catalog/manufacturers/{id}", tag = "catalog", responses(ChangeErrors, UniqueConflict))]
pub async fn update_manufacturer(
    caller: Caller<CatalogWrite>,
    Path(id): Path<ManufacturerId>,
    body: JsonBody<ManufacturerPatch>,
) -> Result<Versioned<ManufacturerView>, ApiError> {
    let (old, body) = caller.patch::<_, ManufacturerView, _>(id, body, |_, _| None).await?;
    let change = ManufacturerChange::from(body);
    Ok(caller.verified().await?.update(old, |old| Ok(old.changed(&change))).await?.into())
}

/// Delete a manufacturer
///
/// Refused while models use the manufacturer. Returns the manufacturer's last state.
#[utoipa::path(delete, path = "/catalog/manufacturers/{id}", tag = "catalog", responses(ChangeErrors, InUseConflict))]
pub async fn delete_manufacturer(
    caller: Caller<CatalogWrite>,
    Path(id): Path<ManufacturerId>,
) -> Result<Data<ManufacturerView>, ApiError> {
    caller.delete::<Manufacturer, _>(id, |_| Ok(())).await
}
