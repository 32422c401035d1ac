//! Transactions that a restore contains only in part: each item of each kind of transaction is removed, or reverted to its
//! earlier state. The check must report it. A repair rebuilds derived items and changes nothing else: no record, no event, no
//! item of an unknown record, and nothing with a change in progress.

use crate::support::prelude::*;
use axum::http::StatusCode;
use dev_server::invariants;
use shared::store::CheckReport;

/// The items of a table by partition and sort key, without request counters.
type Items = BTreeMap<(String, String), Item>;

/// A transaction, and the service that committed it.
struct Transaction {
    api: Api,
    client: Client,
    before: Items,
    after: Items,
}

async fn items(api: &Api) -> Items {
    let text = |item: &Item, name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
    let items = all_items(api).await.into_iter().filter(|item| text(item, "type") != "rate");
    items.map(|item| ((text(&item, "PK"), text(&item, "SK")), item)).collect()
}

impl Transaction {
    /// Commits a transaction: `act` sends the request.
    async fn commit<F: Future<Output = ()>>(api: Api, client: Client, act: impl FnOnce(Client) -> F) -> Self {
        client.use_key_once().await;
        let before = items(&api).await;
        act(client.clone()).await;
        let after = items(&api).await;
        assert_ne!(before, after, "nothing was written");
        Self { api, client, before, after }
    }

    /// Commits the change of a POST with an idempotency key.
    async fn post(api: Api, client: Client, path: &str, body: Value) -> Self {
        Self::commit(api, client, async |client| {
            client.post_once(path, &body, "once").await.data();
        })
        .await
    }

    /// Commits the change of a PATCH or a DELETE.
    async fn send(api: Api, client: Client, method: &str, path: &str, body: Value) -> Self {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Self::commit(api, client, async |client| {
            let reply: Reply = client.send(method, path, Some("application/json"), body).await;
            assert!(matches!(reply.status, StatusCode::OK | StatusCode::NO_CONTENT), "{} {}", reply.status, reply.text());
        })
        .await
    }

    fn written(&self) -> Vec<(String, String)> {
        let keys = self.before.keys().chain(self.after.keys());
        let mut written: Vec<_> = keys.filter(|key| self.before.get(*key) != self.after.get(*key)).cloned().collect();
        written.sort();
        written.dedup();
        written
    }

    /// Returns each written item as it was before the transaction. An item that existed before and after is also removed.
    fn damages(&self) -> Vec<Damage> {
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

    /// Sets the table to exactly these items.
    async fn set(&self, wanted: &Items) {
        let present = items(&self.api).await;
        for (key, item) in &present {
            if !wanted.contains_key(key) {
                let key = Key::of(item).unwrap().item();
                delete_item(&self.api, &key).await;
            }
        }
        for (key, item) in wanted {
            if present.get(key) != Some(item) {
                self.api.dynamo.put_item().table_name(&self.api.table).set_item(Some(item.clone())).send().await.unwrap();
            }
        }
    }
}

/// Sort key prefixes of items that can be derived from records; the last one is the registry's.
const DERIVED: [&str; 4] = ["UNIQ#", "REFERENCES#", "NUMBER#", "T#"];
/// No other item reveals the loss of these: an idempotency key is only in its stored response, and an upsert only in its claim,
/// which is useless once lists show the asset. If a counter is lost, creations skip tags that are taken.
const INVISIBLE: [&str; 3] = ["IDEMPOTENCY#", "SERIAL#", "SEQUENCE#"];

/// An item that differs from the transaction's result.
#[derive(Debug, Clone)]
struct Damage {
    key: (String, String),
    /// The damaged item; `None` if it was removed.
    item: Option<Item>,
}

fn is_one_of(prefixes: &[&str], (_, sort): &(String, String)) -> bool {
    prefixes.iter().any(|prefix| sort.starts_with(prefix))
}

/// Runs the check after a while without writes.
async fn check(transaction: &Transaction, mode: CheckMode) -> CheckReport {
    transaction.api.advance_clock(11);
    transaction.api.store.writer(transaction.client.tenant).check_items(mode, |_| ()).await.unwrap()
}

fn findings<'a>(findings: impl IntoIterator<Item = &'a shared::store::Finding>) -> Vec<String> {
    findings.into_iter().map(|it| format!("{}: {} -> {:?}", it.subject, it.problem, it.repair)).collect()
}

