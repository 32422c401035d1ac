//! The endpoints of assets.

use crate::commands::{self, AssetInputs, CreateAsset, UpdateAsset};
use crate::wire::{AssetPatch, AssetQuery, AssetView, DeletedAsset, NewAsset};
use shared::auth::{Command, UnverifiedRequest};
use shared::domain::asset::Asset;
use shared::domain::id::AssetId;
use shared::domain::scope::Scope;
use shared::http::error::ApiError;
use shared::http::extract::{JsonBody, PathId, QueryParams};
use shared::http::history::{self, History, HistoryQuery};
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::params;
use shared::http::response::{Created, Json, Versioned, found};
use shared::store::Page;

/// List assets
///
/// Newest first by default. A list includes every write that was acknowledged before the request.
#[utoipa::path(get, path = "/assets", tag = "assets", security(("api_key" = ["assets:read"])), responses(ListErrors))]
pub async fn list_assets(request: UnverifiedRequest, query: QueryParams<AssetQuery>) -> Result<Page<AssetView>, ApiError> {
    let (_, page) = request
        .authorize_with_query(Scope::AssetsRead, query, async |store, query| {
            let page = params::page(query.page, query.limit);
            Ok(store.list_assets(&query.into(), page).await?)
        })
        .await?;
    Ok(page.map(|(asset, names)| AssetView::new(asset, names)))
}

/// Create an asset
///
/// The service generates the asset tag from the tenant's template.
#[utoipa::path(post, path = "/assets", tag = "assets", security(("api_key" = ["assets:write"])), responses(PostErrors))]
pub async fn create_asset(request: UnverifiedRequest, body: JsonBody<NewAsset>) -> Result<Created<AssetView>, ApiError> {
    let (caller, (command, inputs)) = request
        .authorize(Scope::AssetsWrite, async |store| {
            let (body, errors) = body.parse_early(&store).await?;
            let (name, change) = body.into_change(errors);
            let inputs = AssetInputs::read(&store, None, &change).await?;
            Ok((CreateAsset { name, change }, inputs))
        })
        .await?;
    command.execute(&caller, inputs).await
}

/// Get an asset
#[utoipa::path(get, path = "/assets/{id}", tag = "assets", security(("api_key" = ["assets:read"])), responses(GetErrors))]
pub async fn get_asset(request: UnverifiedRequest, id: PathId<AssetId>) -> Result<Versioned<AssetView>, ApiError> {
    let (caller, asset) =
        request.authorize(Scope::AssetsRead, async |store| found(store.get::<Asset>(id.parse()?).await?)).await?;
    commands::view(&caller.store, asset).await
}

/// Update an asset
///
/// Changes the fields that are sent. Null clears a nullable field.
#[utoipa::path(patch, path = "/assets/{id}", tag = "assets", security(("api_key" = ["assets:write"])), responses(PatchErrors))]
pub async fn update_asset(
    request: UnverifiedRequest,
    id: PathId<AssetId>,
    body: JsonBody<AssetPatch>,
) -> Result<Versioned<AssetView>, ApiError> {
    let (caller, (command, inputs)) = request
        .authorize(Scope::AssetsWrite, async |store| {
            let id = id.parse()?;
            let (mut body, errors) = body.parse_early(&store).await?;
            let unchanged = std::mem::take(&mut body.unchanged);
            let mut command = UpdateAsset { id, change: body.into_change(errors) };
            let inputs = command.read(&store).await?;
            command.check_unchanged(&unchanged, &inputs, &store).await?;
            Ok((command, inputs))
        })
        .await?;
    let asset = caller.execute(&command, inputs).await?;
    commands::view(&caller.store, asset).await
}

/// Delete an asset
///
/// Removes the asset permanently; its history remains readable. Consider setting the status to `scrapped` instead.
#[utoipa::path(delete, path = "/assets/{id}", tag = "assets", security(("api_key" = ["assets:write"])), responses(DeleteErrors))]
pub async fn delete_asset(request: UnverifiedRequest, id: PathId<AssetId>) -> Result<Json<DeletedAsset>, ApiError> {
    let (caller, asset) =
        request.authorize(Scope::AssetsWrite, async |store| found(store.get::<Asset>(id.parse()?).await?)).await?;
    caller.delete(asset, commands::check_deletable).await?;
    Ok(Json(DeletedAsset { message: "Asset deleted." }))
}

/// List an asset's history
///
/// Newest first. Also works for deleted assets.
#[utoipa::path(get, path = "/assets/{id}/history", tag = "assets", security(("api_key" = ["assets:read"])), responses(GetErrors))]
pub async fn get_asset_history(
    request: UnverifiedRequest,
    id: PathId<AssetId>,
    query: QueryParams<HistoryQuery>,
) -> Result<Json<History>, ApiError> {
    let (_, history) = request
        .authorize_with_query(Scope::AssetsRead, query, async |store, query| {
            history::read::<Asset>(&store, id.parse()?, query).await
        })
        .await?;
    Ok(Json(history))
}
