//! The permissions of the data folder.

use crate::start::{interrupt, start_on};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Checks that others can't read the files of `data` in this folder.
fn start_and_stop(folder: &Path) {
    let (mut session, _) = start_on(folder, &["--empty"]);
    let files: Vec<PathBuf> = fs::read_dir(folder.join("data")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for name in ["table.db", "table.db-wal", "demo.json"] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name}: {files:?}");
    }
    let open: Vec<&PathBuf> = files.iter().filter(|file| mode(file) & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
    interrupt(&session);
    assert!(session.wait().unwrap().success());
}

#[test]
fn nobody_else_reads_the_data() {
    let parent = tempfile::tempdir().unwrap();
    set_mode(parent.path(), 0o755);
    let data = parent.path().join("data");
    start_and_stop(parent.path());
    assert_eq!((mode(&data), mode(parent.path())), (0o700, 0o755));
}

#[test]
fn a_folder_with_other_things_keeps_its_permissions() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("letter.txt"), "Dear …").unwrap();
    set_mode(&data, 0o755);
    set_mode(&data.join("letter.txt"), 0o600);
    for _ in 0..2 {
        start_and_stop(parent.path());
        assert_eq!(mode(&data), 0o755);
    }
}