async fn check_undamaged(transaction: &Transaction) {
    for state in [&transaction.before, &transaction.after] {
        transaction.set(state).await;
        // Before the first transaction, there is no tenant to check.
        if state.len() > 1 {
            assert_eq!(check(transaction, CheckMode::Repair).await.findings, []);
        }
        assert!(items(&transaction.api).await == *state, "an undamaged tenant was changed");
    }
}

/// Damages items of a transaction, and checks that the damage is reported, that derived items are rebuilt, and that nothing
/// else changes.
async fn check_damage(transaction: &Transaction, damages: &[Damage]) {
    let mut damaged = transaction.after.clone();
    for Damage { key, item } in damages {
        match item {
            Some(item) => drop(damaged.insert(key.clone(), item.clone())),
            None => drop(damaged.remove(key)),
        }
    }
    transaction.set(&damaged).await;
    let found = findings(&check(transaction, CheckMode::ReadOnly).await.findings);
    let context = || format!("{:?}\n{found:#?}", damages.iter().map(|it| (&it.key.1, it.item.is_some())).collect::<Vec<_>>());
    assert!(items(&transaction.api).await == damaged, "a check without repair has written: {}", context());
    let all_are = |prefixes: &[&str]| damages.iter().all(|damage| is_one_of(prefixes, &damage.key));
    assert_eq!(found.is_empty(), all_are(&INVISIBLE), "{}", context());

    let repaired = check(transaction, CheckMode::Repair).await;
    assert_eq!(findings(&repaired.findings), found, "the check announced different repairs");
    assert!(repaired.findings.iter().all(|it| it.is_repaired == it.repair.is_ok()), "{repaired:#?} {}", context());
    let now = items(&transaction.api).await;
    let touched = damaged.keys().chain(now.keys()).filter(|key| damaged.get(*key) != now.get(*key));
    let others: Vec<_> = touched.filter(|key| !is_one_of(&DERIVED, key) && !key.1.starts_with("IDEMPOTENCY#")).collect();
    assert!(others.is_empty(), "the repair changed {others:#?}: {}", context());
    let open: Vec<_> = repaired.findings.iter().filter(|finding| !finding.is_repaired).collect();
    let left = check(transaction, CheckMode::ReadOnly).await;
    assert_eq!(findings(&left.findings), findings(open.iter().copied()), "{}", context());

    if damages.len() == 1 {
        assert_eq!(open.is_empty(), all_are(&DERIVED) || all_are(&INVISIBLE), "{open:#?} {}", context());
    }
    if all_are(&DERIVED) {
        assert!(now == transaction.after, "{}", context());
    }
    if open.is_empty() {
        let tenant = transaction.api.store.writer(transaction.client.tenant);
        let violations = invariants::violations(&tenant, &transaction.api.dynamo, &transaction.api.table).await.unwrap();
        assert_eq!(violations, Vec::<String>::new(), "{}", context());
        let verification = tenant.verify_chains(|_, _| ()).await.unwrap();
        assert_eq!(verification.broken_links, [], "{}", context());
    }
}

/// Number of items per transaction that the daily run damages.
const SHORT: usize = 2;

/// Damages each item of these kinds of transactions, committed by `commit`. The daily run uses a fifth of the kinds.
async fn check_each_item(kinds: &'static str, commit: impl AsyncFn(&'static str) -> Transaction) {
    for kind in sample(kinds.split_whitespace(), kinds.split_whitespace().count().div_ceil(5)) {
        eprintln!("{kind}");
        let transaction = commit(kind).await;
        check_undamaged(&transaction).await;
        for damage in sample(transaction.damages(), SHORT) {
            check_damage(&transaction, &[damage]).await;
        }
    }
}

