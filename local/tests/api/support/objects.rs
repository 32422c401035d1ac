//! An object store in memory, whose objects tests damage and whose requests can fail.

use futures_util::future::BoxFuture;
use shared::store::object_store::{ObjectStore, ObjectStoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Objects by key.
#[derive(Clone, Default)]
pub struct Objects {
    by_key: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    is_down: Arc<AtomicBool>,
    /// The keys that were put, in order.
    put: Arc<Mutex<Vec<String>>>,
    has_put: Arc<tokio::sync::Notify>,
}

impl Objects {
    /// Returns the store as the service takes it.
    pub fn store(&self) -> Option<Arc<dyn ObjectStore>> {
        Some(Arc::new(self.clone()))
    }

    /// Returns an object.
    pub fn object(&self, key: &str) -> Vec<u8> {
        self.by_key.lock().unwrap().get(key).unwrap_or_else(|| panic!("no object {key}")).clone()
    }

    /// Replaces an object.
    pub fn set(&self, key: &str, bytes: Vec<u8>) {
        self.by_key.lock().unwrap().insert(key.to_owned(), bytes);
    }

    /// Returns the keys of all objects that were put, in order.
    pub fn keys_put(&self) -> Vec<String> {
        self.put.lock().unwrap().clone()
    }

    /// Returns how many objects were put.
    pub fn puts(&self) -> usize {
        self.put.lock().unwrap().len()
    }

    /// Waits until this many objects were put.
    pub async fn wait_for_puts(&self, count: usize) {
        while self.puts() < count {
            self.has_put.notified().await;
        }
    }

    /// Drops all objects.
    pub fn clear(&self) {
        self.by_key.lock().unwrap().clear();
    }

    /// Lets every request fail, or none.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), ObjectStoreError> {
        if self.is_down.load(Ordering::Relaxed) { Err(ObjectStoreError::Status(503)) } else { Ok(()) }
    }
}

impl ObjectStore for Objects {
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>> {
        let object = self.by_key.lock().unwrap().get(key).cloned();
        let start = object.map(|mut bytes| {
            bytes.truncate(max_bytes);
            bytes
        });
        Box::pin(std::future::ready(self.check().map(|()| start)))
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        let stored = self.check().map(|()| {
            self.put.lock().unwrap().push(key.to_owned());
            self.set(key, bytes);
            self.has_put.notify_one();
        });
        Box::pin(std::future::ready(stored))
    }
}
