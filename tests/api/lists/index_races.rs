//! Lists during writes: several replicas, clock skew, late writes, a lagging index, and reads that see only part of a
//! transaction.

use super::index_reads;
use crate::support::prelude::*;

/// Maximum duration of a write, and maximum lag of the index, in milliseconds: see docs/adr/0008.
pub const MAX_WRITE_MILLIS: i64 = 8_000;
pub const MAX_LAG_MILLIS: i64 = 60_000;

/// An asset is changed or deleted between counting and reading the page.
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
        // A new key is read separately, so the page is the first batch.
        let reader = reader.scoped(&["assets:read"]).await;
        let listed = api.faults.overtake("BatchGetItem", reader.get("/assets?status=in_stock"), changing).await.0.json();
        let total = listed["data"].as_array().unwrap().len();
        assert_eq!(listed["meta"]["total"], total, "{listed}");
        assert!(listed["data"].as_array().unwrap().iter().all(|asset| asset["id"] != json!(id)), "{listed}");
    }
}

/// The slowest possible write, from a replica with the maximum clock skew.
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

/// The index has its maximum lag, so later creations, changes and deletions come from the events.
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
    assert_eq!(index_reads(&api), 1, "the first attempt succeeds");
}

/// Returns a client whose list index has just applied 150 events.
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

/// The event's ID is older than the IDs read next, so only the count reveals it.
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
    // After the deletion is applied, it isn't applied again when more events are read.
    client.delete(&path).await;
    assert_eq!(reader.total("/assets?q=late").await, 0);
    for _ in 0..4 {
        api.advance_clock(3);
        assert_eq!(reader.total("/assets?limit=1&page=9").await, 1);
    }
}

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
async fn ended_instances_and_their_changes_cost_a_cold_list_of_open_ones_nothing() {
    const ENDED: u64 = 2_000;
    let (api, client) = Api::with_tenant().await;
    let process = process(&client).await;
    let ended = start(&client, &process).await;
    cancel(&client, &ended).await.data();
    for _ in 0..20 {
        start(&client, &process).await;
    }
    copy_record(&api, &client, (Kind::Instance, &ended, true), ENDED - 1, |_, _| ()).await;
    api.advance_clock(600);
    api.meter.take();
    let reader = api.replica(0, usize::MAX).client(&client);
    assert_eq!(reader.total(OPEN).await, 20);
    let open = api.meter.take();
    assert!(open.read_units <= 30.0, "{open:?}");
    assert_eq!(reader.total(CANCELLED).await, ENDED);
    let all = api.meter.take();
    assert!(all.read_units > 40.0, "{all:?}");

    // An erasure can change an instance that has ended, which the index of open instances doesn't contain.
    let feed = client.get("/events?limit=100").await.data();
    let entry = feed.as_array().unwrap().iter().rfind(|event| event["entity_id"] == ended.as_str()).unwrap();
    let mut entry = entry.clone();
    entry["version"] = json!(3);
    entry["changes"] = json!({"step_data": {"old": {}, "new": {"c": true}}});
    put_event(&api, &client, entry).await;
    api.faults.take_requests();
    assert_eq!(reader.total(OPEN).await, 20);
    let requests = api.faults.take_requests();
    assert!(requests.iter().all(|(_, request)| request["IndexName"] != "list_index"), "the index isn't loaded again");
    assert_eq!(requests.iter().filter(|(operation, _)| operation == "Query").count(), 1, "only the events are read again");
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
    assert_eq!(index_reads(&api), 2, "each of the two list indexes was loaded once");
}

/// When an instance ends, its row moves to another section of the index. A concurrent load can find the row in both sections or
/// in neither.
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

fn rows(index: &HashMap<char, Value>, letter: char) -> usize {
    index[&letter].as_array().unwrap().len()
}

/// Counts the reads of the index `list_index` and of the whole table since the last call.
fn large_reads(api: &Api) -> (usize, usize) {
    let seen = api.faults.take_requests();
    let count = |of: &dyn Fn(&Value) -> bool| seen.iter().filter(|(_, request)| of(request)).count();
    let is_table = |request: &Value| request["ExpressionAttributeValues"][":sk"]["S"] == "ASSET#";
    (count(&|request| request["IndexName"] == "list_index"), count(&is_table))
}