#[tokio::test]
async fn each_lost_item_of_a_changed_record_is_repaired_or_reported() {
    let kinds = "asset_creation asset_update asset_deletion user_creation user_update user_deletion type_creation type_update \
        manufacturer_deletion model_creation model_update model_deletion process_creation process_update process_deletion \
        settings_update key_creation key_rotation key_revocation batch_of_one batch";
    check_each_item(kinds, change_a_record).await;
}

async fn model(client: &Client) -> String {
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    client.model("Dell", "XPS", &asset_type).await
}

async fn manufacturer(client: &Client, name: &str) -> String {
    client.post("/catalog/manufacturers", json!({"name": name})).await.id()
}

async fn change_a_record(kind: &str) -> Transaction {
    let (api, client) = Api::with_tenant().await;
    let delete = |collection: &str, id: &str| ("DELETE", format!("/{collection}/{id}"), Value::Null);
    let new_key = json!({"name": "ci", "scopes": ["assets:read"]});
    let text_step = json!([{"type": "text", "key": "t", "label": "T"}]);
    let new_process = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": text_step});
    let (method, path, body) = match kind {
        "asset_creation" => {
            let model = model(&client).await;
            let body = json!({"name": "a", "model_id": model, "purchase_price": 12.5, "custom_fields": {"a": 1.5}});
            ("POST", "/assets".to_owned(), body)
        }
        "asset_update" => {
            let (old, new, model) = (client.user("Ada").await, client.user("Grace").await, model(&client).await);
            let id = client.assigned_asset("a", &old).await;
            let fields = json!({"b": [1, null]});
            let body = json!({"name": "b", "assigned_to": new, "notes": null, "model_id": model, "custom_fields": fields});
            ("PATCH", format!("/assets/{id}"), body)
        }
        "asset_deletion" => delete("assets", &client.assigned_asset("a", &client.user("Ada").await).await),
        "user_creation" => ("POST", "/users".to_owned(), json!({"email": "ada@example.com", "display_name": "Ada"})),
        "user_update" => {
            let body = json!({"email": "grace@example.com", "is_active": false});
            ("PATCH", format!("/users/{}", client.user("Ada").await), body)
        }
        "user_deletion" => delete("users", &client.user("Ada").await),
        "type_creation" => {
            let schema = json!({"type": "object", "properties": {"ram": {"type": "integer"}}});
            let body = json!({"name": "Laptop", "code": "LAP", "kind": "physical", "custom_fields_schema": schema});
            ("POST", "/catalog/asset-types".to_owned(), body)
        }
        "type_update" => {
            let id = client.asset_type("Laptop", "LAP", "physical").await;
            client.asset(json!({"name": "a", "asset_type_id": id})).await;
            ("PATCH", format!("/catalog/asset-types/{id}"), json!({"code": "NB"}))
        }
        "manufacturer_deletion" => delete("catalog/manufacturers", &manufacturer(&client, "Dell").await),
        "model_creation" => {
            let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
            let manufacturer = manufacturer(&client, "Dell").await;
            let body = json!({"name": "XPS", "manufacturer_id": manufacturer, "asset_type_id": asset_type});
            ("POST", "/catalog/models".to_owned(), body)
        }
        "model_update" => {
            let (id, other) = (model(&client).await, manufacturer(&client, "HP").await);
            ("PATCH", format!("/catalog/models/{id}"), json!({"manufacturer_id": other}))
        }
        "model_deletion" => delete("catalog/models", &model(&client).await),
        "process_creation" => ("POST", "/processes".to_owned(), new_process),
        "process_update" => {
            let id = client.post("/processes", new_process).await.id();
            let steps = json!([{"type": "signature", "key": "s", "label": "S"}]);
            ("PATCH", format!("/processes/{id}"), json!({"steps": steps, "status": "inactive"}))
        }
        "process_deletion" => delete("processes", &client.post("/processes", new_process).await.id()),
        "settings_update" => {
            let body = json!({"name": "Other", "status_transitions": {"in_stock": ["in_use"]}});
            ("PATCH", "/settings".to_owned(), body)
        }
        "key_creation" => ("POST", "/keys".to_owned(), new_key),
        "key_rotation" => {
            let id = client.post("/keys", new_key).await.id();
            ("POST", format!("/keys/{id}/rotate"), json!({"grace_seconds": 60}))
        }
        "key_revocation" => delete("keys", &client.post("/keys", new_key).await.id()),
        "batch_of_one" => {
            let operations = json!([{"op": "create", "body": {"name": "a"}}]);
            ("POST", "/assets/batch".to_owned(), json!({"operations": operations}))
        }
        "batch" => {
            let id = client.asset(json!({"name": "a"})).await;
            let create = json!({"op": "create", "body": {"name": "b"}});
            let operations = json!([create, {"op": "update", "id": id, "body": {"name": "c"}}]);
            ("POST", "/assets/batch".to_owned(), json!({"operations": operations}))
        }
        other => panic!("no request for {other}"),
    };
    match method {
        "POST" => Transaction::post(api, client, &path, body).await,
        _ => Transaction::send(api, client, method, &path, body).await,
    }
}

