//! Captures the service's log for each test's thread.

use std::cell::{Cell, RefCell};
use std::io::{Result, Write};
use std::sync::Once;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Log levels for this service and for other crates.
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

/// Captures the log of this thread at a function's default levels.
pub fn begin() {
    capture(LevelFilter::INFO, LevelFilter::INFO);
}

/// Captures this thread's log: everything from this service, and other crates at DEBUG or above. (At TRACE, the SDK writes a
/// gigabyte.)
pub fn begin_everything() {
    capture(LevelFilter::TRACE, LevelFilter::DEBUG);
}

/// Shares one subscriber between all tests. With several subscribers, tracing would disable a line for all threads if a thread
/// without a log reached the line first. The levels are thread-local, so that other tests write no log.
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

/// Returns the log of this thread since the capture began.
pub fn text() -> String {
    LINES.with_borrow(|lines| String::from_utf8(lines.clone()).unwrap())
}
