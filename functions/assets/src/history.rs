//! The endpoint of an asset's history.

use shared::auth::UnverifiedRequest;
use shared::domain::assets::asset::Asset;
use shared::domain::keys::scope::Scope;
use shared::domain::values::id::AssetId;
use shared::http::error::ApiError;
use shared::http::openapi::ResourceErrors;
use shared::http::requests::extract::{PathId, QueryParams};
use shared::http::responses::Json;
use shared::http::responses::history::{self, History, HistoryQuery};

/// List an asset's history
///
/// Newest first. Also works for deleted assets.
#[utoipa::path(get, path = "/assets/{id}/history", tag = "assets", security(("api_key" = ["assets:read"])), responses(ResourceErrors))]
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
