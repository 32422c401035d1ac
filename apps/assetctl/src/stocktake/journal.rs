//! The file of a stock-taking, so that an interrupted one continues, even after `kill -9`.
//!
//! Each line is a JSON object: the start, a scan, or the result of a scan. A scan without a later result has not been sent. Each
//! running command locks its file, so that a second one at the same place and computer uses another file. A command continues
//! what all files without a lock contain.

use super::Answer;
use crate::error::{CliError, Result};
use crate::lookup::text;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Age in hours up to which a stock-taking can be continued.
const CONTINUES_FOR: i64 = 7 * 24;
/// Maximum number of commands at the same place and computer.
const MAX_FILES: u32 = 100;

/// A code with the service's time of its scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    pub code: String,
    pub at: Timestamp,
}

impl Scan {
    fn to_line(&self) -> Value {
        json!({"scanned": self.code, "at": format!("{:.3}", self.at)})
    }

    fn of(line: &Value) -> Option<Self> {
        Some(Self { code: line["scanned"].as_str()?.to_owned(), at: line["at"].as_str()?.parse().ok()? })
    }
}

/// Appends lines to a file.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    pub fn scan(&mut self, scan: &Scan) -> Result<()> {
        self.line(&scan.to_line())
    }

    fn line(&mut self, line: &Value) -> Result<()> {
        // A single write, so that lines of the keyboard's thread don't come in between.
        self.file.write_all(format!("{line}\n").as_bytes()).map_err(|error| CliError::file(&self.path, &error))
    }
}

/// What the files contain.
#[derive(Debug, Default)]
struct Content {
    since: Option<Timestamp>,
    /// Latest result by asset ID, or by code if no asset was found.
    answers: BTreeMap<String, Answer>,
    unsent: Vec<Scan>,
}

impl Content {
    fn read(&mut self, text: &str) {
        // If the program was killed, the last line can be incomplete, and is skipped.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if let Some(scan) = Scan::of(&line) {
                self.unsent.push(scan);
            } else if let Ok(answer) = serde_json::from_value(line.clone()) {
                self.insert(answer);
            } else if let Some(since) = start(&line) {
                self.since = Some(self.since.map_or(since, |earlier| earlier.min(since)));
            }
        }
    }

    fn insert(&mut self, answer: Answer) {
        self.unsent.retain(|scan| scan.code != answer.code);
        // A code that was unknown at an earlier scan can belong to an asset now.
        self.answers.remove(&answer.code);
        self.answers.insert(answer.id.clone().unwrap_or_else(|| answer.code.clone()), answer);
    }
}

fn start(heading: &Value) -> Option<Timestamp> {
    text(&heading["since"]).parse().ok()
}

/// A stock-taking and its files, the first of which is written to.
#[derive(Debug)]
pub struct Journal {
    files: Vec<Writer>,
    /// Start of the stock-taking, by the service's clock. Assets last seen before it are missing.
    since: Timestamp,
    content: Content,
    /// Start of another stock-taking at this place, which is still running.
    other: Option<Timestamp>,
}

