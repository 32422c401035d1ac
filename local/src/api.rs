//! Combines the functions' routes, and their parts of the OpenAPI document.

use crate::headers;
use axum::Router;
use shared::app::App;
use shared::http::openapi::{API_KEY, schemas, scheme};
use utoipa::openapi::OpenApi;
use utoipa::openapi::tag::TagBuilder;

/// A function's routes and its part of the OpenAPI document.
type Function = (fn() -> Router<App>, fn() -> OpenApi);

/// All functions, in the order of the document.
const FUNCTIONS: [Function; 8] = [
    (meta::routes, meta::description),
    (assets::routes, assets::description),
    (bulk::routes, bulk::description),
    (reports::routes, reports::description),
    (processes::routes, processes::description),
    (users::routes, users::description),
    (catalog::routes, catalog::description),
    (account::routes, account::description),
];

/// Returns the routes of all functions, and what the function `meta` responds to any other request.
pub fn all_routes() -> Router<App> {
    meta::with_default_route(FUNCTIONS.iter().fold(Router::new(), |all, (routes, _)| all.merge(routes())))
}

/// Returns the OpenAPI 3.1 document of the whole API. The API serves docs/openapi.json, which a test compares with this.
#[must_use]
pub fn document() -> OpenApi {
    let descriptions = FUNCTIONS.iter().map(|(_, description)| description());
    let merged = descriptions.reduce(|mut all, other| {
        all.merge(other);
        all
    });
    let mut document = merged.unwrap_or_default();
    document.info.title = "Asset and Process Lifecycle Service".into();
    document.info.version = env!("CARGO_PKG_VERSION").into();
    document.info.description = Some(
        "Manages an organisation's assets and the lifecycle processes run on them. Each API key accesses the data of its \
         own tenant only: send it as `Authorization: Bearer <API_KEY>`. Errors are problem documents (RFC 9457)."
            .into(),
    );
    document.info.license = None;
    let components = document.components.get_or_insert_default();
    components.security_schemes.insert(API_KEY.into(), utoipa::openapi::RefOr::T(scheme()));
    components.schemas.extend(schemas());
    headers::add_to(&mut document);
    let tags = [
        ("assets", "The asset inventory"),
        ("processes", "Process definitions, process instances, and movements of several assets"),
        ("users", "The people that assets are assigned to"),
        ("catalog", "Asset types, manufacturers and models"),
        ("reports", "Statistics of the inventory and of process instances"),
        ("settings", "Settings of the tenant"),
        ("keys", "API keys"),
        ("events", "The audit trail: every change in the tenant"),
        ("meta", "Endpoints that need no API key"),
    ];
    document.tags = Some(tags.map(|(name, text)| TagBuilder::new().name(name).description(Some(text)).build()).into());
    document
}
