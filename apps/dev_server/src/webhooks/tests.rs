//! Tests the path from the embedded engine's stream to the queue's messages.

use super::reader::{is_new_event, of_stream};
use super::*;
use crate::queue::in_memory;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::BoxFuture;
use rusqlite::Connection;
use serde_json::{Value, json};
use shared::domain::values::id::{EventId, TenantId, WebhookId};
use shared::domain::webhooks::{EventRequest, Webhook};
use shared::services::system_clock;
use shared::store::{ChangeContext, UnitOfWork};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

const TABLE: &str = "test";
/// Enough time for everything on a busy machine.
const LONG: Duration = Duration::from_secs(30);

struct Local {
    engine: Engine,
    client: Client,
    store: Store,
}

type Events = Arc<Mutex<Vec<EventId>>>;

impl Local {
    async fn start(folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| folder.join("table.db"));
        let engine = Engine::start(file.as_deref(), ([127, 0, 0, 1], 0).into()).unwrap();
        let client = Client::from_conf(engine::config(&engine.url).build());
        crate::table::create(&client, TABLE).await.unwrap();
        let store = Store::new(client.clone(), TABLE, system_clock());
        Self { engine, client, store }
    }

    /// Creates a tenant with a webhook for all events.
    async fn tenant(&self) -> TenantId {
        let tenant = self.store.create_tenant("Acme".parse().unwrap(), None, 600).await.unwrap().tenant_id;
        self.webhook(tenant, 0).await;
        tenant
    }

    /// Creates a webhook. The creation is an event, too.
    async fn webhook(&self, tenant: TenantId, slot: u8) {
        let (store, now) = (self.store.writer(tenant), self.store.now());
        let id: WebhookId = store.new_id(now).unwrap();
        let webhook = json!({
            "id": id, "url": "https://example.com/hook", "description": "", "events": ["*"], "is_active": true,
            "active_since": now, "slot": slot, "secret": "AAAA"
        });
        let context = ChangeContext::operator(now);
        let mut unit = UnitOfWork::new(&store, &context);
        unit.create::<Webhook>(serde_json::from_value(webhook).unwrap()).unwrap();
        unit.commit().await.unwrap();
    }

    /// Starts a pipeline whose handler records the events of messages, and never finishes if `hangs` is set.
    async fn pipeline(&self, events: &Events, hangs: bool) -> (MemoryQueue, Pipeline) {
        let (queue, worker) = in_memory();
        let noted = Arc::clone(events);
        let handler = move |message: Message, _| -> BoxFuture<'static, bool> {
            if let Message::Event(EventRequest { event_id, .. }) = message {
                noted.lock().unwrap().push(event_id);
            }
            Box::pin(async move { if hangs { std::future::pending().await } else { true } })
        };
        let pipeline =
            Pipeline::start(&self.engine, self.store.clone(), TABLE, (queue.clone(), worker), Arc::new(handler)).await.unwrap();
        (queue, pipeline)
    }

    /// Puts an item whose attribute `n` is a number.
    async fn put(&self, sort_key: &str, number: usize) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let put = self.client.put_item().table_name(TABLE).item("PK", text("T#1")).item("SK", text(sort_key));
        put.item("n", AttributeValue::N(number.to_string())).send().await.unwrap();
    }

    async fn put_events(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.put(&format!("EVENT#{number:05}"), number).await;
        }
    }

    async fn records(&self, arn: &str) -> Vec<Value> {
        let streams = self.engine.streams();
        let described = streams.call("DescribeStream", json!({"StreamArn": arn})).await.unwrap();
        let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
        let oldest = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
        let found = streams.call("GetShardIterator", oldest).await.unwrap();
        let read = streams.call("GetRecords", json!({"ShardIterator": found["ShardIterator"]})).await.unwrap();
        read["Records"].as_array().unwrap().clone()
    }
}

