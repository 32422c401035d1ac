//! The damage that a restore can do to an item, and what the check makes of it.

use super::transaction::{Transaction, items};
use dev_server::invariants;
use shared::store::keys::Item;
use shared::store::{CheckMode, CheckReport};

/// Prefixes of the sort keys of items that follow from the records; the last is the registry's.
const DERIVED: [&str; 4] = ["UNIQ#", "REFERENCES#", "NUMBER#", "T#"];
/// No other item shows their loss: a request's idempotency key is only in its response, and an upsert of an asset only in its
/// claim. Once lists show the asset, the claim is of no use. A creation passes tags that a counter gives once more.
const INVISIBLE: [&str; 3] = ["IDEMPOTENCY#", "SERIAL#", "SEQUENCE#"];

/// An item that is not as the transaction left it.
#[derive(Debug, Clone)]
pub struct Damage {
    pub key: (String, String),
    /// The damaged item; `None` if it is missing.
    pub item: Option<Item>,
}

fn is_one_of(prefixes: &[&str], (_, sort): &(String, String)) -> bool {
    prefixes.iter().any(|prefix| sort.starts_with(prefix))
}

/// After a while without writes.
async fn check(transaction: &Transaction, mode: CheckMode) -> CheckReport {
    transaction.api.advance_clock(11);
    transaction.api.store.tenant(transaction.client.tenant).check_items(mode, |_| ()).await.unwrap()
}

fn problems<'a>(findings: impl IntoIterator<Item = &'a shared::store::Finding>) -> Vec<String> {
    findings.into_iter().map(|it| format!("{}: {} -> {:?}", it.subject, it.problem, it.repair)).collect()
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

/// Damages items of a transaction, and checks that this is found, that what follows from the records is made again, and that
/// nothing else is touched.
pub async fn check_damage(transaction: &Transaction, damages: &[Damage]) {
    let mut damaged = transaction.after.clone();
    for Damage { key, item } in damages {
        match item {
            Some(item) => drop(damaged.insert(key.clone(), item.clone())),
            None => drop(damaged.remove(key)),
        }
    }
    transaction.set(&damaged).await;
    let found = problems(&check(transaction, CheckMode::ReadOnly).await.findings);
    let context = || format!("{:?}\n{found:#?}", damages.iter().map(|it| (&it.key.1, it.item.is_some())).collect::<Vec<_>>());
    assert!(items(&transaction.api).await == damaged, "a check without repair has written: {}", context());
    let all_are = |prefixes: &[&str]| damages.iter().all(|damage| is_one_of(prefixes, &damage.key));
    assert_eq!(found.is_empty(), all_are(&INVISIBLE), "{}", context());

    let repaired = check(transaction, CheckMode::Repair).await;
    assert_eq!(problems(&repaired.findings), found, "the check announced other repairs");
    assert!(repaired.findings.iter().all(|it| it.is_repaired == it.repair.is_ok()), "{repaired:#?} {}", context());
    let now = items(&transaction.api).await;
    let touched = damaged.keys().chain(now.keys()).filter(|key| damaged.get(*key) != now.get(*key));
    let others: Vec<_> = touched.filter(|key| !is_one_of(&DERIVED, key) && !key.1.starts_with("IDEMPOTENCY#")).collect();
    assert!(others.is_empty(), "repairing touched {others:#?}: {}", context());
    let open: Vec<_> = repaired.findings.iter().filter(|finding| !finding.is_repaired).collect();
    let left = check(transaction, CheckMode::ReadOnly).await;
    assert_eq!(problems(&left.findings), problems(open.iter().copied()), "{}", context());

    if damages.len() == 1 {
        assert_eq!(open.is_empty(), all_are(&DERIVED) || all_are(&INVISIBLE), "{open:#?} {}", context());
    }
    if all_are(&DERIVED) {
        assert!(now == transaction.after, "{}", context());
    }
    if open.is_empty() {
        let tenant = transaction.api.store.tenant(transaction.client.tenant);
        let violations = invariants::violations(&tenant, &transaction.api.dynamo, &transaction.api.table).await.unwrap();
        assert_eq!(violations, Vec::<String>::new(), "{}", context());
        let verification = tenant.verify_chains(|_, _| ()).await.unwrap();
        assert_eq!(verification.broken_links, [], "{}", context());
    }
}
