//! Runs the release binaries of the functions between the table's stream and webhook receivers, as Lambda does.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and helpers that only tests call")]

use aws_sdk_dynamodb::types::AttributeValue;
use rig::environment::Environment;
use rig::events::request;
use rig::fake_sqs::FakeSqs;
use rig::function::Function;
use serde_json::{Value, json};
use std::time::Duration;

/// The timeouts of the functions in the template.
const FANOUT_TIMEOUT: Duration = Duration::from_secs(60);
const DELIVER_TIMEOUT: Duration = Duration::from_secs(30);

/// Events in the format that AWS documents, from a tenant that doesn't exist.
const STREAM_SAMPLE: &str = include_str!("../../../events/background/fanout.json");
const QUEUE_SAMPLE: &str = include_str!("../../../events/background/deliver.json");

/// A table, a queue, and the variables that give functions the queue and the key that encrypts secrets.
struct Setup {
    environment: Environment,
    sqs: FakeSqs,
    queue_url: String,
    retry_queue_url: String,
    key_file: String,
    _folder: tempfile::TempDir,
}

impl Setup {
    async fn new() -> Self {
        let sqs = FakeSqs::start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let key_file = folder.path().join("secrets.key").to_str().unwrap().to_owned();
        let environment = Environment::start().await.unwrap();
        let (queue_url, retry_queue_url) = (sqs.queue_url(), sqs.retry_queue_url());
        Self { environment, queue_url, retry_queue_url, sqs, key_file, _folder: folder }
    }

    async fn start(&self, name: &str) -> Function {
        let variables = [
            ("DELIVERY_QUEUE_URL", self.queue_url.as_str()),
            ("RETRY_QUEUE_URL", self.retry_queue_url.as_str()),
            ("AWS_ENDPOINT_URL_SQS", self.sqs.url.as_str()),
            ("RECEIPT_KEY_FILE", self.key_file.as_str()),
        ];
        self.environment.start_function_with(name, &variables).await.unwrap()
    }

    async fn send(&self, function: &Function, method: &str, path: &str, body: Value) -> Value {
        let event = request(method, path, &self.environment.api_key, Some(&body).filter(|body| !body.is_null()));
        let response = function.runtime_api.invoke(&event, Duration::from_secs(15)).await.unwrap().response;
        assert!(matches!(response["statusCode"].as_u64(), Some(200 | 201)), "{method} {path}: {response}");
        serde_json::from_str::<Value>(response["body"].as_str().unwrap()).unwrap()["data"].take()
    }

    /// Returns all events of this type, in the stream's format.
    async fn stream(&self, event_type: &str) -> Value {
        let sample: Value = serde_json::from_str(STREAM_SAMPLE).unwrap();
        let wire = |value: &AttributeValue| match value {
            AttributeValue::S(text) => json!({"S": text}),
            AttributeValue::N(number) => json!({"N": number}),
            other => panic!("an event has {other:?}"),
        };
        let scan = self.environment.dynamo.scan().table_name(self.environment.table).send().await.unwrap();
        let mut records = Vec::new();
        for item in scan.items() {
            let is_wanted = |entry: &str| entry.contains(&format!("\"type\":\"{event_type}\""));
            if !item.get("entry").and_then(|entry| entry.as_s().ok()).is_some_and(|entry| is_wanted(entry)) {
                continue;
            }
            let image: serde_json::Map<String, Value> = item.iter().map(|(name, value)| (name.clone(), wire(value))).collect();
            let mut record = sample["Records"][0].clone();
            record["dynamodb"]["Keys"] = json!({"PK": image["PK"], "SK": image["SK"]});
            record["dynamodb"]["NewImage"] = json!(image);
            record["dynamodb"]["SequenceNumber"] = json!(format!("442158450000000001745043909{}", records.len()));
            records.push(record);
        }
        assert!(!records.is_empty(), "there is no {event_type}");
        json!({"Records": records})
    }
}

