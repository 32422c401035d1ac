//! The transaction of a repair.

use super::{CheckMode, Finding, TenantCheck};
use crate::domain::values::id::EventId;
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::client::OPERATION_TIMEOUT;
use crate::store::history::of_record::entry_of;
use crate::store::keys::{Item, Key, Keys, PK, SK, event_id};
use crate::store::table::condition::Condition;
use crate::store::table::delays::max_event_delay;
use crate::store::table::error::StoreError;
use crate::store::table::item::{LAST_HASH, VERSION};
use crate::store::table::transaction::{Purpose, TransactionError, TransactionItem, Write};
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

/// Each write requires that its item is still as it was read.
pub(super) struct Change {
    /// Readers of the change feed rely on an event being written soon after its id was made.
    deadline: Instant,
    items: Vec<TransactionItem>,
    planned: Vec<(Key, Option<Item>)>,
}

impl Change {
    pub(super) fn insert(self, item: Item) -> Result<Self, StoreError> {
        self.with(Condition::MISSING, Some(item.clone()), Write::Put(item))
    }

    pub(super) fn replace(self, before: &Item, after: Item) -> Result<Self, StoreError> {
        self.with(unchanged(before), Some(after.clone()), Write::Put(after))
    }

    pub(super) fn remove(self, before: &Item) -> Result<Self, StoreError> {
        let key = Key::of(before).ok_or_else(|| StoreError::broken("an item without a key"))?;
        self.with(unchanged(before), None, Write::Delete(key))
    }

    fn with(mut self, condition: Condition, after: Option<Item>, write: Write) -> Result<Self, StoreError> {
        self.planned.push((write.key()?, after));
        self.items.push(TransactionItem { purpose: Purpose::RecordState, condition, write });
        Ok(self)
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
        while !self.event_ids_since(self.store.now().plus(-max_event_delay())).await?.is_empty() {
            if Instant::now() >= end {
                return Ok(false);
            }
            tokio::time::sleep(WAIT).await;
        }
        Ok(true)
    }

    async fn event_ids_since(&self, since: Timestamp) -> Result<Vec<EventId>, StoreError> {
        let (from, to) = Keys::events_since(since);
        let items = self.every(self.events_query(from, to).projection_expression("#pk, #sk")).await?;
        Ok(items.iter().filter_map(Key::of).filter_map(|key| event_id(&key)).collect())
    }
}

impl TenantCheck<'_> {
    pub(super) fn change(&self) -> Change {
        let deadline = Instant::now() + OPERATION_TIMEOUT;
        Change { deadline, items: Vec::new(), planned: Vec::new() }
    }

    /// Records a finding and, if the check repairs, writes its repair. Returns whether the repair took effect or, for a
    /// check that only reads, would have.
    pub(super) async fn repair(
        &mut self,
        subject: impl Into<String>,
        problem: impl Into<String>,
        repair: impl Into<String>,
        change: Change,
    ) -> Result<bool, StoreError> {
        let mut finding =
            Finding { subject: subject.into(), problem: problem.into(), repair: Ok(repair.into()), is_repaired: false };
        let Change { items, planned, deadline } = change;
        if self.mode == CheckMode::ReadOnly {
            self.planned.extend(planned);
            self.findings.push(finding);
            return Ok(true);
        }
        if self.is_disturbed || self.is_written_by_others().await? {
            self.is_disturbed = true;
            finding.repair = Err("others are writing to the tenant; stop them and check again".into());
        } else {
            match self.store.store().transact(items, deadline).await {
                Ok(()) => finding.is_repaired = true,
                Err(TransactionError::ConditionFailed(..) | TransactionError::ConcurrentRequest) => {
                    self.is_disturbed = true;
                    finding.repair = Err("it has changed since it was read; check again".into());
                }
                Err(TransactionError::Store(error)) => return Err(error),
            }
        }
        if finding.is_repaired {
            self.know_events(&planned);
        }
        let is_repaired = finding.is_repaired;
        self.findings.push(finding);
        Ok(is_repaired)
    }

    /// Remembers the events that a repair has written.
    fn know_events(&mut self, written: &[(Key, Option<Item>)]) {
        for entry in written.iter().filter_map(|(_, item)| entry_of(item.as_ref()?)) {
            self.own_events.insert(entry.id);
            if let Some(((_, id), _)) = crate::domain::history::chain::subject(&entry.text) {
                self.recent.entry(id).or_default().push(entry);
            }
        }
    }

    /// Somebody else has written an event since the check began.
    async fn is_written_by_others(&mut self) -> Result<bool, StoreError> {
        let since = self.looked_at.plus(-max_event_delay()).max(self.began);
        self.looked_at = self.store.store().now();
        Ok(self.store.event_ids_since(since).await?.iter().any(|id| !self.own_events.contains(id)))
    }

    /// Reads an item as it is after the repairs so far.
    pub(super) async fn item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        match self.planned.get(key) {
            Some(planned) => Ok(planned.clone()),
            None => self.store.item(key).await,
        }
    }
}
