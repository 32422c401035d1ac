//! Throttling, conflicts and lost responses of the table: nothing is lost, done twice or half done.

use crate::support::processes::create_process;
use crate::support::samples::SIGNATURE;
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, at_each_place};
use dev_server::faulty_table::planned::CallFailure;
use serde_json::{Value, json};
use shared::domain::values::id::{ApiKeyId, AssetId, Id};
use shared::store::keys::Keys;

#[tokio::test(start_paused = true)]
async fn a_conflict_is_retried() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    api.faults.conflict(3);
    let made = client.post("/assets", json!({"name": "x"})).await;
    assert_eq!((made.status.as_u16(), api.faults.planned()), (201, 0));
    assert_eq!(event_chain(&api, &client, &made.id()).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lasting_conflict_is_503_and_changes_nothing() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    let before = api.dump().await;
    api.faults.conflict(1000);
    let refused = client.patch(&path, json!({"name": "y"})).await;
    refused.problem(503, "UNAVAILABLE");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(api.faults.planned() > 900, "only {} of 1000 conflicts were left", api.faults.planned());
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn after_three_throttled_attempts_the_response_is_503() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    // A key that the instance doesn't know is read alone.
    let unknown = client.scoped(&["assets:read"]).await;
    api.faults.throttle("GetItem", 3);
    unknown.get(&path).await.problem(503, "UNAVAILABLE");
    assert_eq!(api.faults.planned(), 0);
    for operation in ["BatchGetItem", "TransactWriteItems"] {
        let before = api.dump().await;
        api.faults.throttle(operation, 3);
        let refused = client.patch(&path, json!({"name": "y"})).await;
        refused.problem(503, "UNAVAILABLE");
        assert_eq!(api.faults.planned(), 0, "{operation}");
        assert_eq!(api.dump().await, before, "{operation}");
    }
    api.faults.throttle("TransactWriteItems", 2);
    assert_eq!(client.patch(&path, json!({"name": "y"})).await.data()["name"], "y");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_response_was_lost_takes_effect_once() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    api.faults.lose_response("TransactWriteItems");
    let made = client.post("/assets", json!({"name": "x"})).await;
    assert_eq!((made.status.as_u16(), api.faults.planned()), (201, 0), "{}", made.text());
    assert_eq!(client.total("/assets").await, 1);
    let path = format!("/assets/{}", made.id());
    api.faults.lose_response("TransactWriteItems");
    assert_eq!(client.patch(&path, json!({"name": "y"})).await.data()["name"], "y");
    assert_eq!(event_chain(&api, &client, &made.id()).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unprocessed_keys_of_a_batch_are_read_again() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let pk = Keys::of(client.tenant).partition();
    let own_key = client.get("/me").await.data()["key"]["id"].as_str().unwrap().to_owned();
    let short = [AssetId::short(id.parse().unwrap()), ApiKeyId::short(own_key.parse().unwrap())];
    let keys = ["ASSET", "KEY"]
        .into_iter()
        .zip(short)
        .map(|(kind, id)| json!({"PK": {"S": pk.as_s().unwrap()}, "SK": {"S": format!("{kind}#{id}")}}));
    let keys: Vec<Value> = keys.collect();
    let unprocessed = json!({"Responses": {}, "UnprocessedKeys": {&api.table: {"Keys": keys, "ConsistentRead": true}}});
    api.faults.plan("BatchGetItem", 2, 200, &unprocessed, false);
    assert_eq!(client.get(&format!("/assets/{id}")).await.data()["name"], "x");
    assert_eq!(api.faults.planned(), 0);
    api.faults.plan("BatchGetItem", 100, 200, &unprocessed, false);
    client.get(&format!("/assets/{id}")).await.problem(503, "UNAVAILABLE");
}

/// Each call of a process from start to end fails in turn, in every way. The client repeats requests with a 503, with the step
/// that it takes for the current one. At the end nothing is lost, done twice or half done.
#[tokio::test(start_paused = true)]
async fn a_process_survives_the_failure_of_any_of_its_calls() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let steps = json!([
        {"type": "user_picker", "key": "u", "label": "U", "required": true}, {"type": "signature", "key": "s", "label": "S"},
        {"type": "complete", "key": "c", "label": "C"}
    ]);
    let process = create_process(&client, steps).await;
    at_each_place(&CallFailure::ALL, 11, 5, async |place, failure| {
        let asset = client.asset(json!({"name": "x"})).await;
        api.faults.fail_call(place, failure);
        let instance = start_despite_failure(&client, &process, &asset).await;
        let step_values = [json!({"u": user}), json!({"s": SIGNATURE}), json!({})];
        for (step, data) in step_values.into_iter().enumerate() {
            let path = format!("/processes/instances/{instance}/advance");
            let body = json!({"step_data": data, "current_step": step});
            let mut reply = client.post(&path, body.clone()).await;
            if reply.status == 503 {
                reply = client.post(&path, body).await;
            }
            let code = reply.json()["code"].as_str().unwrap_or_default().to_owned();
            assert!(reply.status == 200 || ["STEP_MOVED", "INSTANCE_CLOSED"].contains(&code.as_str()), "{}", reply.text());
        }
        let has_failed = api.faults.stop_failing();
        let completed = client.get(&format!("/processes/instances/{instance}")).await.data();
        assert_eq!((&completed["status"], &completed["step_data"]["s"]), (&json!("completed"), &json!(SIGNATURE)));
        let after = client.get(&format!("/assets/{asset}")).await.data();
        assert_eq!((&after["status"], &after["assigned_to"]), (&json!("in_use"), &json!(user)));
        assert_eq!(event_chain(&api, &client, &instance).await.len(), 4, "call {place} {failure:?}");
        assert_eq!(event_chain(&api, &client, &asset).await.len(), 3, "call {place} {failure:?}");
        has_failed
    })
    .await;
    assert_eq!(client.total("/processes/instances?status=in_progress").await, 0);
    client.delete(&format!("/processes/{process}")).await.data();
}

/// Repeats the start after a 503. Returns the instance's id.
async fn start_despite_failure(client: &Client, process: &str, asset: &str) -> String {
    let start = async || client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    let reply = start().await;
    match reply.status.as_u16() {
        201 => reply.id(),
        503 => match start().await {
            reply if reply.status == 201 => reply.id(),
            // The first request took effect after all; the error names the instance.
            reply => reply.problem(409, "PROCESS_RUNNING")["instance_id"].as_str().unwrap().to_owned(),
        },
        other => panic!("{other}: {}", reply.text()),
    }
}
