//! What requests take and cost on Lambda, by the function's memory: from the processor time that was measured here.

use anyhow::Result;
use std::io::Write;

const SIZES_MB: [f64; 3] = [512.0, 1024.0, 1769.0];
/// "At 1,769 MB, a function has the equivalent of one vCPU", and a share of it with less (Lambda developer guide, "Configure
/// Lambda function memory").
const ONE_CPU_MB: f64 = 1769.0;
/// Assumed for DynamoDB in the same region.
const ROUND_TRIP_MS: f64 = 4.0;
/// As in docs/costs.md.
const PER_MILLION_REQUESTS: f64 = 0.20;
const PER_GB_SECOND: f64 = 0.000_016_666_7;

/// A kind of request, or the row of an import.
pub struct Work {
    pub label: &'static str,
    pub cpu_ms: f64,
    pub round_trips: f64,
    /// The number of rows in a request.
    pub weight: usize,
}

impl Work {
    /// The milliseconds that it takes, and the dollars of a million, with this memory.
    fn on_lambda(&self, size_mb: f64) -> (f64, f64) {
        let ms = self.cpu_ms * ONE_CPU_MB / size_mb + self.round_trips * ROUND_TRIP_MS;
        (ms, PER_MILLION_REQUESTS / self.weight as f64 + ms * 1000.0 * size_mb / 1024.0 * PER_GB_SECOND)
    }
}

pub fn print(rows: &[Work]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nNEW on Lambda, with {ROUND_TRIP_MS} ms per round trip: milliseconds, and dollars of a million (x86_64)")?;
    writeln!(out, "{:<20}{}", "", SIZES_MB.map(|size| format!("{:>18}", format!("{size} MB"))).concat())?;
    for work in rows {
        let columns = SIZES_MB.map(|size| {
            let (ms, dollars) = work.on_lambda(size);
            format!("{ms:>11.1}{dollars:>7.2}")
        });
        writeln!(out, "{:<20}{}", work.label, columns.concat())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_memory_is_half_the_processor() {
        let work = Work { label: "", cpu_ms: 1.0, round_trips: 1.0, weight: 1 };
        let (ms, dollars) = work.on_lambda(1769.0);
        assert_eq!(ms, 5.0);
        assert!((dollars - 0.3440).abs() < 0.0001, "{dollars}");
        let (ms, dollars) = work.on_lambda(884.5);
        assert_eq!(ms, 6.0);
        assert!((dollars - 0.2864).abs() < 0.0001, "{dollars}");
    }
}
