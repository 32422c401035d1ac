//! The delays until a write is visible, which loading and refreshing a list index allow for (docs/adr/0008).

use crate::store::client::OPERATION_TIMEOUT;
use chrono::TimeDelta;
use std::time::Duration;

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

/// The longest time from the one in an event's id to its write, by the clock of another function instance.
#[must_use]
pub fn max_event_delay() -> TimeDelta {
    TimeDelta::from_std(OPERATION_TIMEOUT).unwrap_or(TimeDelta::MAX) + CLOCK_SKEW + MAX_TIME_IN_FLIGHT
}

/// The longest time from the one in an event's id to its entry in a secondary index.
pub fn max_secondary_index_delay() -> TimeDelta {
    SECONDARY_INDEX_LAG + max_event_delay()
}

/// For a secondary index that a snapshot is made from.
pub fn max_secondary_index_delay_of_snapshots() -> TimeDelta {
    SECONDARY_INDEX_LAG_OF_SNAPSHOTS + max_event_delay()
}
