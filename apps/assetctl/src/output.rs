//! Results on standard output, and files that appear when they are complete.

use crate::error::{CliError, Result};
use serde_json::Value;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// `1 row`, `2 rows`.
#[must_use]
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A word of a command line of a shell, which takes it as it is.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// For people. A reader that has seen enough, such as `head`, is no error.
pub fn print(text: &str) -> Result<()> {
    Ok(terminal::print(text)?)
}

/// For programs, which get every byte. A reader that has seen enough is no error.
pub fn print_data(text: &str) -> Result<()> {
    terminal::print_data(text)?;
    Ok(())
}

pub fn print_json(value: &Value) -> Result<()> {
    print_data(&format!("{value:#}"))
}

/// A new file in the folder of `path`, with the rights that new files have.
pub fn temporary_beside(path: &Path) -> Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(CliError::Usage(format!("there is no folder {}", folder.display())));
    }
    let mut builder = Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(".assetctl-").tempfile_in(folder).map_err(|error| CliError::file(path, &error))
}

/// Gives a file its name, once it is on the disk.
pub fn persist(file: NamedTempFile, path: &Path) -> Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| CliError::file(path, &error.error))?;
    Ok(())
}
