//! The queue, against a small fake SQS server that rejects messages on demand.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

use axum::http::StatusCode;
use dev_server::fake_sqs::FakeSqs;
use queue::sdk::Client;
use queue::sdk::config::{BehaviorVersion, Credentials, Region};
use queue::{Sqs, configure};
use serde_json::{Value, json};
use shared::domain::values::id::{Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::Message;
use shared::queue::{NewMessage, Queue};
use std::time::Duration;

async fn fake_sqs() -> (Sqs, FakeSqs) {
    let sqs = FakeSqs::start().await.unwrap();
    let config = configure(queue::sdk::Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(&sqs.url)
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    let client = Client::from_conf(config.build());
    let queue = Sqs::new(Box::new(move || Ok(client.clone())), sqs.queue_url());
    (queue.with_retries(sqs.retry_queue_url()), sqs)
}

fn webhook(n: u8) -> WebhookId {
    WebhookId::new(Timestamp::from_millis(0), [n; 10])
}

fn message(webhook: WebhookId, n: u8) -> Message {
    let tenant = TenantId::new(Timestamp::from_millis(0), [0; 10]);
    let event = shared::domain::values::id::EventId::new(Timestamp::from_millis(i64::from(n)), [n; 10]);
    let request = json!({"kind": "delivery", "tenant_id": tenant, "webhook_id": webhook, "event_id": event,
        "requested_at": Timestamp::from_millis(1), "number": 1});
    serde_json::from_value(request).unwrap()
}

fn messages(count: u8) -> Vec<NewMessage> {
    (0..count).map(|n| message(webhook(n % 2), n).into()).collect()
}

/// Takes the entries of each batch received so far, in no particular order.
fn batches(sqs: &FakeSqs) -> Vec<Vec<Value>> {
    let requests = sqs.take_requests();
    let of_batch = |(operation, request): (String, Value)| {
        assert_eq!(operation, "SendMessageBatch");
        assert!(request["QueueUrl"].as_str().unwrap().ends_with("/123456789012/deliveries"));
        request["Entries"].as_array().unwrap().clone()
    };
    requests.into_iter().map(of_batch).collect()
}

#[tokio::test]
async fn messages_are_sent_in_batches_with_their_tenant_as_group() {
    let (queue, sqs) = fake_sqs().await;
    let delayed = NewMessage { message: message(webhook(7), 99), delay: Duration::from_millis(14_200) };
    queue.send([messages(24), vec![delayed.clone()]].concat()).await.unwrap();
    let sent = batches(&sqs);
    let mut sizes: Vec<usize> = sent.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 10, 10]);
    let mut bodies: Vec<Message> = Vec::new();
    for entry in sent.concat() {
        let body: Message = serde_json::from_str(entry["MessageBody"].as_str().unwrap()).unwrap();
        assert_eq!(entry["MessageGroupId"], body.group());
        assert_eq!(entry["DelaySeconds"], if body == delayed.message { 15 } else { 0 });
        bodies.push(body);
    }
    assert_eq!(bodies.len(), 25);
    assert!(messages(24).iter().all(|new| bodies.contains(&new.message)));
    queue.send(Vec::new()).await.unwrap();
    assert_eq!(batches(&sqs).len(), 0);
}

#[tokio::test]
async fn messages_refused_from_a_batch_are_sent_once_more() {
    let (queue, sqs) = fake_sqs().await;
    sqs.refuse(vec![vec![1, 3]]);
    queue.send(messages(5)).await.unwrap();
    let sent = batches(&sqs);
    let body = |entry: &Value| entry["MessageBody"].clone();
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [5, 2]);
    assert_eq!([body(&sent[1][0]), body(&sent[1][1])], [body(&sent[0][1]), body(&sent[0][3])]);
}

#[tokio::test]
async fn message_refused_twice_is_an_error() {
    let (queue, sqs) = fake_sqs().await;
    sqs.refuse(vec![vec![0], vec![2]]);
    let error = queue.send(messages(3)).await.unwrap_err();
    assert_eq!(error.to_string(), "the queue is unavailable");
    assert_eq!(error.0.to_string(), "the queue rejected a message twice: InternalError");
    assert_eq!(batches(&sqs).iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
}

#[tokio::test]
async fn throttled_and_failed_requests_are_repeated_and_others_are_not() {
    let (queue, sqs) = fake_sqs().await;
    let unavailable = (StatusCode::SERVICE_UNAVAILABLE, "InternalFailure");
    sqs.fail(vec![(StatusCode::BAD_REQUEST, "ThrottlingException"), unavailable]);
    queue.send(messages(1)).await.unwrap();
    assert_eq!(batches(&sqs).len(), 3);
    sqs.fail(vec![unavailable; 3]);
    queue.send(messages(1)).await.unwrap_err();
    assert_eq!(batches(&sqs).len(), 3);
    sqs.fail(vec![(StatusCode::BAD_REQUEST, "com.amazonaws.sqs#QueueDoesNotExist")]);
    queue.send(messages(1)).await.unwrap_err();
    assert_eq!(batches(&sqs).len(), 1);
}

#[tokio::test]
async fn retries_have_a_queue_of_their_own() {
    let (queue, sqs) = fake_sqs().await;
    let delayed = NewMessage { message: message(webhook(7), 1), delay: Duration::from_millis(5200) };
    queue.send_retry(vec![delayed.clone()]).await.unwrap();
    let (operation, request) = sqs.take_requests().pop().unwrap();
    assert_eq!(operation, "SendMessageBatch");
    assert!(request["QueueUrl"].as_str().unwrap().ends_with("/123456789012/retries"));
    let entry = &request["Entries"][0];
    assert_eq!((&entry["DelaySeconds"], &entry["MessageGroupId"]), (&json!(6), &json!(delayed.message.group())));
    assert!(queue.is_of_retries("arn:aws:sqs:us-east-1:123456789012:retries"));
    assert!(!queue.is_of_retries("arn:aws:sqs:us-east-1:123456789012:deliveries"));
    // API functions have no retry queue.
    let connect = || panic!("nothing is sent");
    let sending = Sqs::new(Box::new(connect), "https://sqs.example.com/123456789012/deliveries".to_owned());
    assert_eq!(sending.send_retry(vec![delayed]).await.unwrap_err().0.to_string(), "no retry queue is configured");
}
