//! The limits of replays: one of a webhook at a time, and so many of a tenant in a day.

use crate::http::idempotency::post;
use crate::support::webhooks::deliveries::path;
use crate::support::webhooks::pipeline::{send, with_webhook};
use crate::support::{Api, Client};
use serde_json::{Value, json};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{MAX_REPLAYS_PER_DAY, Message};

const SINCE: &str = "2026-03-01T00:00:00Z";

async fn running(client: &Client, replay: &str) -> Value {
    client.post(replay, json!({"since": SINCE})).await.problem(409, "CONFLICT")
}

/// The messages that requests have sent.
fn sent(api: &Api) -> Vec<Message> {
    api.queue.take()
}

#[tokio::test(start_paused = true)]
async fn a_webhook_has_one_replay_at_a_time() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    client.asset(json!({"name": "a"})).await;
    pipeline.finish(&api).await;
    let replay = format!("/webhooks/{}/replay", hook.id);
    client.post(&format!("{replay}?dry_run=true"), json!({"since": SINCE})).await.data();
    let first = client.post(&replay, json!({"since": SINCE})).await.data();
    let problem = running(&client, &replay).await;
    assert_eq!(problem["requested_at"], first["requested_at"]);
    client.post(&format!("{replay}?dry_run=true"), json!({"since": SINCE})).await.problem(409, "CONFLICT");
    for message in sent(&api) {
        send(&pipeline, message).await;
    }
    pipeline.run().await;
    running(&client, &replay).await;
    // The feed's end settles.
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 2, "once when it happened, once by the replay");
    client.post(&replay, json!({"since": SINCE})).await.data();
    // Its message is lost.
    sent(&api);
    api.advance_clock(15 * 60);
    client.post(&replay, json!({"since": SINCE})).await.data();
    // The message of a webhook that is no longer active ends the replay.
    hook.activate(false).await;
    for message in sent(&api) {
        send(&pipeline, message).await;
    }
    pipeline.run_to_end(&api).await;
    hook.activate(true).await;
    client.post(&replay, json!({"since": SINCE})).await.data();
}

/// The lost one comes back later, from the queue of retries.
#[tokio::test(start_paused = true)]
async fn a_later_replay_ends_an_earlier_one() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    client.asset(json!({"name": "a"})).await;
    pipeline.finish(&api).await;
    pipeline.receivers.take();
    let replay = format!("/webhooks/{}/replay", hook.id);
    client.post(&replay, json!({"since": SINCE})).await.data();
    let lost = sent(&api).remove(0);
    api.advance_clock(15 * 60);
    client.post(&replay, json!({"since": SINCE})).await.data();
    send(&pipeline, lost).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 0);
    for message in sent(&api) {
        send(&pipeline, message).await;
    }
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn copies_of_a_request_are_one_replay_and_a_failed_one_is_none() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["asset.created"])).await;
    let (replay, body) = (format!("{}/replay", path(&webhook)), json!({"since": SINCE}));
    api.queue.fail(1);
    client.post(&replay, body.clone()).await.problem(503, "UNAVAILABLE");
    let with_version = client.send_json("POST", &replay, &body.to_string(), ("if-match", "\"1-0\"")).await;
    with_version.problem(412, "PRECONDITION_FAILED");
    let copies = futures_util::future::join_all((0..3).map(|_| post(&client, &replay, &body, "key"))).await;
    let shown: Vec<Value> = copies.iter().map(crate::support::Reply::data).collect();
    assert!(shown.iter().all(|copy| *copy == shown[0]), "{shown:?}");
    assert_eq!(sent(&api).len(), 1);
    assert_eq!(post(&client, &replay, &body, "key").await.data(), shown[0]);
    post(&client, &replay, &body, "another").await.problem(409, "CONFLICT");
}

#[tokio::test(start_paused = true)]
async fn a_tenant_starts_so_many_replays_a_day() {
    let (api, client) = Api::with_tenant().await;
    let webhooks = [client.webhook(json!(["*"])).await, client.webhook(json!(["*"])).await];
    for n in 0..MAX_REPLAYS_PER_DAY {
        let replay = format!("{}/replay", path(&webhooks[n as usize % 2]));
        client.post(&replay, json!({"since": SINCE})).await.data();
        api.advance_clock(8 * 60);
    }
    let replay = format!("{}/replay", path(&webhooks[0]));
    let problem = running(&client, &replay).await;
    let next: Timestamp = problem["retry_at"].as_str().unwrap().parse().unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("50 replays a day"), "{problem}");
    let (_, stranger) = (api.advance_clock_millis(next.since(api.now()).num_milliseconds()), api.tenant().await);
    client.post(&replay, json!({"since": SINCE})).await.data();
    let webhook = stranger.webhook(json!(["*"])).await;
    stranger.post(&format!("{}/replay", path(&webhook)), json!({"since": SINCE})).await.data();
}
