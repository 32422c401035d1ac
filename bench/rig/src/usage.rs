//! Memory and processor time of a process. On Linux only.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::time::Duration;

/// A figure of a process's memory: `VmRSS` for the present use, `VmHWM` for the highest. `process` is an ID, or `self`.
///
/// # Errors
///
/// Returns an error when the kernel doesn't report it.
pub fn memory_kilobytes(process: impl Display, figure: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let value = value.with_context(|| format!("no {figure} in the process status"))?;
    Ok(value.trim().trim_end_matches(" kB").parse()?)
}

/// Of all threads so far.
///
/// # Errors
///
/// Returns an error when the kernel doesn't report it.
pub fn cpu_time(process: impl Display) -> Result<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).context("can't parse schedstat")?;
    }
    Ok(Duration::from_nanos(nanos))
}
