//! The settled chunks of an import, in a file beside the imported one.
//!
//! The journal appears with its first line or not at all. Each settled chunk appends a line. If the program is killed while it
//! writes one, the incomplete line is dropped, and the chunk is sent again: the service knows its idempotency key and answers
//! as it did before.

use crate::error::{CliError, Result};
use crate::import::columns::heading::Heading;
use crate::import::columns::owners::Owners;
use crate::import::settlement::{Counts, Settlement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::{NamedTempFile, tempfile};

/// The time that the service remembers idempotency keys.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// A settled chunk: one of the journal's other lines.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    chunk: u64,
    #[serde(flatten)]
    settlement: Settlement,
}

#[derive(Debug)]
pub struct Journal {
    file: File,
    path: Option<PathBuf>,
    heading: Heading,
    entries: BTreeMap<u64, (u64, usize)>,
    end: u64,
    counts: Counts,
}

impl Journal {
    /// Begins a journal.
    ///
    /// # Errors
    ///
    /// Returns [`CliError::Usage`] if there is one already, from an import that was interrupted.
    pub fn create(path: &Path, heading: Heading) -> Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder).map_err(|error| CliError::file(path, &error))?;
        let line = line(&heading)?;
        file.write_all(&line)?;
        file.as_file().sync_all()?;
        // Before it has its name, so that nobody else can take it for an interrupted one.
        lock(file.as_file(), path)?;
        let file = file.persist_noclobber(path).map_err(|error| {
            if error.error.kind() == io::ErrorKind::AlreadyExists {
                already_begun(path)
            } else {
                CliError::file(path, &error.error)
            }
        })?;
        sync_folder(folder);
        let end = line.len() as u64;
        Ok(Self { file, path: Some(path.to_owned()), heading, entries: BTreeMap::new(), end, counts: Counts::default() })
    }

    /// Ends with the program, for an import that is not to be resumed.
    pub fn temporary(heading: Heading) -> Result<Self> {
        let file = tempfile()?;
        Ok(Self { file, path: None, heading, entries: BTreeMap::new(), end: 0, counts: Counts::default() })
    }

    /// Opens the journal of an interrupted import of the same file with the same options.
    ///
    /// # Errors
    ///
    /// Returns [`CliError::Usage`] if there is none, or if file or options differ.
    pub fn resume(path: &Path, expected: &Heading) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                CliError::Usage(format!("there is nothing to resume: {} doesn't exist. Start without --resume.", path.display()))
            }
            _ => CliError::file(path, &error),
        })?;
        lock(&file, path)?;
        let mut input = BufReader::new(&file);
        let mut first = Vec::new();
        input.read_until(b'\n', &mut first)?;
        let heading: Heading = serde_json::from_slice(&first)
            .map_err(|error| CliError::Failed(format!("{} is damaged: {error}", path.display())))?;
        heading.check(expected, path)?;
        let mut journal = Self {
            file: file.try_clone()?,
            path: Some(path.to_owned()),
            heading,
            entries: BTreeMap::new(),
            end: first.len() as u64,
            counts: Counts::default(),
        };
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { break };
            if !line.ends_with(b"\n") {
                break;
            }
            journal.note(&entry, line.len());
            line.clear();
        }
        // The rest is the line that was being written when the program ended.
        file.set_len(journal.end)?;
        Ok(journal)
    }

    /// The last entry is so old that the service has forgotten the requests after it.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        let age = self.file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        age.is_some_and(|age| age > REMEMBERED)
    }

    /// The part of the idempotency keys that all requests share.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.heading.run_id
    }

    /// As they were when the import began.
    #[must_use]
    pub fn owners(&self) -> &Owners {
        &self.heading.owners
    }

    #[must_use]
    pub fn has(&self, chunk: u64) -> bool {
        self.entries.contains_key(&chunk)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Of all sent rows.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns when the entry is on the disk.
    pub fn settle(&mut self, chunk: u64, settlement: Settlement) -> Result<()> {
        let entry = Entry { chunk, settlement };
        let line = line(&entry)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&line)?;
        if self.path.is_some() {
            self.file.sync_data()?;
        }
        self.note(&entry, line.len());
        Ok(())
    }

    fn note(&mut self, entry: &Entry, length: usize) {
        if self.entries.insert(entry.chunk, (self.end, length)).is_none() {
            self.counts.add(&entry.settlement.counts);
        }
        self.end += length as u64;
    }

    pub fn settlement(&mut self, chunk: u64) -> Result<Option<Settlement>> {
        let Some((offset, length)) = self.entries.get(&chunk).copied() else { return Ok(None) };
        let mut line = vec![0; length];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut line)?;
        let entry: Entry = serde_json::from_slice(&line).map_err(io::Error::from)?;
        Ok(Some(entry.settlement))
    }

    pub fn remove(&self) -> Result<()> {
        self.path.as_ref().map_or(Ok(()), |path| std::fs::remove_file(path).map_err(|error| CliError::file(path, &error)))
    }
}

