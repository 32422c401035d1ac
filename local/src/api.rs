//! Every function's routes in one place, and the OpenAPI document made of them.

use crate::headers;
use axum::Router;
use shared::app::App;
use shared::http::openapi::{API_KEY, schemas, scheme};
use utoipa::openapi::OpenApi;
use utoipa::openapi::tag::TagBuilder;

/// A function's routes, and what the document says of them.
type Function = (fn() -> Router<App>, fn() -> OpenApi);

/// Every function, in the order of the document.
const FUNCTIONS: [Function; 6] = [
    (meta::routes, meta::description),
    (assets::routes, assets::description),
    (processes::routes, processes::description),
    (users::routes, users::description),
    (catalog::routes, catalog::description),
    (account::routes, account::description),
];

/// The routes of every function, as the dev server mounts them.
pub fn all_routes() -> Router<App> {
    FUNCTIONS.iter().fold(Router::new(), |all, (routes, _)| all.merge(routes()))
}

/// The OpenAPI 3.1 document of every function. What is served is docs/openapi.json, which a test compares with this.
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
        "A tenant-isolated API for an organisation's asset inventory. Send an API key as `Authorization: Bearer \
         <API_KEY>`. Errors are problem documents (RFC 9457)."
            .into(),
    );
    document.info.license = None;
    let components = document.components.get_or_insert_default();
    components.security_schemes.insert(API_KEY.into(), utoipa::openapi::RefOr::T(scheme()));
    components.schemas.extend(schemas());
    headers::describe(&mut document);
    let tags = [
        ("assets", "The inventory"),
        ("processes", "Lifecycle processes and their runs"),
        ("users", "The people that assets are assigned to"),
        ("catalog", "Asset types, manufacturers and models"),
        ("settings", "What the tenant decides for itself"),
        ("keys", "API keys"),
        ("events", "Every change in the tenant"),
        ("meta", "What needs no key"),
    ];
    document.tags = Some(tags.map(|(name, text)| TagBuilder::new().name(name).description(Some(text)).build()).into());
    document
}
