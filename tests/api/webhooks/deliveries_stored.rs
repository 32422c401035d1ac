//! The records of deliveries in the table, which disturb nothing else.

use crate::support::webhooks::pipeline::{created, delivery, send, settle, webhook, with_webhook};
use crate::support::webhooks::stream::batch;
use crate::table::requests::{is_guarded, partitions};
use shared::domain::values::id::{EventId, Id};
use shared::domain::webhooks::{DeliveryStatus, RETENTION};
use shared::store::keys::Keys;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn records_expire_and_those_that_were_not_delivered_can_be_found() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    pipeline.receivers.respond(|_| 500);
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.run().await;
    let key = Keys::of(client.tenant).delivery(hook.id, event.parse().unwrap());
    let item = async || {
        let item = api.dynamo.get_item().table_name(&api.table).set_key(Some(key.item())).send().await.unwrap();
        item.item.unwrap()
    };
    let (pending, record) = (item().await, hook.delivery(&event).await.unwrap());
    let event: EventId = event.parse().unwrap();
    assert_eq!(pending["LS"], Keys::delivery_status(DeliveryStatus::Pending, event));
    assert_eq!(pending["type"].as_s().unwrap(), "delivery");
    let expires = record.attempts[0].at.plus(RETENTION).millis() / 1000;
    assert_eq!(pending["expires"].as_n().unwrap(), &expires.to_string());
    pipeline.run_to_end(&api).await;
    assert_eq!(item().await["LS"], Keys::delivery_status(DeliveryStatus::Failed, event));
    pipeline.receivers.respond(|_| 200);
    send(&pipeline, delivery(&hook, &event.to_string(), api.now())).await;
    pipeline.run().await;
    assert!(!item().await.contains_key("LS"));
}

/// Lists, statistics, the operator's check and the feed are as they would be without deliveries.
#[tokio::test(start_paused = true)]
async fn pending_and_failed_deliveries_disturb_nothing() {
    let (api, client, mut pipeline, hook) = with_webhook(&["*"]).await;
    let other = webhook(&api, client.tenant, "https://example.org/other", &["*"]).await;
    let user = client.user("Ada").await;
    client.assigned_asset("Laptop", &user).await;
    let feed = async || client.get("/events?limit=100").await.text().to_owned();
    let lists = ["/assets", "/users", "/processes/instances", "/movements", "/stats"];
    settle(&api);
    let before = (feed().await, client.get("/stats").await.data());
    // Half of the deliveries fail for good, the others are pending.
    let url = other.url.clone();
    pipeline.receivers.respond(move |sent| if sent.url == url { 500 } else { 410 });
    pipeline.fan_out(&api).await;
    for _ in 0..3 {
        pipeline.run().await;
        api.advance_clock(180);
    }
    assert!(!hook.read().await.value.is_active);
    let replica = api.replica(0, 1 << 20).client(&client);
    for list in lists {
        assert_eq!(replica.get(list).await.data(), client.get(list).await.data(), "{list}");
    }
    assert!(feed().await.contains(before.0.split_once("],\"meta\"").unwrap().0), "the feed has only more events");
    assert_eq!(client.get("/stats").await.data()["assets"], before.1["assets"]);
    let store = api.store.tenant(client.tenant);
    let counts = store.count_items(|_| {}).await.unwrap();
    assert!(counts["delivery"] >= 4 && counts["webhook_health"] == 1, "{counts:?}");
    let found = dev_server::invariants::violations(&store, &api.dynamo, &api.table).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    // A deletion of the tenant leaves none of it, nor of a webhook that was deleted before.
    hook.delete().await;
    assert_eq!(store.count_items(|_| {}).await.unwrap()["delivery"], counts["delivery"]);
    store.begin_deletion().await.unwrap();
    store.delete_items(Duration::ZERO, |_| {}).await.unwrap();
    store.finish_deletion().await.unwrap();
    let left = async || api.dump().await.0.into_iter().filter(|item| item.contains(&client.tenant.short())).collect::<Vec<_>>();
    assert_eq!(left().await, [""; 0]);
    pipeline.run_to_end(&api).await;
    assert_eq!(left().await, [""; 0], "a message of a deleted tenant has written something");
}

#[tokio::test(start_paused = true)]
async fn the_functions_read_consistently_and_write_conditionally_in_one_tenant() {
    let (api, client, mut pipeline, hook) = with_webhook(&["*"]).await;
    let mut statuses = [500, 500, 200, 410].into_iter();
    pipeline.receivers.respond(move |_| statuses.next().unwrap_or(200));
    client.assets(2).await;
    api.faults.take_requests();
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    api.faults.take_requests();
    pipeline.fanout.handle(batch(&records)).await;
    pipeline.run_to_end(&api).await;
    let keys = Keys::of(client.tenant);
    let own = [keys.partition(), keys.webhook_partition(hook.id)].map(|partition| partition.as_s().unwrap().clone());
    let mut operations: Vec<String> = Vec::new();
    for (operation, request) in api.faults.take_requests() {
        let mut found = Vec::new();
        partitions(&request, &mut found);
        assert!(!found.is_empty() && found.iter().all(|partition| own.contains(partition)), "{operation}: {request}");
        assert!(is_guarded(&operation, &request, &api.table), "{operation} is not guarded: {request}");
        operations.push(operation);
    }
    operations.sort();
    operations.dedup();
    // What the roles must permit.
    assert_eq!(operations, ["BatchGetItem", "GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem"]);
}
