//! From the stream to the function `fanout`.

use super::*;
use aws_lambda_events::event::streams::DynamoDbBatchItemFailure;
use aws_sdk_dynamodb::primitives::Blob;
use rusqlite::Connection;
use std::sync::atomic::{AtomicUsize, Ordering};

type Fake = Function<Event, DynamoDbEventResponse>;

/// The response names the first failed record.
fn failed_at(sequence_number: Option<String>) -> DynamoDbEventResponse {
    let mut response = DynamoDbEventResponse::default();
    let mut failure = DynamoDbBatchItemFailure::default();
    failure.item_identifier = sequence_number;
    response.batch_item_failures.push(failure);
    response
}

async fn until_numbers(fanout: &Fake, expected: std::ops::Range<usize>) {
    until(async || numbers(&fanout.events()).len() >= expected.len()).await;
    assert_eq!(numbers(&fanout.events()), expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn new_events_arrive_in_order_and_nothing_else_does() {
    let local = Local::start(None).await;
    let fanout = succeeding();
    let _pipeline = local.read(fanout.clone()).await;
    local.put_events(0..5).await;
    // A changed event, a deleted one, and items of other kinds.
    local.put("EVENT#00000", 99).await;
    let key = |text: &str| AttributeValue::S(text.to_owned());
    let delete = local.client.delete_item().table_name(TABLE).key("PK", key("T#1")).key("SK", key("EVENT#00001"));
    delete.send().await.unwrap();
    for other in ["ASSET#1", "EVENTS", "DELIVERY#1#EVENT#1"] {
        local.put(other, 99).await;
    }
    local.put_events(5..300).await;
    until_numbers(&fanout, 0..300).await;
    assert!(fanout.events().iter().all(|event| (1..=100).contains(&event.records.len())));
}

#[tokio::test]
async fn a_record_is_as_lambda_has_it() {
    let local = Local::start(None).await;
    let fanout = succeeding::<Event, DynamoDbEventResponse>();
    let _pipeline = local.read(fanout.clone()).await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = local.client.put_item().table_name(TABLE).item("PK", text("T#1")).item("SK", text("EVENT#1"));
    let list = AttributeValue::L(vec![AttributeValue::Bool(true), AttributeValue::Null(true)]);
    let map = AttributeValue::M([("ü".to_owned(), AttributeValue::N("1.50".into()))].into());
    let bytes = AttributeValue::B(Blob::new([0, 255]));
    let set = AttributeValue::Ss(vec!["a".into()]);
    put.item("list", list).item("map", map).item("bytes", bytes).item("set", set).send().await.unwrap();
    until(async || !fanout.events().is_empty()).await;
    let event = serde_json::to_value(&fanout.events()[0]).unwrap();
    let record = &event["Records"][0];
    assert_eq!((&record["eventName"], &record["eventSource"]), (&"INSERT".into(), &"aws:dynamodb".into()), "{record}");
    assert!(record["eventSourceARN"].as_str().unwrap().contains("table/test/stream/"), "{record}");
    assert_eq!(record["dynamodb"]["Keys"]["SK"], serde_json::json!({"S": "EVENT#1"}));
    assert_eq!(record["dynamodb"]["StreamViewType"], "NEW_IMAGE");
    let image = &record["dynamodb"]["NewImage"];
    let expected = serde_json::json!({
        "PK": {"S": "T#1"}, "SK": {"S": "EVENT#1"}, "bytes": {"B": "AP8="}, "set": {"SS": ["a"]},
        "list": {"L": [{"BOOL": true}, {"NULL": true}]}, "map": {"M": {"ü": {"N": "1.5"}}},
    });
    assert_eq!(image, &expected);
}

#[tokio::test]
async fn what_could_not_be_handled_is_repeated_from_there() {
    let local = Local::start(None).await;
    let failures = AtomicUsize::new(0);
    let fanout = Function::new(move |event: Event| {
        let failed = event.records.iter().find(|record| number(record) == 3);
        let failed = failed.and_then(|record| record.change.sequence_number.clone());
        let response = match (failed, failures.fetch_add(1, Ordering::Relaxed)) {
            (Some(failed), ..3) => failed_at(Some(failed)),
            _ => DynamoDbEventResponse::default(),
        };
        Box::pin(async { response }) as BoxFuture<'static, _>
    });
    // All of them are in one batch, since nobody reads the stream yet.
    stream::enable(&local.client, TABLE).await.unwrap();
    local.put_events(0..6).await;
    let _pipeline = local.read(fanout.clone()).await;
    until(async || fanout.events().len() == 4).await;
    let batches: Vec<_> = fanout.events().iter().map(|event| numbers(std::slice::from_ref(event))).collect();
    assert_eq!(batches, [vec![0, 1, 2, 3, 4, 5], vec![3, 4, 5], vec![3, 4, 5], vec![3, 4, 5]]);
}

#[tokio::test]
async fn a_batch_whose_failure_is_not_named_is_repeated_as_a_whole() {
    for failure in ["panic", "unknown", "none"] {
        let local = Local::start(None).await;
        let invocations = AtomicUsize::new(0);
        let fanout = Function::new(move |_| {
            let is_first = invocations.fetch_add(1, Ordering::Relaxed) == 0;
            Box::pin(async move {
                match (is_first, failure) {
                    (true, "panic") => panic!("this is a test"),
                    (true, "unknown") => failed_at(Some("7".to_owned())),
                    (true, _) => failed_at(None),
                    (false, _) => DynamoDbEventResponse::default(),
                }
            }) as BoxFuture<'static, _>
        });
        stream::enable(&local.client, TABLE).await.unwrap();
        local.put_events(0..3).await;
        let _pipeline = local.read(fanout.clone()).await;
        until(async || fanout.events().len() == 2).await;
        assert_eq!(numbers(&fanout.events()), [0, 1, 2, 0, 1, 2], "{failure}");
    }
}

#[tokio::test]
async fn reading_goes_on_after_a_restart_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let fanout = succeeding();
    for round in 0..3 {
        let local = Local::start(Some(folder.path())).await;
        // Written while nobody reads. The first round has no stream yet.
        if round > 0 {
            local.put_events(round * 10..round * 10 + 5).await;
        }
        let pipeline = local.read(fanout.clone()).await;
        local.put_events(if round == 0 { 0..10 } else { round * 10 + 5..round * 10 + 10 }).await;
        until_numbers(&fanout, 0..round * 10 + 10).await;
        // The checkpoint is stored after the function has returned.
        pipeline.stop(Instant::now() + LONG).await;
    }
}

#[tokio::test]
async fn nothing_is_lost_if_the_process_ends_before_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::start(Some(folder.path())).await;
    // It has done its work, but nobody hears of it.
    let killed: Arc<Fake> = Function::new(|_| Box::pin(std::future::pending()));
    let pipeline = local.read(killed.clone()).await;
    local.put_events(0..1).await;
    until(async || !killed.events().is_empty()).await;
    drop(pipeline);
    drop(local);
    let local = Local::start(Some(folder.path())).await;
    let fanout = succeeding();
    let _pipeline = local.read(fanout.clone()).await;
    until_numbers(&fanout, 0..1).await;
}

