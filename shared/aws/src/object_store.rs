//! Objects stored by key, outside the table: snapshots of list indexes (docs/adr/0013).

use futures_util::future::BoxFuture;
use std::error::Error;

#[derive(Debug, thiserror::Error)]
pub enum ObjectStoreError {
    /// The store did not respond in time, or the connection failed.
    #[error("the object store is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The store responded with this status.
    #[error("the object store responded with {0}")]
    Status(u16),
}

impl ObjectStoreError {
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(cause.into())
    }
}

/// Whole objects by key: `list-index/<table>/<tenant>/<kind>`.
pub trait ObjectStore: Send + Sync {
    /// Reads at most `max_bytes` of an object; `None` if it doesn't exist.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be read.
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>>;

    /// Writes an object atomically: readers get either the whole new object or the old one.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be written.
    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>>;

    /// Deletes an object. Succeeds if it doesn't exist.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be deleted.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ObjectStoreError>>;
}
