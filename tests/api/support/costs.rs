//! The costs of requests: consecutive round trips, and capacity units as the table reports them.

use super::{Api, Reply};
use dev_server::meter::Cost;
use std::io::Write;

/// What a million read units cost in dollars, and a million write units: docs/costs.md.
const READ_UNIT_PRICE: f64 = 0.125;
const WRITE_UNIT_PRICE: f64 = 0.625;

/// Measures requests, and collects lines about them for a table.
pub struct Costs<'a> {
    api: &'a Api,
    lines: Vec<String>,
}

pub fn cost(round_trips: usize, calls: usize, read_units: f64, write_units: f64) -> Cost {
    Cost { round_trips, calls, read_units, write_units }
}

impl<'a> Costs<'a> {
    pub fn new(api: &'a Api) -> Self {
        Self { api, lines: Vec::new() }
    }

    /// The request must succeed, and cost no more than `max`.
    pub async fn of(&mut self, name: &str, request: impl Future<Output = Reply>, max: Cost) {
        self.api.meter.take();
        let reply = request.await;
        assert!(reply.status.is_success(), "{name}: {}", reply.text());
        let cost = self.api.meter.take();
        let Cost { round_trips, calls, read_units, write_units } = cost;
        let is_cheap = round_trips <= max.round_trips
            && calls <= max.calls
            && read_units <= max.read_units
            && write_units <= max.write_units;
        assert!(is_cheap, "{name} costs {cost:?}, more than {max:?}");
        assert!(max.calls == 0 || round_trips > 0 && read_units > 0.0, "{name} was not measured: {cost:?}");
        let dollars = read_units * READ_UNIT_PRICE + write_units * WRITE_UNIT_PRICE;
        self.lines.push(format!("{name:<42}{round_trips:>12}{calls:>7}{read_units:>12.1}{write_units:>13.1}{dollars:>15.2}"));
    }

    /// Directly to stdout, so that it is shown even when the test passes.
    pub fn print(self) {
        let mut out = std::io::stdout().lock();
        let [trips, reads, writes] = ["round trips", "read units", "write units"];
        writeln!(out, "\n{:<42}{trips:>12}{:>7}{reads:>12}{writes:>13}{:>15}", "request", "calls", "$ per million").unwrap();
        writeln!(out, "{}", self.lines.join("\n")).unwrap();
    }
}
