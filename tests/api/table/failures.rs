//! Throttling, conflicts and lost responses: whichever call of a write fails, nothing is lost, done twice or half done.

use crate::http::idempotency::{stored, unmarked};
use crate::support::prelude::*;

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

/// Lets the first call of each write fail in every way, then the second, and so on, and drops each write at each await point. The
/// daily run takes a sample.
#[tokio::test(start_paused = true)]
async fn every_write_survives_any_disturbance() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let start = Snapshot::of(&api, client.tenant).await;
    api.queue.take();
    let cases = Cases { api, client, samples, start };
    let writes: Vec<_> = by_method(operations, &WRITE_METHODS).filter(|write| !only_reads(&write.path)).collect();
    let ways = || CallFailure::ALL.map(Disturbance::Fails).into_iter().chain([Disturbance::IsDropped]);
    let mut disturbed = 0;
    if !full_tests() {
        for (write, way) in sample(writes.iter().flat_map(|write| ways().map(move |way| (*write, way))), 8) {
            // The first request fills the function's caches.
            cases.survives(write, usize::MAX, Disturbance::Fails(CallFailure::Throttled)).await;
            for place in sample(0..4, 1) {
                disturbed += usize::from(cases.survives(write, place, way).await);
            }
        }
        assert!(disturbed >= 2, "only {disturbed} disturbances");
        return;
    }
    for way in ways() {
        at_each_place(&writes, 1, 1, async |place, write| {
            let is_disturbed = cases.survives(write, place, way).await;
            disturbed += usize::from(is_disturbed);
            is_disturbed
        })
        .await;
    }
    assert!(disturbed >= 500, "only {disturbed} disturbances");
}

/// A tenant with sample resources, for each case to start with.
struct Cases {
    api: Api,
    client: Client,
    samples: Samples,
    start: Snapshot,
}

impl Cases {
    /// Sends a request, disturbs it at `place`, and retries the request until it succeeds. Returns whether it was disturbed.
    async fn survives(&self, operation: &Operation, place: usize, way: Disturbance) -> bool {
        let name = format!("{operation}, {way:?} {place}");
        let (path, body) = self.samples.request(&operation.method, &operation.path);
        let (headers, content_type) = ([("idempotency-key", "the request")], Some(content_type(&operation.path)));
        let send = async || self.client.send_with(&operation.method, &path, content_type, body.clone(), &headers).await;
        let (reply, is_disturbed) = way.at(&self.api, place, &send).await;
        // A deletion has no idempotency key, so a retry of a successful deletion gets a 404.
        let may_be_done = matches!(way, Disturbance::Fails(CallFailure::TimedOutAfter) | Disturbance::IsDropped);
        let is_gone = operation.method == "DELETE" && may_be_done && reply.status == 404;
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
        is_disturbed
    }
}