#[tokio::test]
async fn each_lost_item_of_other_changes_is_repaired_or_reported() {
    let kinds = "upsert upsert_of_a_serial_number_that_was_deleted receipt_key_creation receipt_key_rotation tenant_creation \
        last_advance_without_effect";
    check_each_item(kinds, change_otherwise).await;
}

async fn put(client: &Client, name: &str) -> Reply {
    client.put("/assets/by-serial/s", &json!({"name": name})).await
}

async fn change_otherwise(kind: &str) -> Transaction {
    if kind == "tenant_creation" {
        let api = Api::start().await;
        let email = "ada@example.com".parse().unwrap();
        let created = api.store.create_tenant("Acme".parse().unwrap(), Some(email), 100).await.unwrap();
        let client = api.client(created.api_key.expose(), created.tenant_id);
        let after = items(&api).await;
        return Transaction { api, client, before: Items::new(), after };
    }
    let (api, client) = Api::with_tenant().await;
    match kind {
        "upsert" | "upsert_of_a_serial_number_that_was_deleted" => {
            if kind != "upsert" {
                let id = put(&client, "a").await.id();
                client.delete(&format!("/assets/{id}")).await;
            }
            let upsert = async |client: Client| assert_eq!(put(&client, "b").await.status, 201);
            Transaction::commit(api, client, upsert).await
        }
        "receipt_key_creation" => {
            let user = client.user("Ada").await;
            let (_, path) = completed_receipt(&client, &user).await;
            Transaction::commit(api, client, async |client| drop(client.get(&path).await.json())).await
        }
        "receipt_key_rotation" => {
            let store = api.store.writer(client.tenant);
            let context = ChangeContext::operator(api.now());
            store.rotate_receipt_key(api.key_encryption.as_ref(), &context).await.unwrap();
            let key_encryption = api.key_encryption.clone();
            let rotate = async |_| drop(store.rotate_receipt_key(key_encryption.as_ref(), &context).await.unwrap());
            Transaction::commit(api, client, rotate).await
        }
        // The process changes neither the asset's status nor its assignment.
        "last_advance_without_effect" => {
            let steps = json!([{"type": "text", "key": "t", "label": "T"}]);
            let body = json!({"name": "Own", "trigger_status": "in_use", "target_status": "in_use", "steps": steps});
            let process = client.post("/processes", body).await.id();
            let asset = client.asset(json!({"name": "a", "status": "in_use"})).await;
            let instance = start(&client, &process, &asset).await;
            Transaction::post(api, client, &format!("/processes/instances/{instance}/advance"), json!({"step_data": {}})).await
        }
        other => panic!("no request for {other}"),
    }
}

#[tokio::test]
async fn each_lost_item_of_a_submitted_step_is_repaired_or_reported() {
    let kinds = "start advance_by_picking advance_by_signing last_advance start_through_the_last_step movement_start \
        advance_through_the_last_step movement_start_through_the_last_step cancellation movement_advance last_movement_advance \
        movement_cancellation";
    check_each_item(kinds, change_a_process).await;
}

