//! The endpoints of assets.

use crate::changes;
use crate::records::{self, ExpandedUsers};
use crate::wire::{AssetPatch, AssetQuery, AssetView, DELETED, DeletedAsset, NewAsset, OneAssetQuery};
use shared::auth::Caller;
use shared::auth::caller::{AssetsRead, AssetsWrite};
use shared::domain::assets::asset::Asset;
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::AssetId;
use shared::http::error::ApiError;
use shared::http::openapi::{AssetConflict, AssetDeletionConflict, ChangeErrors, DuplicateConflict, InputErrors, ResourceErrors};
use shared::http::requests::body::JsonBody;
use shared::http::requests::params;
use shared::http::requests::params::{Path, Query, Tag};
use shared::http::responses::{Created, Json, Versioned, or_not_found};
use shared::store::{AssetFilter, Page};

/// List assets
///
/// Newest first by default. A list includes every write acknowledged before the request.
#[utoipa::path(get, path = "/assets", tag = "assets", responses(InputErrors))]
pub async fn list_assets(caller: Caller<AssetsRead>, Query(query): Query<AssetQuery>) -> Result<Page<AssetView>, ApiError> {
    let (page, expand) = (params::page(query.page, query.limit), query.expand);
    let filter = AssetFilter { sort: query.sort.unwrap_or_default(), ..query.filter.into() };
    let mut page = caller.store.list_assets(&filter, page).await?.map(|(asset, names)| AssetView::new(asset, names));
    let users = ExpandedUsers::read(&caller, page.items.iter().filter_map(|asset| asset.assigned_to), expand).await?;
    for asset in &mut page.items {
        asset.assigned_user = users.of(asset.assigned_to)?;
    }
    Ok(page)
}

/// Create an asset
///
/// Without an `asset_tag` in the body, the service generates a tag from the tenant's template.
#[utoipa::path(post, path = "/assets", tag = "assets", responses(InputErrors, DuplicateConflict))]
pub async fn create_asset(caller: Caller<AssetsWrite>, body: JsonBody<NewAsset>) -> Result<Created<AssetView>, ApiError> {
    let (body, errors) = body.parse_with_errors(&caller)?;
    Ok(changes::create(&caller, body, errors).await?.created())
}

/// Get an asset
///
/// With `as_of`, as it was at that time, even if it has been deleted since.
#[utoipa::path(get, path = "/assets/{id}", tag = "assets", responses(ResourceErrors))]
pub async fn get_asset(
    caller: Caller<AssetsRead>,
    Query(query): Query<OneAssetQuery>,
    Path(id): Path<AssetId>,
) -> Result<Versioned<AssetView>, ApiError> {
    show(&caller, id, query).await
}

/// Get the asset with a tag
///
/// Looks up an asset by its label. Tags are case-insensitive. A browser without a key is redirected to the inventory page.
#[utoipa::path(get, path = "/assets/by-tag/{tag}", tag = "assets", responses(ResourceErrors, (status = 302, description = "For `Accept: text/html` without a key: `Location` is the asset on the inventory page.")))]
pub async fn get_asset_by_tag(
    caller: Caller<AssetsRead>,
    Query(query): Query<OneAssetQuery>,
    Path(tag): Path<Tag>,
) -> Result<Versioned<AssetView>, ApiError> {
    let owners = caller.store.owners::<Asset>(&[Asset::unique_tag(&tag)]).await?;
    show(&caller, or_not_found(owners.into_values().next())?, query).await
}

/// An asset, now or at an earlier time.
async fn show(caller: &Caller<AssetsRead>, id: AssetId, query: OneAssetQuery) -> Result<Versioned<AssetView>, ApiError> {
    let store = &caller.store;
    let Some(at) = query.as_of else {
        let asset = or_not_found(store.get::<Asset>(id).await?)?;
        let users = ExpandedUsers::read(caller, asset.value.assigned_to, query.expand);
        let (mut view, users) = tokio::try_join!(records::view(store, asset), users)?;
        view.data.assigned_user = users.of(view.data.assigned_to)?;
        return Ok(view);
    };
    params::check_past("as_of", at, store.store().now())?;
    if query.expand.is_some() {
        let detail = "can't be sent with as_of: it shows users as they are now";
        return Err(ApiError::Invalid(vec![FieldError::parameter("expand", detail)]));
    }
    let (asset, names) = or_not_found(store.asset_as_of(id, at).await?)?;
    Ok(Versioned { version: asset.tag_version(), data: AssetView::new(asset, names) })
}

/// Update an asset
///
/// Changes the given fields. Null clears a nullable field.
#[utoipa::path(patch, path = "/assets/{id}", tag = "assets", responses(ChangeErrors, AssetConflict))]
pub async fn update_asset(
    caller: Caller<AssetsWrite>,
    Path(id): Path<AssetId>,
    body: JsonBody<AssetPatch>,
) -> Result<Versioned<AssetView>, ApiError> {
    let (body, errors) = body.parse_with_errors(&caller)?;
    let changed = changes::change(&caller, id, body, errors).await?;
    records::view(&caller.store, changed).await
}

/// Delete an asset
///
/// Removes the asset permanently; its history remains readable. Consider setting the status to `scrapped` instead.
#[utoipa::path(delete, path = "/assets/{id}", tag = "assets", responses(ChangeErrors, AssetDeletionConflict))]
pub async fn delete_asset(caller: Caller<AssetsWrite>, Path(id): Path<AssetId>) -> Result<Json<DeletedAsset>, ApiError> {
    changes::delete(&caller, id).await?;
    Ok(Json(DELETED))
}
