//! Every event reaches every active webhook that wants it, also on a table that fails and from a stream that repeats itself.

use crate::support::webhooks::pipeline::{Pipeline, delivering, event_id, webhook};
use crate::support::webhooks::stream::batch;
use crate::support::{Api, paused_runtime, sample};
use dev_server::faulty_table::Weaknesses;
use serde_json::json;
use shared::domain::webhooks::DeliveryStatus;
use std::collections::{HashMap, HashSet};

/// A table that delays, throttles and fails calls, tears reads and leaves keys of batches unread, as DynamoDB may. Everything
/// arrives.
fn on_a_faulty_table(seed: u64) {
    paused_runtime().block_on(async {
        let faults = Weaknesses { failed_per_mille: 10, throttled_per_mille: 20, ..Weaknesses::ordinary() };
        let weaknesses = Weaknesses { unprocessed_per_mille: 100, conflict_per_mille: 40, ..faults };
        let api = Api::on_faulty_table(seed, weaknesses).await;
        let client = api.tenant().await;
        let mut hooks = Vec::new();
        for path in ["one", "two", "three"] {
            hooks.push(webhook(&api, client.tenant, &format!("https://example.com/{path}"), &["asset.created"]).await);
        }
        let mut pipeline = Pipeline::start(&api).await;
        pipeline.receivers.fail_first();
        let mut wanted = HashSet::new();
        for n in 0..8 {
            // The creation may fail; what is in the stream was committed.
            client.post("/assets", json!({"name": format!("a{n}")})).await;
            let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
            let is_asset = |record: &&serde_json::Value| {
                record["dynamodb"]["NewImage"]["entry"]["S"].as_str().unwrap().contains(r#""type":"asset.created""#)
            };
            let ids = records.iter().filter(is_asset).map(event_id);
            wanted.extend(ids.flat_map(|id| hooks.iter().map(move |hook| (hook.url.clone(), id.clone()))));
            let mut from = 0;
            for _ in 0..50 {
                let response = pipeline.fanout.handle(batch(&records[from..])).await;
                let Some(failure) = response.batch_item_failures.first() else { break };
                let number = failure.item_identifier.clone().unwrap();
                from = records.iter().position(|record| record["dynamodb"]["SequenceNumber"] == number.as_str()).unwrap();
            }
        }
        pipeline.run_to_end(&api).await;
        assert!(!wanted.is_empty(), "seed {seed}");
        let mut statuses: HashMap<(String, String), DeliveryStatus> = HashMap::new();
        for (url, event) in &wanted {
            let hook = hooks.iter().find(|hook| hook.url == *url).unwrap();
            let record = hook.delivery(event).await;
            statuses.insert((url.clone(), event.clone()), record.unwrap().status);
        }
        assert!(statuses.values().all(|status| *status == DeliveryStatus::Delivered), "seed {seed}: {statuses:?}");
        assert_eq!(pipeline.receivers.got(), wanted, "seed {seed}");
    });
}

#[test]
fn everything_arrives_on_a_faulty_table() {
    for seed in sample(0..40, 3) {
        on_a_faulty_table(seed);
    }
}

/// Records that come in batches of any size, and come again from any place, lead to the same deliveries.
#[tokio::test(start_paused = true)]
async fn the_stream_may_repeat_itself() {
    let (api, client, mut pipeline) = delivering().await;
    let hook = webhook(&api, client.tenant, "https://example.com/one", &["*"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.assets(6).await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    for (from, to) in [(0, 3), (1, 6), (5, 6), (0, 6)] {
        assert_eq!(pipeline.fanout.handle(batch(&records[from..to.min(records.len())])).await.batch_item_failures, []);
        pipeline.run_to_end(&api).await;
    }
    let received = pipeline.receivers.take();
    let expected: HashSet<String> = records.iter().take(6).map(event_id).collect();
    assert_eq!(received.iter().map(|sent| sent.id.clone()).collect::<HashSet<_>>(), expected);
    for event in expected {
        assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
    }
}
