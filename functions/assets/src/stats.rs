//! The endpoint of statistics.

use serde::Serialize;
use shared::auth::UnverifiedRequest;
use shared::domain::assets::stats::AssetStats;
use shared::domain::keys::scope::Scope;
use shared::domain::processes::stats::InstanceStats;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::tenants::time_zone::LocalClock;
use shared::http::error::ApiError;
use shared::http::openapi::InputErrors;
use shared::http::responses::Data;
use utoipa::ToSchema;

/// Counts of assets and process instances.
#[derive(Debug, Serialize, ToSchema)]
pub struct Stats {
    /// Counts of all assets.
    assets: AssetStats,
    /// Counts of all process instances.
    instances: InstanceStats,
}

/// Get statistics
///
/// Counts assets and process instances. Includes every write that was acknowledged before the request.
#[utoipa::path(get, path = "/stats", tag = "reports", security(("api_key" = ["assets:read"])), responses(InputErrors))]
pub async fn get_stats(request: UnverifiedRequest) -> Result<Data<Stats>, ApiError> {
    let (caller, (assets, mut instances, tenant)) = request
        .authorize_and_read(Scope::AssetsRead, async |store| {
            let tenant = store.get::<Tenant>(store.id());
            Ok(tokio::try_join!(store.asset_stats(), store.instance_stats(), tenant)?)
        })
        .await?;
    let zone = tenant.map(|tenant| tenant.value.time_zone).unwrap_or_default();
    let today = LocalClock::from(&zone).local(caller.context.at).date_time.date();
    if !caller.scopes.contains(&Scope::ProcessesRead) {
        instances.by_process = None;
    }
    Ok(Data { data: Stats { assets: assets.finish(today), instances } })
}
