//! Deliveries and the capacity of partitions.

use crate::support::prelude::*;
use crate::support::webhooks::{Pipeline, delivering, stream_batch, webhook};
use crate::table::requests::partitions;
use shared::domain::webhooks::DeliveryStatus;
use tokio::time::Instant;

const WEBHOOKS: usize = 20;
/// DynamoDB's limits of a partition, 3,000 read and 1,000 write units a second, and 200 events a second, divided by this.
const SCALE: u32 = 40;

#[tokio::test(start_paused = true)]
async fn an_event_costs_its_tenants_partition_the_same_for_any_number_of_webhooks() {
    let (api, client, mut pipeline) = delivering().await;
    for n in 0..WEBHOOKS {
        webhook(&api, client.tenant, &format!("https://example.com/{n}"), &["asset.created"]).await;
    }
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.assets(10).await;
    pipeline.fan_out(&api).await;
    api.faults.take_requests();
    let ((), cost) = api.cost(pipeline.run()).await;
    assert_eq!(pipeline.receivers.len(), 10 * WEBHOOKS);
    // The webhooks, and for each event itself and its names; for each delivery its record, and for each webhook its health.
    assert_eq!((cost.read_units, cost.write_units), (3.0 + 10.0 * 2.0 + 200.0 + 20.0, 200.0));
    let own = Keys::of(client.tenant).partition().as_s().unwrap().clone();
    let is_own = |request: &serde_json::Value| {
        let mut found = Vec::new();
        partitions(request, &mut found);
        found.contains(&own)
    };
    let of_tenant = api.faults.take_requests().into_iter().filter(|(_, request)| is_own(request));
    assert_eq!(of_tenant.count(), 1 + 10 * 2, "the query of the webhooks, and two reads for each event");
}

/// The tenant's requests are answered at once while its events go to twenty webhooks.
#[test]
fn deliveries_take_no_capacity_from_the_tenants_requests() {
    paused_runtime().block_on(async {
        let limits =
            Weaknesses { read_units_per_second: 3_000 / SCALE, write_units_per_second: 1_000 / SCALE, ..Weaknesses::default() };
        let api = Api::on_faulty_table(1, limits).await;
        let client = api.tenant().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let mut hooks = Vec::new();
        for n in 0..WEBHOOKS {
            hooks.push(webhook(&api, client.tenant, &format!("https://example.com/{n}"), &["asset.created"]).await);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let mut pipeline = Pipeline::start(&api).await;
        let (events_per_second, seconds) = (200 / SCALE as usize, 3);
        let mut asset = String::new();
        for _ in 0..events_per_second * seconds {
            asset = client.asset(json!({"name": "a"})).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
        assert_eq!(records.len(), events_per_second * seconds);
        let path = format!("/assets/{asset}");
        for second in records.chunks(events_per_second) {
            let begin = Instant::now();
            assert_eq!(pipeline.fanout.handle(stream_batch(second)).await.batch_item_failures, []);
            let requests = async {
                for n in 0..2 {
                    client.get(&path).await.data();
                    client.get("/assets?limit=5").await.data();
                    client.patch(&path, json!({"name": format!("b{n}")})).await.data();
                }
                begin.elapsed()
            };
            let ((), elapsed) = futures_util::join!(pipeline.run(), requests);
            assert!(elapsed < Duration::from_millis(100), "requests took {elapsed:?}: the table throttled");
            tokio::time::sleep_until(begin + Duration::from_secs(1)).await;
            api.advance_clock_millis(1_000);
        }
        pipeline.run_to_end(&api).await;
        assert_eq!(pipeline.receivers.got().len(), records.len() * WEBHOOKS);
        for record in &records {
            let event = crate::support::webhooks::event_id(record);
            assert_eq!(hooks[0].delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
        }
    });
}
