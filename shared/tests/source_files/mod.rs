//! Files of the workspace, which the tests of its structure read.
#![expect(clippy::expect_used, reason = "tests, and helpers that only tests call")]

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that git doesn't keep.
const IGNORED: [&str; 6] = [".aws-sam", ".cache", ".git", ".local", "node_modules", "target"];

/// Returns every file in a folder and in the folders below it, without those that git doesn't keep.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let kept = entries.filter(|path| !IGNORED.iter().any(|ignored| path.ends_with(ignored)));
    kept.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
