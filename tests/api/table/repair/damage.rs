//! The damage that a restore can do to an item, and the repair of it.

use super::transaction::{Items, Transaction, items};
use dev_server::invariants;
use serde_json::Value;
use shared::store::keys::{Item, Key, deleted_record};
use shared::store::{CheckMode, CheckReport};
use std::collections::BTreeSet;

/// An item that is not as the transaction left it.
#[derive(Debug, Clone)]
pub struct Damage {
    pub key: (String, String),
    /// The damaged item; `None` if it is missing.
    pub item: Option<Item>,
}

impl Damage {
    /// No other item shows the damage: a request's idempotency key is only in its response, and an upsert of an asset only in its
    /// claim. Once lists show the asset, the claim is of no use. A creation passes tags that a counter gives once more.
    fn is_invisible(&self) -> bool {
        ["IDEMPOTENCY#", "SERIAL#", "SEQUENCE#"].iter().any(|prefix| self.key.1.starts_with(prefix))
    }
}

/// After a while without writes.
async fn check(transaction: &Transaction, mode: CheckMode) -> CheckReport {
    transaction.api.advance_clock(11);
    transaction.api.store.tenant(transaction.client.tenant).check_items(mode, |_| ()).await.unwrap()
}

fn problems(report: &CheckReport) -> Vec<String> {
    report.findings.iter().map(|finding| format!("{}: {} -> {:?}", finding.subject, finding.problem, finding.repair)).collect()
}

pub async fn check_undamaged(transaction: &Transaction) {
    for state in [&transaction.before, &transaction.after] {
        transaction.set(state).await;
        // Before the first transaction there is no tenant.
        if state.len() > 1 {
            assert_eq!(check(transaction, CheckMode::Repair).await.findings, []);
        }
        assert!(items(&transaction.api).await == *state, "an undamaged tenant was changed");
    }
}

/// Damages items of a transaction, and checks that this is found and repaired, and that nothing else is touched.
pub async fn check_damage(transaction: &Transaction, damages: &[Damage]) {
    let mut damaged = transaction.after.clone();
    for Damage { key, item } in damages {
        match item {
            Some(item) => drop(damaged.insert(key.clone(), item.clone())),
            None => drop(damaged.remove(key)),
        }
    }
    transaction.set(&damaged).await;
    let found = problems(&check(transaction, CheckMode::ReadOnly).await);
    let context = || format!("{:?}\n{found:#?}", damages.iter().map(|it| (&it.key.1, it.item.is_some())).collect::<Vec<_>>());
    assert!(items(&transaction.api).await == damaged, "a check without repair has written: {}", context());
    assert_eq!(found.is_empty(), damages.iter().all(Damage::is_invisible), "{}", context());
    let repaired = check(transaction, CheckMode::Repair).await;
    assert!(repaired.findings.iter().all(|finding| finding.is_repaired), "{:#?} {}", problems(&repaired), context());
    assert_eq!(problems(&repaired), found, "the check announced other repairs");
    transaction.api.advance_clock(11);
    let tenant = transaction.api.store.tenant(transaction.client.tenant);
    let violations = invariants::violations(&tenant, &transaction.api.dynamo, &transaction.api.table).await.unwrap();
    assert_eq!(violations, Vec::<String>::new(), "{}", context());
    let verification = tenant.verify_chains(|_, _| ()).await.unwrap();
    assert_eq!(verification.broken_links, [], "{}", context());
    let touched = touched_elsewhere(transaction, &items(&transaction.api).await);
    assert!(touched.is_empty(), "repairing touched {touched:#?}: {}", context());
}

/// Items that the transaction left otherwise, and that do not belong to the records that it changed.
fn touched_elsewhere(transaction: &Transaction, now: &Items) -> Vec<String> {
    let written: BTreeSet<_> = transaction.written().into_iter().collect();
    let entity = |item: &Item| {
        let entry: Value = serde_json::from_str(item.get("entry")?.as_s().ok()?).ok()?;
        Some(entry["entity_id"].to_string())
    };
    let own: BTreeSet<String> = written.iter().filter_map(|key| entity(transaction.after.get(key)?)).collect();
    let keys: BTreeSet<_> = transaction.after.keys().chain(now.keys()).filter(|key| !written.contains(*key)).collect();
    let differs = |key: &&&(String, String)| transaction.after.get(**key) != now.get(**key);
    let is_own_entry = |key: &(String, String)| {
        let is_new = !transaction.after.contains_key(key);
        let is_tombstone = || {
            let deleted = deleted_record(&Key::of(&now[key]).unwrap());
            deleted.is_some_and(|(_, id)| own.contains(&format!("\"{id}\"")))
        };
        is_new && (now.get(key).and_then(entity).is_some_and(|entity| own.contains(&entity)) || is_tombstone())
    };
    keys.iter().filter(differs).filter(|key| !is_own_entry(key)).map(|key| key.1.clone()).collect()
}
