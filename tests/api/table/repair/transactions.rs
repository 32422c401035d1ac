//! Each kind of transaction, named after the request that commits it: each of its items in turn is damaged, and of some kinds
//! two items are lost together.

use super::{Damage, Items, Transaction, check_damage, check_each_item, items};
use crate::support::bulk::outcomes;
use crate::support::processes::{advance, advance_movement, start_movement};
use crate::support::receipts::completed_receipt;
use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client, Reply, sample};
use serde_json::{Value, json};
use shared::store::{ChangeContext, CheckMode};
use std::sync::Arc;

/// Makes a test of each kind of transaction, which the function commits.
macro_rules! test_each_item {
    ($commit:ident: [$($kind:ident),*]) => {$(
        #[tokio::test]
        async fn $kind() {
            check_each_item($commit(stringify!($kind)).await).await;
        }
    )*};
}

test_each_item!(change_a_record: [
    asset_creation, asset_update, asset_deletion, user_creation, user_update, user_deletion, type_creation, type_update,
    manufacturer_deletion, model_creation, model_update, model_deletion, process_creation, process_update, process_deletion,
    settings_update, key_creation, key_rotation, key_revocation, batch_of_one, batch
]);

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

test_each_item!(change_otherwise: [
    upsert, upsert_of_a_serial_number_that_was_deleted, receipt_key_creation, receipt_key_rotation, tenant_creation,
    last_advance_without_effect
]);

async fn put(client: &Client, name: &str) -> Reply {
    client.send("PUT", "/assets/by-serial/s", Some("application/json"), json!({"name": name}).to_string()).await
}

async fn change_otherwise(kind: &str) -> Transaction {
    if kind == "tenant_creation" {
        let api = Api::start().await;
        let email = "ada@example.com".parse().unwrap();
        let created = api.store.create_tenant("Acme".parse().unwrap(), Some(email), 100).await.unwrap();
        let (key, tenant) = (created.api_key.expose(), created.tenant_id);
        let client = Client { router: api.router.clone(), key, tenant, table: None, clock: Arc::default() };
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
            let store = api.store.tenant(client.tenant);
            let context = ChangeContext::operator(api.now());
            store.rotate_receipt_key(api.key_encryption.as_ref(), &context).await.unwrap();
            let key_encryption = api.key_encryption.clone();
            let rotate = async |_| drop(store.rotate_receipt_key(key_encryption.as_ref(), &context).await.unwrap());
            Transaction::commit(api, client, rotate).await
        }
        // The asset keeps its status and its assignment.
        "last_advance_without_effect" => {
            let steps = json!([{"type": "text", "key": "t", "label": "T"}]);
            let body = json!({"name": "Own", "trigger_status": "in_use", "target_status": "in_use", "steps": steps});
            let process = client.post("/processes", body).await.id();
            let asset = client.asset(json!({"name": "a", "status": "in_use"})).await;
            let instance = crate::support::processes::start(&client, &process, &asset).await;
            Transaction::post(api, client, &format!("/processes/instances/{instance}/advance"), json!({"step_data": {}})).await
        }
        other => panic!("no request for {other}"),
    }
}

test_each_item!(change_a_process: [
    start, advance_by_picking, advance_by_signing, last_advance, start_through_the_last_step, advance_through_the_last_step,
    movement_start_through_the_last_step, cancellation, movement_start, movement_advance, last_movement_advance,
    movement_cancellation
]);

/// In the process, a user is picked and signs. Another user has both assets.
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
    // Both submit the first steps.
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

/// Damages pairs of a transaction's items: every fifth in the full run.
#[tokio::test(start_paused = true)]
async fn pairs_of_items() {
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

/// Items that only one of two requests has written.
fn written(before: &Items, after: &Items) -> Items {
    after.iter().filter(|(key, item)| before.get(*key) != Some(*item)).map(|(key, item)| (key.clone(), item.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_row_whose_effect_is_lost_is_imported_again_and_no_other() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let before = items(&api).await;
    let rows = "name\na\nb\n";
    let first = client.import_once("/assets", rows, "k").await;
    assert_eq!(outcomes(&first), ["created", "created"]);
    let ids: Vec<Value> = first.data().as_array().unwrap().iter().map(|row| row["id"].clone()).collect();

    // The restored table has nothing of the first row but its stored response.
    let id = ids[0].as_str().unwrap();
    for ((_, sort), item) in written(&before, &items(&api).await) {
        let is_of_row = format!("{item:?}").contains(id) || format!("{item:?}").contains("AST-000001");
        if is_of_row && !sort.starts_with("IDEMPOTENCY#") && !sort.starts_with("SEQUENCE#") {
            let key = shared::store::keys::Key::of(&item).unwrap().item();
            api.dynamo.delete_item().table_name(&api.table).set_key(Some(key)).send().await.unwrap();
        }
    }
    api.advance_clock(11);
    let tenant = api.store.tenant(client.tenant);
    let report = tenant.check_items(CheckMode::Repair, |_| ()).await.unwrap();
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{:#?}", report.findings);
    let is_response = |subject: &str| subject.starts_with("stored response IDEMPOTENCY#");
    assert_eq!(report.findings.iter().filter(|finding| is_response(&finding.subject)).count(), 1, "{:#?}", report.findings);

    let again = client.import_once("/assets", rows, "k").await;
    assert_eq!(outcomes(&again), ["created", "created"]);
    assert!(again.data()[0]["id"] != ids[0] && again.data()[1]["id"] == ids[1], "{}", again.text());
    assert_eq!(client.total("/assets").await, 2);
    assert_eq!(
        again.json()["meta"],
        json!({"rows": 2, "created": 2, "updated": 0, "unchanged": 0, "refused": 0, "skipped": 0, "skipped_cells": 0})
    );
}
