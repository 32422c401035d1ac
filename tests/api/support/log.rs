//! Captures the service's log, by the thread of a test.

use std::cell::{Cell, RefCell};
use std::io::{Result, Write};
use std::sync::Once;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// For this service's lines, and for other crates' lines.
    static LEVELS: Cell<(LevelFilter, LevelFilter)> = const { Cell::new((LevelFilter::OFF, LevelFilter::OFF)) };
}

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Captures a function's default log for this thread.
pub fn begin() {
    capture(LevelFilter::INFO, LevelFilter::INFO);
}

/// Captures for this thread everything that this service logs, and what other crates log at DEBUG or above. (At TRACE,
/// the SDK writes a gigabyte.)
pub fn begin_everything() {
    capture(LevelFilter::TRACE, LevelFilter::DEBUG);
}

/// All tests share one subscriber. With one for each, a line that a thread without a log passes first would be switched
/// off for every thread. The levels are read from the thread each time, so that tests which read no log write none.
fn capture(ours: LevelFilter, others: LevelFilter) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let filter = dynamic_filter_fn(|metadata, _| {
            let (ours, others) = LEVELS.get();
            *metadata.level() <= if is_ours(metadata.target()) { ours } else { others }
        });
        let lines = shared::log::lines(|| Lines).with_filter(filter);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines)).unwrap();
    });
    LEVELS.set((ours, others));
    LINES.with_borrow_mut(Vec::clear);
}

pub fn is_ours(target: &str) -> bool {
    let crates = ["shared", "assets", "processes", "users", "catalog", "account", "meta", "sign", "webhooks"];
    crates.contains(&target.split("::").next().unwrap_or_default())
}

/// The log of this thread since the capture began.
pub fn text() -> String {
    LINES.with_borrow(|lines| String::from_utf8(lines.clone()).unwrap())
}
