//! Requests that send a message to a webhook are executed once, although no transaction contains a message.

use crate::http::idempotency::post;
use crate::support::webhooks::deliveries::with_delivery;
use crate::support::{Api, at_each_place};
use dev_server::faulty_table::Weaknesses;
use dev_server::faulty_table::planned::CallFailure;
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::domain::webhooks::DeliveryStatus;

/// Requests that send a message, with their bodies.
fn sending(webhook: &str, retry: &str) -> [(String, Value); 3] {
    [
        (format!("{webhook}/test"), json!({})),
        (retry.to_owned(), json!({})),
        (format!("{webhook}/replay"), json!({"since": "2026-03-01T00:00:00Z"})),
    ]
}

#[tokio::test(start_paused = true)]
async fn sixteen_simultaneous_copies_send_one_message() {
    let (api, client) = Api::with_tenant().await;
    let (webhook, retry, _) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    let clients = [0, -1500].map(|skew| api.replica(skew, usize::MAX).client(&client));
    for (path, body) in sending(&webhook, &retry) {
        let all = join_all((0..16).map(|n| post(&clients[n % 2], &path, &body, &path))).await;
        let first = all[0].data();
        assert!(all.iter().all(|reply| reply.data() == first), "{path}");
        assert_eq!(all.iter().filter(|reply| reply.header("idempotent-replayed").is_empty()).count(), 1, "{path}");
        assert_eq!(api.queue.take().len(), 1, "{path}");
        // Another idempotency key is another request.
        post(&client, &path, &body, &format!("another {path}")).await.data();
        assert_eq!(api.queue.take().len(), 1, "{path}");
    }
}

#[tokio::test]
async fn a_queue_that_fails_is_a_503_and_a_repetition_sends_the_same_message() {
    let (api, client) = Api::with_tenant().await;
    let (webhook, retry, _) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    for (path, body) in sending(&webhook, &retry) {
        api.queue.fail(1);
        let reply = client.post(&path, body.clone()).await;
        assert!(reply.problem(503, "UNAVAILABLE")["detail"].as_str().unwrap().starts_with("The queue of deliveries"));
        assert_eq!(reply.header("retry-after"), "1");
        api.queue.fail(2);
        for _ in 0..2 {
            post(&client, &path, &body, &path).await.problem(503, "UNAVAILABLE");
        }
        let sent = post(&client, &path, &body, &path).await.data();
        assert_eq!(post(&client, &path, &body, &path).await.data(), sent, "{path}");
        let messages = api.queue.take();
        assert_eq!(messages.len(), 1, "{path}");
        let text = serde_json::to_string(&messages[0]).unwrap();
        assert!(text.contains(sent["requested_at"].as_str().unwrap()), "{path}");
    }
}

/// For every failure of the table, a repeated request sends one message, or the same one again.
#[tokio::test(start_paused = true)]
async fn a_request_repeated_after_any_failed_call_sends_the_same_message() {
    // A copy of a request waits for the first one, which takes no time here.
    let api = Api::on_faulty_table(1, Weaknesses::default()).await;
    let client = api.tenant().await;
    let (webhook, retry, _) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    client.use_key_once().await;
    for (path, body) in sending(&webhook, &retry) {
        at_each_place(&CallFailure::ALL, 5, 2, async |place, failure| {
            let name = format!("{path} {failure:?} {place}");
            api.faults.fail_call(place, failure);
            let mut reply = post(&client, &path, &body, &name).await;
            for _ in 0..3 {
                if reply.status.is_success() {
                    break;
                }
                reply.problem(503, "UNAVAILABLE");
                reply = post(&client, &path, &body, &name).await;
            }
            assert!(reply.status.is_success(), "{name}: {}", reply.text());
            let has_failed = api.faults.stop_failing();
            let again = post(&client, &path, &body, &name).await;
            assert_eq!((again.data(), again.header("idempotent-replayed")), (reply.data(), "true"), "{name}");
            let mut messages = api.queue.take();
            messages.dedup();
            assert_eq!(messages.len(), 1, "{name}: {messages:?}");
            has_failed
        })
        .await;
    }
}

#[tokio::test]
async fn a_message_has_no_version_to_expect_and_a_dry_run_sends_none() {
    let (api, client) = Api::with_tenant().await;
    let (webhook, retry, _) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    for (path, body) in sending(&webhook, &retry) {
        let reply = client.send_json("POST", &path, &body.to_string(), ("if-match", "*")).await;
        reply.problem(412, "PRECONDITION_FAILED");
        let dry = client.post(&format!("{path}?dry_run=true"), body).await;
        assert_eq!((dry.status.as_u16(), dry.header("dry-run")), (200, "true"), "{path}");
        assert_eq!(dry.data().get("id").is_some_and(Value::is_null), path.ends_with("/test"));
    }
    assert_eq!(api.queue.take(), []);
}

#[tokio::test]
async fn a_test_and_a_retry_have_no_body_but_an_empty_one() {
    let (api, client) = Api::with_tenant().await;
    let (webhook, retry, _) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    for path in [format!("{webhook}/test"), retry] {
        for (content_type, body) in [(None, ""), (Some("application/json"), "{}")] {
            assert_eq!(client.send("POST", &path, content_type, body).await.status.as_u16(), 200, "{path} {body}");
            assert_eq!(api.queue.take().len(), 1);
        }
        let reply = client.post(&path, json!({"a": 1, "b": 2})).await;
        let errors = reply.problem(422, "VALIDATION_ERROR")["errors"].clone();
        assert_eq!((errors[0]["pointer"].as_str(), errors[1]["pointer"].as_str()), (Some("/a"), Some("/b")));
        client.send("POST", &path, Some("application/json"), "{").await.problem(400, "MALFORMED_REQUEST");
        assert!(api.queue.take().is_empty(), "nothing is sent for a request that is refused");
    }
}
