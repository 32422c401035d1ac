//! Files and folders that no other user of the computer can read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Creates a folder, and those above it that are missing. One that exists stays as it is.
///
/// # Errors
///
/// Returns an error when the folder can't be created.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// # Errors
///
/// Returns an error when the file can't be opened.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    close_to_others(path);
    Ok(file)
}

/// Takes all permissions of other users on an existing file or folder away, or warns.
pub fn close_to_others(path: &Path) {
    let closed = fs::metadata(path).and_then(|metadata| {
        let mut permissions = metadata.permissions();
        if permissions.mode() & 0o077 == 0 {
            return Ok(());
        }
        permissions.set_mode(permissions.mode() & 0o700);
        fs::set_permissions(path, permissions)
    });
    match closed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), error = %error, "other users of this computer may read this");
        }
        _ => {}
    }
}
