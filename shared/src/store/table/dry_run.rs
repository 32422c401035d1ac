//! Dry runs: a request decides everything and writes nothing.

use crate::domain::keys::api_key::prefix;
use crate::domain::record::Kind;
use crate::domain::values::id::{ApiKeyId, Id};
use crate::store::keys::{Item, Key};
use crate::store::table::unit_of_work::{Purpose, TransactionError, TransactionItem, Write};
use crate::store::{Reader, StoreError};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

const MAX_NUMBERS: u64 = 1_000_000;
/// Number of possible prefixes for the numbers that a dry run reserves. Prefixes have twelve digits; no counter reaches such
/// numbers.
const NUMBER_PREFIXES: u64 = 900_000_000_000;
const FIRST_NUMBER_PREFIX: u64 = 100_000_000_000;
/// Longer texts are not searched for placeholders, because assigned texts are shorter.
const MAX_PLACEHOLDER_TEXT: usize = 512;

/// The planned writes of a dry run, a request that decides everything and writes nothing. The plan is part of the request's
/// [`Reader`]. Instead of writing, units of work read the items in their conditions, and store the planned items here. The
/// request's later reads and units of work find these items as if they were in the table.
///
/// Cheap to clone; all clones share the planned writes. Doesn't implement `Debug`, because it contains secrets.
#[derive(Clone, Default)]
pub struct DryRun(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    /// Items as the units of work would leave them; `None` for a deleted item.
    items: HashMap<Key, Option<Item>>,
    /// Placeholders for texts that only the real request assigns.
    placeholders: BTreeSet<String>,
    /// Prefix and count of the reserved numbers.
    numbers: Option<(u64, u64)>,
}

impl DryRun {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the planned state of an item: `None` if the request would not have written it, `Some(None)` if it would have
    /// deleted it.
    pub(in crate::store) fn item(&self, key: &Key) -> Option<Option<Item>> {
        self.plan().items.get(key).cloned()
    }

    /// Adds a string that only the real request would assign.
    pub(crate) fn add_placeholder(&self, text: impl Into<String>) {
        self.plan().placeholders.insert(text.into());
    }

    /// Reserves numbers for asset tags or movements, beyond the range of any counter, and returns the last number. Fails when the
    /// request reserves more than a million numbers.
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

    /// Whether only the real request would assign this text or a part of it, as in the path of a new record or a tag with a
    /// reserved number.
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

impl Reader {
    #[must_use]
    pub fn in_dry_run(self, dry_run: DryRun) -> Self {
        Self { dry_run: Some(dry_run), ..self }
    }

    #[must_use]
    pub fn is_placeholder(&self, text: &str) -> bool {
        self.dry_run.as_ref().is_some_and(|dry_run| dry_run.is_placeholder(text))
    }

    /// Notes the ID of a new record, and the text that shows an API key by its ID.
    pub(in crate::store) fn note_created(&self, kind: Kind, id: Uuid) {
        let Some(dry_run) = &self.dry_run else { return };
        dry_run.add_placeholder(id.to_string());
        if kind == Kind::ApiKey {
            dry_run.add_placeholder(prefix(ApiKeyId::from_uuid(id)));
        }
    }

    /// Evaluates the conditions as the table would, but writes nothing. Stores the planned items in the dry run, for the
    /// conditions of the request's later units of work.
    pub(in crate::store) async fn try_out(&self, dry_run: &DryRun, items: Vec<TransactionItem>) -> Result<(), TransactionError> {
        let keys: Result<Vec<Key>, StoreError> = items.iter().map(|item| item.write.key()).collect();
        let keys = keys.map_err(TransactionError::Store)?;
        if keys.iter().collect::<HashSet<_>>().len() < keys.len() {
            // DynamoDB rejects such a transaction.
            return Err(TransactionError::Store(StoreError::broken("a transaction with two writes of an item")));
        }
        // Most invariants say that a new key is free, which needs no read.
        let can_fail = |item: &TransactionItem| item.purpose != Purpose::Invariant;
        let unknown = items.iter().zip(&keys).filter(|(item, key)| can_fail(item) && dry_run.item(key).is_none());
        let unknown: Vec<Key> = unknown.map(|(_, key)| key.clone()).collect();
        let mut read = self.items(&unknown).await.map_err(TransactionError::Store)?;
        // This lock lets concurrent units of work in the same request check their conditions one after another.
        let mut plan = dry_run.plan();
        let mut left = Vec::new();
        for (item, key) in items.into_iter().zip(keys) {
            let current = plan.items.get(&key).cloned().unwrap_or_else(|| read.remove(&key));
            if can_fail(&item) && !item.condition.is_met_by(current.as_ref()) {
                return Err(TransactionError::ConditionFailed(item.purpose, current));
            }
            if !matches!(item.write, Write::Check(_)) {
                left.push((key, item.write.applied_to(current)));
            }
        }
        plan.items.extend(left);
        Ok(())
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
