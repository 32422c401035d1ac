//! List indexes: their reads, repeated loads, and the limits of time, memory and concurrency.

use super::index_reads;
use crate::support::prelude::*;
use lambda_http::{Context, RequestExt};

async fn names(client: &Client) -> Vec<String> {
    let listed = client.get("/assets?sort=name").await.data();
    listed.as_array().unwrap().iter().map(|asset| asset["name"].as_str().unwrap().to_owned()).collect()
}

/// Creates a tenant with the assets `a` and `b`, and a replica without a list index.
async fn two_assets() -> (Api, Client, Replica) {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "a"})).await;
    client.asset(json!({"name": "b"})).await;
    let replica = api.replica(0, usize::MAX);
    let client = replica.client(&client);
    api.faults.take_requests();
    (api, client, replica)
}

#[tokio::test(start_paused = true)]
async fn the_index_is_read_once_for_simultaneous_lists_and_then_only_new_events() {
    let (api, client, _) = two_assets().await;
    let simultaneous = join_all((0..8).map(|_| names(&client))).await;
    assert!(simultaneous.iter().all(|names| *names == ["a", "b"]));
    assert_eq!(index_reads(&api), 1);
    client.asset(json!({"name": "c"})).await;
    for _ in 0..5 {
        assert_eq!(names(&client).await, ["a", "b", "c"]);
    }
    assert_eq!(index_reads(&api), 0);
    api.advance_clock(3_601);
    assert_eq!(names(&client).await, ["a", "b", "c"]);
    assert_eq!(index_reads(&api), 1, "a list index is at most an hour old");
}

#[tokio::test(start_paused = true)]
async fn after_many_events_the_list_index_is_loaded_again() {
    let (api, client, replica) = two_assets().await;
    names(&client).await;
    let id = client.asset(json!({"name": "c"})).await;
    for n in 0..16 {
        client.patch(&format!("/assets/{id}"), json!({"notes": format!("{n}").repeat(5_000)})).await.data();
    }
    api.advance_clock(700);
    api.faults.take_requests();
    // Sixteen large events fit into a page; sixty don't.
    assert_eq!(names(&client).await, ["a", "b", "c"]);
    assert_eq!(index_reads(&api), 0);
    for n in 0..60 {
        client.patch(&format!("/assets/{id}"), json!({"notes": format!("ä{n}").repeat(3_000)})).await.data();
    }
    api.advance_clock(700);
    api.faults.take_requests();
    assert_eq!(names(&client).await, ["a", "b", "c"]);
    assert_eq!(index_reads(&api), 1);
    assert!(replica.store.list_index_bytes() > 0);
}

/// Each call of a list fails in turn, with and without a loaded list index. The next list is correct.
#[tokio::test(start_paused = true)]
async fn after_a_failed_list_the_next_one_is_right() {
    let (api, client, replica) = two_assets().await;
    let model = client.model("Dell", "XPS", &client.asset_type("Laptop", "LAP", "physical").await).await;
    let id = client.asset(json!({"name": "c", "model_id": model})).await;
    let mut failed = 0;
    for failure in [CallFailure::Throttled, CallFailure::TimedOutBefore] {
        for is_cold in [true, false] {
            for place in 0.. {
                let name = format!("c{place}");
                if is_cold {
                    replica.store.forget_list_indexes();
                }
                // The next list must apply this event.
                client.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
                api.faults.fail_call(place, failure);
                let reply = client.get("/assets?sort=name").await;
                if !api.faults.stop_failing() {
                    break;
                }
                // A request can only succeed if the failed call was the one that counts it.
                if reply.status != 200 {
                    reply.problem(503, "UNAVAILABLE");
                }
                assert_eq!(names(&client).await, ["a", "b", name.as_str()], "call {place} {failure:?}, cold: {is_cold}");
                failed += 1;
            }
        }
    }
    assert!(failed >= 16, "only {failed} calls failed");
}

