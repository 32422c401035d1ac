//! Manufacturers (contract 5).

use super::CatalogQuery;
use serde::Serialize;
use shared::auth::UnverifiedRequest;
use shared::domain::catalog::{Manufacturer, ManufacturerChange, Website};
use shared::domain::id::ManufacturerId;
use shared::domain::record::Stored;
use shared::domain::scope::Scope;
use shared::domain::text::{Name, Notes};
use shared::domain::time::Timestamp;
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::response::{self, Data, List, present};
use shared::http::{Answer, params};
use shared::store::TenantStore;
use utoipa::ToSchema;

shared::body! {
    /// What a new manufacturer is made from.
    pub struct NewManufacturer {
        /// Unique, without regard to case.
        required name: Name,
        /// Where to find them.
        nullable website: Website,
        /// For your own eyes.
        nullable notes: Notes,
    }
    read_only: super::READ_ONLY
}

shared::body! {
    /// The fields of a manufacturer to change.
    pub struct ManufacturerPatch {
        /// Unique, without regard to case.
        optional name: Name,
        /// Where to find them.
        nullable website: Website,
        /// For your own eyes.
        nullable notes: Notes,
    }
    read_only: super::READ_ONLY
}

impl From<ManufacturerPatch> for ManufacturerChange {
    fn from(patch: ManufacturerPatch) -> Self {
        let ManufacturerPatch { name, website, notes } = patch;
        Self { name, website, notes }
    }
}

/// A manufacturer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ManufacturerView {
    /// Identifier.
    id: ManufacturerId,
    /// What they are called.
    name: Name,
    /// Where to find them.
    #[schema(required)]
    website: Option<Website>,
    /// For your own eyes.
    #[schema(required)]
    notes: Option<Notes>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl From<Stored<Manufacturer>> for ManufacturerView {
    fn from(stored: Stored<Manufacturer>) -> Self {
        let Manufacturer { id, name, website, notes } = stored.value;
        Self { id, name, website, notes, created_at: stored.created_at, updated_at: stored.updated_at }
    }
}

/// Lists manufacturers, newest first.
#[utoipa::path(get, path = "/catalog/manufacturers", tag = "catalog", params(CatalogQuery), security(("api_key" = ["catalog:read"])),
    responses((status = 200, description = "A page of manufacturers", body = List<ManufacturerView>), ListErrors))]
pub async fn list_manufacturers(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let query: CatalogQuery = request.query()?;
        let page = params::page(query.page, query.limit);
        Ok(store.list_manufacturers(query.q.as_deref(), page).await?)
    };
    let (_, listed) = request.enter_list(Scope::CatalogRead, read).await?;
    response::list(listed, ManufacturerView::from)
}

/// Gets one manufacturer.
#[utoipa::path(get, path = "/catalog/manufacturers/{id}", tag = "catalog", params(("id" = ManufacturerId, Path, description = "The manufacturer")),
    security(("api_key" = ["catalog:read"])),
    responses((status = 200, description = "The manufacturer", body = Data<ManufacturerView>), GetErrors))]
pub async fn get_manufacturer(request: UnverifiedRequest) -> Answer {
    let (_, found) =
        request.enter(Scope::CatalogRead, async |store| present(store.get::<Manufacturer>(request.id()?).await?)).await?;
    response::record(found.version, ManufacturerView::from(found))
}

/// Creates a manufacturer.
#[utoipa::path(post, path = "/catalog/manufacturers", tag = "catalog", request_body = NewManufacturer, security(("api_key" = ["catalog:write"])),
    responses((status = 201, description = "The new manufacturer", body = Data<ManufacturerView>), PostErrors))]
pub async fn create_manufacturer(request: UnverifiedRequest) -> Answer {
    let (caller, body) = request.enter(Scope::CatalogWrite, async |_| request.body::<NewManufacturer>()).await?;
    let id = caller.store.new_id(caller.context.at)?;
    let reply =
        |stored: &Stored<Manufacturer>| response::created("catalog/manufacturers", id, ManufacturerView::from(stored.clone()));
    let value = Manufacturer { id, name: body.name, website: body.website.or(None), notes: body.notes.or(None) };
    caller.create(value, reply).await
}

/// Changes a manufacturer: the fields that are sent.
#[utoipa::path(patch, path = "/catalog/manufacturers/{id}", tag = "catalog", params(("id" = ManufacturerId, Path, description = "The manufacturer")),
    request_body = ManufacturerPatch, security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The manufacturer as it is now", body = Data<ManufacturerView>), PatchErrors))]
pub async fn update_manufacturer(request: UnverifiedRequest) -> Answer {
    let read = async |store: TenantStore| {
        let id = request.id()?;
        let change: ManufacturerChange = request.body::<ManufacturerPatch>()?.into();
        Ok((change, present(store.get::<Manufacturer>(id).await?)?))
    };
    let (caller, (change, found)) = request.enter(Scope::CatalogWrite, read).await?;
    let decide = |old: &Manufacturer| Ok((old.changed(&change), false));
    let stored = caller.update(found, decide).await?;
    response::record(stored.version, ManufacturerView::from(stored))
}

/// Deletes a manufacturer that nothing points to; answers it as it was.
#[utoipa::path(delete, path = "/catalog/manufacturers/{id}", tag = "catalog", params(("id" = ManufacturerId, Path, description = "The manufacturer")),
    security(("api_key" = ["catalog:write"])),
    responses((status = 200, description = "The manufacturer as it was", body = Data<ManufacturerView>), DeleteErrors))]
pub async fn delete_manufacturer(request: UnverifiedRequest) -> Answer {
    let (caller, found) =
        request.enter(Scope::CatalogWrite, async |store| present(store.get::<Manufacturer>(request.id()?).await?)).await?;
    response::data(ManufacturerView::from(caller.delete(found, |_| Ok(())).await?))
}
