//! The arguments of a program.

use crate::manual;
use crate::print::{print, print_error, print_note, print_styled, print_styled_note};
use crate::style::{is_coloured, is_output_coloured};
use crate::text::unstyled;
use crate::tips::without_wrong_tips;
use clap::{Error, Parser};
use std::{env, io, process};

/// If they can't be parsed, or ask for help, prints clap's text and ends the program, as [`Parser::parse`] does, but without
/// control characters, since clap echoes arguments, and without tips that mislead.
#[must_use]
pub fn parse_arguments<T: Parser>() -> T {
    if let Some(folder) = manual::folder(env::args_os().skip(1)) {
        let written = manual::write(T::command(), folder);
        process::exit(match written {
            Ok(()) => 0,
            Err(error) => {
                print_error(&error.to_string());
                1
            }
        });
    }
    T::try_parse().map_err(without_wrong_tips).unwrap_or_else(|error| {
        show(&error);
        process::exit(error.exit_code())
    })
}

fn show(error: &Error) {
    let styled = error.render().ansi().to_string();
    let (styled, plain) = (styled.trim_end(), unstyled(styled.trim_end()));
    // Styles of an argument can't be told from clap's own. They do no harm.
    if error.use_stderr() {
        if is_coloured(&io::stderr()) { print_styled_note(styled) } else { print_note(&plain) }
    } else {
        // The exit code says the same if nothing can be written.
        let _ = if is_output_coloured() { print_styled(styled).map(drop) } else { print(&plain) };
    }
}