async fn until(is_true: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_true().await {
        assert!(Instant::now() < deadline, "the condition never became true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn count(file: &Path) -> usize {
    let count = "SELECT COUNT(*) FROM _stream_records";
    Connection::open(file).unwrap().query_row(count, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn only_new_events_are_passed_on_in_order() {
    let local = Local::start(None).await;
    let arn = table::enable_stream(&local.client, TABLE).await.unwrap();
    local.put_events(0..5).await;
    // A changed event, a deleted one, and items of other kinds.
    local.put("EVENT#00000", 99).await;
    let key = |text: &str| AttributeValue::S(text.to_owned());
    let delete = local.client.delete_item().table_name(TABLE).key("PK", key("T#1")).key("SK", key("EVENT#00001"));
    delete.send().await.unwrap();
    for other in ["ASSET#1", "EVENTS", "DELIVERY#1#EVENT#1"] {
        local.put(other, 99).await;
    }
    local.put_events(5..9).await;
    let records = local.records(&arn).await;
    let event = of_stream(records.iter().filter(|record| is_new_event(record)), &arn).unwrap();
    let event = serde_json::to_value(event).unwrap();
    let numbers =
        event["Records"].as_array().unwrap().iter().map(|record| record["dynamodb"]["NewImage"]["n"]["N"].as_str().unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
}

#[tokio::test]
async fn a_record_is_as_lambda_has_it() {
    let local = Local::start(None).await;
    let arn = table::enable_stream(&local.client, TABLE).await.unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = local.client.put_item().table_name(TABLE).item("PK", text("T#1")).item("SK", text("EVENT#1"));
    let list = AttributeValue::L(vec![AttributeValue::Bool(true), AttributeValue::Null(true)]);
    let map = AttributeValue::M([("ü".to_owned(), AttributeValue::N("1.50".into()))].into());
    let bytes = AttributeValue::B(Blob::new([0, 255]));
    let set = AttributeValue::Ss(vec!["a".into()]);
    put.item("list", list).item("map", map).item("bytes", bytes).item("set", set).send().await.unwrap();
    let event = serde_json::to_value(of_stream(&local.records(&arn).await, &arn).unwrap()).unwrap();
    let record = &event["Records"][0];
    assert_eq!((&record["eventName"], &record["eventSource"]), (&"INSERT".into(), &"aws:dynamodb".into()), "{record}");
    assert!(record["eventSourceARN"].as_str().unwrap().contains("table/test/stream/"), "{record}");
    assert_eq!(record["dynamodb"]["Keys"]["SK"], json!({"S": "EVENT#1"}));
    assert_eq!(record["dynamodb"]["StreamViewType"], "NEW_IMAGE");
    let image = &record["dynamodb"]["NewImage"];
    let expected = json!({
        "PK": {"S": "T#1"}, "SK": {"S": "EVENT#1"}, "bytes": {"B": "AP8="}, "set": {"SS": ["a"]},
        "list": {"L": [{"BOOL": true}, {"NULL": true}]}, "map": {"M": {"ü": {"N": "1.5"}}},
    });
    assert_eq!(image, &expected);
}

/// Events stay in the stream until their messages are finished. After a restart, they are passed on again, followed by later
/// events.
#[tokio::test]
async fn unfinished_events_are_passed_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.db");
    let local = Local::start(Some(folder.path())).await;
    table::enable_stream(&local.client, TABLE).await.unwrap();
    let tenant = local.tenant().await;
    let (killed, repeated, last) = (Events::default(), Events::default(), Events::default());
    let (queue, pipeline) = local.pipeline(&killed, true).await;
    until(async || !killed.lock().unwrap().is_empty()).await;
    assert!(!queue.is_recorded() && count(&file) > 0);
    drop(pipeline);
    drop(local);
    let local = Local::start(Some(folder.path())).await;
    let (_, pipeline) = local.pipeline(&repeated, false).await;
    until(async || count(&file) == 1).await;
    let first = std::mem::take(&mut *repeated.lock().unwrap());
    assert!(killed.lock().unwrap().iter().all(|event| first.contains(event)));
    local.webhook(tenant, 1).await;
    until(async || repeated.lock().unwrap().len() == 1 && count(&file) == 1).await;
    // Records of other writes are deleted too, although the function never sees them.
    for number in 0..20 {
        local.put("ASSET#1", number).await;
    }
    until(async || count(&file) == 1).await;
    pipeline.stop(Instant::now() + LONG).await;
    // This webhook's event is written while nothing reads the stream. Finished events aren't repeated.
    local.webhook(tenant, 2).await;
    drop(local);
    let local = Local::start(Some(folder.path())).await;
    let _pipeline = local.pipeline(&last, false).await;
    until(async || count(&file) == 1 && !last.lock().unwrap().is_empty()).await;
    assert_eq!(last.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_stream_of_existing_data_begins_when_it_is_enabled() {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::start(Some(folder.path())).await;
    local.put_events(100..110).await;
    drop(local);
    let local = Local::start(Some(folder.path())).await;
    let arn = table::enable_stream(&local.client, TABLE).await.unwrap();
    assert_eq!(table::enable_stream(&local.client, TABLE).await.unwrap(), arn);
    local.put_events(0..3).await;
    assert_eq!(local.records(&arn).await.len(), 3);
}

/// Fails if one of the engine's statements reads more stream records than necessary.
#[tokio::test]
async fn writes_do_not_get_slower_with_what_was_written_before() {
    let folder = tempfile::tempdir().unwrap();
    let _local = Local::start(Some(folder.path())).await;
    let connection = Connection::open(folder.path().join("table.db")).unwrap();
    let number = "CAST(sequence_number AS INTEGER)";
    for (statement, range) in [
        (format!("SELECT COALESCE(MAX({number}), 0) + 1 FROM _stream_records WHERE table_name = 'a'"), "table_name=?"),
        (
            format!(
                "SELECT event_name FROM _stream_records WHERE table_name = 'a' AND shard_id = 'b' AND {number} > 1
                 ORDER BY {number} ASC LIMIT 10"
            ),
            "table_name=? AND <expr>>?",
        ),
        (format!("DELETE FROM _stream_records WHERE table_name = 'a' AND {number} < 1"), "table_name=? AND <expr><?"),
    ] {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let steps: Vec<String> = plan.query_map([], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        let expected = format!("INDEX stream_records_in_order ({range})");
        assert!(steps.len() == 1 && steps[0].ends_with(&expected), "{steps:?}");
    }
}

#[tokio::test]
async fn engines_in_memory_have_records_of_their_own() {
    let (one, other) = (Local::start(None).await, Local::start(None).await);
    let arns =
        [table::enable_stream(&one.client, TABLE).await.unwrap(), table::enable_stream(&other.client, TABLE).await.unwrap()];
    one.put_events(0..3).await;
    other.put_events(0..1).await;
    assert_eq!((one.records(&arns[0]).await.len(), other.records(&arns[1]).await.len()), (3, 1));
}

#[tokio::test]
async fn only_numbers_of_the_stream_can_be_trimmed_to() {
    let local = Local::start(None).await;
    let streams = local.engine.streams();
    for invented in ["", "7", "x", "999999999999999999999999999999999999999"] {
        assert!(streams.trim(TABLE, invented).await.is_err(), "{invented}");
    }
    assert_eq!(streams.trim(TABLE, "100000000000000000007").await.unwrap(), 0);
    drop(local.engine);
    assert!(streams.trim(TABLE, "100000000000000000007").await.is_err());
}
