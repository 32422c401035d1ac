//! A line about each request.

use super::secrets::without_secrets;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use std::time::Instant;

/// The target of the lines, for `RUST_LOG`.
pub const TARGET: &str = "requests";

/// Writes a line about each request. Unlike the service's own lines, they name the path as it was sent.
pub fn with_request_lines(router: Router) -> Router {
    router.layer(from_fn(log))
}

async fn log(request: Request, next: Next) -> Response {
    let start = Instant::now();
    let (method, address) = (request.method().clone(), without_secrets(request.uri().path(), request.uri().query()));
    let response = next.run(request).await;
    let duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    let request_id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    tracing::info!(target: TARGET, %method, address, status, duration_ms, request_id);
    response
}