/// Runs a process in which a user is picked and signs. Another user has both assets.
async fn change_a_process(kind: &str) -> Transaction {
    let (api, client) = Api::with_tenant().await;
    let is_returned = ["advance_through_the_last_step", "last_movement_advance"].contains(&kind);
    let target_status = if is_returned { "returned" } else { "in_use" };
    let steps = json!([
        {"type": "user_picker", "key": "who", "label": "Who"},
        {"type": "signature", "key": "sign", "label": "Sign"},
        {"type": "text", "key": "note", "label": "Note"}
    ]);
    let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": target_status, "steps": steps});
    let process = client.post("/processes", body).await.id();
    let (user, holder) = (client.user("Ada").await, client.user("Grace").await);
    let assets = [client.assigned_asset("a", &holder).await, client.assigned_asset("b", &holder).await];
    let (pick, sign) = (json!({"who": user}), json!({"sign": SIGNATURE}));
    let (both, last) = (json!({"who": user, "sign": SIGNATURE}), json!({"step_data": {"note": "x"}}));
    let start = format!("/processes/{process}/start");
    let instance = async |data: &[&Value], action: &str| {
        let instance = client.post(&start, json!({"asset_id": assets[0]})).await.id();
        for data in data {
            advance(&client, &instance, (*data).clone()).await.data();
        }
        format!("/processes/instances/{instance}/{action}")
    };
    let movement = async |data: &[&Value], action: &str| {
        let movement = start_movement(&client, &process, &assets).await;
        let id = movement["id"].as_str().unwrap();
        for data in data {
            advance_movement(&client, id, (*data).clone()).await.data();
        }
        format!("/movements/{id}/{action}")
    };
    let (path, body) = match kind {
        "start" => (start.clone(), json!({"asset_id": assets[0]})),
        "advance_by_picking" => (instance(&[], "advance").await, json!({"step_data": pick})),
        "advance_by_signing" => (instance(&[&pick], "advance").await, json!({"step_data": sign})),
        "last_advance" => (instance(&[&pick, &sign], "advance").await, last),
        "start_through_the_last_step" => (start.clone(), json!({"asset_id": assets[0], "step_data": both, "through": "note"})),
        "advance_through_the_last_step" => (instance(&[&pick], "advance").await, json!({"step_data": sign, "through": "note"})),
        "movement_start_through_the_last_step" => {
            (start.clone(), json!({"asset_ids": assets, "step_data": both, "through": "note"}))
        }
        "cancellation" => (instance(&[&pick], "cancel").await, json!({"reason": "why"})),
        "movement_start" => (start.clone(), json!({"asset_ids": assets})),
        "movement_advance" => (movement(&[&pick], "advance").await, json!({"step_data": sign})),
        "last_movement_advance" => (movement(&[&pick, &sign], "advance").await, last),
        "movement_cancellation" => (movement(&[&pick], "cancel").await, json!({})),
        other => panic!("no request for {other}"),
    };
    Transaction::post(api, client, &path, body).await
}

/// Damages pairs of a transaction's items, in the full run every fifth pair.
#[tokio::test(start_paused = true)]
async fn two_lost_items_of_a_transaction_are_repaired_or_reported() {
    for kind in ["start", "last_advance", "cancellation", "movement_start"] {
        let transaction = change_a_process(kind).await;
        let damages = transaction.damages();
        let pairs = (0..damages.len()).flat_map(|first| (first + 1..damages.len()).map(move |second| (first, second)));
        let pairs = pairs.filter(|(first, second)| damages[*first].key != damages[*second].key);
        for (first, second) in sample(pairs.step_by(5), 2) {
            let damages: [Damage; 2] = [damages[first].clone(), damages[second].clone()];
            check_damage(&transaction, &damages).await;
        }
    }
}

