//! List indexes: their reads, repeated loads, and memory.

use crate::support::table::history::{delete_item, set_attribute};
use crate::support::{Api, Client, Replica, UNKNOWN_ID, log};
use aws_sdk_dynamodb::types::AttributeValue;
use dev_server::faulty_table::planned::CallFailure;
use serde_json::{Value, json};
use shared::domain::values::id::{AssetId, EventId, Id};
use shared::store::keys::Keys;

/// The requests that have read the index `list_index` since the last call.
fn index_reads(api: &Api) -> usize {
    let seen = api.faults.take_requests();
    seen.iter().filter(|(_, request)| request["IndexName"] == "list_index").count()
}

/// Sorted.
async fn names(client: &Client) -> Vec<String> {
    let listed = client.get("/assets?sort=name").await.data();
    listed.as_array().unwrap().iter().map(|asset| asset["name"].as_str().unwrap().to_owned()).collect()
}

/// A tenant with the assets `a` and `b`, and a replica without a list index.
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
async fn the_index_is_read_once_and_then_only_new_events() {
    let (api, client, _) = two_assets().await;
    assert_eq!(names(&client).await, ["a", "b"]);
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
async fn simultaneous_lists_load_the_list_index_once() {
    let (api, client, _) = two_assets().await;
    let all = futures_util::future::join_all((0..8).map(|_| names(&client))).await;
    assert!(all.iter().all(|names| *names == ["a", "b"]));
    assert_eq!(index_reads(&api), 1);
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

/// Each call of a list fails in turn, with and without a loaded list index; the next list is right.
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
                // The list then has an event to catch up with.
                client.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
                api.faults.fail_call(place, failure);
                let reply = client.get("/assets?sort=name").await;
                if !api.faults.stop_failing() {
                    break;
                }
                // Only a request that could not be counted is let through.
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

/// Writes an event to the table, with a present id if it has an id.
async fn put_event(api: &Api, client: &Client, mut entry: Value) {
    let id = EventId::new(api.now(), [7; 10]);
    if entry.get("id").is_some() {
        entry["id"] = json!(id);
    }
    let mut item = Keys::of(client.tenant).event(id).item();
    item.insert("entry".into(), AttributeValue::S(entry.to_string()));
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
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
        assert_eq!(index_reads(&api), 1, "once the event is old, the index has its change: {event}");
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
    assert!(!seen.iter().any(|(_, request)| is_load(request)), "neither the index nor the table is read for it again");
}

/// Changes of records without an event, which only a mistake of an operator can cause.
#[tokio::test(start_paused = true)]
async fn a_list_index_that_missed_a_change_is_loaded_again() {
    let (api, client, _) = two_assets().await;
    names(&client).await;
    let id: AssetId = client.get("/assets?sort=name").await.data()[0]["id"].as_str().unwrap().parse().unwrap();
    let key = Keys::of(client.tenant).record(shared::domain::record::Kind::Asset, id.uuid()).item();
    set_attribute(&api, &key, "name", AttributeValue::S("z".into())).await;
    set_attribute(&api, &key, "version", AttributeValue::N("9".into())).await;
    assert_eq!(names(&client).await, ["b", "z"]);
    delete_item(&api, &key).await;
    assert_eq!(names(&client).await, ["b"]);
}

/// An index that is too large is refused at once, and by everything that needs it.
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
    assert_eq!(queries, 0, "nothing is read for a list that is refused");
    api.advance_clock(601);
    client.get("/assets").await.problem(503, "UNAVAILABLE");
    assert_eq!(index_reads(&api), 1, "loading is tried again from time to time");
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
    assert_eq!(loads, [1, 1, 0, 1, 0, 1], "the second is evicted for the third");
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
