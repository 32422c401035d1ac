//! A weak object store: late, and with the faults of the table.

use super::table::WeakTable;
use futures_util::future::BoxFuture;
use shared::store::object_store::{ObjectStore, ObjectStoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// How much longer than the table's the ways to the object store are.
const DISTANCE: u64 = 5;

/// Objects by key, in this process. Cheap to clone.
#[derive(Clone)]
pub struct WeakObjects {
    table: WeakTable,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    by_key: BTreeMap<String, Vec<u8>>,
    reads: u64,
}

impl WeakObjects {
    /// Returns a store without objects, which has the latency of this table, and fails as often.
    #[must_use]
    pub fn new(table: WeakTable) -> Self {
        Self { table, state: Arc::default() }
    }

    /// Drops all objects.
    pub fn clear(&self) {
        self.state().by_key.clear();
    }

    /// Returns how often an object was read as a whole.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(&self) -> Result<(), ObjectStoreError> {
        let weaknesses = self.table.weaknesses();
        sleep(Duration::from_millis(self.table.random().below(DISTANCE * weaknesses.latency_millis + 1))).await;
        if self.table.random().chance(weaknesses.failed_per_mille) {
            self.table.show("failed calls to the object store");
            return Err(ObjectStoreError::Status(503));
        }
        Ok(())
    }
}

impl ObjectStore for WeakObjects {
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
            self.state().by_key.insert(key.to_owned(), bytes);
            Ok(())
        })
    }
}
