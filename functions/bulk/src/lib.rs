//! Batches, imports and exports of assets and users, and upserts by serial number.
//!
//! The handlers are in the crates `assets` and `users`, beside the rules that they share. They are a function of their own
//! because they take longer and link more: the functions that people wait for start as fast as before.

use axum::Router;
use shared::app::App;
use utoipa::openapi::OpenApi;

/// Returns the routes of this function.
pub fn routes() -> Router<App> {
    assets::bulk::routes().merge(users::bulk::routes())
}

/// Returns this function's part of the OpenAPI document.
#[must_use]
pub fn description() -> OpenApi {
    let mut description = assets::bulk::description();
    description.merge(users::bulk::description());
    description
}
