//! Lists of several replicas at once, with clocks that differ, writes that take effect late and an index that lags.

use crate::support::{Api, Client};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// The longest time of a write on its way, and the longest lag of the index, in milliseconds: see docs/adr/0008.
pub const MAX_WRITE_MILLIS: i64 = 8_000;
pub const MAX_LAG_MILLIS: i64 = 60_000;

/// Four writers at once: each reads its own writes from another replica.
#[tokio::test(start_paused = true)]
async fn a_list_right_after_a_write_shows_it_on_every_replica() {
    let (api, client) = Api::with_tenant().await;
    let replicas = [api.replica(-1_000, usize::MAX), api.replica(1_000, usize::MAX)];
    let write = async |n: usize| {
        let (writer, reader) = (replicas[n % 2].client(&client), replicas[(n + 1) % 2].client(&client));
        for round in 0..12 {
            let name = format!("w{n}r{round}");
            let id = writer.asset(json!({"name": name})).await;
            let found = reader.get(&format!("/assets?q={name}")).await.json();
            assert_eq!((&found["meta"]["total"], &found["data"][0]["id"]), (&json!(1), &json!(id)));
            writer.patch(&format!("/assets/{id}"), json!({"name": format!("z{name}"), "status": "in_use"})).await.data();
            let found = reader.get(&format!("/assets?q=z{name}&status=in_use")).await.json();
            assert_eq!(found["meta"]["total"], 1);
            reader.delete(&format!("/assets/{id}")).await;
            assert_eq!(writer.get(&format!("/assets?q={name}")).await.json()["meta"]["total"], 0);
        }
    };
    join_all((0..4).map(write)).await;
}

/// Between counting and reading a page, an asset of the page is changed or deleted.
#[tokio::test(start_paused = true)]
async fn an_asset_that_changes_during_a_list_is_listed_as_it_is_then() {
    let (api, client) = Api::with_tenant().await;
    let [first, second] = [client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await];
    let reader = api.replica(0, usize::MAX).client(&client);
    reader.get("/assets?status=in_stock").await.data();
    for (id, change) in [(first, Some(json!({"status": "in_use"}))), (second, None)] {
        let changing = async {
            match change {
                Some(change) => client.patch(&format!("/assets/{id}"), change).await.data(),
                None => client.delete(&format!("/assets/{id}")).await.json(),
            }
        };
        // A new key is read alone, so that the page is the first batch.
        let reader = reader.scoped(&["assets:read"]).await;
        let listed = api.faults.overtake("BatchGetItem", reader.get("/assets?status=in_stock"), changing).await.0.json();
        let total = listed["data"].as_array().unwrap().len();
        assert_eq!(listed["meta"]["total"], total, "{listed}");
        assert!(listed["data"].as_array().unwrap().iter().all(|asset| asset["id"] != json!(id)), "{listed}");
    }
}

/// The slowest possible write, from a replica with the largest possible clock skew.
#[tokio::test(start_paused = true)]
async fn the_latest_possible_write_is_listed() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    let reader = api.replica(0, usize::MAX).client(&client);
    let writer = api.replica(-2_000, usize::MAX).client(&client);
    api.advance_clock(600);
    reader.get("/assets").await.data();
    let path = format!("/assets/{id}");
    let reading = async {
        api.advance_clock_millis(MAX_WRITE_MILLIS - 100);
        assert_eq!(reader.get("/assets?q=late").await.json()["meta"]["total"], 0);
    };
    let writing = writer.patch(&path, json!({"name": "late"}));
    api.faults.overtake("TransactWriteItems", writing, reading).await.0.data();
    assert_eq!(reader.get("/assets?q=late").await.json()["meta"]["total"], 1);
}