#[tokio::test]
async fn the_stream_of_existing_data_begins_when_it_is_enabled() {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::start(Some(folder.path())).await;
    local.put_events(100..110).await;
    drop(local);
    let local = Local::start(Some(folder.path())).await;
    let arn = stream::enable(&local.client, TABLE).await.unwrap();
    assert_eq!(stream::enable(&local.client, TABLE).await.unwrap(), arn);
    let fanout = succeeding();
    let _pipeline = local.read(fanout.clone()).await;
    local.put_events(0..3).await;
    until_numbers(&fanout, 0..3).await;
}

fn records(file: &Path) -> usize {
    let count = "SELECT COUNT(*) FROM _stream_records";
    Connection::open(file).unwrap().query_row(count, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn what_has_been_read_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::start(Some(folder.path())).await;
    stream::enable(&local.client, TABLE).await.unwrap();
    local.put_events(0..50).await;
    local.put("ASSET#1", 0).await;
    let file = folder.path().join("table.db");
    assert_eq!(records(&file), 51);
    let fanout = succeeding();
    let _pipeline = local.read(fanout.clone()).await;
    until(async || records(&file) == 1).await;
    // Records of others' writes are deleted as well, though the function never sees them.
    for number in 0..20 {
        local.put("ASSET#1", number).await;
    }
    local.put_events(50..60).await;
    until_numbers(&fanout, 0..60).await;
    until(async || records(&file) == 1).await;
}

/// Fails if a statement of the engine on stream records reads more of them than it needs.
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
    let arns = [stream::enable(&one.client, TABLE).await.unwrap(), stream::enable(&other.client, TABLE).await.unwrap()];
    one.put_events(0..3).await;
    let (first, second) = (succeeding(), succeeding());
    let _pipelines = [one.read(first.clone()).await, other.read(second.clone()).await];
    other.put_events(0..1).await;
    until_numbers(&first, 0..3).await;
    until_numbers(&second, 0..1).await;
    for (local, arn) in [(one, &arns[0]), (other, &arns[1])] {
        until(async || from_the_oldest(&local, arn).await == 1).await;
    }
}

/// The number of records that the stream still has.
async fn from_the_oldest(local: &Local, arn: &str) -> usize {
    let streams = stream::client(&local.engine.url);
    let described = streams.describe_stream().stream_arn(arn).send().await.unwrap();
    let shard = described.stream_description().unwrap().shards()[0].shard_id().unwrap();
    let oldest = aws_sdk_dynamodbstreams::types::ShardIteratorType::TrimHorizon;
    let iterator = streams.get_shard_iterator().stream_arn(arn).shard_id(shard).shard_iterator_type(oldest);
    let iterator = iterator.send().await.unwrap().shard_iterator;
    streams.get_records().set_shard_iterator(iterator).send().await.unwrap().records().len()
}

#[tokio::test]
async fn only_numbers_of_the_stream_can_be_trimmed_to() {
    let local = Local::start(None).await;
    let trimmer = local.engine.trimmer();
    for invented in ["", "7", "x", "999999999999999999999999999999999999999"] {
        assert!(trimmer.trim(TABLE, invented).await.is_err(), "{invented}");
    }
    assert_eq!(trimmer.trim(TABLE, "100000000000000000007").await.unwrap(), 0);
    drop(local.engine);
    assert!(trimmer.trim(TABLE, "100000000000000000007").await.is_err());
}
