//! Parses a program's arguments, and generates its manual pages and completions, which `.ci/release` adds to its archives.

use crate::print::{print, print_error, print_note, print_styled, print_styled_note};
use crate::style::{is_coloured, is_output_coloured};
use crate::text::unstyled;
use crate::tips::without_wrong_tips;
use clap::{Command, Error, Parser, ValueEnum};
use clap_complete::{Shell, generate_to};
use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, fs, io, process};

/// First argument that requests a program's manual; the second one is the folder. Not in the help.
const ARGUMENT: &str = "--write-manual";

/// Returns the folder if the program's arguments request the manual.
fn folder(mut arguments: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let is_asked = arguments.next().is_some_and(|first| first == ARGUMENT);
    is_asked.then(|| arguments.next().map(PathBuf::from)).flatten()
}

/// Writes a manual page for the program and each subcommand, and a completion file for each shell.
fn write(mut command: Command, folder: PathBuf) -> io::Result<()> {
    let name = command.get_name().to_owned();
    fs::create_dir_all(&folder)?;
    for shell in Shell::value_variants() {
        generate_to(*shell, &mut command, &name, &folder)?;
    }
    // `import` has a page, so `help import` needs none.
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}

/// Like [`Parser::parse`], but errors have no control characters, because clap echoes arguments, and no misleading tips.
#[must_use]
pub fn parse_arguments<T: Parser>() -> T {
    if let Some(folder) = folder(env::args_os().skip(1)) {
        process::exit(match write(T::command(), folder) {
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
    // Styles in an argument can't be told from clap's. They are harmless.
    if error.use_stderr() {
        if is_coloured(&io::stderr()) { print_styled_note(styled) } else { print_note(&plain) }
    } else {
        // If nothing can be written, the exit code still reports the error.
        let _ = if is_output_coloured() { print_styled(styled).map(drop) } else { print(&plain) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_is_written_only_when_it_is_asked_for_first() {
        let of = |arguments: &[&str]| folder(arguments.iter().map(OsString::from));
        assert_eq!(of(&["--write-manual", "x"]), Some(PathBuf::from("x")));
        for other in [&[][..], &["--write-manual"], &["import", "--write-manual", "x"]] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
