//! Throttling, conflicts and lost responses: whichever call of a write fails, nothing is lost, done twice or half done.

use crate::http::idempotency::{stored, unmarked};
use crate::support::prelude::*;
use std::io::Write;

#[tokio::test(start_paused = true)]
async fn after_three_throttled_attempts_the_response_is_503() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    // An unknown key is read separately.
    let unknown = client.scoped(&["assets:read"]).await;
    api.faults.throttle("GetItem", 3);
    unknown.get(&path).await.problem(503, "UNAVAILABLE");
    assert_eq!(api.faults.planned(), 0);
    // The key and the asset's references are read side by side.
    for (operation, attempts) in [("BatchGetItem", 6), ("TransactWriteItems", 3)] {
        let before = api.dump().await;
        api.faults.throttle(operation, attempts);
        let refused = client.patch(&path, json!({"name": "y"})).await;
        refused.problem(503, "UNAVAILABLE");
        assert_eq!(api.faults.planned(), 0, "{operation}");
        assert_eq!(api.dump().await, before, "{operation}");
    }
    api.faults.throttle("TransactWriteItems", 2);
    assert_eq!(client.patch(&path, json!({"name": "y"})).await.data()["name"], "y");
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_lost_responses_are_retried_and_a_lasting_conflict_is_503() {
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
    api.faults.conflict(3);
    let made = client.post("/assets", json!({"name": "x"})).await;
    assert_eq!((made.status.as_u16(), api.faults.planned()), (201, 0));
    assert_eq!(event_chain(&api, &client, &made.id()).await.len(), 1);
    let before = api.dump().await;
    api.faults.conflict(1000);
    let refused = client.patch(&path, json!({"name": "z"})).await;
    refused.problem(503, "UNAVAILABLE");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(api.faults.planned() > 900, "only {} of 1000 conflicts were left", api.faults.planned());
    assert_eq!(api.dump().await, before);
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

/// Each call of a process from start to end fails in every way. After a 503, the client retries with the step that it expects
/// to be open. In the end, nothing is lost, done twice or half done.
#[tokio::test(start_paused = true)]
async fn a_process_survives_the_failure_of_any_of_its_calls() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let steps = json!([
        {"type": "user_picker", "key": "u", "label": "U", "required": true}, {"type": "signature", "key": "s", "label": "S"},
        {"type": "complete", "key": "c", "label": "C"}
    ]);
    let process = create_process(&client, steps).await;
    at_each_place(&CallFailure::ALL, 11, 3, async |place, failure| {
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

/// Retries the start after a 503. Returns the instance's ID.
async fn start_despite_failure(client: &Client, process: &str, asset: &str) -> String {
    let start = async || client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    let reply = start().await;
    match reply.status.as_u16() {
        201 => reply.id(),
        503 => match start().await {
            reply if reply.status == 201 => reply.id(),
            // The first request took effect, and the error names its instance.
            reply => reply.problem(409, "PROCESS_RUNNING")["instance_id"].as_str().unwrap().to_owned(),
        },
        other => panic!("{other}: {}", reply.text()),
    }
}

/// A tenant with sample resources, for each case to start with.
struct Cases {
    api: Api,
    client: Client,
    samples: Samples,
    start: Snapshot,
}

#[tokio::test(start_paused = true)]
async fn every_write_survives_the_failure_of_any_of_its_calls() {
    for failure in sample(CallFailure::ALL, 2) {
        survives_each_failure(failure).await;
    }
}

/// Lets the first call of each write fail, then the second, and so on. The daily run tests one call of two writes.
async fn survives_each_failure(failure: CallFailure) {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let start = Snapshot::of(&api, client.tenant).await;
    api.queue.take();
    let cases = Cases { api, client, samples, start };
    if full_tests() {
        let mut failures = 0;
        let writes: Vec<_> = by_method(operations, &WRITE_METHODS).collect();
        at_each_place(&writes, 1, 1, async |place, operation| {
            let has_failed = cases.survives(operation, place, failure).await.has_failed;
            failures += usize::from(has_failed);
            has_failed
        })
        .await;
        assert!(failures >= 100, "only {failures} failures");
        writeln!(std::io::stdout().lock(), "\n{failures} calls failed as {failure:?}, and the invariants hold").unwrap();
        return;
    }
    // Counts the calls first, to draw a sample.
    for operation in sample(by_method(operations, &WRITE_METHODS), 2) {
        // The first request fills the function's caches.
        cases.survives(operation, usize::MAX, failure).await;
        let calls = cases.survives(operation, usize::MAX, failure).await.calls;
        for place in sample(0..calls, 1) {
            assert!(cases.survives(operation, place, failure).await.has_failed, "{operation} has no call {place}");
        }
    }
}

struct Survival {
    calls: usize,
    has_failed: bool,
}

impl Cases {
    /// Sends a request, makes its table call number `place` (from 0) fail, and retries the request until it succeeds.
    async fn survives(&self, operation: &Operation, place: usize, failure: CallFailure) -> Survival {
        let name = format!("{operation}, call {place} {failure:?}");
        let (path, body) = self.samples.request(&operation.method, &operation.path);
        self.api.faults.fail_call(place, failure);
        self.api.faults.take_requests();
        let (mut attempts, mut calls) = (0, 0);
        let (headers, content_type) = ([("idempotency-key", "the request")], Some(content_type(&operation.path)));
        let send = || self.client.send_with(&operation.method, &path, content_type, body.clone(), &headers);
        let reply = loop {
            let reply = send().await;
            if attempts == 0 {
                calls = self.api.faults.take_requests().len();
            }
            attempts += 1;
            // A part of a request can also be unavailable.
            if !reply.text().contains("\"code\":\"UNAVAILABLE\"") || attempts == 4 {
                break reply;
            }
        };
        let has_failed = self.api.faults.stop_failing();
        // A deletion has no idempotency key, so a retry of a successful deletion gets a 404.
        let is_gone = operation.method == "DELETE" && failure == CallFailure::TimedOutAfter && reply.status == 404;
        assert!(reply.status.is_success() || is_gone, "{name}: {} {}", reply.status, reply.text());
        if operation.method == "POST" {
            let again = send().await;
            assert_eq!((again.header("idempotent-replayed"), unmarked(again.json())), ("true", stored(&path, &reply)), "{name}");
        }
        let now = Snapshot::of(&self.api, self.client.tenant).await;
        let expected = event_count(&operation.method, &operation.path);
        assert_eq!(now.events() - self.start.events(), expected, "{name}: it must be executed once");
        // A message can be sent twice, but two different messages can't.
        let mut messages = self.api.queue.take();
        messages.dedup();
        assert_eq!(messages.len(), usize::from(expected == 0), "{name}: {messages:?}");
        self.api.check_invariants(self.client.tenant, &name).await;
        self.start.restore(&self.api, &now).await;
        Survival { calls, has_failed }
    }
}
