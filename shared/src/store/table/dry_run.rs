//! Dry runs: requests that decide everything and write nothing.
//!
//! A request's [`DryRun`] is part of its handles of the table ([`TenantStore`]). Units of work then check the conditions of their
//! writes instead of writing, and keep the results here, so that the request's later reads and units find it as if it were in the
//! table.

use crate::store::keys::{Item, Key};
use crate::store::table::condition::Check;
use crate::store::table::error::StoreError;
use crate::store::table::transaction::{TransactionError, TransactionItem};
use crate::store::{Store, TenantStore};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

const MAX_NUMBERS: u64 = 1_000_000;
/// The prefixes, of twelve digits, of numbers that a dry run reserves. No counter gets that far.
const NUMBER_PREFIXES: u64 = 900_000_000_000;
const FIRST_NUMBER_PREFIX: u64 = 100_000_000_000;
/// Longer texts are not searched for placeholders: assigned texts are shorter.
const MAX_PLACEHOLDER_TEXT: usize = 512;

/// The writes that a dry run has left out so far. Cheap to clone; all clones share it. Without `Debug`, since it has secrets.
#[derive(Clone, Default)]
pub struct DryRun(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    /// The items that the units of work would leave under their keys; `None` for a deleted item. Counted references are
    /// missing.
    items: HashMap<Key, Option<Item>>,
    /// Texts in the place of those that only the real request assigns.
    placeholders: BTreeSet<String>,
    /// The first digits and the count of reserved numbers.
    numbers: Option<(u64, u64)>,
}

impl DryRun {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of the writes so far: `None` if the request would not have written the item, `Some(None)` if it would have
    /// deleted the item.
    pub(in crate::store) fn item(&self, key: &Key) -> Option<Option<Item>> {
        self.plan().items.get(key).cloned()
    }

    /// A text that only the real request would assign, such as an ID or a secret.
    pub(crate) fn add_placeholder(&self, text: impl Into<String>) {
        self.plan().placeholders.insert(text.into());
    }

    /// Reserves numbers for asset tags or movements that no counter gives, and returns the last one.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the request reserves more than a million.
    pub(in crate::store) fn reserve_numbers(&self, count: u64, random: [u8; 8]) -> Result<u64, StoreError> {
        let mut plan = self.plan();
        let first = || (FIRST_NUMBER_PREFIX + u64::from_le_bytes(random) % NUMBER_PREFIXES, 0);
        let (prefix, used) = plan.numbers.get_or_insert_with(first);
        *used = used.saturating_add(count);
        if *used >= MAX_NUMBERS {
            return Err(StoreError::broken("a dry run reserves too many numbers"));
        }
        Ok(*prefix * MAX_NUMBERS + *used)
    }

    /// A text that only the real request would assign, or that contains one: the path of a new record, or a tag with a reserved
    /// number.
    #[must_use]
    pub fn is_placeholder(&self, text: &str) -> bool {
        if text.len() > MAX_PLACEHOLDER_TEXT {
            return false;
        }
        let plan = self.plan();
        let is_known = |text: &str| plan.placeholders.contains(text);
        let has_number = || plan.numbers.is_some_and(|(prefix, _)| text.contains(&prefix.to_string()));
        is_known(text) || text.starts_with('/') && text.split('/').any(is_known) || has_number()
    }
}

impl TenantStore {
    #[must_use]
    pub fn in_dry_run(self, dry_run: DryRun) -> Self {
        Self { dry_run: Some(dry_run), ..self }
    }

    /// A text that only the real request would assign.
    #[must_use]
    pub fn is_placeholder(&self, text: &str) -> bool {
        self.dry_run.as_ref().is_some_and(|dry_run| dry_run.is_placeholder(text))
    }

    /// For a text that only the real request assigns, such as a new secret. A dry run shows null in its place. IDs of new
    /// records, asset tags and movement numbers need no note.
    pub fn note_assigned(&self, text: &str) {
        if let Some(dry_run) = &self.dry_run {
            dry_run.add_placeholder(text);
        }
    }
}

impl Store {
    /// Checks the conditions of all items as [`Store::transact`] does, and writes nothing. Keeps what the items and the updates
    /// of `records` would leave.
    ///
    /// Conditions on earlier writes of the same request are decided by those.
    pub(in crate::store) async fn try_out(
        &self,
        dry_run: &DryRun,
        items: Vec<TransactionItem>,
        records: Vec<Item>,
        deadline: Instant,
    ) -> Result<(), TransactionError> {
        let (mut checks, mut left, mut failure) = (Vec::new(), Vec::new(), None);
        for TransactionItem { condition, write } in items {
            left.extend(left_by(&write));
            let check = Check::of(write).map_err(TransactionError::Store)?;
            let Some(present) = Key::of(&check.key).and_then(|key| dry_run.item(&key)) else {
                let write = check.into_write(&self.table).map_err(TransactionError::Store)?;
                checks.push(TransactionItem { condition, write });
                continue;
            };
            if !check.is_met_by(present.as_ref()) {
                // The first condition that fails is reported, and those before it are still to be checked.
                failure = Some(TransactionError::ConditionFailed(condition, present));
                break;
            }
        }
        if !checks.is_empty() {
            self.transact(checks, deadline).await?;
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        left.extend(records.into_iter().filter_map(|item| Some((Key::of(&item)?, Some(item)))));
        dry_run.plan().items.extend(left);
        Ok(())
    }
}

/// The result of a put or a deletion. Updates don't show it.
fn left_by(write: &aws_sdk_dynamodb::types::TransactWriteItem) -> Option<(Key, Option<Item>)> {
    match (&write.put, &write.delete) {
        (Some(put), _) => Some((Key::of(&put.item)?, Some(put.item.clone()))),
        (_, Some(delete)) => Some((Key::of(&delete.key)?, None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_numbers_differ_and_are_recognized_in_tags_and_nowhere_else() {
        let dry_run = DryRun::default();
        assert!(!dry_run.is_placeholder("AST-000001"));
        let numbers: Vec<u64> = [1, 1, 200, 1].map(|count| dry_run.reserve_numbers(count, [7; 8]).unwrap()).into();
        assert_eq!(numbers.iter().map(|number| number - numbers[0]).collect::<Vec<_>>(), [0, 1, 201, 202]);
        for number in numbers {
            assert!(dry_run.is_placeholder(&format!("AST-{number}-X")));
        }
        assert!(!dry_run.is_placeholder("AST-000001") && !dry_run.is_placeholder(""));
        assert!(dry_run.reserve_numbers(MAX_NUMBERS, [7; 8]).is_err());
    }

    #[test]
    fn a_placeholder_is_recognized_alone_and_in_paths() {
        let dry_run = DryRun::default();
        dry_run.add_placeholder("an-id");
        for (text, expected) in
            [("an-id", true), ("/v1/assets/an-id", true), ("/v1/x/an-id/y", true), ("see an-id", false), ("/v1/an-idea", false)]
        {
            assert_eq!(dry_run.is_placeholder(text), expected, "{text}");
        }
    }
}
