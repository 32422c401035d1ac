//! From the table's stream to the queue: one message for each event, for the webhooks that subscribe to it.

use crate::support::prelude::*;
use crate::support::queue::deliveries;
use crate::support::webhooks::*;
use shared::app::BatchHandler;
use shared::domain::webhooks::Message;
use shared::queue::NewMessage;
use shared::store::max_event_delay;

fn sequence_number(record: &Value) -> String {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned()
}

/// Returns the sequence numbers of the failed records in a response.
fn reported(response: &impl serde::Serialize) -> Vec<String> {
    let response = json!(response);
    let failures = response["batchItemFailures"].as_array().unwrap().iter();
    failures.map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect()
}

fn pair(webhook: &TestWebhook, event: &str) -> (String, String) {
    (webhook.id.to_string(), event.to_owned())
}

#[tokio::test(start_paused = true)]
async fn each_event_is_one_message_for_the_webhooks_that_want_it() {
    let (api, client, mut pipeline) = delivering().await;
    let created = webhook(&api, client.tenant, URL, &["asset.created"]).await;
    let all = webhook(&api, client.tenant, URL, &["*"]).await;
    let users = webhook(&api, client.tenant, URL, &["user.created", "asset.updated"]).await;
    let inactive = webhook(&api, client.tenant, URL, &["*"]).await;
    inactive.activate(false).await;
    let other = api.tenant().await;
    let of_other = webhook(&api, other.tenant, URL, &["asset.created"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    let asset = client.asset(json!({"name": "a"})).await;
    client.patch(&format!("/assets/{asset}"), json!({"name": "b"})).await.data();
    client.user("Ada").await;
    let foreign = other.asset(json!({"name": "c"})).await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    let of_entity = |entity: &str, verb: &str| {
        let is_it = |entry: &Value| entry["entity_id"] == entity && entry["type"] == verb;
        let entry = |record: &Value| serde_json::from_str::<Value>(record["dynamodb"]["NewImage"]["entry"]["S"].as_str()?).ok();
        event_id(records.iter().find(|record| entry(record).is_some_and(|entry| is_it(&entry))).unwrap())
    };
    let (create, update) = (of_entity(&asset, "asset.created"), of_entity(&asset, "asset.updated"));
    let foreign = of_entity(&foreign, "asset.created");
    assert_eq!(reported(&pipeline.fanout.handle(stream_batch(&records)).await), [""; 0]);
    let sent = pipeline.queue.take_sent();
    let mut found = deliveries(&sent);
    found.sort();
    let to_all = records.iter().map(event_id).filter(|event| *event != foreign).map(|event| pair(&all, &event));
    let user = records.iter().map(event_id).find(|event| ![&create, &update, &foreign].contains(&event)).unwrap();
    let mut expected: Vec<(String, String)> = to_all.collect();
    expected.extend([pair(&created, &create), pair(&users, &update), pair(&users, &user), pair(&of_other, &foreign)]);
    expected.sort();
    assert_eq!((found, expected.len()), (expected, 7));
    // Each event has one message, with the event's tenant, and with the event's time as the time of the request.
    assert_eq!(sent.len(), 4);
    for new in sent {
        let Message::Event(request) = new.message else { panic!("{new:?}") };
        let is_of_other = request.event_id.to_string() == foreign;
        assert_eq!(request.tenant_id, if is_of_other { other.tenant } else { client.tenant });
        assert!(request.deliveries().all(|it| it.requested_at == request.event_id.timestamp() && it.test.is_none()));
        assert_eq!(new.delay.as_secs(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn other_records_of_the_stream_are_ignored_and_unreadable_events_skipped() {
    let (api, client, mut pipeline) = delivering().await;
    let all = webhook(&api, client.tenant, URL, &["*"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.asset(json!({"name": "a"})).await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    let good = records[0].clone();
    let changed = |path: &[&str], value: Value| {
        let mut record = good.clone();
        let place = path.iter().fold(&mut record["dynamodb"], |place, name| &mut place[*name]);
        *place = value;
        record
    };
    let with_name = |name: &str| {
        let mut record = good.clone();
        record["eventName"] = name.into();
        record
    };
    let asset = api.dynamo.scan().table_name(&api.table).send().await.unwrap().items.unwrap();
    let asset = asset.iter().find(|item| item["SK"].as_s().unwrap().starts_with("ASSET#")).unwrap();
    let mut flat = asset.clone();
    flat.retain(|name, _| ["PK", "SK", "name"].contains(&name.as_str()));
    let strange = [
        with_name("MODIFY"),
        with_name("REMOVE"),
        stream_record("INSERT", &flat),
        changed(&["Keys"], json!({})),
        changed(&["Keys", "SK"], json!({"S": "EVENT#x"})),
        changed(&["Keys", "PK"], json!({"S": "REGISTRY"})),
        changed(&["Keys", "PK"], json!({"N": "1"})),
        changed(&["NewImage", "entry"], json!({"S": "{}"})),
        changed(&["NewImage", "entry"], json!({"N": "1"})),
        changed(&["NewImage"], json!({})),
        good.clone(),
    ];
    log::begin();
    assert_eq!(reported(&pipeline.fanout.handle(stream_batch(&strange)).await), [""; 0]);
    assert!(log::text().contains(r#""metric":"unreadable_events""#), "{}", log::text());
    assert_eq!(deliveries(&pipeline.queue.take_sent()), [pair(&all, &event_id(&good))]);
    assert_eq!(reported(&pipeline.fanout.handle(stream_batch(&[])).await), [""; 0]);
}

/// The batch succeeds, and `deliver` sends this tenant's deliveries later, so not even tenants in the same shard are delayed.
#[tokio::test(start_paused = true)]
async fn a_tenant_whose_webhooks_cannot_be_read_delays_no_other() {
    let (api, client, mut pipeline) = delivering().await;
    let other = api.tenant().await;
    let hooks = [webhook(&api, client.tenant, URL, &["*"]).await, webhook(&api, other.tenant, URL, &["*"]).await];
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    for tenant in [&client, &other, &client, &other] {
        tenant.asset(json!({"name": "a"})).await;
    }
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    api.faults.fail_call(0, CallFailure::Throttled);
    assert_eq!(reported(&pipeline.fanout.handle(stream_batch(&records)).await), [""; 0]);
    assert!(api.faults.stop_failing());
    let sent = deliveries(&pipeline.queue.take_sent());
    let (aside, missing) = (pipeline.queue.take_sent_retries(), usize::from(sent[0].0 == hooks[0].id.to_string()));
    assert!(sent.len() == 2 && sent.iter().all(|(webhook, _)| *webhook != hooks[missing].id.to_string()), "{sent:?}");
    let [NewMessage { message: Message::Fanout(request), delay }] = aside.as_slice() else { panic!("{aside:?}") };
    assert_eq!((request.tenant_id, request.events.len()), (hooks[missing].tenant, 2));
    assert!((5..=10).contains(&delay.as_secs()), "{delay:?}");
    // If postponing the events fails, too, the stream retries the batch.
    api.faults.fail_call(0, CallFailure::Throttled);
    pipeline.queue.fail_call(1, false);
    assert_eq!(reported(&pipeline.fanout.handle(stream_batch(&records)).await).len(), 1);
    assert!(api.faults.stop_failing() && pipeline.queue.stop_failing());
    // A second failure in the retry queue postpones the events again.
    api.faults.fail_call(0, CallFailure::Throttled);
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.got().len(), 4);
}

/// A stream read from its oldest record contains a day's events.
#[tokio::test(start_paused = true)]
async fn events_of_before_a_webhook_are_not_sent_to_it() {
    let (api, client, mut pipeline) = delivering().await;
    let first = webhook(&api, client.tenant, URL, &["*"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.asset(json!({"name": "long before"})).await;
    api.advance_clock(max_event_delay().num_seconds() + 1);
    client.asset(json!({"name": "just before"})).await;
    let second = webhook(&api, client.tenant, URL, &["asset.*"]).await;
    client.asset(json!({"name": "after"})).await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    assert_eq!(reported(&pipeline.fanout.handle(stream_batch(&records)).await), [""; 0]);
    let sent = deliveries(&pipeline.queue.take_sent());
    let of = |webhook: &TestWebhook| {
        let of_webhook = sent.iter().filter(|(id, _)| *id == webhook.id.to_string());
        of_webhook.map(|(_, event)| event.clone()).collect::<Vec<_>>()
    };
    // Creating the webhook is an event, too.
    let [long_before, just_before, creation, after] = [0, 1, 2, 3].map(|place| event_id(&records[place]));
    assert_eq!(of(&first), [long_before.as_str(), &just_before, &creation, &after]);
    // Clocks differ, so an event just before the creation may have been committed after it.
    assert_eq!(of(&second), [just_before, after]);
    // Changing the webhook later makes no difference.
    second.activate(true).await;
    pipeline.fanout.handle(stream_batch(&records)).await;
    assert_eq!(deliveries(&pipeline.queue.take_sent()).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_repeated_from_its_first_event_with_a_message() {
    let (api, client, mut pipeline) = delivering().await;
    webhook(&api, client.tenant, URL, &["user.created"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.asset(json!({"name": "a"})).await;
    client.user("Ada").await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    pipeline.queue.fail_call(0, false);
    let failed = reported(&pipeline.fanout.handle(stream_batch(&records)).await);
    assert_eq!(failed, [sequence_number(&records[1])]);
    assert!(pipeline.queue.stop_failing());
    let late = pipeline.fanout.handle_until(stream_batch(&records), Instant::now()).await;
    assert_eq!(reported(&late), [sequence_number(&records[0])]);
    let in_time = pipeline.fanout.handle_until(stream_batch(&records), Instant::now() + Duration::from_secs(60)).await;
    assert_eq!((reported(&in_time).len(), pipeline.queue.take_sent().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_batch_reads_the_webhooks_of_each_tenant_once() {
    let (api, client, mut pipeline) = delivering().await;
    for _ in 0..3 {
        webhook(&api, client.tenant, URL, &["*"]).await;
    }
    let without = api.tenant().await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    for n in 0..10 {
        client.asset(json!({"name": format!("a{n}")})).await;
        without.asset(json!({"name": format!("a{n}")})).await;
    }
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    let (_, cost) = api.cost(pipeline.fanout.handle(stream_batch(&records))).await;
    assert_eq!((cost.calls, cost.read_units, cost.write_units), (2, 2.0, 0.0));
    assert!((10..20).contains(&pipeline.queue.take_sent().len()));
}
