//! The endpoints of assets.

use crate::wire::{AssetPatch, AssetQuery, AssetView, Deleted, NewAsset};
use crate::work::{self, Known};
use shared::auth::Gate;
use shared::domain::asset::Asset;
use shared::domain::id::AssetId;
use shared::domain::scope::Scope;
use shared::http::history::{self, History};
use shared::http::openapi::{DeleteRefusals, GetRefusals, ListRefusals, PatchRefusals, PostRefusals};
use shared::http::reply::{self, Data, List, present};
use shared::http::{Answer, params};

/// Lists assets.
///
/// Newest first, unless `sort` says otherwise. A list right after a write shows it.
#[utoipa::path(get, path = "/assets", tag = "assets", params(AssetQuery), security(("api_key" = ["assets:read"])),
    responses((status = 200, description = "A page of assets", body = List<AssetView>), ListRefusals))]
pub async fn list_assets(gate: Gate) -> Answer {
    let (_, listed) = gate
        .enter_list(Scope::AssetsRead, async |store| {
            let query: AssetQuery = gate.query()?;
            let page = params::page(query.page, query.limit);
            Ok(store.list_assets(&query.into(), page).await?)
        })
        .await?;
    reply::list(listed, |(asset, names)| AssetView::new(asset, names))
}

/// Creates an asset.
///
/// Its tag comes from the tenant's template and is never given twice.
#[utoipa::path(post, path = "/assets", tag = "assets", request_body = NewAsset, security(("api_key" = ["assets:write"])),
    responses((status = 201, description = "The new asset", body = Data<AssetView>), PostRefusals))]
pub async fn create_asset(gate: Gate) -> Answer {
    let (session, (name, change, known)) = gate
        .enter(Scope::AssetsWrite, async |store| {
            let (body, faults) = gate.body_and_faults::<NewAsset>()?;
            let (name, change) = body.into_change(faults);
            let known = Known::read(&store, None, &change).await?;
            Ok((name, change, known))
        })
        .await?;
    work::create(&session, known, name, &change).await
}

/// Gets one asset.
#[utoipa::path(get, path = "/assets/{id}", tag = "assets", params(("id" = AssetId, Path, description = "The asset")),
    security(("api_key" = ["assets:read"])),
    responses((status = 200, description = "The asset", body = Data<AssetView>), GetRefusals))]
pub async fn get_asset(gate: Gate) -> Answer {
    let (session, asset) = gate.enter(Scope::AssetsRead, async |store| present(store.get::<Asset>(gate.id()?).await?)).await?;
    reply::record(asset.version, work::view(&session.store, asset).await?)
}

/// Changes an asset.
///
/// Only the fields that are sent change; null clears one that can be empty.
#[utoipa::path(patch, path = "/assets/{id}", tag = "assets", params(("id" = AssetId, Path, description = "The asset")),
    request_body = AssetPatch, security(("api_key" = ["assets:write"])),
    responses((status = 200, description = "The asset as it is now", body = Data<AssetView>), PatchRefusals))]
pub async fn update_asset(gate: Gate) -> Answer {
    let (session, (id, change, known)) = gate
        .enter(Scope::AssetsWrite, async |store| {
            let id: AssetId = gate.id()?;
            let (body, faults) = gate.body_and_faults::<AssetPatch>()?;
            let change = body.into_change(faults);
            let known = Known::read(&store, Some(id), &change).await?;
            Ok((id, change, known))
        })
        .await?;
    let asset = work::update(&session, id, known, &change).await?;
    reply::record(asset.version, work::view(&session.store, asset).await?)
}

/// Removes an asset for good.
///
/// Its history stays. Setting the status to `scrapped` is the recommended alternative.
#[utoipa::path(delete, path = "/assets/{id}", tag = "assets", params(("id" = AssetId, Path, description = "The asset")),
    security(("api_key" = ["assets:write"])),
    responses((status = 200, description = "It is gone", body = Deleted), DeleteRefusals))]
pub async fn delete_asset(gate: Gate) -> Answer {
    let (session, asset) = gate.enter(Scope::AssetsWrite, async |store| present(store.get::<Asset>(gate.id()?).await?)).await?;
    session.delete(asset, work::free).await?;
    reply::json(&Deleted { message: "Asset deleted." })
}

/// Tells every change of an asset, newest first; of a deleted one, too.
#[utoipa::path(get, path = "/assets/{id}/history", tag = "assets",
    params(("id" = AssetId, Path, description = "The asset"), history::HistoryQuery), security(("api_key" = ["assets:read"])),
    responses((status = 200, description = "A page of changes", body = History), GetRefusals))]
pub async fn get_asset_history(gate: Gate) -> Answer {
    let read = async |store| history::read::<Asset>(&store, gate.id()?, gate.query()?).await;
    let (_, told) = gate.enter_list(Scope::AssetsRead, read).await?;
    history::answer(&told)
}