/// Returns the items that differ after a request.
fn written(before: &Items, after: &Items) -> Items {
    after.iter().filter(|(key, item)| before.get(*key) != Some(*item)).map(|(key, item)| (key.clone(), item.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn row_lost_by_a_restore_is_imported_again() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let before = items(&api).await;
    let rows = "name\na\nb\n";
    let first = client.import_once("/assets", rows, "k").await;
    assert_eq!(outcomes(&first), ["created", "created"]);
    let ids: Vec<Value> = first.data().as_array().unwrap().iter().map(|row| row["id"].clone()).collect();

    // The restored table has only the stored response of the first row.
    let id = ids[0].as_str().unwrap();
    for ((_, sort), item) in written(&before, &items(&api).await) {
        let is_of_row = format!("{item:?}").contains(id) || format!("{item:?}").contains("AST-000001");
        if is_of_row && !sort.starts_with("IDEMPOTENCY#") && !sort.starts_with("SEQUENCE#") {
            delete_item(&api, &Key::of(&item).unwrap().item()).await;
        }
    }
    api.advance_clock(11);
    let tenant = api.store.writer(client.tenant);
    let report = tenant.check_items(CheckMode::Repair, |_| ()).await.unwrap();
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{:#?}", report.findings);
    let is_response = |subject: &str| subject.starts_with("stored response IDEMPOTENCY#");
    assert_eq!(report.findings.iter().filter(|finding| is_response(&finding.subject)).count(), 1, "{:#?}", report.findings);

    let again = client.import_once("/assets", rows, "k").await;
    assert_eq!(outcomes(&again), ["created", "created"]);
    assert!(again.data()[0]["id"] != ids[0] && again.data()[1]["id"] == ids[1], "{}", again.text());
    assert_eq!(client.total("/assets").await, 2);
    assert_eq!(again.json()["meta"], json!({"rows": 2, "created": 2, "updated": 0, "unchanged": 0, "refused": 0, "skipped": 0}));
}

async fn repair(api: &Api, client: &Client) -> CheckReport {
    api.advance_clock(11);
    api.store.writer(client.tenant).check_items(CheckMode::Repair, |_| ()).await.unwrap()
}

fn entry(item: &Item) -> Value {
    item.get("entry").map(|entry| serde_json::from_str(entry.as_s().unwrap()).unwrap()).unwrap_or_default()
}

/// Removes the items for which `is_removed`, called with sort key and item, is true.
async fn remove(api: &Api, is_removed: impl Fn(&str, &Item) -> bool) {
    let removed: Vec<Item> =
        items(api).await.into_iter().filter(|((_, sort), item)| is_removed(sort, item)).map(|(_, item)| item).collect();
    assert!(!removed.is_empty());
    for item in removed {
        delete_item(api, &Key::of(&item).unwrap().item()).await;
    }
}

/// Returns the items whose sort key starts with one of these prefixes.
async fn items_with(api: &Api, prefixes: &[&str]) -> Items {
    let items = items(api).await.into_iter();
    items.filter(|((_, sort), _)| prefixes.iter().any(|prefix| sort.starts_with(prefix))).collect()
}

fn problems(report: &CheckReport) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.problem.as_str()).collect()
}

/// Repairs twice. Both times, these problems are reported without a repair, and nothing is written.
async fn stays_open(api: &Api, client: &Client, expected: &[&str]) {
    let damaged = items(api).await;
    for _ in 0..2 {
        let report = repair(api, client).await;
        assert_eq!(problems(&report), expected, "{report:#?}");
        for finding in &report.findings {
            let advice = finding.repair.as_ref().unwrap_err();
            assert!(advice.contains("from a backup: see the runbook's section \"Damaged records\""), "{advice}");
        }
        assert!(items(api).await == damaged, "{report:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_with_a_broken_history_stays_lost_with_what_belongs_to_it() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    for name in ["Ada B", "Ada C"] {
        client.patch(&format!("/users/{user}"), json!({"display_name": name})).await.data();
    }
    client.assigned_asset("a", &user).await;
    api.advance_clock(3600);
    remove(&api, |_, item| entry(item)["entity_id"] == json!(user) && entry(item)["version"] == 2).await;
    remove(&api, |sort, item| sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&user)).await;
    stays_open(&api, &client, &["its history is broken at version 2: the entry is missing"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_response_stays_if_the_history_of_its_record_is_broken_further_back() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let process = create_process(&client, json!([step("text", "a"), step("text", "b"), step("text", "c")])).await;
    let instance = start(&client, &process, &asset).await;
    advance(&client, &instance, json!({"a": "1"})).await.data();
    let (path, body) = (format!("/processes/instances/{instance}/advance"), json!({"step_data": {"b": "2"}}));
    let first = client.post_once(&path, &body, "once").await;
    first.data();
    remove(&api, |_, item| entry(item)["entity_id"] == json!(instance) && entry(item)["version"] == 2).await;
    let report = repair(&api, &client).await;
    assert!(problems(&report)[0].starts_with("its history is broken at version"), "{report:#?}");
    let again = client.post_once(&path, &body, "once").await;
    assert_eq!((again.header("idempotent-replayed"), again.json()), ("true", first.json()));
}

#[tokio::test(start_paused = true)]
async fn a_repair_begins_when_no_event_is_recent_and_leaves_what_a_newer_release_wrote() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    remove(&api, |sort, _| sort.starts_with("UNIQ#user.email#")).await;
    let tenant = api.store.writer(client.tenant);
    let early = tokio::time::timeout(Duration::from_secs(1), tenant.check_items(CheckMode::Repair, |_| ())).await;
    assert!(early.is_err(), "a repair has begun while {user} may still be written: {early:?}");
    assert!(items_with(&api, &["UNIQ#user.email#"]).await.is_empty());
    let report = repair(&api, &client).await;
    assert!(report.findings.len() == 1 && report.findings[0].is_repaired, "{report:#?}");

    // Pretends that users are a kind unknown to this release.
    for (_, mut item) in items(&api).await {
        if entry(&item)["entity_id"] == json!(user) {
            let text = item["entry"].as_s().unwrap().replace("\"user.created\"", "\"gadget.created\"");
            item.insert("hash".into(), AttributeValue::S(hash(&text)));
            item.insert("entry".into(), AttributeValue::S(text));
            api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
        }
    }
    remove(&api, |sort, item| sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&user)).await;
    let before = items(&api).await;
    let report = repair(&api, &client).await;
    assert_eq!(problems(&report), ["its type is unknown"]);
    assert_eq!(items(&api).await, before);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repaired_while_others_write() {
    let (api, client) = Api::with_tenant().await;
    client.user("Ada").await;
    remove(&api, |sort, _| sort.starts_with("UNIQ#user.email#")).await;
    // A clock that is ahead gives an event a time after the start of the check.
    api.advance_clock(60);
    client.asset(json!({"name": "a"})).await;
    api.advance_clock(-60);
    let (damaged, tenant) = (items(&api).await, api.store.writer(client.tenant));
    let found = tenant.check_items(CheckMode::ReadOnly, |_| ()).await.unwrap();
    let [marker, others] = problems(&found)[..] else { panic!("{found:#?}") };
    assert!(marker.ends_with("is missing") && others.starts_with("others wrote to it during the check"), "{found:#?}");
    let refused = tenant.check_items(CheckMode::Repair, |_| ()).await.unwrap();
    assert_eq!(problems(&refused), ["others are writing to it"]);
    assert!(items(&api).await == damaged);
}

#[tokio::test(start_paused = true)]
async fn unique_markers_are_repaired_only_if_all_records_exist() {
    let (api, client) = Api::with_tenant().await;
    let (ada, _) = (client.user("Ada").await, client.user("Grace").await);
    let complete = items(&api).await;
    let is_ada = |sort: &str, item: &Item| sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&ada);
    remove(&api, |sort, item| is_ada(sort, item) || sort.starts_with("UNIQ#user.email#")).await;
    let damaged = items(&api).await;
    let report = repair(&api, &client).await;
    let [lost, marker] = &report.findings[..] else { panic!("{report:#?}") };
    assert_eq!(lost.problem, "its history ends without a deletion, but the record is missing");
    assert!(marker.problem.starts_with("its unique marker UNIQ#user.email#grace"), "{marker:?}");
    assert!(marker.repair.as_ref().unwrap_err().contains("first fix the records"), "{marker:?}");
    assert_eq!(items(&api).await, damaged);

    let (_, item) = complete.iter().find(|((_, sort), item)| is_ada(sort, item)).unwrap();
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item.clone())).send().await.unwrap();
    let report = repair(&api, &client).await;
    assert!(report.findings.len() == 2 && report.findings.iter().all(|finding| finding.is_repaired), "{report:#?}");
    assert_eq!(items(&api).await, complete);
}

