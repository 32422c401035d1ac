//! Throttling, conflicts, answers that get lost: nothing is lost, doubled or half done.

use crate::support::Api;
use crate::support::samples::Samples;
use serde_json::{Value, json};
use shared::store::keys::Keys;

#[tokio::test]
async fn a_conflict_is_retried_until_it_passes() {
    let (api, client) = Api::with_tenant().await;
    client.settle().await;
    api.faults.conflict(3);
    let made = client.post("/assets", json!({"name": "x"})).await;
    assert_eq!((made.status.as_u16(), api.faults.left()), (201, 0));
    assert_eq!(crate::events::chain(&api, &client, &made.id()).await.len(), 1);
}

#[tokio::test]
async fn a_conflict_that_stays_is_503_and_changes_nothing() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    let before = api.dump().await;
    api.faults.conflict(1000);
    let refused = client.patch(&path, json!({"name": "y"})).await;
    refused.problem(503, "UNAVAILABLE");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(api.faults.left() > 900, "{} tries were left", api.faults.left());
    assert_eq!(api.dump().await, before);
}

#[tokio::test]
async fn throttling_is_retried_three_times_and_then_503() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    for operation in ["GetItem", "BatchGetItem", "TransactWriteItems"] {
        let before = api.dump().await;
        api.faults.throttle(operation, 3);
        let refused = client.patch(&path, json!({"name": "y"})).await;
        refused.problem(503, "UNAVAILABLE");
        assert_eq!(api.faults.left(), 0, "{operation}");
        assert_eq!(api.dump().await, before, "{operation}");
    }
    api.faults.throttle("TransactWriteItems", 2);
    assert_eq!(client.patch(&path, json!({"name": "y"})).await.data()["name"], "y");
}

#[tokio::test]
async fn a_lost_answer_is_not_a_second_effect() {
    let (api, client) = Api::with_tenant().await;
    client.settle().await;
    api.faults.lose_answer("TransactWriteItems");
    let made = client.post("/assets", json!({"name": "x"})).await;
    assert_eq!((made.status.as_u16(), api.faults.left()), (201, 0), "{}", made.text());
    assert_eq!(client.get("/assets").await.json()["meta"]["total"], 1);
    let path = format!("/assets/{}", made.id());
    api.faults.lose_answer("TransactWriteItems");
    assert_eq!(client.patch(&path, json!({"name": "y"})).await.data()["name"], "y");
    assert_eq!(crate::events::chain(&api, &client, &made.id()).await.len(), 2);
}

#[tokio::test]
async fn keys_that_a_batch_leaves_out_are_asked_for_again() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let id = client.asset(json!({"name": "x", "asset_type_id": laptop})).await;
    let short = shared::domain::id::Id::short(laptop.parse::<shared::domain::id::AssetTypeId>().unwrap());
    let pk = Keys::of(client.tenant).partition();
    let key = json!({"PK": {"S": pk.as_s().unwrap()}, "SK": {"S": format!("TYPE#{short}")}});
    let left_out = json!({"Responses": {}, "UnprocessedKeys": {&api.table: {"Keys": [key], "ConsistentRead": true}}});
    api.faults.plan("BatchGetItem", 2, 200, &left_out, false);
    assert_eq!(client.get(&format!("/assets/{id}")).await.data()["asset_type_name"], "Laptop");
    assert_eq!(api.faults.left(), 0);
    api.faults.plan("BatchGetItem", 100, 200, &left_out, false);
    client.get(&format!("/assets/{id}")).await.problem(503, "UNAVAILABLE");
}

