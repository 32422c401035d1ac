//! Output for people: tables that fit the terminal, readable times, errors, and help with examples.

mod examples;
mod manual;
mod print;
#[cfg(feature = "pty")]
pub mod pty;
pub mod style;
mod table;
mod text;
mod tips;

pub use examples::{check_examples, examples};
pub use manual::parse_arguments;
pub use print::{ask, data, is_read, print, print_data, print_error, print_note, print_styled, print_styled_note, ring_bell};
pub use style::Notice;
pub use table::{Column, Table, record};
pub use text::{clean, clean_hidden, clean_lines, pad, time};

use console::Term;
use std::io::{self, IsTerminal};

#[must_use]
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

#[must_use]
pub fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns the width of the terminal in columns; `None` if standard output isn't a terminal, or its width is unknown.
#[must_use]
pub fn width() -> Option<usize> {
    let size = if is_terminal() { Term::stdout().size_checked() } else { None };
    size.map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0)
}
