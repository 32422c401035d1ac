//! Manual pages and completions as files, which `.ci/release` puts into its archives.

use clap::{Command, ValueEnum};
use clap_complete::{Shell, generate_to};
use std::ffi::OsString;
use std::path::PathBuf;
use std::{fs, io};

/// The first argument of a program that is asked for its manual; the second one is the folder. No help shows it.
const ARGUMENT: &str = "--write-manual";

/// Returns the folder, if the arguments after the program's name ask for the manual.
pub(crate) fn folder(mut arguments: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let is_asked = arguments.next().is_some_and(|first| first == ARGUMENT);
    is_asked.then(|| arguments.next().map(PathBuf::from)).flatten()
}

/// Writes a page for the program and for each of its subcommands, and a file for each shell.
///
/// # Errors
///
/// Returns an error if the folder can't be written.
pub(crate) fn write(mut command: Command, folder: PathBuf) -> io::Result<()> {
    let name = command.get_name().to_owned();
    fs::create_dir_all(&folder)?;
    for shell in Shell::value_variants() {
        generate_to(*shell, &mut command, &name, &folder)?;
    }
    // `help import` needs no page beside that of `import`.
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
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