async fn listed(client: &Client) -> (Vec<String>, u64) {
    let page = client.get("/assets?sort=name&limit=100").await.json();
    let whole = page["data"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
    (whole.map(|asset| asset["name"].as_str().unwrap().to_owned()).collect(), page["meta"]["total"].as_u64().unwrap())
}

fn whole(whole: &[&str]) -> (Vec<String>, u64) {
    (whole.iter().map(|name| (*name).to_owned()).collect(), whole.len() as u64)
}

/// Returns a tenant with the assets `a`, `b` and `c`: a client that writes, a client whose list index is loaded, and the assets'
/// IDs.
async fn three_assets() -> (Api, Client, Client, Vec<String>) {
    let (api, writer) = Api::with_tenant().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(writer.asset(json!({"name": name})).await);
    }
    api.advance_clock(600);
    let reader = api.replica(0, usize::MAX).client(&writer);
    assert_eq!(listed(&reader).await, whole(&["a", "b", "c"]));
    large_reads(&api);
    api.meter.take();
    (api, writer, reader, ids)
}

/// Checks lists after a transaction. The first one sees only part of the transaction, and can show the state before or after
/// it.
async fn assert_lists(api: &Api, reader: &Client, before: &[&str], after: &[&str], round_trips: usize) {
    api.meter.take();
    let list = listed(reader).await;
    assert!(list == whole(before) || list == whole(after), "{list:?}");
    assert_eq!(api.faults.stop_tearing(), 0, "the list did not read the torn items");
    assert!(api.meter.take().round_trips <= round_trips);
    assert_eq!(listed(reader).await, whole(after));
    assert_eq!(large_reads(api), (0, 0), "no list reads the whole index or the whole table");
}

#[tokio::test(start_paused = true)]
async fn a_creation_an_update_or_a_deletion_that_is_visible_in_part_leads_to_no_load() {
    let (api, writer, reader, ids) = three_assets().await;
    let id = writer.asset(json!({"name": "d"})).await;
    api.faults.tear_record(1, &id, None);
    assert_lists(&api, &reader, &["a", "b", "c"], &["a", "b", "c", "d"], 3).await;
    let id = writer.asset(json!({"name": "e"})).await;
    api.faults.tear_record(3, &id, None);
    assert_lists(&api, &reader, &["a", "b", "c", "d"], &["a", "b", "c", "d", "e"], 5).await;
    writer.patch(&format!("/assets/{}", ids[1]), json!({"name": "x"})).await.data();
    let before = json!({"version": {"N": "1"}, "name": {"S": "b"}});
    api.faults.tear_record(1, &ids[1], Some(before));
    assert_lists(&api, &reader, &["a", "b", "c", "d", "e"], &["a", "c", "d", "e", "x"], 3).await;
    writer.patch(&format!("/assets/{}", ids[1]), json!({"name": "y"})).await.data();
    api.faults.hide_event(1, &ids[1], 3);
    assert_lists(&api, &reader, &["a", "c", "d", "e", "x"], &["a", "c", "d", "e", "y"], 3).await;
    writer.delete(&format!("/assets/{}", ids[2])).await.json();
    api.faults.hide_event(1, &ids[2], 2);
    assert_lists(&api, &reader, &["a", "c", "d", "e", "y"], &["a", "d", "e", "y"], 3).await;
}

