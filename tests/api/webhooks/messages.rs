//! Requests that send a message to a webhook are executed once, although no transaction contains a message.

use crate::http::idempotency::post;
use crate::support::Api;
use crate::support::webhooks::deliveries::with_delivery;
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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
