//! The memory that a process uses. On Linux only.

use anyhow::{Context, Result};
use std::fmt::Display;

/// Returns a figure of a process's memory in kilobytes: `VmRSS` is what it uses, `VmHWM` the most that it has used.
/// `process` is an ID, or `self`.
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
