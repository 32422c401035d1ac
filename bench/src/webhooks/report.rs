//! The report of the benchmark of deliveries.

use super::receivers::{Behaviour, Receiver};
use crate::statistics::{millis, percentile};
use anyhow::Result;
use std::time::Duration;

/// The measurements while three receivers failed.
pub struct Report {
    events: usize,
    created_in: Duration,
    /// Messages that were not finished.
    queued: usize,
    receivers: Vec<Row>,
}

struct Row {
    behaviour: Behaviour,
    accepted: usize,
    refused: u64,
    /// The 50th, 99th and 100th percentile.
    latencies: [Duration; 3],
}

impl Report {
    pub fn new(receivers: &[Receiver], records: &[String], created_in: Duration, queued: usize) -> Self {
        let row = |receiver: &Receiver| {
            let latencies = receiver.latencies();
            Row {
                behaviour: receiver.behaviour,
                accepted: receiver.events(),
                refused: receiver.refused(),
                latencies: [50, 99, 100].map(|percent| percentile(&latencies, percent)),
            }
        };
        let receivers = receivers.iter().map(row).collect();
        Self { events: records.len(), created_in, queued, receivers }
    }

    /// The longest 99th percentile of the healthy receivers.
    pub fn slowest_healthy(&self) -> Duration {
        let healthy = self.receivers.iter().filter(|row| row.behaviour == Behaviour::Healthy);
        healthy.map(|row| row.latencies[1]).max().unwrap_or_default()
    }

    pub fn print(&self) -> Result<()> {
        let seconds = self.created_in.as_secs_f64();
        let mut text = format!(
            "{} events in {seconds:.1} s ({:.0} a second), to 5 receivers, of which 3 fail:\n\n",
            self.events,
            self.events as f64 / seconds
        );
        text +=
            &format!("{:<22}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "receiver", "accepted", "refused", "p50 ms", "p99 ms", "max ms");
        for Row { behaviour, accepted, refused, latencies } in &self.receivers {
            let [p50, p99, max] = latencies.map(|latency| latency.as_millis());
            text += &format!("{:<22}{accepted:>10}{refused:>10}{p50:>10}{p99:>10}{max:>10}\n", behaviour.name());
        }
        text += &format!("\nin the queues: {} messages\n", self.queued);
        Ok(terminal::print(&text)?)
    }
}

pub fn print_end(receivers: &[Receiver], records: &[String], took: Duration, queued: usize) -> Result<()> {
    let mut text = format!("\nafter all have recovered ({:.1} s):\n\n", took.as_secs_f64());
    text += &format!("{:<22}{:>10}{:>10}{:>10}\n", "receiver", "accepted", "repeated", "lost");
    for receiver in receivers {
        let (events, repeated, lost) = (receiver.events(), receiver.repetitions(), receiver.missing(records));
        text += &format!("{:<22}{events:>10}{repeated:>10}{lost:>10}\n", receiver.behaviour.name());
    }
    text += &format!("\nin the queues: {queued} messages\n");
    Ok(terminal::print(&text)?)
}

/// Of the function `deliver`, without the engine and the receivers.
pub fn print_cpu_time(per_message: Duration) -> Result<()> {
    Ok(terminal::print(&format!("processor time per attempt: {:.2} ms\n", millis(per_message)))?)
}
