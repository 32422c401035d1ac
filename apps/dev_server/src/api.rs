//! Combines the functions' routes, and lists their parts of the OpenAPI document.

use axum::Router;
use shared::app::App;
use utoipa::openapi::OpenApi;

/// A function's routes and its part of the OpenAPI document.
type Function = (fn() -> Router<App>, fn() -> OpenApi);

/// In the order of the document.
const FUNCTIONS: [Function; 8] = [
    (meta::all_routes, meta::description),
    (assets::routes, assets::description),
    (processes::routes, processes::description),
    (sign::routes, sign::description),
    (webhooks::routes, webhooks::description),
    (users::routes, users::description),
    (catalog::routes, catalog::description),
    (account::routes, account::description),
];

pub fn all_routes() -> Router<App> {
    FUNCTIONS.iter().fold(Router::new(), |all, (routes, _)| all.merge(routes()))
}

pub fn descriptions() -> impl Iterator<Item = OpenApi> {
    FUNCTIONS.iter().map(|(_, description)| description())
}
