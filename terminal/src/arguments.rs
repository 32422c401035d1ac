//! The arguments of a program.

use crate::print::{print, print_note, print_styled, print_styled_error};
use crate::style::{is_coloured, is_output_coloured};
use crate::text::{clean, unstyled};
use clap::{Error, Parser};
use std::{env, io, process};

/// Returns the options that the program was started with. If they can't be parsed, or ask for help, prints what clap says
/// and ends the program, as [`Parser::parse`] does, but without what a terminal would obey: clap echoes arguments.
#[must_use]
pub fn parse_arguments<T: Parser>() -> T {
    T::try_parse().unwrap_or_else(|error| {
        show(&error);
        process::exit(error.exit_code())
    })
}

fn show(error: &Error) {
    let styled = error.render().ansi().to_string();
    let (styled, plain) = (styled.trim_end(), unstyled(styled.trim_end()));
    // Styles in arguments can't be told from clap's own.
    let may_have_styles = env::args_os().map(|argument| argument.to_string_lossy().into_owned()).all(|text| clean(&text) == text);
    // The exit code says the same if nothing can be written.
    match error.use_stderr() {
        true if may_have_styles && is_coloured(&io::stderr()) => print_styled_error(styled),
        true => print_note(&plain),
        false if may_have_styles && is_output_coloured() => drop(print_styled(styled)),
        false => drop(print(&plain)),
    }
}