fn entry(event_type: &str, id: &str, version: u64, changes: Value) -> Value {
    let actor = json!({"key_id": null, "key_name": "operator", "user_id": null, "user_name": null});
    json!({
        "id": UNKNOWN_ID, "at": "2026-03-05T10:00:00.000Z", "type": event_type, "entity_id": id,
        "version": version, "actor": actor, "changes": changes, "previous_hash": null
    })
}

#[tokio::test(start_paused = true)]
async fn an_unknown_event_of_an_asset_leads_to_one_load() {
    let id = UNKNOWN_ID;
    let status = json!({"status": {"old": null, "new": "teleported"}});
    for event in [
        entry("asset.teleported", id, 2, json!({})),
        entry("asset.created", id, 1, status),
        entry("asset.updated", id, 7, json!({})),
        json!({"format": 2}),
    ] {
        let (api, client, _) = two_assets().await;
        names(&client).await;
        put_event(&api, &client, event.clone()).await;
        api.faults.take_requests();
        assert_eq!(names(&client).await, ["a", "b"], "{event}");
        assert_eq!(index_reads(&api), 1, "the list index is loaded again: {event}");
        client.asset(json!({"name": "c"})).await;
        api.advance_clock(30);
        assert_eq!(names(&client).await, ["a", "b", "c"], "{event}");
        assert_eq!(index_reads(&api), 0, "but not with every list: {event}");
        api.advance_clock(60);
        assert_eq!(names(&client).await, ["a", "b", "c"], "{event}");
        assert_eq!(index_reads(&api), 1, "once the event is old, the list index is loaded again: {event}");
        assert_eq!(names(&client).await, ["a", "b", "c"], "{event}");
        assert_eq!(index_reads(&api), 0, "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_of_an_unknown_resource_leads_to_one_load() {
    let (api, client, _) = two_assets().await;
    names(&client).await;
    put_event(&api, &client, entry("wormhole.created", UNKNOWN_ID, 1, json!({}))).await;
    api.faults.take_requests();
    assert_eq!(names(&client).await, ["a", "b"]);
    assert_eq!(index_reads(&api), 1);
    client.asset(json!({"name": "c"})).await;
    for _ in 0..9 {
        api.advance_clock(10);
        assert_eq!(names(&client).await, ["a", "b", "c"]);
    }
    let seen = api.faults.take_requests();
    let is_load =
        |request: &Value| request["IndexName"] == "list_index" || request["ExpressionAttributeValues"][":sk"].is_object();
    assert!(!seen.iter().any(|(_, request)| is_load(request)), "the event causes no further reads of the index or the table");
}

/// An index above the memory limit is refused at once, by everything that needs it.
#[tokio::test(start_paused = true)]
async fn lists_above_the_memory_budget_are_refused_without_reading() {
    let (api, client, _) = two_assets().await;
    let client = api.replica(0, 100).client(&client);
    log::begin();
    let refused = client.get("/assets").await;
    let problem = refused.problem(503, "UNAVAILABLE");
    assert!(problem["detail"].as_str().unwrap().contains("must give the function more memory"), "{problem}");
    assert_eq!(refused.header("retry-after"), "600");
    assert!(log::text().contains(r#""metric":"oversized_lists""#), "{}", log::text());
    api.faults.take_requests();
    for path in ["/assets", "/assets?page=2&q=a", "/stats"] {
        client.get(path).await.problem(503, "UNAVAILABLE");
    }
    let queries = api.faults.take_requests().iter().filter(|(operation, _)| operation == "Query").count();
    assert_eq!(queries, 0, "a refused list reads nothing");
    api.advance_clock(601);
    client.get("/assets").await.problem(503, "UNAVAILABLE");
    assert_eq!(index_reads(&api), 1, "loading is retried from time to time");
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_tenant_is_evicted_first() {
    let (api, first, replica) = two_assets().await;
    names(&first).await;
    let one = replica.store.list_index_bytes();
    let replica = api.replica(0, one * 5 / 2);
    let others = [api.tenant().await, api.tenant().await];
    for other in &others {
        for name in ["a", "b"] {
            other.asset(json!({"name": name})).await;
        }
    }
    let [first, second, third] = [&first, &others[0], &others[1]].map(|client| replica.client(client));
    let mut loads = Vec::new();
    for client in [&first, &second, &first, &third, &first, &second] {
        api.faults.take_requests();
        assert_eq!(names(client).await, ["a", "b"]);
        loads.push(index_reads(&api));
        assert!(replica.store.list_index_bytes() <= one * 5 / 2);
    }
    assert_eq!(loads, [1, 1, 0, 1, 0, 1], "the second index is evicted in favor of the third");
}

#[tokio::test(start_paused = true)]
async fn an_unauthorized_caller_causes_no_load() {
    let (api, client, replica) = two_assets().await;
    let revoked = client.post("/keys", json!({"name": "r", "scopes": ["assets:read"]})).await.data();
    client.delete(&format!("/keys/{}", revoked["id"].as_str().unwrap())).await.data();
    let lacking = client.scoped(&["users:read"]).await;
    api.faults.take_requests();
    client.with_key(revoked["api_key"].as_str().unwrap()).get("/assets").await.problem(401, "UNAUTHORIZED");
    lacking.get("/assets").await.problem(403, "FORBIDDEN");
    let seen = api.faults.take_requests();
    assert!(seen.iter().all(|(operation, _)| operation != "Query"), "{seen:?}");
    assert_eq!(replica.store.list_index_bytes(), 0);
}

/// Counts the reads of the index, the events and the table since the last call.
fn reads(api: &Api) -> (usize, usize, usize) {
    let seen = api.faults.take_requests();
    let values = |request: &Value, name: &str| request["ExpressionAttributeValues"][name]["S"].as_str().map(str::to_owned);
    let count = |of: &dyn Fn(&Value) -> bool| seen.iter().filter(|(_, request)| of(request)).count();
    let events = |request: &Value| values(request, ":from").is_some_and(|from| from.starts_with("EVENT#"));
    let table = |request: &Value| values(request, ":sk").is_some_and(|sort| sort == "ASSET#");
    (count(&|request| request["IndexName"] == "list_index"), count(&events), count(&table))
}

/// Requests a page past the end, which reads no records: the total comes from the list index alone.
async fn total_past_the_end(client: &Client) -> u64 {
    client.total("/assets?limit=1&page=9").await
}

/// Creates a tenant with two assets. One replica creates a third asset; a replica whose clock is `skew` milliseconds behind
/// deletes the asset, so that the deletion's event has the earlier ID.
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
    // At some of these moments, reading starts between the two IDs: when the list index is loaded, and when new events are
    // read.
    let loaded = (68_000..=70_100).step_by(350).chain([69_980, 70_000, 70_020]).map(|wait| (wait, false));
    let moments = loaded.chain((8_000..=10_100).step_by(350).map(|wait| (wait, true)));
    let cases = moments.flat_map(|(wait, is_followed)| [1_900, 700, 50].map(|skew| (skew, wait, is_followed)));
    for (skew, wait, is_followed) in sample(cases, 4) {
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
    // Two pages of events for a list index of one page.
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

/// Requests a list. Returns whether the replica then keeps the list index in memory.
async fn holds_list_index(replica: &Replica, client: &Client) -> bool {
    replica.client(client).get("/assets").await;
    replica.store.list_index_bytes() > 0
}

#[tokio::test(start_paused = true)]
async fn a_list_index_that_fits_into_the_budget_is_held() {
    let (api, client) = Api::with_tenant().await;
    let body = |n: usize| json!({"name": format!("asset number {n}"), "serial_number": format!("SER-{n:06}")});
    client.create_all(&(0..300).map(body).collect::<Vec<_>>()).await;
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
    // A new key is read separately, so the page is the first batch.
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

const ASSETS: usize = 60;

/// Creates a tenant whose index is read in many pages. Returns the number of pages.
async fn tenant_with_pages() -> (Api, Client, usize) {
    let (api, client) = Api::with_tenant().await;
    client.assets(ASSETS).await;
    api.advance_clock(600);
    api.faults.cut_index_pages(4);
    assert_eq!(api.replica(0, usize::MAX).client(&client).total("/assets").await, ASSETS as u64);
    let pages = api.faults.take_index_pages();
    assert!(pages >= ASSETS / 4);
    (api, client, pages)
}

#[tokio::test(start_paused = true)]
async fn a_load_that_was_cut_off_goes_on_with_the_next_list() {
    let (api, client, pages) = tenant_with_pages().await;
    let replica = api.replica(0, usize::MAX);
    let reader = replica.client(&client);
    for part in [3, 5] {
        api.faults.limit_index_pages(Some(part), 0);
        let cut = tokio::time::timeout(Duration::from_secs(2), reader.get("/assets")).await;
        assert!(cut.is_err(), "the list waits for the index");
        assert!(replica.store.list_index_bytes() > 0, "the part that is loaded counts toward the budget");
        client.asset(json!({"name": "more"})).await;
    }
    api.faults.limit_index_pages(None, 0);
    assert_eq!(reader.total("/assets").await, ASSETS as u64 + 2);
    let read = api.faults.take_index_pages();
    // The new assets can add a page.
    assert!((pages..=pages + 2).contains(&read), "{read} pages were read instead of {pages}");
    assert_eq!(reader.total("/assets").await, ASSETS as u64 + 2);
    assert_eq!(api.faults.take_index_pages(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_too_old_is_loaded_again_and_functions_that_start_together_all_get_their_lists() {
    let (api, client, pages) = tenant_with_pages().await;
    let reader = api.replica(0, usize::MAX).client(&client);
    api.faults.limit_index_pages(Some(5), 0);
    assert!(tokio::time::timeout(Duration::from_secs(2), reader.get("/assets")).await.is_err());
    api.faults.limit_index_pages(None, 0);
    api.faults.take_index_pages();
    api.advance_clock(601);
    assert_eq!(reader.total("/assets").await, ASSETS as u64);
    assert_eq!(api.faults.take_index_pages(), pages);

    // Function instances that start together share the index's read units: 3,000 read units a second are 23 pages of 1 MB, and
    // the index of 100,000 assets has 27 pages.
    api.faults.limit_index_pages(Some(pages), pages * 2);
    let list = async |_| {
        let reader = api.replica(0, usize::MAX).client(&client);
        assert_eq!(reader.total("/assets").await, ASSETS as u64);
    };
    join_all((0..13).map(list)).await;
    assert_eq!(api.faults.take_index_pages(), 13 * pages, "no page was read twice");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_must_wait_says_for_how_long() {
    let (api, client, _) = tenant_with_pages().await;
    let reader = api.replica(0, usize::MAX).client(&client);
    let list = |seconds: i64| {
        let mut context = Context::default();
        context.deadline = (api.now().millis() + seconds * 1000).try_into().unwrap();
        let request = Request::builder().uri("/v1/assets").header("authorization", format!("Bearer {}", client.key));
        request.body(Body::empty()).unwrap().with_lambda_context(context)
    };
    api.faults.limit_index_pages(Some(10), 0);
    let reply = call(&reader.router, list(3)).await;
    let problem = reply.problem(503, "UNAVAILABLE");
    assert!(problem["detail"].as_str().unwrap().starts_with("The list is still loading."), "{problem}");
    let seconds: u64 = reply.header("retry-after").parse().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds} s");
    api.faults.limit_index_pages(Some(0), 4);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let reply = call(&reader.router, list(15)).await;
    assert_eq!(reply.json()["meta"]["total"], ASSETS);
}
