//! Files and folders stay small enough to be read as a whole.
#![expect(clippy::expect_used, reason = "tests, and helpers that only tests call")]

mod source_files;

use source_files::files;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 350;
const MAX_MEDIAN: usize = 110;
const MAX_FILES: usize = 20;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn no_source_file_is_long_and_half_are_short() {
    let sources = files(&repository()).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut lines: Vec<(usize, PathBuf)> = sources.map(|path| (line_count(&path), path)).collect();
    assert!(lines.len() > 500, "only {} files were found", lines.len());
    lines.sort_unstable();
    let long: Vec<_> = lines.iter().filter(|(lines, _)| *lines > MAX_LINES).collect();
    assert!(long.is_empty(), "more than {MAX_LINES} lines: {long:?}");
    let median = lines[lines.len() / 2].0;
    assert!(median <= MAX_MEDIAN, "half of the files have {median} lines or more");
}

fn line_count(path: &Path) -> usize {
    fs::read_to_string(path).expect("a source file").lines().count()
}

#[test]
fn no_folder_has_many_files() {
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for path in files(&repository()) {
        *folders.entry(path.parent().expect("a folder").to_owned()).or_default() += 1;
    }
    assert!(folders.len() > 100, "only {} folders were found", folders.len());
    folders.retain(|_, files| *files > MAX_FILES);
    assert!(folders.is_empty(), "more than {MAX_FILES} files: {folders:?}");
}