#[must_use]
pub fn already_begun(path: &Path) -> CliError {
    if let Err(error) = File::open(path).map_err(CliError::from).and_then(|file| lock(&file, path)) {
        return error;
    }
    CliError::Usage(format!(
        "an import of this file was interrupted: {} tells what is settled. Repeat the command with --resume. To start again \
         instead, delete that file; rows that were imported would then be imported again.",
        path.display()
    ))
}

fn line(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    Ok(line)
}

fn lock(file: &File, path: &Path) -> Result<()> {
    file.try_lock().map_err(|_| CliError::Usage(format!("another assetctl is importing this file: it uses {}", path.display())))
}

/// Makes sure that the new file's name is on the disk. Not every system can do it for a folder.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::rows::RowError;

    fn heading() -> Heading {
        let options = BTreeMap::from([("match".to_owned(), "none".to_owned())]);
        Heading { run_id: "r".into(), sha256: "abc".into(), options, owners: Owners::default() }
    }

    fn settlement(created: u64) -> Settlement {
        let counts = Counts { created, refused: 1, ..Counts::default() };
        Settlement { counts, refused: vec![(3, vec![RowError::of_column("name", "is empty")])], ..Settlement::default() }
    }

    #[test]
    fn settled_chunks_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv.assetctl");
        let mut journal = Journal::create(&path, heading()).unwrap();
        journal.settle(1, settlement(5)).unwrap();
        journal.settle(0, settlement(7)).unwrap();
        assert!(matches!(Journal::resume(&path, &heading()), Err(CliError::Usage(_))), "it is locked");
        drop(journal);
        assert!(matches!(Journal::create(&path, heading()), Err(CliError::Usage(_))));
        let mut journal = Journal::resume(&path, &heading()).unwrap();
        assert_eq!((journal.len(), journal.counts().created, journal.has(2)), (2, 12, false));
        assert_eq!(journal.settlement(1).unwrap(), Some(settlement(5)));
        journal.remove().unwrap();
        assert!(matches!(Journal::resume(&path, &heading()), Err(CliError::Usage(_))));
    }

    #[test]
    fn a_line_that_was_being_written_is_dropped_wherever_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv.assetctl");
        let mut journal = Journal::create(&path, heading()).unwrap();
        journal.settle(0, settlement(1)).unwrap();
        let complete = std::fs::read(&path).unwrap().len();
        journal.settle(1, settlement(2)).unwrap();
        drop(journal);
        let bytes = std::fs::read(&path).unwrap();
        for length in complete..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let mut journal = Journal::resume(&path, &heading()).unwrap();
            assert_eq!(journal.len(), 1);
            journal.settle(1, settlement(9)).unwrap();
            drop(journal);
            assert_eq!(Journal::resume(&path, &heading()).unwrap().counts().created, 10);
        }
    }
}
