//! The operator's limit for all requests of a tenant together. Most tenants have none.

use crate::domain::keys::rate::window;
use crate::domain::values::id::{Id, TenantId};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::client::{self, OPERATION_TIMEOUT};
use crate::store::keys::{self, Item, TYPE};
use crate::store::table::condition::Condition;
use crate::store::table::error::{StoreError, WriteError};
use crate::store::table::transaction::{Purpose, TransactionItem, Write};
use crate::store::table::unit_of_work::write_error;
use crate::store::tenants::rate::COUNT_TIMEOUT;
use crate::store::tenants::tenant_deletion::DELETION_BEGAN;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::{Instant, timeout};

const LIMIT: &str = "requests_per_minute";
/// The most tenants in memory.
const MAX_TENANTS: usize = 10_000;

/// The ceilings that this function instance has read, with the minutes in which it read them.
#[derive(Debug, Default)]
pub(in crate::store) struct Ceilings(Mutex<HashMap<TenantId, (i64, Option<u32>)>>);

impl Ceilings {
    /// `None` if it was not read in this minute or later.
    fn known(&self, tenant: TenantId, minute: i64) -> Option<Option<u32>> {
        self.ceilings().get(&tenant).filter(|(read, _)| *read >= minute).map(|(_, limit)| *limit)
    }

    fn insert(&self, tenant: TenantId, minute: i64, limit: Option<u32>) {
        let mut ceilings = self.ceilings();
        if ceilings.len() >= MAX_TENANTS && !ceilings.contains_key(&tenant) {
            // Rare, and it costs each tenant one read.
            ceilings.clear();
        }
        ceilings.insert(tenant, (minute, limit));
    }

    fn ceilings(&self) -> MutexGuard<'_, HashMap<TenantId, (i64, Option<u32>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantStore {
    /// Returns how many requests of the tenant are permitted in the minute of `at`, `None` without a ceiling. Reads it once in
    /// each minute, for half a read unit: a change takes effect with the next minute.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table throttles or does not respond within [`COUNT_TIMEOUT`].
    pub(crate) async fn ceiling_of_minute(&self, at: Timestamp) -> Result<Option<u32>, StoreError> {
        let (ceilings, minute) = (&self.store.ceilings, window(at));
        if let Some(limit) = ceilings.known(self.id, minute) {
            return Ok(limit);
        }
        let key = self.keys.ceiling(self.id.uuid());
        let read = self.store.client.get_item().table_name(&self.store.table).set_key(Some(key.item()));
        let read = read.customize().config_override(client::dispensable()).send();
        let read = timeout(COUNT_TIMEOUT, read).await.map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?;
        let limit = read?.item.as_ref().map(limit).transpose()?;
        ceilings.insert(self.id, minute, limit);
        Ok(limit)
    }

    /// Returns how many requests of the tenant the operator permits in each minute.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn ceiling(&self) -> Result<Option<u32>, StoreError> {
        self.item(&self.keys.ceiling(self.id.uuid())).await?.as_ref().map(limit).transpose()
    }

    /// Sets or removes the ceiling.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] for a tenant that does not exist or is being deleted, and [`WriteError::Store`] when the
    /// table can't be written.
    pub async fn set_ceiling(&self, limit: Option<u32>) -> Result<(), WriteError> {
        let key = self.keys.ceiling(self.id.uuid());
        let write = match limit {
            None => Write::Delete(key),
            Some(limit) => {
                let mut item = key.item();
                item.insert(LIMIT.to_owned(), AttributeValue::N(limit.to_string()));
                item.insert(TYPE.to_owned(), AttributeValue::S("ceiling".to_owned()));
                Write::Put(item)
            }
        };
        let is_registered = Condition::All(vec![Condition::EXISTS, Condition::Lacks(DELETION_BEGAN)]);
        let items = [(is_registered, Write::Check(keys::registry(self.id))), (Condition::ALWAYS, write)];
        let items = items.map(|(condition, write)| TransactionItem { purpose: Purpose::RecordState, condition, write });
        self.store.transact(items.into(), Instant::now() + OPERATION_TIMEOUT).await.map_err(write_error)
    }
}

fn limit(item: &Item) -> Result<u32, StoreError> {
    let limit = item.get(LIMIT).and_then(|limit| limit.as_n().ok()?.parse().ok());
    limit.ok_or_else(|| StoreError::broken("a ceiling without a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(n: u16) -> TenantId {
        let [high, low] = n.to_be_bytes();
        TenantId::new(Timestamp::from_millis(0), [high, low, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn a_ceiling_is_known_in_its_minute_and_before() {
        let ceilings = Ceilings::default();
        ceilings.insert(tenant(1), 7, Some(100));
        ceilings.insert(tenant(2), 7, None);
        assert_eq!([6, 7, 8].map(|minute| ceilings.known(tenant(1), minute)), [Some(Some(100)), Some(Some(100)), None]);
        assert_eq!([7, 8].map(|minute| ceilings.known(tenant(2), minute)), [Some(None), None]);
    }

    #[test]
    fn the_number_of_tenants_is_limited() {
        let ceilings = Ceilings::default();
        for n in 0..25_000 {
            ceilings.insert(tenant(n), 0, None);
            assert!(ceilings.ceilings().len() <= MAX_TENANTS && ceilings.known(tenant(n), 0).is_some());
        }
    }
}
