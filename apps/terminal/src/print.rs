//! The only place that writes to standard output and standard error. Terminals get only clean text.

use crate::style;
use crate::text::{clean, clean_lines, clean_styled};
use std::io::{self, ErrorKind, StdoutLock, Write};

/// Prints a line for people. Succeeds even if the reader closes the pipe early, as `head` does.
///
/// # Errors
///
/// Returns an error if standard output can't be written.
pub fn print(text: &str) -> io::Result<()> {
    print_line(io::stdout().lock(), &clean_lines(text)).map(drop)
}

/// Like [`print()`], but keeps styles. Values in the text must already be [cleaned](clean_lines). Returns `false` if the reader has
/// closed the pipe.
///
/// # Errors
///
/// Returns an error if standard output can't be written.
pub fn print_styled(text: &str) -> io::Result<bool> {
    print_line(io::stdout().lock(), &clean_styled(text))
}

/// Prints a line for programs, like [`data`]. Returns `false` if the reader has closed the pipe.
///
/// # Errors
///
/// Returns an error if standard output can't be written.
pub fn print_data(text: &str) -> io::Result<bool> {
    print_line(data(), text)
}

/// Returns a writer to standard output. On a terminal, lines are [cleaned](clean_lines), and an incomplete line is written only
/// when flushed. Otherwise, every byte is written unchanged.
#[must_use]
pub fn data() -> Box<dyn Write> {
    let output = io::stdout().lock();
    if crate::is_terminal() { Box::new(CleanLines { output, line: Vec::new() }) } else { Box::new(output) }
}

fn print_line(mut output: impl Write, text: &str) -> io::Result<bool> {
    is_read(writeln!(output, "{text}").and_then(|()| output.flush()))
}

/// Returns `false` if the result of a write says that the reader has closed the pipe.
///
/// # Errors
///
/// Returns any other error.
pub fn is_read(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if is_broken_pipe(&error) => Ok(false),
        written => written.map(|()| true),
    }
}

/// Whether the error, or one that it wraps, means that the reader closed the pipe.
fn is_broken_pipe(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Prints for people, on standard error.
pub fn print_note(text: &str) {
    write_error(&clean_lines(text), "\n");
}

/// Prints for people with styles, on standard error. Values in the text must already be clean.
pub fn print_styled_note(text: &str) {
    write_error(&clean_styled(text), "\n");
}

pub fn ring_bell() {
    if crate::is_error_terminal() {
        write_error("\u{7}", "");
    }
}

/// Prints why a program failed, in clap's format.
pub fn print_error(text: &str) {
    let label = style::paint("error:", style::ERROR, style::is_coloured(&io::stderr()));
    print_styled_note(&format!("{label} {}", clean_lines(text)));
}

/// Asks on standard error. Returns the typed line without surrounding white space; `None` at the end of the input.
///
/// # Errors
///
/// Returns an error if standard input can't be read.
pub fn ask(question: &str) -> io::Result<Option<String>> {
    write_error(&clean(question), " ");
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        write_error("", "\n");
        return Ok(None);
    }
    Ok(Some(line.trim().to_owned()))
}

/// Writes text that is already clean.
fn write_error(text: &str, end: &str) {
    // If standard error can't be written, the failure can't be reported either.
    let _ = io::stderr().lock().write_all(format!("{text}{end}").as_bytes());
}

/// Writes to a terminal line by line, so that no character or line break is split.
struct CleanLines<'a> {
    output: StdoutLock<'a>,
    line: Vec<u8>,
}

impl CleanLines<'_> {
    fn write_clean(&mut self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.line);
        self.output.write_all(clean_lines(&text).as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

impl Write for CleanLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        let (lines, rest) = bytes.split_at(end);
        self.line.extend_from_slice(lines);
        if end > 0 {
            self.write_clean()?;
        }
        self.line.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_clean()?;
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Functions and macros that write to standard output or standard error, or let clap do it.
    const WRITERS: [&str; 9] =
        ["print!(", "println!(", "println(", "dbg!(", "stdout()", "stderr()", "::stdout", "::stderr", "::parse()"];
    /// Exempt files: the parts of this crate that use these streams, the log, which cleans its lines, and a test helper.
    const EXEMPT: [&str; 6] = [
        "apps/terminal/src/print.rs",
        "apps/terminal/src/lib.rs",
        "apps/terminal/src/style.rs",
        "apps/terminal/src/manual.rs",
        "apps/dev_server/src/log/mod.rs",
        "apps/dev_server/src/test_data.rs",
    ];

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    fn writers(text: &str) -> Vec<&'static str> {
        WRITERS.into_iter().filter(|writer| text.contains(writer)).collect()
    }

    #[test]
    fn only_this_module_prints() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let exempt = EXEMPT.map(|file| root.join(file));
        let mut unclean = 0;
        for file in ["apps/assetctl/src", "apps/admin/src", "apps/dev_server/src", "apps/terminal/src"]
            .iter()
            .flat_map(|folder| sources(&root.join(folder)))
        {
            let found = writers(&fs::read_to_string(&file).unwrap());
            let is_exempt = exempt.contains(&file);
            assert!(found.is_empty() || is_exempt, "{} prints with {found:?}: use this crate", file.display());
            unclean += usize::from(!found.is_empty());
        }
        assert_eq!(unclean, EXEMPT.len(), "an exemption is no longer needed");
    }

    #[test]
    fn every_way_to_print_is_recognized() {
        for line in [
            "eprintln!(\"{row}\");",
            "eprint!(\"\");",
            "println!();",
            "print!(\"a\");",
            "dbg!(row);",
            "io::stdout().lock()",
            "writeln!(stderr(), \"a\")",
            "let write = std::io::stderr;",
            "Term::stderr()",
            "bar.println(name)",
            "let Cli { global, .. } = Cli::parse();",
        ] {
            assert!(!writers(line).is_empty(), "{line}");
        }
        assert!(writers("let row: u32 = text.parse()?; terminal::print(text); // on stderr").is_empty());
    }
}
