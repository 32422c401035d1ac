//! Lists whose reads see only a part of a transaction.

use crate::support::table::history::{delete_item, set_attribute};
use crate::support::{Api, Client, case_count};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::record::Kind;
use shared::domain::values::id::{AssetId, Id};
use shared::store::keys::Keys;

/// Reads of the index `list_index` and of the whole table since the last call.
fn large_reads(api: &Api) -> (usize, usize) {
    let seen = api.faults.take_requests();
    let count = |of: &dyn Fn(&Value) -> bool| seen.iter().filter(|(_, request)| of(request)).count();
    let is_table = |request: &Value| request["ExpressionAttributeValues"][":sk"]["S"] == "ASSET#";
    (count(&|request| request["IndexName"] == "list_index"), count(&is_table))
}

async fn listed(client: &Client) -> (Vec<String>, u64) {
    let page = client.get("/assets?sort=name&limit=100").await.json();
    let names = page["data"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
    (names.map(|asset| asset["name"].as_str().unwrap().to_owned()).collect(), page["meta"]["total"].as_u64().unwrap())
}

fn names(names: &[&str]) -> (Vec<String>, u64) {
    (names.iter().map(|name| (*name).to_owned()).collect(), names.len() as u64)
}

/// A tenant with the assets `a`, `b` and `c`, the client that writes, and one whose list index is loaded.
async fn three_assets() -> (Api, Client, Client, Vec<String>) {
    let (api, writer) = Api::with_tenant().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(writer.asset(json!({"name": name})).await);
    }
    api.advance_clock(600);
    let reader = api.replica(0, usize::MAX).client(&writer);
    assert_eq!(listed(&reader).await, names(&["a", "b", "c"]));
    large_reads(&api);
    api.meter.take();
    (api, writer, reader, ids)
}

