//! The processor time of a thread, which doesn't depend on other work of the machine.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Of this thread: with that of an engine in the process, without that of one with a port, which has a thread of its own.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}