fn batch(bodies: &[&str]) -> Value {
    let sample: Value = serde_json::from_str(QUEUE_SAMPLE).unwrap();
    let record = |(number, body): (usize, &&str)| {
        let mut record = sample["Records"][0].clone();
        record["messageId"] = json!(format!("message-{number}"));
        record["receiptHandle"] = json!(format!("handle-{number}"));
        record["body"] = json!(body);
        record
    };
    json!({"Records": bodies.iter().enumerate().map(record).collect::<Vec<_>>()})
}

async fn invoke(function: &Function, event: &Value, timeout: Duration) -> Value {
    function.runtime_api.invoke(&event.to_string(), timeout).await.unwrap().response
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn the_sample_events_of_stream_and_queue_are_handled() {
    let setup = Setup::new().await;
    let (mut fanout, mut deliver) = (setup.start("fanout").await, setup.start("deliver").await);
    let handled = json!({"batchItemFailures": []});
    for _ in 0..2 {
        assert_eq!(invoke(&fanout, &serde_json::from_str(STREAM_SAMPLE).unwrap(), FANOUT_TIMEOUT).await, handled);
        assert_eq!(invoke(&deliver, &serde_json::from_str(QUEUE_SAMPLE).unwrap(), DELIVER_TIMEOUT).await, handled);
    }
    assert!(fanout.is_running() && deliver.is_running());
    // No webhook subscribes to the event, and the message's webhook doesn't exist.
    assert_eq!(setup.sqs.take_requests().len(), 0);
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn an_event_becomes_a_message_and_the_message_an_attempt() {
    let setup = Setup::new().await;
    let webhooks = setup.start("webhooks").await;
    let url = "https://receiver.example.com/hook?token=hidden";
    let webhook = setup.send(&webhooks, "POST", "/v1/webhooks", json!({"url": url, "events": ["asset.created"]})).await;
    let (id, secret) = (webhook["id"].as_str().unwrap(), webhook["secret"].as_str().unwrap());
    let fanout = setup.start("fanout").await;
    let event = setup.stream("asset.created").await;
    assert_eq!(invoke(&fanout, &event, FANOUT_TIMEOUT).await, json!({"batchItemFailures": []}));
    let sent = setup.sqs.take_requests();
    let [(operation, message)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((operation.as_str(), &message["QueueUrl"]), ("SendMessageBatch", &json!(setup.queue_url)));
    let entries = message["Entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["MessageGroupId"].as_str().unwrap().len(), 22);
    let body = entries[0]["MessageBody"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["webhook_ids"], json!([id]));
    // The receiver doesn't exist, so the message is sent to the retry queue, where it doesn't count as in flight while it waits.
    let deliver = setup.start("deliver").await;
    let handled = invoke(&deliver, &batch(&[body]), DELIVER_TIMEOUT).await;
    assert_eq!(handled, json!({"batchItemFailures": []}));
    let retried = setup.sqs.take_requests();
    let [(operation, retry)] = retried.as_slice() else { panic!("{retried:?}") };
    assert_eq!((operation.as_str(), &retry["QueueUrl"]), ("SendMessageBatch", &json!(setup.retry_queue_url)));
    let body = retry["Entries"][0]["MessageBody"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["webhook_id"], id);
    assert!((5..=6).contains(&retry["Entries"][0]["DelaySeconds"].as_u64().unwrap()), "{retry}");
    // When the message is received from the retry queue, it is sent again with the remaining delay.
    let mut from_retries = batch(&[body]);
    from_retries["Records"][0]["eventSourceARN"] = json!("arn:aws:sqs:us-east-1:123456789012:retries");
    assert_eq!(invoke(&deliver, &from_retries, DELIVER_TIMEOUT).await, json!({"batchItemFailures": []}));
    let sent = setup.sqs.take_requests();
    let [(operation, again)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((operation.as_str(), &again["QueueUrl"]), ("SendMessageBatch", &json!(setup.retry_queue_url)));
    assert!((1..=6).contains(&again["Entries"][0]["DelaySeconds"].as_u64().unwrap()), "{again}");
    let deliveries = setup.send(&webhooks, "GET", &format!("/v1/webhooks/{id}/deliveries"), Value::Null).await;
    assert_eq!((deliveries.as_array().unwrap().len(), &deliveries[0]["status"]), (1, &json!("pending")));
    assert!(deliveries[0]["attempts"][0]["error"].is_string(), "{deliveries}");
    // The log contains IDs, but no addresses or secrets.
    for function in [&webhooks, &fanout, &deliver] {
        let log = serde_json::to_string(&function.log().unwrap()).unwrap();
        assert!(!log.contains("receiver.example.com") && !log.contains("hidden") && !log.contains(secret), "{log}");
    }
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn what_can_not_be_sent_or_read_is_reported_and_nothing_else() {
    let setup = Setup::new().await;
    let webhooks = setup.start("webhooks").await;
    let body = json!({"url": "https://receiver.example.com/", "events": ["*"]});
    setup.send(&webhooks, "POST", "/v1/webhooks", body).await;
    let (mut fanout, mut deliver) = (setup.start("fanout").await, setup.start("deliver").await);
    let event = setup.stream("asset.created").await;
    setup.sqs.set_down(true);
    let failed = invoke(&fanout, &event, FANOUT_TIMEOUT).await;
    let first = &event["Records"][0]["dynamodb"]["SequenceNumber"];
    assert_eq!(failed, json!({"batchItemFailures": [{"itemIdentifier": first}]}));
    setup.sqs.set_down(false);
    assert_eq!(invoke(&fanout, &event, FANOUT_TIMEOUT).await, json!({"batchItemFailures": []}));
    // A record that can't be read would block its shard, so it is skipped, with a log line that an alarm counts.
    let mut damaged = event.clone();
    damaged["Records"][0]["dynamodb"]["NewImage"]["entry"] = json!({"S": "{"});
    assert_eq!(invoke(&fanout, &damaged, FANOUT_TIMEOUT).await, json!({"batchItemFailures": []}));
    assert!(fanout.log().unwrap().iter().any(|line| line["metric"] == "unreadable_events"));
    // A message that can't be read ends up in the dead-letter queue. The other messages in the batch are handled.
    let sample: Value = serde_json::from_str(QUEUE_SAMPLE).unwrap();
    let bodies = ["{", sample["Records"][0]["body"].as_str().unwrap()];
    let failed = invoke(&deliver, &batch(&bodies), DELIVER_TIMEOUT).await;
    assert_eq!(failed, json!({"batchItemFailures": [{"itemIdentifier": "message-0"}]}));
    assert!(fanout.is_running() && deliver.is_running());
}

#[tokio::test]
#[ignore = "needs .ci/functions/build"]
async fn a_misconfigured_function_names_the_variable_to_set() {
    let setup = Setup::new().await;
    let (key, queue) = (("RECEIPT_KEY_FILE", setup.key_file.as_str()), ("DELIVERY_QUEUE_URL", setup.queue_url.as_str()));
    let retries = ("RETRY_QUEUE_URL", setup.retry_queue_url.as_str());
    let (other_queue, address) = (("DELIVERY_QUEUE_URL", "deliveries"), ("AWS_ENDPOINT_URL_SQS", "127.0.0.1:9324"));
    for (function, variables, expected) in [
        ("fanout", vec![], "set DELIVERY_QUEUE_URL"),
        ("fanout", vec![other_queue], "DELIVERY_QUEUE_URL must start with http:// or https://"),
        ("fanout", vec![queue], "set RETRY_QUEUE_URL"),
        ("fanout", vec![queue, address], "AWS_ENDPOINT_URL_SQS must start with http:// or https://"),
        ("deliver", vec![key], "set DELIVERY_QUEUE_URL"),
        ("deliver", vec![key, queue], "set RETRY_QUEUE_URL"),
        ("deliver", vec![queue, retries], "RECEIPT_KMS_KEY_ID"),
    ] {
        let error = setup.environment.start_function_with(function, &variables).await.err().map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("{function} starts with {variables:?}"));
        assert!(error.contains("\"level\":\"ERROR\"") && error.contains(expected), "{error}");
    }
}
