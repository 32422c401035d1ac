//! Transactions of which a restore has only a part: each item of each kind of transaction in turn is removed or put back to its
//! earlier state. The check must find it; a repair makes again what follows from the records, and touches nothing else.

mod caution;
mod transactions;

use crate::support::{Api, Client, Reply, all_items, sample};
use axum::http::StatusCode;
use dev_server::invariants;
use serde_json::Value;
use shared::store::keys::{Item, Key};
use shared::store::{CheckMode, CheckReport};
use std::collections::BTreeMap;

/// The items of a table by partition and sort key, without request counters.
pub type Items = BTreeMap<(String, String), Item>;

/// A transaction and the service that committed it.
pub struct Transaction {
    pub api: Api,
    pub client: Client,
    pub before: Items,
    pub after: Items,
}

pub async fn items(api: &Api) -> Items {
    let text = |item: &Item, name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
    let items = all_items(api).await.into_iter().filter(|item| text(item, "type") != "rate");
    items.map(|item| ((text(&item, "PK"), text(&item, "SK")), item)).collect()
}

impl Transaction {
    /// Commits a transaction: `act` sends the request.
    pub async fn commit<F: Future<Output = ()>>(api: Api, client: Client, act: impl FnOnce(Client) -> F) -> Self {
        client.use_key_once().await;
        let before = items(&api).await;
        act(client.clone()).await;
        let after = items(&api).await;
        assert_ne!(before, after, "nothing was written");
        Self { api, client, before, after }
    }

    /// Commits the change that a POST with an idempotency key makes.
    pub async fn post(api: Api, client: Client, path: &str, body: Value) -> Self {
        Self::commit(api, client, async |client| {
            let reply = client.send_json("POST", path, &body.to_string(), ("idempotency-key", "once")).await;
            assert!(reply.status.is_success(), "{} {}", reply.status, reply.text());
        })
        .await
    }

    /// Commits the change of a PATCH or a DELETE.
    pub async fn send(api: Api, client: Client, method: &str, path: &str, body: Value) -> Self {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Self::commit(api, client, async |client| {
            let reply: Reply = client.send(method, path, Some("application/json"), body).await;
            assert!(matches!(reply.status, StatusCode::OK | StatusCode::NO_CONTENT), "{} {}", reply.status, reply.text());
        })
        .await
    }

    pub fn written(&self) -> Vec<(String, String)> {
        let keys = self.before.keys().chain(self.after.keys());
        let mut written: Vec<_> = keys.filter(|key| self.before.get(*key) != self.after.get(*key)).cloned().collect();
        written.sort();
        written.dedup();
        written
    }

    /// Each item as it was before the transaction, or missing.
    pub fn damages(&self) -> Vec<Damage> {
        let mut damages = Vec::new();
        for key in self.written() {
            let (before, after) = (self.before.get(&key).cloned(), self.after.get(&key).cloned());
            if after.is_some() && before.is_some() {
                damages.push(Damage { key: key.clone(), item: None });
            }
            damages.push(Damage { key, item: before });
        }
        damages
    }

    /// Afterwards, the table has all items of `wanted`, and no others.
    pub async fn set(&self, wanted: &Items) {
        let present = items(&self.api).await;
        for (key, item) in &present {
            if !wanted.contains_key(key) {
                let key = Key::of(item).unwrap().item();
                self.api.dynamo.delete_item().table_name(&self.api.table).set_key(Some(key)).send().await.unwrap();
            }
        }
        for (key, item) in wanted {
            if present.get(key) != Some(item) {
                self.api.dynamo.put_item().table_name(&self.api.table).set_item(Some(item.clone())).send().await.unwrap();
            }
        }
    }
}

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

/// Items of a transaction that are damaged every day.
const SHORT: usize = 2;

/// Damages each item of a transaction in turn.
async fn check_each_item(transaction: Transaction) {
    check_undamaged(&transaction).await;
    for damage in sample(transaction.damages(), SHORT) {
        check_damage(&transaction, &[damage]).await;
    }
}
