//! Examples in the help of commands.

use crate::style;
use crate::text::width;
use clap::Command;
use clap::builder::StyledStr;
use std::fmt::Write;

const INDENT: &str = "  ";
/// Maximum length of a line. Narrow terminals break longer lines, which then can't be copied.
const MAX_COLUMNS: usize = 80;

/// Formats examples, one per line, for the end of a command's help. A line can continue after a `\`.
#[must_use]
pub fn examples(lines: &str) -> StyledStr {
    let heading = style::HEADING;
    let mut section = StyledStr::new();
    // Writing to a String can't fail.
    let _ = write!(section, "{heading}Examples:{heading:#}");
    for line in lines.lines() {
        let _ = write!(section, "\n{INDENT}{line}");
    }
    section
}

/// Parses the examples in the help of a command and of all its subcommands, as if they were typed.
///
/// # Errors
///
/// Returns a message that names the commands without an example, and the examples that can't be parsed.
pub fn check_examples(mut command: Command) -> Result<(), String> {
    command.build();
    let (mut faults, root) = (Vec::new(), command.clone());
    check(&root, &command, command.get_name(), &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn check(root: &Command, command: &Command, path: &str, faults: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let too_long = help.lines().filter(|line| width(line) > MAX_COLUMNS);
    faults.extend(too_long.map(|line| format!("{path}: {line:?} has more than {MAX_COLUMNS} columns")));
    let found = lines_of(&help);
    if found.is_empty() {
        faults.push(format!("{path}: no example"));
    }
    for line in found {
        let words = words(&line);
        if !line.starts_with(path) {
            faults.push(format!("{path}: {line:?} is an example of another command"));
        }
        if let Err(error) = root.clone().try_get_matches_from(&words) {
            faults.push(format!("{path}: {line:?} can't be parsed: {error}"));
        }
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        check(root, inner, &format!("{path} {}", inner.get_name()), faults);
    }
}

/// Returns the examples in a help text, without a `|` or `#` and the text after it.
fn lines_of(help: &str) -> Vec<String> {
    let section = help.split("Examples:").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
    let section = section.replace("\\\n", " ");
    let lines = section.lines().filter_map(|line| line.strip_prefix(INDENT)?.split(['|', '#']).next());
    lines.map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Splits a command like a shell, at spaces outside double quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            character => word.push(character),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn tool(example: &str, inner: &str) -> Command {
        let list = Command::new("list").arg(Arg::new("limit").long("limit").value_parser(clap::value_parser!(u8)));
        Command::new("tool").after_help(examples(example)).subcommand(list.after_help(examples(inner)))
    }

    #[test]
    fn a_help_ends_with_its_examples() {
        let help = tool("tool list\ntool list --limit 5 | head", "").render_help().to_string();
        assert!(help.ends_with("Examples:\n  tool list\n  tool list --limit 5 | head\n"), "{help}");
    }

    #[test]
    fn examples_must_be_there_and_be_parsed() {
        assert_eq!(check_examples(tool("tool list --limit 5 | head", "tool list \\\n  --limit 5")), Ok(()));
        for (example, inner, fault) in [
            ("tool list", "", "tool list: no example"),
            ("tool list", "tool list --limt 5", "unexpected argument '--limt'"),
            ("tool list --limit 500", "tool list", "500 is not in 0..=255"),
            ("tool list", "tool", "example of another command"),
            (&format!("tool list --limit {}5", "0".repeat(80)), "tool list", "more than 80 columns"),
            ("tool list \\\n  --limit 500", "tool list", "500 is not in 0..=255"),
        ] {
            let faults = check_examples(tool(example, inner)).unwrap_err();
            assert!(faults.contains(fault), "{faults}");
        }
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        assert_eq!(words(r#"a --map "Serial No=serial_number"  b"#), ["a", "--map", "Serial No=serial_number", "b"]);
    }
}