#[tokio::test(start_paused = true)]
async fn attributes_of_the_list_index_are_repaired_and_a_wrong_last_event_is_reported() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let complete = items(&api).await;
    let key = Keys::of(client.tenant).record(Kind::Asset, asset.parse().unwrap());
    let mut item = complete.iter().find(|((_, sort), _)| sort == key.sort()).unwrap().1.clone();
    assert!(item.remove("LS").is_some() && item.remove("type").is_some());
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
    let report = repair(&api, &client).await;
    assert_eq!(problems(&report), ["its item has missing or wrong attributes for the list index"]);
    assert!(report.findings[0].is_repaired);
    assert_eq!(items(&api).await, complete);

    let record = Keys::of(client.tenant).record(Kind::Asset, asset.parse().unwrap());
    let tenant = Keys::of(client.tenant).record(Kind::Tenant, client.tenant.uuid());
    let item = |key: &Key| complete.iter().find(|((_, sort), _)| sort == key.sort()).unwrap().1.clone();
    let mut damaged = item(&record);
    damaged.insert("last_event".into(), item(&tenant)["last_event"].clone());
    api.dynamo.put_item().table_name(&api.table).set_item(Some(damaged)).send().await.unwrap();
    stays_open(&api, &client, &["it names an event other than its last"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_movement_is_not_made_again_from_its_instances() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, json!([step("text", "a")])).await;
    start_movement(&client, &process, &client.assets(2).await).await;
    remove(&api, |sort, _| sort.starts_with("MOVEMENT#") || sort.starts_with("UNIQ#movement.number#")).await;
    let lost = "its history ends without a deletion, but the record is missing";
    stays_open(&api, &client, &[lost, "instances refer to it, but it does not exist or can't be read"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_cannot_be_read_and_has_no_event_can_be_removed() {
    let (api, client) = Api::with_tenant().await;
    let before = items(&api).await;
    let process = create_process(&client, json!([step("text", "a")])).await;
    remove(&api, |sort, item| {
        let is_new = !before.keys().any(|(_, present)| present == sort);
        entry(item)["entity_id"] == json!(process) || (is_new && sort.starts_with("STEPS#"))
    })
    .await;
    stays_open(&api, &client, &["it can't be read: its steps or its schema are lost"]).await;
    let removal = api.store.writer(client.tenant).remove_unreadable(Kind::Process, process.parse().unwrap()).await;
    assert_eq!(removal.unwrap(), Removal::Removed);
    let report = repair(&api, &client).await;
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{report:#?}");
    let keys = |items: Items| items.into_keys().collect::<Vec<_>>();
    assert_eq!(keys(items(&api).await), keys(before), "{report:#?}");
    assert!(client.get("/processes?limit=50").await.data().is_array());
}

#[tokio::test(start_paused = true)]
async fn references_to_what_is_lost_can_be_removed_by_the_api() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let asset = client.assigned_asset("a", &user).await;
    let short = Keys::of(client.tenant).record(Kind::User, user.parse().unwrap()).sort().replace("USER#", "");
    remove(&api, |sort, item| sort.ends_with(&short) || entry(item)["entity_id"] == json!(user)).await;
    let report = repair(&api, &client).await;
    let open: Vec<_> = report.findings.iter().filter(|finding| !finding.is_repaired).collect();
    assert!(open.len() == 1 && open[0].problem.contains("which does not exist"), "{report:#?}");
    assert_eq!(client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data()["assigned_to"], Value::Null);
    assert!(repair(&api, &client).await.findings.iter().all(|finding| finding.is_repaired));
    assert_eq!(repair(&api, &client).await.findings, []);
}

#[tokio::test(start_paused = true)]
async fn lost_tenant_record_is_reported() {
    let (api, client) = Api::with_tenant().await;
    let id = client.tenant.to_string();
    remove(&api, |sort, item| sort == "TENANT" || entry(item)["entity_id"] == json!(id)).await;
    let report = repair(&api, &client).await;
    assert!(problems(&report).contains(&"its record and its history are lost"), "{report:#?}");
}
