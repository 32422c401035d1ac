//! What the command lines print for people: tables that fit the terminal, readable times, errors, and help with examples.

mod examples;
mod notice;
#[cfg(feature = "pty")]
pub mod pty;
pub mod style;
mod table;
mod text;

pub use examples::{check_examples, examples};
pub use notice::Notice;
pub use table::{Column, Table, record};
pub use text::{clean, pad, time};

use console::Term;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Returns whether people read standard output.
#[must_use]
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns how many columns the terminal has; `None` if standard output is no terminal, or doesn't tell.
#[must_use]
pub fn width() -> Option<usize> {
    let size = if is_terminal() { Term::stdout().size_checked() } else { None };
    size.map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// Prints a text and ends its line. A reader that has seen enough, such as `head`, is no error.
///
/// # Errors
///
/// Returns an error when standard output can't be written.
pub fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether an error, or one that it wraps, says that the reader of the output has ended.
#[must_use]
pub fn is_broken_pipe(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Prints why a program fails on standard error, as clap does with wrong arguments.
pub fn print_error(text: &str) {
    eprintln!("{} {text}", style::paint("error:", style::ERROR, style::is_coloured(&io::stderr())));
}

/// Asks a question on standard error, and returns the line that is typed, without white space around it; `None` if there
/// is nobody to ask.
///
/// # Errors
///
/// Returns an error when standard input can't be read.
pub fn ask(question: &str) -> io::Result<Option<String>> {
    eprint!("{question} ");
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        eprintln!();
        return Ok(None);
    }
    Ok(Some(line.trim().to_owned()))
}
