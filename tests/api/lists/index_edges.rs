//! List indexes at the limits of time, memory and concurrency.

use crate::support::{Api, Client, Replica, sample};
use serde_json::{Value, json};

/// Reads of the index, the events and the table since the last call.
fn reads(api: &Api) -> (usize, usize, usize) {
    let seen = api.faults.take_requests();
    let values = |request: &Value, name: &str| request["ExpressionAttributeValues"][name]["S"].as_str().map(str::to_owned);
    let count = |of: &dyn Fn(&Value) -> bool| seen.iter().filter(|(_, request)| of(request)).count();
    let events = |request: &Value| values(request, ":from").is_some_and(|from| from.starts_with("EVENT#"));
    let table = |request: &Value| values(request, ":sk").is_some_and(|sort| sort == "ASSET#");
    (count(&|request| request["IndexName"] == "list_index"), count(&events), count(&table))
}

/// It comes from the list index alone: no record is read that could show a mistake.
async fn total_past_the_end(client: &Client) -> u64 {
    client.total("/assets?limit=1&page=9").await
}

/// A tenant with two assets, and a third that one replica created and another, whose clock is `skew` milliseconds behind,
/// deleted: the deletion's event has the earlier id.
async fn tenant_with_deleted_asset(skew: i64, seen_before: bool) -> (Api, Client) {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "a"})).await;
    client.asset(json!({"name": "b"})).await;
    let reader = api.replica(0, usize::MAX).client(&client);
    let behind = api.replica(-skew, usize::MAX).client(&client);
    api.advance_clock(600);
    if seen_before {
        reader.get("/assets").await.data();
    }
    let id = client.asset(json!({"name": "deleted"})).await;
    assert!(behind.delete(&format!("/assets/{id}")).await.status.is_success());
    (api, reader)
}

#[tokio::test(start_paused = true)]
async fn a_deleted_asset_is_not_listed_wherever_reading_the_events_begins() {
    // At one of these moments, reading begins between the two ids: when the list index is loaded, and when new events are read.
    let loaded = (68_000..=70_100).step_by(350).chain([69_980, 70_000, 70_020]).map(|wait| (wait, false));
    let moments = loaded.chain((8_000..=10_100).step_by(350).map(|wait| (wait, true)));
    let cases = moments.flat_map(|(wait, is_followed)| [1_900, 700, 50].map(|skew| (skew, wait, is_followed)));
    for (skew, wait, is_followed) in sample(cases, 8) {
        let (api, reader) = tenant_with_deleted_asset(skew, is_followed).await;
        api.advance_clock_millis(wait);
        let what = if is_followed { "followed" } else { "loaded" };
        assert_eq!(total_past_the_end(&reader).await, 2, "{what} {wait} ms later, clocks {skew} ms apart");
        if is_followed {
            api.advance_clock(80);
            assert_eq!(total_past_the_end(&reader).await, 2, "after a pause");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_recent_events_are_read_without_loading_the_list_index_again() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    let reader = api.replica(0, usize::MAX).client(&client);
    api.advance_clock(600);
    reader.get("/assets").await.data();
    // Two pages of events, although the list index itself is one page.
    for n in 0..40 {
        client.patch(&format!("/assets/{id}"), json!({"notes": format!("😀{n}").repeat(2_400)})).await.data();
    }
    reads(&api);
    for _ in 0..2 {
        reader.get("/assets").await.data();
        let (index, events, table) = reads(&api);
        assert!(index == 0 && events >= 2 && table == 0, "{index} {events} {table}");
    }
}

/// The replica holds the list index after a list.
async fn holds_list_index(replica: &Replica, client: &Client) -> bool {
    replica.client(client).get("/assets").await;
    replica.store.list_index_bytes() > 0
}

#[tokio::test(start_paused = true)]
async fn a_list_index_that_fits_into_the_budget_is_held() {
    let (api, client) = Api::with_tenant().await;
    for n in 0..300 {
        client.asset(json!({"name": format!("asset number {n}"), "serial_number": format!("SER-{n:06}")})).await;
    }
    api.advance_clock(600);
    let unlimited = api.replica(0, usize::MAX);
    assert!(holds_list_index(&unlimited, &client).await);
    let bytes = unlimited.store.list_index_bytes();
    assert!(holds_list_index(&api.replica(0, bytes), &client).await);
    assert!(!holds_list_index(&api.replica(0, bytes - 1), &client).await);
    let tight = api.replica(0, bytes + 5_000);
    for n in 0..20 {
        client.asset(json!({"name": format!("one more, {n}")})).await;
        assert!(holds_list_index(&tight, &client).await, "after {n} more");
    }
    let before = unlimited.store.list_index_bytes();
    unlimited.client(&client).get("/assets").await.data();
    assert!(unlimited.store.list_index_bytes() < before + 20 * 400, "20 assets take little more memory");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_keeps_changing_is_listed_without_reading_the_whole_table() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "hot"})).await;
    client.asset(json!({"name": "cold"})).await;
    let reader = api.replica(0, usize::MAX).client(&client);
    reader.get("/assets").await.data();
    // A new key is read alone, so that the page is the first batch.
    let reader = reader.scoped(&["assets:read"]).await;
    reads(&api);
    let mut held = api.faults.hold("BatchGetItem");
    let reading = async { reader.get("/assets?status=in_stock").await.json() };
    let changing = async {
        for n in 0..5 {
            held.arrived().await;
            let last = if n == 4 { json!({"status": "in_use"}) } else { json!({"name": format!("hot {n}")}) };
            let path = format!("/assets/{id}");
            client.send("PATCH", &path, Some("application/json"), last.to_string()).await.data();
            let next = api.faults.hold("BatchGetItem");
            std::mem::replace(&mut held, next).release();
        }
        api.faults.clear_holds();
    };
    let (listed, ()) = tokio::join!(reading, changing);
    assert_eq!((listed["data"][0]["name"].as_str(), &listed["meta"]["total"]), (Some("cold"), &json!(1)), "{listed}");
    assert_eq!(reads(&api).2, 0, "the whole table was read");
}

#[tokio::test(start_paused = true)]
async fn an_index_that_lags_is_not_read_with_every_list() {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "a"})).await;
    let id = client.asset(json!({"name": "b"})).await;
    api.advance_clock(600);
    api.faults.freeze_list_index(Some(api.list_index_rows(client.tenant).await));
    client.delete(&format!("/assets/{id}")).await;
    api.advance_clock(120);
    let reader = api.replica(0, usize::MAX).client(&client);
    reads(&api);
    assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
    assert!(reads(&api).0 <= 2);
    for _ in 0..3 {
        assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
        let (index, _, table) = reads(&api);
        assert!(index == 0 && table == 1, "{index} {table}");
    }
    api.faults.freeze_list_index(None);
    api.advance_clock(80);
    assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
    reads(&api);
    assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
    let (index, _, table) = reads(&api);
    assert!(index == 0 && table == 0, "the index has caught up");
}

#[tokio::test(start_paused = true)]
async fn a_capital_sharp_s_is_found_by_every_spelling() {
    let (_api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "GROẞE KISTE"})).await;
    for word in ["gro%C3%9Fe", "GRO%E1%BA%9EE", "grosse", "GROSSE"] {
        assert_eq!(client.total(&format!("/assets?q={word}")).await, 1, "{word}");
    }
}
