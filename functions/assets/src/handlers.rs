//! The endpoints of assets.

use crate::commands::{self, AssetInputs};
use crate::wire::{AssetPatch, AssetQuery, AssetView, Deleted, NewAsset};
use shared::auth::UnverifiedRequest;
use shared::domain::asset::Asset;
use shared::domain::id::AssetId;
use shared::domain::scope::Scope;
use shared::http::history::{self, History};
use shared::http::openapi::{DeleteErrors, GetErrors, ListErrors, PatchErrors, PostErrors};
use shared::http::response::{self, Data, List, present};
use shared::http::{Answer, params};

/// Lists assets.
///
/// Newest first, unless `sort` says otherwise. A list right after a write shows it.
#[utoipa::path(get, path = "/assets", tag = "assets", params(AssetQuery), security(("api_key" = ["assets:read"])),
    responses((status = 200, description = "A page of assets", body = List<AssetView>), ListErrors))]
pub async fn list_assets(request: UnverifiedRequest) -> Answer {
    let (_, listed) = request
        .enter_list(Scope::AssetsRead, async |store| {
            let query: AssetQuery = request.query()?;
            let page = params::page(query.page, query.limit);
            Ok(store.list_assets(&query.into(), page).await?)
        })
        .await?;
    response::list(listed, |(asset, names)| AssetView::new(asset, names))
}

/// Creates an asset.
///
/// Its tag comes from the tenant's template and is never given twice.
#[utoipa::path(post, path = "/assets", tag = "assets", request_body = NewAsset, security(("api_key" = ["assets:write"])),
    responses((status = 201, description = "The new asset", body = Data<AssetView>), PostErrors))]
pub async fn create_asset(request: UnverifiedRequest) -> Answer {
    let (caller, (name, change, known)) = request
        .enter(Scope::AssetsWrite, async |store| {
            let (body, errors) = request.body_and_errors::<NewAsset>()?;
            let (name, change) = body.into_change(errors);
            let known = AssetInputs::read(&store, None, &change).await?;
            Ok((name, change, known))
        })
        .await?;
    commands::create(&caller, known, name, &change).await
}

/// Gets one asset.
#[utoipa::path(get, path = "/assets/{id}", tag = "assets", params(("id" = AssetId, Path, description = "The asset")),
    security(("api_key" = ["assets:read"])),
    responses((status = 200, description = "The asset", body = Data<AssetView>), GetErrors))]
pub async fn get_asset(request: UnverifiedRequest) -> Answer {
    let (caller, asset) =
        request.enter(Scope::AssetsRead, async |store| present(store.get::<Asset>(request.id()?).await?)).await?;
    response::record(asset.version, commands::view(&caller.store, asset).await?)
}

/// Changes an asset.
///
/// Only the fields that are sent change; null clears one that can be empty.
#[utoipa::path(patch, path = "/assets/{id}", tag = "assets", params(("id" = AssetId, Path, description = "The asset")),
    request_body = AssetPatch, security(("api_key" = ["assets:write"])),
    responses((status = 200, description = "The asset as it is now", body = Data<AssetView>), PatchErrors))]
pub async fn update_asset(request: UnverifiedRequest) -> Answer {
    let (caller, (id, change, known)) = request
        .enter(Scope::AssetsWrite, async |store| {
            let id: AssetId = request.id()?;
            let (body, errors) = request.body_and_errors::<AssetPatch>()?;
            let change = body.into_change(errors);
            let known = AssetInputs::read(&store, Some(id), &change).await?;
            Ok((id, change, known))
        })
        .await?;
    let asset = commands::update(&caller, id, known, &change).await?;
    response::record(asset.version, commands::view(&caller.store, asset).await?)
}

/// Removes an asset for good.
///
/// Its history stays. Setting the status to `scrapped` is the recommended alternative.
#[utoipa::path(delete, path = "/assets/{id}", tag = "assets", params(("id" = AssetId, Path, description = "The asset")),
    security(("api_key" = ["assets:write"])),
    responses((status = 200, description = "It is gone", body = Deleted), DeleteErrors))]
pub async fn delete_asset(request: UnverifiedRequest) -> Answer {
    let (caller, asset) =
        request.enter(Scope::AssetsWrite, async |store| present(store.get::<Asset>(request.id()?).await?)).await?;
    caller.delete(asset, commands::free).await?;
    response::json(&Deleted { message: "Asset deleted." })
}

/// Tells every change of an asset, newest first; of a deleted one, too.
#[utoipa::path(get, path = "/assets/{id}/history", tag = "assets",
    params(("id" = AssetId, Path, description = "The asset"), history::HistoryQuery), security(("api_key" = ["assets:read"])),
    responses((status = 200, description = "A page of changes", body = History), GetErrors))]
pub async fn get_asset_history(request: UnverifiedRequest) -> Answer {
    let read = async |store| history::read::<Asset>(&store, request.id()?, request.query()?).await;
    let (_, told) = request.enter_list(Scope::AssetsRead, read).await?;
    history::answer(&told)
}
