//! What the service logs, by the thread that a test runs on.

use std::cell::{Cell, RefCell};
use std::io::{Result, Write};
use std::sync::Once;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Of lines of ours, and of others.
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

/// Begins to log for this thread what a function logs unless it is told otherwise.
pub fn begin() {
    begin_at(LevelFilter::INFO, LevelFilter::INFO);
}

/// Begins to log for this thread whatever this service has to say, and what other crates do on the level DEBUG. (On
/// TRACE the SDK writes a gigabyte of its own workings.)
pub fn begin_everything() {
    begin_at(LevelFilter::TRACE, LevelFilter::DEBUG);
}

/// One subscriber serves all tests: with one for each, a line that another thread was the first to pass would be
/// switched off for all. It asks the thread each time, so that tests which read no log write none.
fn begin_at(ours: LevelFilter, others: LevelFilter) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let wanted = dynamic_filter_fn(|metadata, _| {
            let (ours, others) = LEVELS.get();
            *metadata.level() <= if is_ours(metadata.target()) { ours } else { others }
        });
        let lines = shared::log::lines(|| Lines).with_filter(wanted);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines)).unwrap();
    });
    LEVELS.set((ours, others));
    LINES.with_borrow_mut(Vec::clear);
}

/// Whether a line is this service's own.
pub fn is_ours(target: &str) -> bool {
    let crates = ["shared", "assets", "processes", "users", "catalog", "account", "meta"];
    crates.contains(&target.split("::").next().unwrap_or_default())
}

/// What was logged on this thread since.
pub fn text() -> String {
    LINES.with_borrow(|lines| String::from_utf8(lines.clone()).unwrap())
}
