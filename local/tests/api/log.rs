//! What the service logs, by the thread that a test runs on.

use std::cell::RefCell;
use std::io::{Result, Write};
use std::sync::Once;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
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

/// Begins to log for this thread. One subscriber serves all tests: with one for each, a line that another thread was
/// the first to pass would be switched off for all.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_max_level(tracing::Level::INFO);
        tracing::subscriber::set_global_default(subscriber.with_writer(|| Lines).finish()).unwrap();
    });
    LINES.with_borrow_mut(Vec::clear);
}

/// What was logged on this thread since.
pub fn text() -> String {
    LINES.with_borrow(|lines| String::from_utf8(lines.clone()).unwrap())
}