impl Journal {
    /// Continues what is stored in the folder under this name, or starts a new stock-taking. `again` starts over.
    pub fn open(folder: &Path, name: &str, again: bool, now: Timestamp) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| CliError::file(folder, &error))?;
        let (mut files, mut content, mut other) = (Vec::new(), Content::default(), None::<Timestamp>);
        for number in 1..=MAX_FILES {
            let path = folder.join(if number == 1 { format!("{name}.jsonl") } else { format!("{name}-{number}.jsonl") });
            if !files.is_empty() && !path.exists() {
                break;
            }
            let failed = |error| CliError::file(&path, &error);
            let file = File::options().read(true).append(true).create(true).open(&path).map_err(failed)?;
            let is_locked = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            let stored = fs::read(&path).unwrap_or_default();
            let stored = String::from_utf8_lossy(&stored);
            let mut found = Content::default();
            found.read(&stored);
            let continues = |since: &Timestamp| since.checked_add(CONTINUES_FOR.hours()).is_ok_and(|end| end > now);
            let since = found.since.filter(|since| !again && continues(since));
            if is_locked {
                other = other.into_iter().chain(since).min();
                continue;
            }
            let mut writer = Writer { file, path: path.clone() };
            if since.is_none() {
                writer.file.set_len(0).map_err(failed)?;
            } else {
                if !stored.ends_with('\n') {
                    writer.file.write_all(b"\n").map_err(failed)?;
                }
                content.read(&stored);
                if let Some(first) = files.first_mut() {
                    let first: &mut Writer = first;
                    first.file.write_all(format!("{}\n", stored.trim_end()).as_bytes()).map_err(failed)?;
                    writer.file.set_len(0).map_err(failed)?;
                }
            }
            files.push(writer);
        }
        let is_new = content.since.is_none();
        // What the other one has found is not missing.
        let since = content.since.or(other).unwrap_or(now);
        let mut journal = Self { files, since, content, other: other.filter(|_| is_new) };
        if is_new {
            journal.line(&json!({"since": format!("{since:.3}")}))?;
        }
        Ok(journal)
    }

    fn line(&mut self, line: &Value) -> Result<()> {
        let full = || CliError::Failed(format!("{MAX_FILES} stock-takings of this place are running"));
        self.files.first_mut().ok_or_else(full)?.line(line)
    }

    /// Returns a writer for another thread.
    pub fn writer(&self) -> Result<Writer> {
        let Some(Writer { file, path }) = self.files.first() else { return Err(CliError::Failed("no file is open".into())) };
        Ok(Writer { file: file.try_clone().map_err(|error| CliError::file(path, &error))?, path: path.clone() })
    }

    pub fn since(&self) -> Timestamp {
        self.since
    }

    pub fn other(&self) -> Option<Timestamp> {
        self.other
    }

    pub fn answers(&self) -> &BTreeMap<String, Answer> {
        &self.content.answers
    }

    /// Returns the scans of earlier runs that have no result yet.
    pub fn unsent(&self) -> &[Scan] {
        &self.content.unsent
    }

    pub fn scan(&mut self, scan: &Scan) -> Result<()> {
        self.line(&scan.to_line())
    }

    pub fn answer(&mut self, answer: Answer) -> Result<()> {
        self.line(&json!(answer))?;
        self.content.insert(answer);
        Ok(())
    }

    /// Returns the codes that were found, and need no further request.
    pub fn found(&self) -> BTreeSet<String> {
        self.content.answers.values().filter(|answer| answer.is_found()).map(|answer| answer.code.clone()).collect()
    }

    /// Empties the files. They remain, because another command can have opened them.
    pub fn end(self) -> Result<()> {
        self.files.iter().try_for_each(|Writer { file, path }| file.set_len(0).map_err(|error| CliError::file(path, &error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: &str, outcome: &str, id: Option<&str>) -> Answer {
        Answer::of(
            code,
            &json!({"outcome": outcome, "id": id, "asset_tag": id.map(|_| code), "name": "Laptop", "location": "B"}),
            "B",
        )
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn scan(code: &str) -> Scan {
        Scan { code: code.to_owned(), at: at("2026-03-05T10:30:00.5Z") }
    }

    #[test]
    fn an_interrupted_stock_taking_continues_for_a_week() {
        let folder = tempfile::tempdir().unwrap();
        let begin = at("2026-03-05T10:00:00Z");
        let open = |again, now| Journal::open(folder.path(), "b", again, now).unwrap();
        let mut journal = open(false, begin);
        for code in ["X", "A", "B", "B"] {
            journal.scan(&scan(code)).unwrap();
        }
        for (code, outcome, id) in
            [("X", "unknown", None), ("A", "elsewhere", Some("1")), ("A", "moved", Some("1")), ("X", "seen", Some("2"))]
        {
            journal.answer(answer(code, outcome, id)).unwrap();
        }
        let answers = journal.answers().clone();
        drop(journal);
        let path = folder.path().join("b.jsonl");
        File::options().append(true).open(&path).unwrap().write_all(b"{\"code\": \"cut").unwrap();
        let mut continued = open(false, at("2026-03-12T09:00:00Z"));
        assert_eq!((continued.since(), continued.answers()), (begin, &answers));
        assert_eq!((continued.answers().len(), continued.unsent()), (2, &[scan("B"), scan("B")][..]));
        assert!(continued.found().contains("A") && continued.found().contains("X") && !continued.found().contains("B"));
        // The line after the incomplete one is read.
        continued.scan(&scan("C")).unwrap();
        drop(continued);
        assert_eq!(open(false, at("2026-03-12T09:00:00Z")).unsent().len(), 3);
        for (again, now) in [(true, "2026-03-05T11:00:00Z"), (false, "2026-03-12T11:00:00Z")] {
            let mut begun = open(again, at(now));
            assert_eq!((begun.since(), begun.answers().len(), begun.unsent().len()), (at(now), 0, 0), "{now}");
            begun.scan(&scan("D")).unwrap();
        }
        open(false, at("2026-03-12T12:00:00Z")).end().unwrap();
        let now = at("2026-03-12T13:00:00Z");
        assert_eq!((fs::read(&path).unwrap().len(), open(false, now).since()), (0, now));
    }

    #[test]
    fn two_at_one_place_keep_to_themselves_until_both_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (begin, later) = (at("2026-03-05T10:00:00Z"), at("2026-03-05T11:00:00Z"));
        let open = || Journal::open(folder.path(), "b", false, later).unwrap();
        let mut first = Journal::open(folder.path(), "b", false, begin).unwrap();
        let mut second = open();
        assert_eq!((first.other(), second.other(), second.since()), (None, Some(begin), begin));
        first.answer(answer("A", "seen", Some("1"))).unwrap();
        second.answer(answer("B", "seen", Some("2"))).unwrap();
        second.scan(&scan("C")).unwrap();
        assert!(first.found().contains("A") && !first.found().contains("B") && !second.found().contains("A"));
        first.end().unwrap();
        drop(second);
        let mut continued = open();
        assert!(continued.found().contains("B") && continued.unsent() == [scan("C")] && !continued.found().contains("A"));
        let another = open();
        assert!(!another.found().contains("B") && another.unsent().is_empty());
        continued.scan(&scan("D")).unwrap();
        drop((another, continued));
        assert_eq!(open().unsent(), [scan("C"), scan("D")]);
        // Nothing is read twice.
        assert_eq!(open().unsent(), [scan("C"), scan("D")]);
        let over = Journal::open(folder.path(), "b", true, later).unwrap();
        assert_eq!((over.since(), over.answers().len(), over.unsent().len()), (later, 0, 0));
    }
}
