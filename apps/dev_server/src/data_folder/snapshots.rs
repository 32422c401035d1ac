//! Snapshots of list indexes in the data folder, which stands in for the bucket.

use super::{create_folder, write_atomically};
use futures_util::future::BoxFuture;
use shared::aws::object_store::{ObjectStore, ObjectStoreError};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// A folder with a file for each object. Reading and writing block, which is good enough for a dev server.
pub struct SnapshotFolder(PathBuf);

impl SnapshotFolder {
    /// The first write creates the folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    fn read(&self, key: &str, max_bytes: usize) -> io::Result<Vec<u8>> {
        let file = File::open(self.0.join(key))?;
        let length = file.metadata().map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(usize::MAX));
        let mut bytes = Vec::with_capacity(length.min(max_bytes));
        file.take(max_bytes as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(key);
        path.parent().map_or(Ok(()), create_folder)?;
        write_atomically(&path, bytes)
    }
}

impl ObjectStore for SnapshotFolder {
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>> {
        let bytes = match self.read(key, max_bytes) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ObjectStoreError::unavailable(error)),
        };
        Box::pin(std::future::ready(bytes))
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        Box::pin(std::future::ready(self.write(key, &bytes).map_err(ObjectStoreError::unavailable)))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        let deleted = match std::fs::remove_file(self.0.join(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ObjectStoreError::unavailable(error)),
            _ => Ok(()),
        };
        Box::pin(std::future::ready(deleted))
    }
}
