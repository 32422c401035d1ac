//! Files of the workspace, which the tests of its structure read.
#![expect(clippy::expect_used, reason = "tests, and helpers that only tests call")]

use std::fs;
use std::path::{Path, PathBuf};

/// Returns every file in a folder and in the folders below it.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
