//! Directories where times, budgets and rivals meet at an edge.

use crate::support::{Api, Client, Instance};
use serde_json::{Value, json};

/// How often the index, the events and the table were read since the last look.
fn reads(api: &Api) -> (usize, usize, usize) {
    let seen = api.faults.take_seen();
    let values = |request: &Value, name: &str| request["ExpressionAttributeValues"][name]["S"].as_str().map(str::to_owned);
    let count = |of: &dyn Fn(&Value) -> bool| seen.iter().filter(|(_, request)| of(request)).count();
    let events = |request: &Value| values(request, ":from").is_some_and(|from| from.starts_with("EVENT#"));
    let table = |request: &Value| values(request, ":sk").is_some_and(|sort| sort == "ASSET#");
    (count(&|request| request["IndexName"] == "list_index"), count(&events), count(&table))
}

/// A page past the end: its total comes from the directory alone, and nothing on it can heal one that is wrong.
async fn total(client: &Client) -> u64 {
    client.get("/assets?limit=1&page=9").await.json()["meta"]["total"].as_u64().unwrap()
}

/// Two assets, and a third that was made by one instance and then deleted by another, whose clock is behind: the
/// deletion has the earlier id.
async fn ghost(skew: i64, seen_before: bool) -> (Api, Client) {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "a"})).await;
    client.asset(json!({"name": "b"})).await;
    let reader = api.instance(0, usize::MAX).client(&client);
    let behind = api.instance(-skew, usize::MAX).client(&client);
    api.wait(600);
    if seen_before {
        reader.get("/assets").await.data();
    }
    let id = client.asset(json!({"name": "ghost"})).await;
    assert!(behind.delete(&format!("/assets/{id}")).await.status.is_success());
    (api, reader)
}

#[tokio::test]
async fn what_was_deleted_stays_so_wherever_the_reading_begins() {
    for skew in [1_900, 700, 50] {
        // The reading begins between the two ids at one of these moments: when a directory is loaded, and when it is
        // followed.
        for wait in (68_000..=70_100).step_by(350).chain([69_980, 70_000, 70_020]) {
            let (api, reader) = ghost(skew, false).await;
            api.wait_millis(wait);
            assert_eq!(total(&reader).await, 2, "loaded {wait} ms later, clocks {skew} ms apart");
        }
        for wait in (8_000..=10_100).step_by(350) {
            let (api, reader) = ghost(skew, true).await;
            api.wait_millis(wait);
            assert_eq!(total(&reader).await, 2, "followed {wait} ms later, clocks {skew} ms apart");
            api.wait(80);
            assert_eq!(total(&reader).await, 2, "after a pause");
        }
    }
}

#[tokio::test]
async fn a_burst_of_events_is_followed_not_loaded() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    let reader = api.instance(0, usize::MAX).client(&client);
    api.wait(600);
    reader.get("/assets").await.data();
    // Two pages of events, for a directory that would be loaded with one.
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

async fn holds(instance: &Instance, client: &Client) -> bool {
    instance.client(client).get("/assets").await.data();
    instance.store.list_index_bytes() > 0
}

#[tokio::test]
async fn a_directory_that_fits_is_held() {
    let (api, client) = Api::with_tenant().await;
    for n in 0..300 {
        client.asset(json!({"name": format!("asset number {n}"), "serial_number": format!("SER-{n:06}")})).await;
    }
    api.wait(600);
    let ample = api.instance(0, usize::MAX);
    assert!(holds(&ample, &client).await);
    let bytes = ample.store.list_index_bytes();
    assert!(holds(&api.instance(0, bytes), &client).await);
    assert!(!holds(&api.instance(0, bytes - 1), &client).await);
    let tight = api.instance(0, bytes + 5_000);
    for n in 0..20 {
        client.asset(json!({"name": format!("one more, {n}")})).await;
        assert!(holds(&tight, &client).await, "after {n} more");
    }
    let growth = ample.store.list_index_bytes();
    ample.client(&client).get("/assets").await.data();
    assert!(ample.store.list_index_bytes() < growth + 20 * 400, "one asset more does not take another half");
}

/// Lists of a tenant without a directory, while a thing that they found is changed before they read it.
#[tokio::test]
async fn the_slow_way_shows_nothing_that_does_not_belong() {
    let (api, client) = Api::with_tenant().await;
    let ids = [client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await];
    client.asset(json!({"name": "c"})).await;
    let reader = api.instance(0, 0).client(&client);
    reader.get("/assets?status=in_stock").await.data();
    for (id, change) in [(&ids[0], Some(json!({"status": "in_use"}))), (&ids[1], None)] {
        let mut held = api.faults.hold("BatchGetItem");
        let reading = async { reader.get("/assets?status=in_stock&limit=2").await.json() };
        let changing = async {
            held.arrived().await;
            match change {
                Some(change) => drop(client.patch(&format!("/assets/{id}"), change).await.data()),
                None => drop(client.delete(&format!("/assets/{id}")).await),
            }
            held.release();
        };
        let (listed, ()) = tokio::join!(reading, changing);
        let rows = listed["data"].as_array().unwrap();
        assert!(rows.iter().all(|asset| asset["status"] == "in_stock" && asset["id"] != id.as_str()), "{listed}");
        assert_eq!(listed["meta"]["total"].as_u64().unwrap().min(2) as usize, rows.len(), "{listed}");
    }
}

#[tokio::test]
async fn a_page_that_keeps_changing_is_answered_without_reading_the_table() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "hot"})).await;
    client.asset(json!({"name": "cold"})).await;
    let reader = api.instance(0, usize::MAX).client(&client);
    reader.get("/assets").await.data();
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
        api.faults.hold_nothing();
    };
    let (listed, ()) = tokio::join!(reading, changing);
    assert_eq!((listed["data"][0]["name"].as_str(), &listed["meta"]["total"]), (Some("cold"), &json!(1)), "{listed}");
    assert_eq!(reads(&api).2, 0, "the table was not read whole");
}

#[tokio::test]
async fn an_index_that_stays_behind_is_not_read_with_every_list() {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "a"})).await;
    let id = client.asset(json!({"name": "b"})).await;
    api.wait(600);
    api.faults.freeze_index(Some(api.index(client.tenant).await));
    client.delete(&format!("/assets/{id}")).await;
    api.wait(120);
    let reader = api.instance(0, usize::MAX).client(&client);
    reads(&api);
    assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
    assert!(reads(&api).0 <= 2);
    for _ in 0..3 {
        assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
        let (index, _, table) = reads(&api);
        assert!(index == 0 && table == 1, "{index} {table}");
    }
    api.faults.freeze_index(None);
    api.wait(80);
    assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
    reads(&api);
    assert_eq!(reader.get("/assets").await.json()["meta"]["total"], 1);
    let (index, _, table) = reads(&api);
    assert!(index == 0 && table == 0, "the index has caught up");
}

#[tokio::test]
async fn a_capital_sharp_s_is_found_by_every_spelling() {
    let (_api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "GROẞE KISTE"})).await;
    for word in ["gro%C3%9Fe", "GRO%E1%BA%9EE", "grosse", "GROSSE"] {
        assert_eq!(client.get(&format!("/assets?q={word}")).await.json()["meta"]["total"], 1, "{word}");
    }
}
