//! The endpoint for an asset's history.

use shared::auth::Caller;
use shared::auth::caller::AssetsRead;
use shared::domain::assets::asset::Asset;
use shared::domain::values::id::AssetId;
use shared::http::openapi::ResourceErrors;
use shared::http::requests::params::{Path, Query};
use shared::http::responses::{ApiError, History, HistoryQuery, Json, read_history};

/// List an asset's history
///
/// Newest first. Also works for deleted assets.
#[utoipa::path(get, path = "/assets/{id}/history", tag = "assets", responses(ResourceErrors))]
pub async fn get_asset_history(
    caller: Caller<AssetsRead>,
    Query(query): Query<HistoryQuery>,
    Path(id): Path<AssetId>,
) -> Result<Json<History>, ApiError> {
    Ok(Json(read_history::<Asset>(&caller.store, id, query).await?))
}
