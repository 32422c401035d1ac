//! What one request uses of this machine.

use anyhow::Result;
use local::cpu_time::cpu_time;
use rig::memory::memory_kilobytes;
use std::time::{Duration, Instant};

/// Processor time and memory that something used.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub elapsed: Duration,
    /// Of this thread, which runs the service; the engine has threads of its own.
    pub cpu_time: Duration,
    /// How much memory the process had at most, above what it had before.
    pub memory_bytes: u64,
}

/// Measures from its creation on.
pub struct UsageMeter {
    start: Instant,
    cpu_time: Duration,
    resident_kilobytes: u64,
}

impl UsageMeter {
    /// Starts to measure.
    pub fn start() -> Result<Self> {
        // "5" resets the peak to what is resident now: https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html
        std::fs::write("/proc/self/clear_refs", "5")?;
        Ok(Self { start: Instant::now(), cpu_time: cpu_time(), resident_kilobytes: memory_kilobytes("self", "VmRSS")? })
    }

    /// Returns what has been used since the start.
    pub fn usage(&self) -> Result<Usage> {
        let memory_bytes = memory_kilobytes("self", "VmHWM")?.saturating_sub(self.resident_kilobytes) * 1024;
        Ok(Usage { elapsed: self.start.elapsed(), cpu_time: cpu_time().saturating_sub(self.cpu_time), memory_bytes })
    }
}