/// The index has its longest lag: later creations, changes and deletions come from the events.
#[tokio::test(start_paused = true)]
async fn a_lagging_index_leads_to_no_wrong_list() {
    let (api, client) = Api::with_tenant().await;
    let [changed, deleted] = [client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await];
    let writer = api.replica(-2_000, usize::MAX).client(&client);
    api.advance_clock(600);
    api.faults.freeze_list_index(Some(api.list_index_rows(client.tenant).await));
    writer.patch(&format!("/assets/{changed}"), json!({"name": "c"})).await.data();
    writer.delete(&format!("/assets/{deleted}")).await;
    writer.asset(json!({"name": "d"})).await;
    api.advance_clock_millis(MAX_LAG_MILLIS - 100);
    api.faults.take_requests();
    let listed = api.replica(0, usize::MAX).client(&client).get("/assets?sort=name").await.data();
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|asset| &asset["name"]).collect();
    assert_eq!(names, ["c", "d"]);
    let loads = api.faults.take_requests().iter().filter(|(_, request)| request["IndexName"] == "list_index").count();
    assert_eq!(loads, 1, "the first attempt succeeds");
}

/// A reader whose list index has just applied 150 events.
async fn reader_after_burst(api: &Api, client: &Client, id: &str) -> Client {
    let reader = api.replica(0, usize::MAX).client(client);
    reader.get("/assets").await.data();
    for n in 0..150 {
        client.patch(&format!("/assets/{id}"), json!({"notes": format!("{n}").repeat(100)})).await.data();
    }
    assert_eq!(reader.total("/assets?status=in_stock").await, 2);
    api.advance_clock(2);
    assert_eq!(reader.total("/assets?status=in_stock").await, 2);
    reader
}

#[tokio::test(start_paused = true)]
async fn after_a_burst_events_that_are_applied_are_counted_and_not_read() {
    let (api, client) = Api::with_tenant().await;
    let [id, other] = [client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await];
    let reader = reader_after_burst(&api, &client, &id).await;
    for n in 0..3 {
        client.patch(&format!("/assets/{other}"), json!({"name": format!("c{n}")})).await.data();
        api.faults.take_requests();
        api.meter.take();
        assert_eq!(reader.total(&format!("/assets?q=c{n}")).await, 1, "a list right after a write shows it");
        assert_eq!(api.meter.take().round_trips, 2);
        let queries: Vec<Value> = api
            .faults
            .take_requests()
            .into_iter()
            .filter(|(operation, _)| operation == "Query")
            .map(|(_, query)| query)
            .collect();
        let (counts, reads): (Vec<&Value>, Vec<&Value>) = queries.iter().partition(|query| query["Select"] == "COUNT");
        assert!(
            counts.len() == 1 && reads.len() == 1 && queries.iter().all(|query| query["ConsistentRead"] == true),
            "{queries:?}"
        );
        let from = |query: &Value| query["ExpressionAttributeValues"][":from"]["S"].as_str().unwrap().to_owned();
        assert!(from(counts[0]) < from(reads[0]), "{queries:?}");
    }
}

/// The event's id is older than those that are read, so the count tells that there is one more.
#[tokio::test(start_paused = true)]
async fn a_late_write_among_many_is_listed() {
    let (api, client) = Api::with_tenant().await;
    let [id, late] = [client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await];
    let path = format!("/assets/{late}");
    let writer = api.replica(-1_500, usize::MAX).client(&client);
    writer.get("/me").await.data();
    let mut reader = None;
    let reading = async {
        let burst = reader_after_burst(&api, &client, &id).await;
        api.advance_clock(4);
        assert_eq!(burst.total("/assets?q=late").await, 0);
        reader = Some(burst);
    };
    api.faults.overtake("TransactWriteItems", writer.patch(&path, json!({"name": "late"})), reading).await.0.data();
    let reader = reader.unwrap();
    assert_eq!(reader.total("/assets?q=late").await, 1);
    // Deleted, and its events are applied: they are not applied again when others are read.
    client.delete(&path).await;
    assert_eq!(reader.total("/assets?q=late").await, 0);
    for _ in 0..4 {
        api.advance_clock(3);
        assert_eq!(reader.total("/assets?limit=1&page=9").await, 1);
    }
}
