//! Ends a request while there is still time to respond.

use super::error::ApiError;
use crate::app::App;
use crate::store::with_deadline;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lambda_http::RequestExt;
use std::time::Duration;
use tokio::time::Instant;

/// The time between the end of a request and Lambda's deadline. Lambda stops a function at its deadline, and the client would get
/// a response of API Gateway's without a request ID.
const MARGIN: Duration = Duration::from_millis(500);

/// Runs a request until shortly before Lambda's deadline for it, and then responds with 503. Operations under way are dropped:
/// each write is one transaction, so it takes effect as a whole or not at all. Outside of Lambda there is no deadline.
pub(super) async fn enforce(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(deadline) = request.lambda_context_ref().map(|context| context.deadline) else {
        return next.run(request).await;
    };
    let now = u64::try_from(app.store().now().millis()).unwrap_or_default();
    // Lambda never passes on a deadline in the past; `cargo lambda watch` does, when it has none.
    let Some(left) = deadline.checked_sub(now) else { return next.run(request).await };
    let left = Duration::from_millis(left).saturating_sub(MARGIN);
    let request = with_deadline(Instant::now() + left, next.run(request));
    match tokio::time::timeout(left, request).await {
        Ok(response) => response,
        Err(elapsed) => ApiError::timed_out(elapsed).into_response(),
    }
}
