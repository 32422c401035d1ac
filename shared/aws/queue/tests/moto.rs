//! The queue, against an SQS-compatible server started by `.ci/aws/queue`, with the permissions granted by the template.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and helpers that only tests call")]

use queue::sdk::Client;
use queue::sdk::config::{BehaviorVersion, Credentials, Region};
use queue::sdk::types::MessageSystemAttributeName::MessageGroupId;
use queue::{QUEUE_URL, RETRY_QUEUE_URL, Sqs, configure};
use serde_json::json;
use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::Message;
use shared::queue::{NewMessage, Queue, QueueError};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Visibility timeout in tests in which a received message reappears.
const HIDDEN: Duration = Duration::from_secs(1);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("set {name}, as .ci/aws/queue does"))
}

fn client(key: &str, secret: &str) -> Client {
    let config = configure(queue::sdk::Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(variable("AWS_ENDPOINT_URL_SQS"))
        .credentials_provider(Credentials::new(key, secret, None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}

fn receiver() -> Client {
    client(&variable("AWS_ACCESS_KEY_ID"), &variable("AWS_SECRET_ACCESS_KEY"))
}

fn queue_of(client: Client) -> Sqs {
    Sqs::new(Box::new(move || Ok(client.clone())), variable(QUEUE_URL)).with_retries(variable(RETRY_QUEUE_URL))
}

fn from_env() -> Sqs {
    let queue = Sqs::from_env().unwrap().unwrap_or_else(|| panic!("set {QUEUE_URL}, as .ci/aws/queue does"));
    queue.with_retries_from_env().unwrap()
}

/// Returns a webhook ID unique to a test. The tenant has the same UUID.
fn webhook(test: u8) -> WebhookId {
    WebhookId::new(Timestamp::from_millis(0), [test; 10])
}

fn message(webhook: WebhookId, n: u8) -> NewMessage {
    let tenant = TenantId::from_uuid(webhook.uuid());
    let event = EventId::new(Timestamp::from_millis(i64::from(n)), [n; 10]);
    let request = json!({"kind": "delivery", "tenant_id": tenant, "webhook_id": webhook, "event_id": event,
        "requested_at": Timestamp::from_millis(1), "number": 1});
    serde_json::from_value::<Message>(request).unwrap().into()
}

struct Received {
    message: Message,
    group: String,
    handle: String,
}

/// Receives messages until none is visible. All must be for `webhook`.
async fn receive(client: &Client, queue: &str, webhook: WebhookId, hidden: Duration) -> Vec<Received> {
    let mut own = Vec::new();
    loop {
        let request = client.receive_message().queue_url(variable(queue)).max_number_of_messages(10);
        let request = request.visibility_timeout(i32::try_from(hidden.as_secs()).unwrap());
        let received = request.message_system_attribute_names(MessageGroupId).send().await.unwrap().messages.unwrap_or_default();
        if received.is_empty() {
            break;
        }
        for received in received {
            let group = received.attributes.unwrap()[&MessageGroupId].clone();
            let message: Message = serde_json::from_str(&received.body.unwrap()).unwrap();
            let handle = received.receipt_handle.unwrap();
            assert_eq!(webhook_of(&message), Some(webhook));
            own.push(Received { message, group, handle });
        }
    }
    own
}

fn webhook_of(message: &Message) -> Option<WebhookId> {
    match message {
        Message::Delivery(request) => Some(request.webhook_id),
        Message::Replay(request) => Some(request.webhook_id),
        _ => None,
    }
}

async fn delete(client: &Client, queue: &str, received: Vec<Received>) {
    for received in received {
        client.delete_message().queue_url(variable(queue)).receipt_handle(received.handle).send().await.unwrap();
    }
}

/// Serializes the tests, because they share a queue.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test]
#[ignore = "needs an SQS API: .ci/aws/queue"]
async fn messages_arrive_as_they_were_sent_in_the_group_of_their_tenant() {
    let _turn = TURN.lock().await;
    let (queue, client) = (from_env(), receiver());
    let sent: Vec<NewMessage> = (0..37).map(|n| message(webhook(1), n)).collect();
    queue.send(sent.clone()).await.unwrap();
    let received = receive(&client, QUEUE_URL, webhook(1), Duration::from_secs(60)).await;
    assert_eq!(received.len(), 37);
    assert!(received.iter().all(|received| received.group == received.message.group()));
    assert!(sent.iter().all(|sent| received.iter().any(|received| received.message == sent.message)));
    delete(&client, QUEUE_URL, received).await;
    let replay = json!({"kind": "replay", "tenant_id": TenantId::new(Timestamp::from_millis(0), [0; 10]),
        "webhook_id": webhook(3), "after": EventId::new(Timestamp::from_millis(5), [0; 10]), "until": Timestamp::from_millis(7),
        "events": ["asset.*"], "requested_at": Timestamp::from_millis(8)});
    let replay: Message = serde_json::from_value(replay).unwrap();
    queue.send(vec![replay.clone().into()]).await.unwrap();
    let received = receive(&client, QUEUE_URL, webhook(3), Duration::from_secs(60)).await;
    assert_eq!(received.iter().map(|received| &received.message).collect::<Vec<_>>(), [&replay]);
    delete(&client, QUEUE_URL, received).await;
}

#[tokio::test]
#[ignore = "needs an SQS API: .ci/aws/queue"]
async fn a_delayed_message_is_held_back() {
    let _turn = TURN.lock().await;
    let (queue, client) = (from_env(), receiver());
    let start = Instant::now();
    let delay = Duration::from_secs(2);
    queue.send(vec![message(webhook(4), 0), NewMessage { delay, ..message(webhook(4), 1) }]).await.unwrap();
    let mut arrived = HashSet::new();
    while arrived.len() < 2 && start.elapsed() < Duration::from_secs(30) {
        let received = receive(&client, QUEUE_URL, webhook(4), Duration::from_secs(60)).await;
        for received in &received {
            assert!(received.message != message(webhook(4), 1).message || start.elapsed() >= Duration::from_secs(1));
            arrived.insert(format!("{:?}", received.message));
        }
        delete(&client, QUEUE_URL, received).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(arrived.len(), 2);
}

#[tokio::test]
#[ignore = "needs an SQS API: .ci/aws/queue"]
async fn a_retry_is_in_a_queue_of_its_own() {
    let _turn = TURN.lock().await;
    let (queue, client) = (from_env(), receiver());
    queue.send_retry(vec![message(webhook(5), 0)]).await.unwrap();
    assert!(receive(&client, QUEUE_URL, webhook(5), HIDDEN).await.is_empty(), "a retry is in the delivery queue");
    let received = receive(&client, RETRY_QUEUE_URL, webhook(5), HIDDEN).await;
    assert_eq!(received.len(), 1);
    delete(&client, RETRY_QUEUE_URL, received).await;
}

fn status(error: &QueueError) -> String {
    format!("{:?}", error.0)
}

/// Verifies that the server checks signatures. Otherwise, the test of permissions would prove nothing.
#[tokio::test]
#[ignore = "needs an SQS API: .ci/aws/queue"]
async fn a_wrong_key_is_refused() {
    let _turn = TURN.lock().await;
    let stranger = queue_of(client(&variable("AWS_ACCESS_KEY_ID"), "not the secret"));
    let error = stranger.send(vec![message(webhook(6), 0)]).await.unwrap_err();
    assert!(status(&error).contains("SignatureDoesNotMatch"), "{error:?}");
    assert!(receive(&receiver(), QUEUE_URL, webhook(6), HIDDEN).await.is_empty());
}

#[tokio::test]
#[ignore = "needs an SQS API: .ci/aws/queue"]
async fn the_role_of_fanout_sends_and_nothing_else() {
    let _turn = TURN.lock().await;
    let own = client(&variable("FANOUT_AWS_ACCESS_KEY_ID"), &variable("FANOUT_AWS_SECRET_ACCESS_KEY"));
    let queue = queue_of(own.clone());
    queue.send((0..11).map(|n| message(webhook(7), n)).collect()).await.unwrap();
    let refused = own.receive_message().queue_url(variable(QUEUE_URL)).send().await.unwrap_err();
    assert!(format!("{refused:?}").contains("AccessDenied"), "{refused:?}");
    let client = receiver();
    let received = receive(&client, QUEUE_URL, webhook(7), Duration::from_secs(60)).await;
    assert_eq!(received.len(), 11);
    delete(&client, QUEUE_URL, received).await;
    // Fanout sends events here if it can't read the tenant's webhooks.
    queue.send_retry(vec![message(webhook(7), 0)]).await.unwrap();
    let received = receive(&client, RETRY_QUEUE_URL, webhook(7), HIDDEN).await;
    assert_eq!(received.len(), 1);
    delete(&client, RETRY_QUEUE_URL, received).await;
}
