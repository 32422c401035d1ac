//! A line about an action, while it lasts.

use crate::text::clean;
use console::Term;

/// A line on standard error, if that is a terminal. Dropping it erases the line.
#[derive(Debug)]
pub struct Notice(Term);

impl Notice {
    /// The text must fit one line.
    #[must_use]
    pub fn show(text: &str) -> Self {
        let term = Term::stderr();
        if term.is_term() {
            // Nobody misses a line that can't be written.
            let _ = term.write_str(&clean(text));
        }
        Self(term)
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        if self.0.is_term() {
            let _ = self.0.clear_line();
        }
    }
}