/// The first list sees only a part of the transaction; it may show the state before or after it.
async fn assert_lists(api: &Api, reader: &Client, before: &[&str], after: &[&str], round_trips: usize) {
    api.meter.take();
    let list = listed(reader).await;
    assert!(list == names(before) || list == names(after), "{list:?}");
    assert_eq!(api.faults.stop_tearing(), 0, "the list did not read the torn items");
    assert!(api.meter.take().round_trips <= round_trips);
    assert_eq!(listed(reader).await, names(after));
    assert_eq!(large_reads(api), (0, 0), "a list read the whole index or the whole table");
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_is_visible_in_part_leads_to_no_load() {
    let (api, writer, reader, _) = three_assets().await;
    let id = writer.asset(json!({"name": "d"})).await;
    api.faults.tear_record(1, &id, None);
    assert_lists(&api, &reader, &["a", "b", "c"], &["a", "b", "c", "d"], 3).await;
    let id = writer.asset(json!({"name": "e"})).await;
    api.faults.tear_record(3, &id, None);
    assert_lists(&api, &reader, &["a", "b", "c", "d"], &["a", "b", "c", "d", "e"], 5).await;
}

#[tokio::test(start_paused = true)]
async fn an_update_that_is_visible_in_part_leads_to_no_load() {
    let (api, writer, reader, ids) = three_assets().await;
    writer.patch(&format!("/assets/{}", ids[1]), json!({"name": "x"})).await.data();
    let before = json!({"version": {"N": "1"}, "name": {"S": "b"}});
    api.faults.tear_record(1, &ids[1], Some(before));
    assert_lists(&api, &reader, &["a", "b", "c"], &["a", "c", "x"], 3).await;
    writer.patch(&format!("/assets/{}", ids[1]), json!({"name": "y"})).await.data();
    api.faults.hide_event(1, &ids[1], 3);
    assert_lists(&api, &reader, &["a", "c", "x"], &["a", "c", "y"], 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_visible_in_part_leads_to_no_load() {
    let (api, writer, reader, ids) = three_assets().await;
    writer.delete(&format!("/assets/{}", ids[1])).await.json();
    api.faults.hide_event(1, &ids[1], 2);
    assert_lists(&api, &reader, &["a", "b", "c"], &["a", "c"], 3).await;
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
    // The same while a list index is loaded.
    api.faults.freeze_list_index(Some(old_rows));
    let cold = api.replica(0, usize::MAX).client(&writer);
    api.faults.hide_event(1, &ids[1], 2);
    assert_eq!(listed(&cold).await, names(&["a", "c", "y", "zz"]));
    assert_eq!((api.faults.stop_tearing(), large_reads(&api)), (0, (1, 0)));
}

/// The wait for one transaction leaves as much time for the next.
#[tokio::test(start_paused = true)]
async fn a_change_that_shows_after_a_wait_for_another_is_waited_for_too() {
    let (api, writer, reader, ids) = three_assets().await;
    for (id, name) in [(&ids[0], "aa"), (&ids[1], "z")] {
        writer.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
    }
    api.faults.tear_record(4, &ids[0], Some(json!({"version": {"N": "1"}, "name": {"S": "a"}})));
    api.faults.hide_event(4, &ids[1], 2);
    api.faults.tear_record(1, &ids[1], Some(json!({"version": {"N": "1"}, "name": {"S": "b"}})));
    assert_eq!(listed(&reader).await, names(&["aa", "c", "z"]));
    assert_eq!((api.faults.stop_tearing(), large_reads(&api)), (0, (0, 0)));
}

/// The list gives up after five changes, and shows one of the records as it was before: where it was before.
#[tokio::test(start_paused = true)]
async fn a_page_whose_records_keep_changing_is_sorted() {
    let (api, writer, reader, mut ids) = three_assets().await;
    for name in ["d", "e"] {
        ids.push(writer.asset(json!({"name": name})).await);
    }
    assert_eq!(listed(&reader).await, names(&["a", "b", "c", "d", "e"]));
    for (place, (id, (old, new))) in ids.iter().zip([("a", "v"), ("b", "w"), ("c", "x"), ("d", "y"), ("e", "z")]).enumerate() {
        writer.patch(&format!("/assets/{id}"), json!({"name": new})).await.data();
        if place > 0 {
            api.faults.hide_event(place, id, 2);
        }
        api.faults.tear_record(1, id, Some(json!({"version": {"N": "1"}, "name": {"S": old}})));
    }
    assert_eq!(listed(&reader).await, names(&["e", "v", "w", "x", "y"]));
    assert_eq!(api.faults.stop_tearing(), 0);
    assert_eq!(listed(&reader).await, names(&["v", "w", "x", "y", "z"]));
}

/// Changes without events, which no transaction explains: the index is loaded again. If that doesn't help, lists read the
/// table itself.
#[tokio::test(start_paused = true)]
async fn a_contradiction_that_persists_is_first_loaded_again_and_then_refused() {
    let (api, writer, reader, ids) = three_assets().await;
    let key = |id: &str| Keys::of(writer.tenant).record(Kind::Asset, id.parse::<AssetId>().unwrap().uuid()).item();
    set_attribute(&api, &key(&ids[0]), "name", AttributeValue::S("z".into())).await;
    set_attribute(&api, &key(&ids[0]), "version", AttributeValue::N("9".into())).await;
    large_reads(&api);
    assert_eq!(listed(&reader).await, names(&["b", "c", "z"]));
    assert_eq!(large_reads(&api), (1, 0), "the index is loaded again");
    api.faults.freeze_list_index(Some(api.list_index_rows(writer.tenant).await));
    large_reads(&api);
    delete_item(&api, &key(&ids[1])).await;
    assert_eq!(listed(&reader).await, names(&["c", "z"]));
    assert_eq!(large_reads(&api), (1, 1), "the index is loaded in vain, and the table read");
    assert_eq!(listed(&reader).await, names(&["c", "z"]));
    assert_eq!(large_reads(&api), (0, 1), "the index is refused");
}

/// Lists after random changes of which one read in twenty sees only a part. A list may then show the state before the
/// change; the next one shows it.
#[tokio::test(start_paused = true)]
async fn lists_that_see_transactions_in_part_are_right_and_cheap() {
    let (api, writer, reader, ids) = three_assets().await;
    let mut assets: Vec<(String, u64)> = ids.into_iter().map(|id| (id, 1)).collect();
    for n in 0..12 {
        assets.push((writer.asset(json!({"name": format!("n{n}")})).await, 1));
    }
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let lists = case_count(600) as usize;
    let mut before = listed(&writer).await;
    listed(&reader).await;
    large_reads(&api);
    let (mut torn, mut round_trips) = (0, 0);
    for list in 0..lists {
        // Lists read the events of the last seconds again: without this, those of the whole test.
        api.advance_clock_millis(500);
        let place = random(assets.len() as u64) as usize;
        let (id, version) = assets[place].clone();
        let path = format!("/assets/{id}");
        let (id, version, before_write) = match random(4) {
            0 => {
                let id = writer.asset(json!({"name": format!("l{list}")})).await;
                assets.push((id.clone(), 1));
                (id, 1, Some(None))
            }
            1 if assets.len() > 10 => {
                writer.delete(&path).await.json();
                assets.swap_remove(place);
                (id, version + 1, None)
            }
            _ => {
                let old = writer.get(&path).await.data();
                writer.patch(&path, json!({"name": format!("l{list}")})).await.data();
                assets[place].1 += 1;
                (id, version + 1, Some(Some(json!({"version": {"N": version.to_string()}, "name": {"S": old["name"]}}))))
            }
        };
        let after = listed(&writer).await;
        if random(20) == 0 {
            api.faults.hide_event(1, &id, version);
            torn += 1;
        }
        if let Some(image) = before_write.filter(|_| random(20) == 0) {
            api.faults.tear_record(1, &id, image);
            torn += 1;
        }
        large_reads(&api);
        api.meter.take();
        let list = listed(&reader).await;
        round_trips += api.meter.take().round_trips;
        assert!(list == before || list == after, "list {list:?}, before {before:?}, after {after:?}");
        api.faults.stop_tearing();
        assert_eq!(listed(&reader).await, after);
        assert_eq!(large_reads(&api), (0, 0), "a list read the whole index or the whole table");
        before = after;
    }
    assert!(torn > lists / 20, "{torn} reads were torn");
    assert!(round_trips <= lists * 21 / 10, "{round_trips} round trips for {lists} lists, of which {torn} were torn");
}
