//! Time limits of the store: backoff between attempts, retries of contradictory reads, the time a request has left for reads, and
//! maximum delays until a write is visible, on which list indexes rely (docs/adr/0008).

use crate::store::Store;
use crate::store::client::OPERATION_TIMEOUT;
use chrono::TimeDelta;
use std::time::Duration;
use tokio::time::Instant;

/// Default number of attempts at an operation that can conflict with others.
pub(crate) const MAX_ROUNDS: u32 = 6;
/// Maximum of the first backoff. Doubles with each attempt.
const FIRST_PAUSE_MILLIS: u64 = 10;
/// How often the backoff doubles: to at most 640 ms.
const MAX_DOUBLINGS: u32 = 6;

impl Store {
    /// `least` plus up to 100% jitter, so that requests that failed together don't retry together.
    #[must_use]
    pub fn jittered(&self, least: Duration) -> Duration {
        // Without random bytes there is no jitter.
        let random = u16::from_le_bytes(self.random().unwrap_or_default());
        least + least * u32::from(random) / u32::from(u16::MAX)
    }
}

/// Waits a random time before a retry, to separate competing writers: up to 10 ms after round 0, 20 ms after round 1, and so on
/// up to 640 ms.
pub(crate) async fn pause(store: &Store, round: u32) {
    let longest = FIRST_PAUSE_MILLIS << round.min(MAX_DOUBLINGS);
    // Without random bytes, all competing writers wait equally long.
    let bytes = store.random().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(1 + u64::from(u16::from_le_bytes(bytes)) % longest)).await;
}

/// Retries reads that contradict each other, up to a time limit.
#[derive(Debug, Default)]
pub struct TornReadRetry {
    began_at: Option<Instant>,
    round: u32,
}

impl TornReadRetry {
    /// Waits a random time before the next read. Returns `false` immediately if the contradiction has lasted longer than a
    /// transaction can explain.
    pub async fn pause(&mut self, store: &Store) -> bool {
        let began_at = *self.began_at.get_or_insert_with(Instant::now);
        if began_at.elapsed() >= MAX_TIME_TO_COMMIT {
            return false;
        }
        pause(store, self.round).await;
        self.round += 1;
        true
    }
}

/// Time that long reads leave for the rest of the request.
const TIME_TO_RESPOND: Duration = Duration::from_secs(1);
/// Time limit for reads of a request without a deadline.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs a request. Its long reads end before `deadline`.
pub async fn with_deadline<F: Future>(deadline: Instant, request: F) -> F::Output {
    DEADLINE.scope(deadline, request).await
}

/// Whether the request has time for another operation, which can take up to [`OPERATION_TIMEOUT`].
#[must_use]
pub fn has_time_for_operation() -> bool {
    DEADLINE.try_with(|deadline| *deadline > Instant::now() + OPERATION_TIMEOUT).unwrap_or(true)
}

/// The time that the current request has left for reads.
pub(in crate::store) fn time_to_read() -> Duration {
    let left = |deadline: &Instant| deadline.saturating_duration_since(Instant::now()).saturating_sub(TIME_TO_RESPOND);
    DEADLINE.try_with(left).unwrap_or(DEFAULT_TIME)
}

/// Maximum difference between the clocks of two function instances.
pub const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(2);
/// After this time, an event is usually in the table. Refreshes of a list index expect few older new events.
pub const USUAL_EVENT_DELAY: TimeDelta = TimeDelta::seconds(1);
/// Maximum time until a write takes effect after its writer has given up waiting.
const MAX_TIME_IN_FLIGHT: TimeDelta = TimeDelta::seconds(3);
/// Maximum time during which a transaction is only partly visible. DynamoDB writes the items of a decided transaction within
/// milliseconds, or within a few seconds if the coordinating host fails meanwhile. Even lists that wait this long, reload the
/// index and wait again finish before a function times out (15 s).
pub const MAX_TIME_TO_COMMIT: Duration = Duration::from_secs(3);
/// Maximum time from the arrival of a request, which is the time of its events, to the time in their IDs. No function runs
/// longer.
pub const MAX_REQUEST: TimeDelta = TimeDelta::seconds(30);
/// Maximum lag of a secondary index behind the table.
pub const SECONDARY_INDEX_LAG: TimeDelta = TimeDelta::seconds(60);

/// Maximum lag of a secondary index from which a snapshot is written. A row missing from a snapshot would be missing for everyone
/// and for a day, and the snapshot writer can wait.
const SECONDARY_INDEX_LAG_OF_SNAPSHOTS: TimeDelta = TimeDelta::hours(1);

/// Maximum age of a partial load. After that, reading the events since its start costs as much as loading again.
pub const MAX_LOAD_AGE: TimeDelta = TimeDelta::minutes(10);

/// Maximum time from an event's ID to its write, by the clock of another function instance.
#[must_use]
pub fn max_event_delay() -> TimeDelta {
    TimeDelta::from_std(OPERATION_TIMEOUT).unwrap_or(TimeDelta::MAX) + CLOCK_SKEW + MAX_TIME_IN_FLIGHT
}

/// Maximum time from an event's ID to its appearance in a secondary index.
pub fn max_secondary_index_delay() -> TimeDelta {
    SECONDARY_INDEX_LAG + max_event_delay()
}

/// Like [`max_secondary_index_delay`], for a secondary index from which a snapshot is written.
pub fn max_secondary_index_delay_of_snapshots() -> TimeDelta {
    SECONDARY_INDEX_LAG_OF_SNAPSHOTS + max_event_delay()
}