/// Every request of every route names its own tenant's partition and nothing else, and reads consistently.
#[tokio::test]
async fn every_request_stays_in_its_tenant_and_reads_consistently() {
    fn partitions(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(["PK", ":pk"].iter().filter_map(|name| map.get(*name)?["S"].as_str()).map(str::to_owned));
                map.values().for_each(|value| partitions(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| partitions(item, found)),
            _ => {}
        }
    }
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::of(&client).await;
    let own = Keys::of(client.tenant).partition();
    let document = client.get("/openapi.json").await.json();
    let mut checked = 0;
    for method in ["get", "patch", "post", "delete"] {
        for (path, item) in document["paths"].as_object().unwrap() {
            if item.get(method).is_none() || crate::support::samples::OPEN.contains(&path.as_str()) {
                continue;
            }
            api.faults.take_seen();
            let body = samples.body(&method.to_uppercase(), path).to_string();
            let filled = samples.fill(path);
            client.send(&method.to_uppercase(), filled.strip_prefix("/v1").unwrap(), Some("application/json"), body).await;
            for (operation, request) in api.faults.take_seen() {
                let mut found = Vec::new();
                partitions(&request, &mut found);
                assert!(!found.is_empty(), "{method} {path}: {operation} without a partition: {request}");
                assert!(found.iter().all(|pk| Some(pk) == own.as_s().ok()), "{method} {path}: {operation} in {found:?}");
                let consistent = match operation.as_str() {
                    // An index can't be read so; what it may not have yet, the events have (lists.rs and history.rs test it).
                    "Query" if ["list_index", "history"].iter().any(|index| request["IndexName"] == *index) => true,
                    "GetItem" | "Query" => request["ConsistentRead"] == true,
                    "BatchGetItem" => request["RequestItems"][&api.table]["ConsistentRead"] == true,
                    "UpdateItem" => request["ConditionExpression"].is_string(),
                    "TransactWriteItems" => {
                        let parts = request["TransactItems"].as_array().unwrap().iter();
                        parts
                            .flat_map(|part| part.as_object().unwrap().values())
                            .all(|part| part["ConditionExpression"].is_string())
                    }
                    other => panic!("{other} is no operation of ours"),
                };
                assert!(consistent, "{method} {path}: {operation} reads or writes unguarded: {request}");
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "only {checked} requests");
}

/// A whole run, with every call to the table failing in turn: refused, in conflict, timed out before and after it took effect. The
/// client repeats what got a 503, with the step that it takes for the open one. At the end nothing is lost, doubled
/// or half done.
#[tokio::test]
async fn a_run_survives_the_failure_of_each_of_its_calls() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let steps = json!([
        {"type": "user_picker", "key": "u", "label": "U", "required": true}, {"type": "signature", "key": "s", "label": "S"},
        {"type": "complete", "key": "c", "label": "C"}
    ]);
    let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", body).await.id();
    let mut survived = 0;
    for kind in ["throttled", "conflict", "timed out before", "timed out after"] {
        for place in 0.. {
            let asset = client.asset(json!({"name": "x"})).await;
            api.faults.take_seen();
            api.faults.fail_call(place, kind);
            let start = format!("/processes/{process}/start");
            let started = client.post(&start, json!({"asset_id": asset})).await;
            let run = match started.status.as_u16() {
                201 => started.id(),
                503 => match client.post(&start, json!({"asset_id": asset})).await {
                    again if again.status == 201 => again.id(),
                    // The first try took effect after all, and says which run it made.
                    again => again.problem(409, "PROCESS_RUNNING")["instance_id"].as_str().unwrap().to_owned(),
                },
                other => panic!("{other}: {}", started.text()),
            };
            let answers = [json!({"u": user}), json!({"s": crate::support::samples::SIGNATURE}), json!({})];
            for (step, data) in answers.into_iter().enumerate() {
                let path = format!("/processes/instances/{run}/advance");
                let body = json!({"step_data": data, "current_step": step});
                let mut reply = client.post(&path, body.clone()).await;
                if reply.status == 503 {
                    reply = client.post(&path, body).await;
                }
                let code = reply.json()["code"].as_str().unwrap_or_default().to_owned();
                assert!(reply.status == 200 || ["STEP_MOVED", "INSTANCE_CLOSED"].contains(&code.as_str()), "{}", reply.text());
            }
            let failed = api.faults.heal();
            let done = client.get(&format!("/processes/instances/{run}")).await.data();
            assert_eq!(
                (&done["status"], &done["step_data"]["s"]),
                (&json!("completed"), &json!(crate::support::samples::SIGNATURE))
            );
            let after = client.get(&format!("/assets/{asset}")).await.data();
            assert_eq!((&after["status"], &after["assigned_to"]), (&json!("in_use"), &json!(user)));
            assert_eq!(crate::events::chain(&api, &client, &run).await.len(), 4, "{kind} at call {place}");
            assert_eq!(crate::events::chain(&api, &client, &asset).await.len(), 3, "{kind} at call {place}");
            if !failed {
                break;
            }
            survived += 1;
        }
    }
    assert!(survived >= 30, "only {survived} faults");
    let running = client.get("/processes/instances?status=in_progress").await.json();
    assert_eq!(running["meta"]["total"], 0);
    client.delete(&format!("/processes/{process}")).await.data();
}
