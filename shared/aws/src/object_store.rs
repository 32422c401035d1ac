//! Objects by key, outside of the table: the snapshots of list indexes (docs/adr/0013).

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
    /// At most `max_bytes` of the object; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be read.
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>>;

    /// The object is complete afterwards, or as it was before.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be written.
    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>>;

    /// Succeeds without such an object.
    ///
    /// # Errors
    ///
    /// Returns an [`ObjectStoreError`] when the object can't be deleted.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ObjectStoreError>>;
}
