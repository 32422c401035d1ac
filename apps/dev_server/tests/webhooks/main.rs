//! Webhooks of the dev server's binary, with receivers on this machine: deliveries while the process is stopped and killed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and helpers that only tests call")]

mod deliveries;
mod server;

use std::time::{Duration, Instant};

/// Enough time for everything on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn until<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(start.elapsed() < LONG, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
