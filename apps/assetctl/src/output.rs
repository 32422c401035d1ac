//! Output: results on standard output, files that appear once complete, and the progress of an import.

use crate::error::{CliError, Result};
use clap::ValueEnum;
use domain::import::objects::Members;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::{Builder, NamedTempFile};

/// Formats a count: `1 row`, `2 rows`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

pub fn print_json(value: &Value) -> Result<()> {
    terminal::print_data(&serde_json::to_string_pretty(&Exact(value)).map_err(std::io::Error::from)?)?;
    Ok(())
}

/// Formats on one line.
pub fn to_json(value: &Value) -> String {
    // Writing strings and numbers can't fail.
    serde_json::to_string(&Exact(value)).unwrap_or_default()
}

/// Asks for confirmation; `None` if the input ends without an answer.
pub fn confirm(question: &str) -> Result<Option<bool>> {
    let answer = terminal::ask(&format!("{question} [y/N]"))?;
    Ok(answer.map(|answer| ["y", "yes"].contains(&answer.to_lowercase().as_str())))
}

/// First character of a string that represents a number with a fraction. In a [`Value`] number, `0.3000` would become `0.3`.
const NUMBER: char = '\u{1}';

/// Reads JSON. Numbers with a fraction become strings that [`digits`] recognizes, and that [`print_json`] and [`to_json`] write
/// unchanged.
pub fn exact(json: &str) -> serde_json::Result<Value> {
    Ok(match json.trim_start().as_bytes().first() {
        Some(b'{') => {
            let Members(members) = serde_json::from_str(json)?;
            let member = |(name, value): (String, Box<RawValue>)| Ok((name, exact(value.get())?));
            members.into_iter().map(member).collect::<serde_json::Result<Map<_, _>>>()?.into()
        }
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(json)?;
            values.into_iter().map(|value| exact(value.get())).collect::<serde_json::Result<Vec<_>>>()?.into()
        }
        _ => match serde_json::from_str(json)? {
            Value::Number(number) if number.is_f64() => format!("{NUMBER}{}", json.trim()).into(),
            value => value,
        },
    })
}

/// Returns the digits of a number that [`exact`] has read.
pub fn digits(value: &Value) -> Option<&str> {
    value.as_str()?.strip_prefix(NUMBER).filter(|digits| digits.bytes().all(|byte| b"0123456789.eE+-".contains(&byte)))
}

struct Exact<'a>(&'a Value);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => serializer.collect_map(members.iter().map(|(name, value)| (name, Self(value)))),
            Value::Array(values) => serializer.collect_seq(values.iter().map(Exact)),
            value => match digits(value).map(|digits| RawValue::from_string(digits.to_owned())) {
                Some(Ok(number)) => number.serialize(serializer),
                _ => value.serialize(serializer),
            },
        }
    }
}

/// Creates a temporary file in the folder of `path`, with the default permissions.
pub fn temporary_beside(path: &Path) -> Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(CliError::Usage(format!("there is no folder {}", folder.display())));
    }
    if path.is_dir() {
        return Err(CliError::Usage(format!("{} is a folder", path.display())));
    }
    let mut builder = Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(".assetctl-").tempfile_in(folder).map_err(|error| CliError::file(path, &error))
}

/// Syncs a temporary file to disk, then renames it to `path`.
pub fn persist(file: NamedTempFile, path: &Path) -> Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| CliError::file(path, &error.error))?;
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table with a header
    Csv,
    /// A JSON object on each line
    Ndjson,
}

impl Format {
    /// Returns the name of the format, which is also the extension of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// Returns the format for a file name's extension; CSV if the extension is unknown.
    pub fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        if matches!(extension.as_deref(), Some("ndjson" | "jsonl")) { Self::Ndjson } else { Self::Csv }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Quotes a word for a POSIX shell, if necessary.
pub fn quote(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        format!("\"{word}\"")
    }
}

const INTERVAL: Duration = Duration::from_secs(5);

pub struct Progress {
    bar: Option<ProgressBar>,
    label: &'static str,
    size: u64,
    began: Instant,
    /// Bytes of settled rows.
    done: u64,
    rows: u64,
    last_line: Instant,
}

impl Progress {
    pub fn new(label: &'static str, size: u64) -> Self {
        let bar = terminal::is_error_terminal().then(|| {
            let style = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3} % {msg}");
            let bar = ProgressBar::new(size).with_prefix(label);
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        let now = Instant::now();
        Self { bar, label, size, began: now, done: 0, rows: 0, last_line: now }
    }

    /// Shows progress after rows were settled. `length` is the size of the rows in the file, in bytes.
    pub fn settled(&mut self, rows: u64, length: u64, note: &str) {
        self.rows += rows;
        self.done += length;
        let position = self.done.min(self.size);
        let text = describe(self.rows, self.began.elapsed(), self.done, self.size - position);
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(format!("{text}{note}"));
        } else if self.last_line.elapsed() >= INTERVAL {
            self.last_line = Instant::now();
            let percent = position * 100 / self.size.max(1);
            terminal::print_note(&format!("{}: {percent} %, {text}{note}", self.label));
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Describes the rows, their rate and the remaining time. `done` and `left` are bytes of the file.
fn describe(rows: u64, elapsed: Duration, done: u64, left: u64) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let (rate, time_left) = (rows as f64 / seconds, left as f64 * seconds / done.max(1) as f64);
    format!("{rows} rows, {rate:.0} rows/s, {} left", duration(Duration::from_secs_f64(time_left.min(1e9))))
}

/// Formats a duration in its two largest units.
pub fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let json = r#"{"a":[1249.00,0.3000,1e3,7,-0.50],"b":{"c":"1.50","d":null,"e":999999999999.9999},"f":"\u0001x"}"#;
        let read = exact(json).unwrap();
        assert_eq!((digits(&read["a"][1]), digits(&read["a"][3]), digits(&read["f"])), (Some("0.3000"), None, None));
        assert_eq!(to_json(&read), json);
        assert!(exact("{\"a\":").is_err());
    }

    #[test]
    fn rate_and_time_left_follow_from_the_progress() {
        assert_eq!(describe(4_000, Duration::from_secs(10), 250, 750), "4000 rows, 400 rows/s, 30 s left");
        assert_eq!(duration(Duration::from_secs(3_725)), "1 h 2 min");
        assert_eq!(duration(Duration::from_secs(61)), "1 min 1 s");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, quoted) in [("a=b", "a=b"), ("a b", "\"a b\""), ("it's $5", "'it'\\''s $5'"), ("", "\"\"")] {
            assert_eq!(quote(word), quoted);
        }
    }
}
