//! The endpoint for statistics.

use crate::handlers::{Depth, StatsQuery};
use serde::Serialize;
use shared::auth::Caller;
use shared::auth::caller::AssetsRead;
use shared::domain::assets::stats::{AssetStats, Groups};
use shared::domain::keys::api_key::Scope;
use shared::domain::processes::stats::InstanceStats;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::tenants::time_zone::LocalClock;
use shared::domain::values::field_error::FieldError;
use shared::http::openapi::{InputErrors, either};
use shared::http::requests::params::Query;
use shared::http::responses::{ApiError, Json};
use shared::store::{AssetFilter, GroupBy};
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// Counts of assets and process instances.
#[derive(Debug, Serialize, ToSchema)]
pub struct Stats {
    /// Counts of the matching assets.
    assets: AssetStats,
    /// Counts of all process instances.
    instances: InstanceStats,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum StatsOrGroups {
    Stats(Box<Stats>),
    Groups(Groups),
}

impl PartialSchema for StatsOrGroups {
    fn schema() -> RefOr<Schema> {
        either::<Stats, Groups>("`assets` and `instances` or, with `group_by`, `groups` and `rest`.").into()
    }
}

impl ToSchema for StatsOrGroups {
    fn name() -> Cow<'static, str> {
        "Stats".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Stats::schemas(schemas);
        Groups::schemas(schemas);
    }
}

/// Statistics or groups.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatsResponse)]
pub struct StatsResponse {
    data: StatsOrGroups,
    /// Only with a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = StatsMeta, required = false)]
    meta: Option<StatsMeta>,
}

/// Why there are no assets, or no values to group by.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsMeta {
    /// A sentence with a location, a custom field, a manufacturer or a type code of the request that no asset has, and the nearest
    /// ones.
    hint: String,
}

impl StatsResponse {
    fn new(data: StatsOrGroups, hint: Option<String>) -> Json<Self> {
        Json(Self { data, meta: hint.map(|hint| StatsMeta { hint }) })
    }
}

/// Get statistics
///
/// Counts the matching assets, and all process instances. With `group_by`, returns groups of assets instead: the largest 1,000,
/// largest first, and the remaining assets in `rest`. Includes every write acknowledged before the request.
#[utoipa::path(get, path = "/stats", tag = "reports", responses(InputErrors))]
pub async fn get_stats(caller: Caller<AssetsRead>, Query(query): Query<StatsQuery>) -> Result<Json<StatsResponse>, ApiError> {
    let (filter, group_by, depth) = (AssetFilter::from(query.filter), query.group_by, query.depth);
    if depth.is_some() && group_by != Some(GroupBy::Location) {
        return Err(ApiError::Invalid(vec![FieldError::parameter("depth", "can only be sent with group_by=location")]));
    }
    let store = &caller.store;
    if let Some(group_by) = group_by {
        let (groups, hint) = store.asset_groups(&filter, &group_by, Depth::get(depth)).await?;
        return Ok(StatsResponse::new(StatsOrGroups::Groups(groups), hint));
    }
    let tenant = store.get::<Tenant>(store.id());
    let ((assets, hint), mut instances, tenant) = tokio::try_join!(store.asset_stats(&filter), store.instance_stats(), tenant)?;
    let caller = caller.verified().await?;
    let zone = tenant.map(|tenant| tenant.value.time_zone).unwrap_or_default();
    let today = LocalClock::from(&zone).local(caller.context.at).date_time.date();
    if !caller.scopes.contains(&Scope::ProcessesRead) {
        instances.by_process = None;
    }
    Ok(StatsResponse::new(StatsOrGroups::Stats(Box::new(Stats { assets: assets.finish(today), instances })), hint))
}
