//! The time that a request has for reading.

use crate::store::client::OPERATION_TIMEOUT;
use std::time::Duration;
use tokio::time::Instant;

/// The part of a request's time that a long read leaves for the rest.
const TIME_TO_RESPOND: Duration = Duration::from_secs(1);
/// The longest reading time of a request without a deadline.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Long reads of the request end before `deadline`.
pub async fn with_deadline<F: Future>(deadline: Instant, request: F) -> F::Output {
    DEADLINE.scope(deadline, request).await
}

/// An operation may take as long as DynamoDB may.
#[must_use]
pub fn has_time_for_operation() -> bool {
    DEADLINE.try_with(|deadline| *deadline > Instant::now() + OPERATION_TIMEOUT).unwrap_or(true)
}

/// The remaining time of the present request.
pub(in crate::store) fn time_to_read() -> Duration {
    let left = |deadline: &Instant| deadline.saturating_duration_since(Instant::now()).saturating_sub(TIME_TO_RESPOND);
    DEADLINE.try_with(left).unwrap_or(DEFAULT_TIME)
}