#[tokio::test(start_paused = true)]
async fn events_that_are_visible_without_earlier_ones_lead_to_no_load() {
    let (api, writer, reader, ids) = three_assets().await;
    let old_rows = api.list_index_rows(writer.tenant).await;
    large_reads(&api);
    for name in ["x", "y"] {
        writer.patch(&format!("/assets/{}", ids[1]), json!({"name": name})).await.data();
    }
    api.faults.hide_event(1, &ids[1], 2);
    assert_lists(&api, &reader, &["a", "c", "y"], &["a", "c", "y"], 3).await;
    let id = writer.asset(json!({"name": "z"})).await;
    writer.patch(&format!("/assets/{id}"), json!({"name": "zz"})).await.data();
    api.faults.hide_event(2, &id, 1);
    assert_lists(&api, &reader, &["a", "c", "y", "zz"], &["a", "c", "y", "zz"], 4).await;
    // A change whose event is hidden is also waited for while a list index is loaded.
    api.faults.freeze_list_index(Some(old_rows));
    let cold = api.replica(0, usize::MAX).client(&writer);
    api.faults.hide_event(1, &ids[1], 2);
    assert_eq!(listed(&cold).await, whole(&["a", "c", "y", "zz"]));
    assert_eq!((api.faults.stop_tearing(), large_reads(&api)), (0, (1, 0)));
}

/// Waiting for one transaction doesn't shorten the wait for the next one.
#[tokio::test(start_paused = true)]
async fn a_change_that_shows_after_a_wait_for_another_is_waited_for_too() {
    let (api, writer, reader, ids) = three_assets().await;
    for (id, name) in [(&ids[0], "aa"), (&ids[1], "z")] {
        writer.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
    }
    api.faults.tear_record(4, &ids[0], Some(json!({"version": {"N": "1"}, "name": {"S": "a"}})));
    api.faults.hide_event(4, &ids[1], 2);
    api.faults.tear_record(1, &ids[1], Some(json!({"version": {"N": "1"}, "name": {"S": "b"}})));
    assert_eq!(listed(&reader).await, whole(&["aa", "c", "z"]));
    assert_eq!((api.faults.stop_tearing(), large_reads(&api)), (0, (0, 0)));
}

/// After five changes, the list gives up and shows an earlier state of a record, in its earlier position.
#[tokio::test(start_paused = true)]
async fn a_page_whose_records_keep_changing_is_sorted() {
    let (api, writer, reader, mut ids) = three_assets().await;
    for name in ["d", "e"] {
        ids.push(writer.asset(json!({"name": name})).await);
    }
    assert_eq!(listed(&reader).await, whole(&["a", "b", "c", "d", "e"]));
    for (place, (id, (old, new))) in ids.iter().zip([("a", "v"), ("b", "w"), ("c", "x"), ("d", "y"), ("e", "z")]).enumerate() {
        writer.patch(&format!("/assets/{id}"), json!({"name": new})).await.data();
        if place > 0 {
            api.faults.hide_event(place, id, 2);
        }
        api.faults.tear_record(1, id, Some(json!({"version": {"N": "1"}, "name": {"S": old}})));
    }
    assert_eq!(listed(&reader).await, whole(&["e", "v", "w", "x", "y"]));
    assert_eq!(api.faults.stop_tearing(), 0);
    assert_eq!(listed(&reader).await, whole(&["v", "w", "x", "y", "z"]));
}

/// Changes without events contradict the list index. The index is loaded again; while it still contradicts the table, lists read
/// the table.
#[tokio::test(start_paused = true)]
async fn a_contradiction_that_persists_is_first_loaded_again_and_then_refused() {
    let (api, writer, reader, ids) = three_assets().await;
    let key = |id: &str| Keys::of(writer.tenant).record(Kind::Asset, id.parse::<AssetId>().unwrap().uuid()).item();
    set_attribute(&api, &key(&ids[0]), "name", AttributeValue::S("z".into())).await;
    set_attribute(&api, &key(&ids[0]), "version", AttributeValue::N("9".into())).await;
    large_reads(&api);
    assert_eq!(listed(&reader).await, whole(&["b", "c", "z"]));
    assert_eq!(large_reads(&api), (1, 0), "the index is loaded again");
    api.faults.freeze_list_index(Some(api.list_index_rows(writer.tenant).await));
    large_reads(&api);
    delete_item(&api, &key(&ids[1])).await;
    assert_eq!(listed(&reader).await, whole(&["c", "z"]));
    assert_eq!(large_reads(&api), (1, 1), "loading the index doesn't help, so the table is read");
    assert_eq!(listed(&reader).await, whole(&["c", "z"]));
    assert_eq!(large_reads(&api), (0, 1), "the index isn't used any more");
}
