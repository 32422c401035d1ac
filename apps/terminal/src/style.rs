//! Colours on a terminal, unless `NO_COLOR` is set (<https://no-color.org>); and notices, which are shown while an action
//! lasts.

use crate::text::clean;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
pub use anstyle::Style;
use anstyle::{AnsiColor, Color};
use console::Term;

/// Style of headings in a command's help.
pub const HEADING: Style = Style::new().bold().underline();
pub const STRONG: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
/// For results that are neither success nor failure.
pub const NEUTRAL: Style = AnsiColor::Cyan.on_default();
pub const WARNING: Style = AnsiColor::Yellow.on_default();
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// White on black, for drawings whose meaning depends on the colours.
pub const CODE: Style = AnsiColor::BrightWhite.on_default().bg_color(Some(Color::Ansi(AnsiColor::Black)));

pub fn is_coloured(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

#[must_use]
pub fn is_output_coloured() -> bool {
    is_coloured(&std::io::stdout())
}

#[must_use]
pub fn is_error_coloured() -> bool {
    is_coloured(&std::io::stderr())
}

/// Returns the text unchanged if colours are off.
#[must_use]
pub fn paint(text: &str, style: Style, is_coloured: bool) -> String {
    if is_coloured { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

/// A line on standard error, if that is a terminal. Dropping the notice erases the line.
#[derive(Debug)]
pub struct Notice(Term);

impl Notice {
    /// Shows a notice. The text must fit on a line.
    #[must_use]
    pub fn show(text: &str) -> Self {
        let term = Term::stderr();
        if term.is_term() {
            // A notice is optional, so a failed write is ignored.
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
