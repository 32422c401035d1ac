//! An in-process object store for tests: as slow and faulty as a table, or down.

use super::table::FaultyTable;
use futures_util::future::BoxFuture;
use shared::aws::object_store::{ObjectStore, ObjectStoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Factor on the table's latency.
const DISTANCE: u64 = 5;

/// Objects by key. Cheap to clone.
#[derive(Clone, Default)]
pub struct FaultyObjects {
    /// If set, the store has the latency and the failures of this table.
    table: Option<FaultyTable>,
    state: Arc<Mutex<State>>,
    has_put: Arc<Notify>,
}

#[derive(Default)]
struct State {
    by_key: BTreeMap<String, Vec<u8>>,
    is_down: bool,
    reads: u64,
    puts: Vec<String>,
}

impl FaultyObjects {
    #[must_use]
    pub fn new(table: FaultyTable) -> Self {
        Self { table: Some(table), ..Self::default() }
    }

    #[must_use]
    pub fn store(&self) -> Option<Arc<dyn ObjectStore>> {
        Some(Arc::new(self.clone()))
    }

    #[must_use]
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.state().by_key.get(key).cloned()
    }

    pub fn set(&self, key: &str, bytes: Vec<u8>) {
        self.state().by_key.insert(key.to_owned(), bytes);
    }

    pub fn clear(&self) {
        self.state().by_key.clear();
    }

    /// Makes every request fail or, if `is_down` is false, only as many as the table's faults determine.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    #[must_use]
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    #[must_use]
    pub fn keys_put(&self) -> Vec<String> {
        self.state().puts.clone()
    }

    pub async fn wait_for_puts(&self, count: usize) {
        while self.keys_put().len() < count {
            self.has_put.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(&self) -> Result<(), ObjectStoreError> {
        if self.state().is_down {
            return Err(ObjectStoreError::Status(503));
        }
        let Some(table) = &self.table else { return Ok(()) };
        let weaknesses = table.weaknesses();
        sleep(Duration::from_millis(table.random().below(DISTANCE * weaknesses.latency_millis + 1))).await;
        if table.random().chance(weaknesses.failed_per_mille) {
            table.show("failed calls to the object store");
            return Err(ObjectStoreError::Status(503));
        }
        Ok(())
    }
}

impl ObjectStore for FaultyObjects {
    fn get<'a>(&'a self, key: &'a str, max_bytes: usize) -> BoxFuture<'a, Result<Option<Vec<u8>>, ObjectStoreError>> {
        Box::pin(async move {
            self.carry().await?;
            let mut state = self.state();
            let Some(mut object) = state.by_key.get(key).cloned() else { return Ok(None) };
            state.reads += u64::from(object.len() <= max_bytes);
            object.truncate(max_bytes);
            Ok(Some(object))
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        Box::pin(async move {
            self.carry().await?;
            self.state().puts.push(key.to_owned());
            self.set(key, bytes);
            self.has_put.notify_one();
            Ok(())
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), ObjectStoreError>> {
        Box::pin(async move {
            self.carry().await?;
            self.state().by_key.remove(key);
            Ok(())
        })
    }
}
