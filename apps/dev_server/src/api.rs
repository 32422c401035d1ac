//! The functions' routes and their parts of the OpenAPI document, and a client of the API in this process.

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use serde_json::Value;
use shared::services::App;
use tower::ServiceExt;
use utoipa::openapi::OpenApi;

type Function = (fn() -> Router<App>, fn() -> OpenApi);

/// In the order of the OpenAPI document.
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

pub const JSON: (&str, &str) = ("content-type", "application/json");

#[derive(Clone)]
pub struct ApiClient {
    pub router: Router,
    pub api_key: String,
}

impl ApiClient {
    /// Sends a request with the API key and these headers. Returns the response's status and body.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is not valid HTTP, or if the response is not JSON.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<(StatusCode, Value)> {
        let request = Request::builder().method(method).uri(format!("/v1{path}"));
        let request = request.header("authorization", format!("Bearer {}", self.api_key));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = self.router.clone().oneshot(request.body(Body::from(body.to_owned()))?).await?;
        let status = response.status();
        Ok((status, serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await?)?))
    }
}
