//! The transaction of a repair, on condition that its items are still as they were read.

use super::{CheckMode, Finding, TenantCheck};
use crate::domain::values::time::Timestamp;
use crate::store::client::OPERATION_TIMEOUT;
use crate::store::keys::{Item, Key, Keys, PK, SK};
use crate::store::table::condition::Condition;
use crate::store::table::delays::max_event_delay;
use crate::store::table::error::StoreError;
use crate::store::table::item::{LAST_HASH, VERSION};
use crate::store::table::transaction::{Purpose, TransactionError, TransactionItem, Write};
use crate::store::{Store, TenantStore};
use aws_sdk_dynamodb::types::AttributeValue;
use std::time::Duration;
use tokio::time::Instant;

/// Attributes that differ whenever a record's item does, but for the time of a key's last use.
const RECORD_STATE: [&str; 2] = [VERSION, LAST_HASH];
/// Longer values are not compared. Items that have them have others that differ as well.
const MAX_COMPARED_BYTES: usize = 1024;

/// The longest wait of a repair for others to stop writing, and the pause between looks.
const MAX_WAIT: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_millis(500);

pub(super) struct Change {
    store: Store,
    items: Vec<TransactionItem>,
}

impl Change {
    pub(super) fn new(store: &Store) -> Self {
        Self { store: store.clone(), items: Vec::new() }
    }

    pub(super) fn insert(self, item: Item) -> Self {
        self.with(Condition::MISSING, Write::Put(item))
    }

    pub(super) fn replace(self, before: &Item, after: Item) -> Self {
        self.with(unchanged(before), Write::Put(after))
    }

    pub(super) fn remove(self, before: &Item) -> Result<Self, StoreError> {
        let key = Key::of(before).ok_or_else(|| StoreError::broken("an item without a key"))?;
        Ok(self.with(unchanged(before), Write::Delete(key)))
    }

    fn with(mut self, condition: Condition, write: Write) -> Self {
        self.items.push(TransactionItem { purpose: Purpose::RecordState, condition, write });
        self
    }

    /// Returns whether it took effect: it does not if an item has changed since it was read.
    pub(super) async fn commit(self) -> Result<bool, StoreError> {
        match self.store.transact(self.items, Instant::now() + OPERATION_TIMEOUT).await {
            Ok(()) => Ok(true),
            Err(TransactionError::ConditionFailed(..) | TransactionError::ConcurrentRequest) => Ok(false),
            Err(TransactionError::Store(error)) => Err(error),
        }
    }
}

/// The condition that an item is as it was read.
fn unchanged(before: &Item) -> Condition {
    let is_compared = |name: &str, value: &AttributeValue| {
        let is_short = value.as_s().map_or(true, |text| text.len() <= MAX_COMPARED_BYTES) && !value.is_b();
        name != PK && name != SK && is_short
    };
    let is_same = |name: &str, value: &AttributeValue| Condition::is(name, value.clone());
    let mut conditions = vec![Condition::EXISTS];
    if before.contains_key(VERSION) {
        let of_record = |name| before.get(name).map_or(Condition::Lacks(name), |value| is_same(name, value));
        conditions.extend(RECORD_STATE.map(of_record));
    } else {
        let compared = before.iter().filter(|(name, value)| is_compared(name, value));
        conditions.extend(compared.map(|(name, value)| is_same(name, value)));
    }
    Condition::All(conditions)
}

impl TenantStore {
    /// Waits until all events are old enough that none of their time is missing. Returns whether that happened.
    pub(super) async fn wait_for_quiet(&self) -> Result<bool, StoreError> {
        let end = Instant::now() + MAX_WAIT;
        while self.has_events_since(self.store.now().plus(-max_event_delay())).await? {
            if Instant::now() >= end {
                return Ok(false);
            }
            tokio::time::sleep(WAIT).await;
        }
        Ok(true)
    }

    async fn has_events_since(&self, since: Timestamp) -> Result<bool, StoreError> {
        let (from, to) = Keys::events_since(since);
        let query = self.events_query(from, to).projection_expression("#pk, #sk").limit(1);
        Ok(!query.send().await?.items.unwrap_or_default().is_empty())
    }
}

impl TenantCheck<'_> {
    pub(super) fn change(&self) -> Change {
        Change::new(self.store.store())
    }

    /// Records a finding and, if the check repairs, writes its repair.
    pub(super) async fn repair(
        &mut self,
        subject: impl Into<String>,
        problem: impl Into<String>,
        repair: impl Into<String>,
        change: Change,
    ) -> Result<(), StoreError> {
        let (subject, problem, mut repair, mut is_repaired) = (subject.into(), problem.into(), Ok(repair.into()), false);
        if self.mode == CheckMode::Repair {
            if self.is_written_by_others().await? {
                repair = Err("others are writing to the tenant; stop them and check again".to_owned());
            } else if change.commit().await? {
                is_repaired = true;
            } else {
                repair = Err("it has changed since it was read; check again".to_owned());
            }
        }
        self.findings.push(Finding { subject, problem, repair, is_repaired });
        Ok(())
    }

    /// Somebody has written an event since the check began: the check itself writes none.
    pub(super) async fn is_written_by_others(&self) -> Result<bool, StoreError> {
        self.store.has_events_since(self.began).await
    }
}
