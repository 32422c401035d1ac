//! Reports: statistics, what users have and had, labels, and what else there is to know of an asset.
//!
//! A function of its own, so that the functions that people wait for stay small.

mod labels;
mod stats;
mod user_assets;

use axum::Router;
use shared::app::App;
use utoipa::openapi::OpenApi;

mod own {
    use crate::{labels, stats, user_assets};

    shared::endpoints! {
        labels: get_asset_label, get_label_page;
        stats: get_stats;
        user_assets: list_user_assets;
    }
}

/// Returns the routes of this function.
pub fn routes() -> Router<App> {
    assets::details::routes().merge(own::routes())
}

/// Returns this function's part of the OpenAPI document.
#[must_use]
pub fn description() -> OpenApi {
    let mut description = assets::details::description();
    description.merge(own::description());
    description
}
