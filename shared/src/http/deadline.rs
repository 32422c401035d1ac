//! Ends a request while there still is time to say so.

use super::error::ApiError;
use crate::app::App;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lambda_http::RequestExt;
use std::time::Duration;

/// What an answer needs on its way out: Lambda ends a function at its deadline, and the client then gets the gateway's
/// own words without our request id.
const MARGIN: Duration = Duration::from_millis(500);

/// Runs the request until shortly before Lambda's deadline for it; then the answer is 503, and what it still waited
/// for is dropped. Each write is one transaction: it takes effect whole or not at all. Elsewhere there is no deadline.
pub(super) async fn keep(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(deadline) = request.lambda_context_ref().map(|context| context.deadline) else {
        return next.run(request).await;
    };
    let now = u64::try_from(app.store().now().millis()).unwrap_or_default();
    // Lambda hands nothing over that is past its deadline; `cargo lambda watch` does, in place of none.
    let Some(left) = deadline.checked_sub(now) else { return next.run(request).await };
    let left = Duration::from_millis(left).saturating_sub(MARGIN);
    match tokio::time::timeout(left, next.run(request)).await {
        Ok(response) => response,
        Err(elapsed) => ApiError::Unavailable(elapsed.into()).into_response(),
    }
}
