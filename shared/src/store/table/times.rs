//! Times of the store: pauses before another attempt, the time that a request has left for reading, and the delays until a
//! write is visible, which loading and refreshing a list index allow for (docs/adr/0008).

use crate::store::Store;
use crate::store::client::OPERATION_TIMEOUT;
use chrono::TimeDelta;
use std::time::Duration;
use tokio::time::Instant;

/// Attempts of what others can disturb, if nothing says otherwise.
pub(crate) const MAX_ROUNDS: u32 = 6;
/// The first pause is at most this long, and each further one twice as long.
const FIRST_PAUSE_MILLIS: u64 = 10;
/// The number of times that the pause doubles: to 640 ms at most.
const MAX_DOUBLINGS: u32 = 6;

impl Store {
    /// `least`, and up to as much again at random: what failed together does not come back together.
    #[must_use]
    pub fn jittered(&self, least: Duration) -> Duration {
        // Without random bytes there is no jitter.
        let random = u16::from_le_bytes(self.random().unwrap_or_default());
        least + least * u32::from(random) / u32::from(u16::MAX)
    }
}

/// Waits a random time before another attempt, to separate competing writers: up to 10 ms after round 0, 20 ms after
/// round 1, and so on up to 640 ms.
pub(crate) async fn pause(store: &Store, round: u32) {
    let longest = FIRST_PAUSE_MILLIS << round.min(MAX_DOUBLINGS);
    // Without random bytes every rival waits equally long.
    let bytes = store.random().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(1 + u64::from(u16::from_le_bytes(bytes)) % longest)).await;
}

/// The time that a long read leaves for the rest of the request.
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

/// The largest difference between the clocks of two function instances.
pub const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(2);
/// The time after which an event is mostly in the table: refreshes of a list index expect few new ones that are older.
pub const USUAL_EVENT_DELAY: TimeDelta = TimeDelta::seconds(1);
/// The longest time for which a write may still take effect after its writer has given up waiting.
const MAX_TIME_IN_FLIGHT: TimeDelta = TimeDelta::seconds(3);
/// The longest time for which a transaction is visible in part. DynamoDB writes the items of a decided transaction within
/// milliseconds, or within a few seconds if the host that coordinates it fails meanwhile. Lists that wait as long, load the
/// index again and wait once more still end before any function does (15 s).
pub const MAX_TIME_TO_COMMIT: Duration = Duration::from_secs(3);
/// The longest time from the arrival of a request, which is the time of its events, to the time in their IDs: no function runs
/// longer.
pub const MAX_REQUEST: TimeDelta = TimeDelta::seconds(30);
/// The longest lag of a secondary index behind the table.
pub const SECONDARY_INDEX_LAG: TimeDelta = TimeDelta::seconds(60);

/// The longest lag of a secondary index that a snapshot is made from. A row that a snapshot lacks is missing for everybody
/// and for a day, and its writer is in no hurry.
const SECONDARY_INDEX_LAG_OF_SNAPSHOTS: TimeDelta = TimeDelta::hours(1);

/// The age up to which the parts of a load are worth keeping. Then the events since it began cost as much as loading again.
pub const MAX_LOAD_AGE: TimeDelta = TimeDelta::minutes(10);

/// The longest time from an event's id to its write, by the clock of another function instance.
#[must_use]
pub fn max_event_delay() -> TimeDelta {
    TimeDelta::from_std(OPERATION_TIMEOUT).unwrap_or(TimeDelta::MAX) + CLOCK_SKEW + MAX_TIME_IN_FLIGHT
}

/// The longest time from an event's id to its entry in a secondary index.
pub fn max_secondary_index_delay() -> TimeDelta {
    SECONDARY_INDEX_LAG + max_event_delay()
}

/// For a secondary index that a snapshot is made from.
pub fn max_secondary_index_delay_of_snapshots() -> TimeDelta {
    SECONDARY_INDEX_LAG_OF_SNAPSHOTS + max_event_delay()
}
