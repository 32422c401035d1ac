//! Lists of process instances: the ended ones, of which there are more and more, cost lists of the others nothing.

use crate::support::processes::{cancel, create_process};
use crate::support::{Api, Client};
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};
use shared::domain::record::Kind;
use shared::domain::values::id::{EventId, Id, InstanceId};
use shared::domain::values::time::Timestamp;
use shared::store::keys::Keys;

const OPEN: &str = "/processes/instances?status=in_progress";
const CANCELLED: &str = "/processes/instances?status=cancelled";

async fn start(client: &Client, process: &str) -> String {
    let asset = client.asset(json!({"name": "a"})).await;
    client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await.id()
}

async fn process(client: &Client) -> String {
    create_process(client, json!([{"type": "complete", "key": "c", "label": "C"}])).await
}

#[tokio::test(start_paused = true)]
async fn ended_instances_cost_a_cold_list_of_open_ones_nothing() {
    const ENDED: u64 = 5_000;
    let (api, client) = Api::with_tenant().await;
    let process = process(&client).await;
    let ended: InstanceId = start(&client, &process).await.parse().unwrap();
    cancel(&client, &ended.to_string()).await.data();
    for _ in 0..20 {
        start(&client, &process).await;
    }
    let keys = Keys::of(client.tenant);
    let get = api.dynamo.get_item().table_name(&api.table).set_key(Some(keys.record(Kind::Instance, ended.uuid()).item()));
    let sample = get.send().await.unwrap().item.unwrap();
    let copies: Vec<WriteRequest> = (1..ENDED)
        .map(|n| {
            let id = InstanceId::new(Timestamp::from_millis(api.now().millis() - n as i64), [n as u8; 10]);
            let mut item = sample.clone();
            item.extend(keys.record(Kind::Instance, id.uuid()).item());
            item.insert("id".into(), AttributeValue::S(id.to_string()));
            item.insert("LS".into(), Keys::list_index(Kind::Instance, id.uuid(), true).unwrap());
            WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build().unwrap()).build()
        })
        .collect();
    let batches = copies.chunks(25).map(|batch| api.dynamo.batch_write_item().request_items(&api.table, batch.to_vec()).send());
    let written: Vec<_> = stream::iter(batches).buffer_unordered(4).collect().await;
    assert!(
        written
            .iter()
            .all(|batch| batch.as_ref().is_ok_and(|batch| batch.unprocessed_items().is_none_or(|left| left.is_empty())))
    );
    api.advance_clock(600);
    api.meter.take();
    let reader = api.replica(0, usize::MAX).client(&client);
    assert_eq!(reader.total(OPEN).await, 20);
    let open = api.meter.take();
    assert!(open.read_units <= 30.0, "{open:?}");
    assert_eq!(reader.total(CANCELLED).await, ENDED);
    let all = api.meter.take();
    assert!(all.read_units > 100.0, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_open_instances_follows_starts_and_ends() {
    let (api, client) = Api::with_tenant().await;
    let process = process(&client).await;
    let first = start(&client, &process).await;
    let reader = api.replica(0, usize::MAX).client(&client);
    assert_eq!(reader.total(OPEN).await, 1);
    start(&client, &process).await;
    assert_eq!(reader.total(OPEN).await, 2);
    cancel(&client, &first).await.data();
    for _ in 0..4 {
        assert_eq!((reader.total(OPEN).await, reader.total(CANCELLED).await), (1, 1));
        api.advance_clock(4);
    }
    let loads = api.faults.take_requests().iter().filter(|(_, request)| request["IndexName"] == "list_index").count();
    assert_eq!(loads, 2, "each of the two list indexes was loaded once");
}

/// An erasure can change an ended instance. The index of open instances doesn't have it, and doesn't need it.
#[tokio::test(start_paused = true)]
async fn a_change_of_an_ended_instance_does_not_concern_the_open_ones() {
    let (api, client) = Api::with_tenant().await;
    let process = process(&client).await;
    let ended = start(&client, &process).await;
    start(&client, &process).await;
    cancel(&client, &ended).await.data();
    api.advance_clock(600);
    let reader = api.replica(0, usize::MAX).client(&client);
    assert_eq!(reader.total(OPEN).await, 1);
    let feed = client.get("/events?limit=100").await.data();
    let entry = feed.as_array().unwrap().iter().rfind(|event| event["entity_id"] == ended.as_str()).unwrap();
    let mut entry = entry.clone();
    let id = EventId::new(api.now(), [7; 10]);
    (entry["id"], entry["version"]) = (json!(id), json!(3));
    entry["changes"] = json!({"step_data": {"old": {}, "new": {"c": true}}});
    let mut item = Keys::of(client.tenant).event(id).item();
    item.insert("entry".into(), AttributeValue::S(entry.to_string()));
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
    api.faults.take_requests();
    assert_eq!(reader.total(OPEN).await, 1);
    let requests = api.faults.take_requests();
    assert!(requests.iter().all(|(_, request)| request["IndexName"] != "list_index"), "the index was loaded again");
    assert_eq!(requests.iter().filter(|(operation, _)| operation == "Query").count(), 1, "the events were read again");
}

/// The row of an instance that ends moves to another section of the index. A load that reads the sections meanwhile may
/// find it in both or in neither, and a lagging index has it where it was.
#[tokio::test(start_paused = true)]
async fn an_instance_that_ends_while_the_index_is_read_is_listed_once() {
    let (api, client) = Api::with_tenant().await;
    let process = process(&client).await;
    let id = start(&client, &process).await;
    start(&client, &process).await;
    api.advance_clock(600);
    let before = api.list_index_rows(client.tenant).await;
    cancel(&client, &id).await.data();
    let after = api.list_index_rows(client.tenant).await;
    assert_eq!((rows(&before, 'I'), rows(&before, 'J')), (2, 0));
    assert_eq!((rows(&after, 'I'), rows(&after, 'J')), (1, 1));
    for (open, ended) in [(&before, &before), (&after, &before), (&before, &after), (&after, &after)] {
        let mut seen = after.clone();
        seen.insert('I', open[&'I'].clone());
        seen.insert('J', ended[&'J'].clone());
        api.faults.freeze_list_index(Some(seen));
        let reader = api.replica(0, usize::MAX).client(&client);
        for _ in 0..2 {
            let totals = [reader.total(OPEN).await, reader.total(CANCELLED).await, reader.total("/processes/instances").await];
            assert_eq!(totals, [1, 1, 1]);
        }
    }
}

fn rows(index: &std::collections::HashMap<char, Value>, letter: char) -> usize {
    index[&letter].as_array().unwrap().len()
}
