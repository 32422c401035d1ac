//! The processor time of a thread, which doesn't depend on what else the machine does. On Linux only.

use anyhow::{Context, Result};
use std::time::Duration;

/// Returns the processor time that this thread has used: that of the service, without the engine, which has a thread of
/// its own.
///
/// # Errors
///
/// Returns an error where there is no `/proc/thread-self/schedstat`.
pub fn cpu_time() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|number| number.parse().ok()).context("can't parse schedstat")?;
    Ok(Duration::from_nanos(nanos))
}
