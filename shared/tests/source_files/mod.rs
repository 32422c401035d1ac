//! Lists the files of the workspace, for tests of its structure.
#![expect(clippy::expect_used, reason = "tests, and helpers that only tests call")]

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that aren't in git.
const IGNORED: [&str; 6] = [".aws-sam", ".cache", ".git", ".local", "node_modules", "target"];

/// Returns all files below a folder, except in ignored folders.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let kept = entries.filter(|path| !IGNORED.iter().any(|ignored| path.ends_with(ignored)));
    kept.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
