//! The time that a request has left: long reads end before the request must.

use crate::store::OPERATION_TIMEOUT;
use std::time::Duration;
use tokio::time::Instant;

/// Time that long reads must leave for the rest of the request.
const TIME_TO_RESPOND: Duration = Duration::from_secs(1);
/// Time limit for the reads of a request without a deadline.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs a request whose long reads end before `deadline`.
pub async fn with_deadline<F: Future>(deadline: Instant, request: F) -> F::Output {
    DEADLINE.scope(deadline, request).await
}

/// Whether the request has time for another operation, which can take up to [`OPERATION_TIMEOUT`].
#[must_use]
pub fn has_time_for_operation() -> bool {
    DEADLINE.try_with(|deadline| *deadline > Instant::now() + OPERATION_TIMEOUT).unwrap_or(true)
}

/// Returns the time that the current request has left for reads.
pub(in crate::store) fn time_to_read() -> Duration {
    let left = |deadline: &Instant| deadline.saturating_duration_since(Instant::now()).saturating_sub(TIME_TO_RESPOND);
    DEADLINE.try_with(left).unwrap_or(DEFAULT_TIME)
}
