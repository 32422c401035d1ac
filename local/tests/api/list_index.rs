//! Directories: what they cost, what they survive, what they must not do.

use crate::support::{Api, Client, Instance};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::id::{AssetId, EventId, Id};
use shared::store::keys::Keys;

/// How many of the requests since the last look read the index.
fn index_reads(api: &Api) -> usize {
    let seen = api.faults.take_seen();
    seen.iter().filter(|(_, request)| request["IndexName"] == "list_index").count()
}

async fn names(client: &Client) -> Vec<String> {
    let listed = client.get("/assets?sort=name").await.data();
    listed.as_array().unwrap().iter().map(|asset| asset["name"].as_str().unwrap().to_owned()).collect()
}

async fn two_assets() -> (Api, Client, Instance) {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "a"})).await;
    client.asset(json!({"name": "b"})).await;
    let instance = api.instance(0, usize::MAX);
    let client = instance.client(&client);
    api.faults.take_seen();
    (api, client, instance)
}

#[tokio::test]
async fn the_index_is_read_once_and_then_only_what_happened_since() {
    let (api, client, _) = two_assets().await;
    assert_eq!(names(&client).await, ["a", "b"]);
    assert_eq!(index_reads(&api), 1);
    client.asset(json!({"name": "c"})).await;
    for _ in 0..5 {
        assert_eq!(names(&client).await, ["a", "b", "c"]);
    }
    assert_eq!(index_reads(&api), 0);
    api.wait(3_601);
    assert_eq!(names(&client).await, ["a", "b", "c"]);
    assert_eq!(index_reads(&api), 1, "an hour is as old as a directory gets");
}

#[tokio::test]
async fn many_lists_at_once_load_a_directory_once() {
    let (api, client, _) = two_assets().await;
    let all = futures_util::future::join_all((0..8).map(|_| names(&client))).await;
    assert!(all.iter().all(|names| *names == ["a", "b"]));
    assert_eq!(index_reads(&api), 1);
}

#[tokio::test]
async fn a_long_absence_is_not_replayed_but_loaded() {
    let (api, client, instance) = two_assets().await;
    names(&client).await;
    let id = client.asset(json!({"name": "c"})).await;
    for n in 0..16 {
        client.patch(&format!("/assets/{id}"), json!({"notes": format!("{n}").repeat(5_000)})).await.data();
    }
    api.wait(700);
    api.faults.take_seen();
    // Sixteen long events are not yet more than a page; sixty are.
    assert_eq!(names(&client).await, ["a", "b", "c"]);
    assert_eq!(index_reads(&api), 0);
    for n in 0..60 {
        client.patch(&format!("/assets/{id}"), json!({"notes": format!("ä{n}").repeat(3_000)})).await.data();
    }
    api.wait(700);
    api.faults.take_seen();
    assert_eq!(names(&client).await, ["a", "b", "c"]);
    assert_eq!(index_reads(&api), 1);
    assert!(instance.store.list_index_bytes() > 0);
}

/// Every call of a cold and of a warm list fails in turn, in every way; the next list is right.
#[tokio::test]
async fn a_list_that_fails_leaves_the_directory_as_it_was_or_gone() {
    let (api, client, instance) = two_assets().await;
    let model = client.model("Dell", "XPS", &client.asset_type("Laptop", "LAP", "physical").await).await;
    let id = client.asset(json!({"name": "c", "model_id": model})).await;
    let mut failed = 0;
    for kind in ["throttled", "timed out before"] {
        for cold in [true, false] {
            for place in 0.. {
                let name = format!("c{place}");
                if cold {
                    instance.store.forget_list_indexes();
                }
                // Not through the instance that lists, so that it has something to catch up with.
                client.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
                api.faults.fail_call(place, kind);
                let reply = client.get("/assets?sort=name").await;
                if !api.faults.heal() {
                    break;
                }
                reply.problem(503, "UNAVAILABLE");
                assert_eq!(names(&client).await, ["a", "b", name.as_str()], "{kind} {cold} {place}");
                failed += 1;
            }
        }
    }
    assert!(failed >= 16, "only {failed} calls failed");
}

async fn put_event(api: &Api, client: &Client, mut entry: Value) {
    let id = EventId::new(api.now(), [7; 10]);
    if entry.get("id").is_some() {
        entry["id"] = json!(id);
    }
    let mut item = Keys::of(client.tenant).event(id).item();
    item.insert("entry".into(), AttributeValue::S(entry.to_string()));
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
}

fn entry(kind: &str, id: &str, version: u64, changes: Value) -> Value {
    let actor = json!({"key_id": null, "key_name": "operator", "user_id": null, "user_name": null});
    json!({
        "id": "01890a5d-ac96-774b-bcce-b302099a8057", "at": "2026-03-05T10:00:00.000Z", "type": kind, "entity_id": id,
        "version": version, "actor": actor, "changes": changes, "previous_hash": null
    })
}

#[tokio::test]
async fn an_event_of_an_unknown_kind_is_not_guessed_at() {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
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
        api.faults.take_seen();
        assert_eq!(names(&client).await, ["a", "b"], "{event}");
        assert_eq!(index_reads(&api), 1, "it was loaded again: {event}");
        client.asset(json!({"name": "c"})).await;
        api.wait(30);
        assert_eq!(names(&client).await, ["a", "b", "c"], "{event}");
        assert_eq!(index_reads(&api), 0, "but not time and again: {event}");
        api.wait(60);
        assert_eq!(names(&client).await, ["a", "b", "c"], "{event}");
        assert_eq!(index_reads(&api), 1, "what is old enough is in the index: {event}");
        assert_eq!(names(&client).await, ["a", "b", "c"], "{event}");
        assert_eq!(index_reads(&api), 0, "{event}");
    }
}

/// Of what this version shows nowhere it has nothing to learn but that it is there: one load, then as before.
#[tokio::test]
async fn an_event_of_an_unknown_thing_is_met_by_one_load() {
    let (api, client, _) = two_assets().await;
    names(&client).await;
    put_event(&api, &client, entry("wormhole.created", "01890a5d-ac96-774b-bcce-b302099a8057", 1, json!({}))).await;
    api.faults.take_seen();
    assert_eq!(names(&client).await, ["a", "b"]);
    assert_eq!(index_reads(&api), 1);
    client.asset(json!({"name": "c"})).await;
    for _ in 0..9 {
        api.wait(10);
        assert_eq!(names(&client).await, ["a", "b", "c"]);
    }
    let seen = api.faults.take_seen();
    let whole = |request: &Value| request["IndexName"] == "list_index" || request["ExpressionAttributeValues"][":sk"].is_object();
    assert!(!seen.iter().any(|(_, request)| whole(request)), "neither index nor table is read for it again");
}

/// Changes behind the directory's back, which nothing but an operator's mistake can make.
#[tokio::test]
async fn a_directory_that_missed_something_is_loaded_again() {
    let (api, client, _) = two_assets().await;
    names(&client).await;
    let id: AssetId = client.get("/assets?sort=name").await.data()[0]["id"].as_str().unwrap().parse().unwrap();
    let key = Keys::of(client.tenant).record(shared::domain::record::Kind::Asset, id.uuid()).item();
    let update = api.dynamo.update_item().table_name(&api.table).set_key(Some(key.clone()));
    let update = update.update_expression("SET #n = :z, version = :v").expression_attribute_names("#n", "name");
    let update = update.expression_attribute_values(":z", AttributeValue::S("z".into()));
    update.expression_attribute_values(":v", AttributeValue::N("9".into())).send().await.unwrap();
    assert_eq!(names(&client).await, ["b", "z"]);
    api.dynamo.delete_item().table_name(&api.table).set_key(Some(key)).send().await.unwrap();
    assert_eq!(names(&client).await, ["b"]);
}

#[tokio::test]
async fn a_tenant_over_the_budget_gets_right_answers() {
    let (api, client, _) = two_assets().await;
    let client = api.instance(0, 100).client(&client);
    for _ in 0..3 {
        assert_eq!(names(&client).await, ["a", "b"]);
    }
    assert_eq!(index_reads(&api), 1, "it is not tried with every list");
    let page = client.get("/assets?limit=1&page=2").await.json();
    assert_eq!((&page["meta"]["total"], &page["data"][0]["name"]), (&json!(2), &json!("a")));
    api.wait(601);
    assert_eq!(names(&client).await, ["a", "b"]);
    assert_eq!(index_reads(&api), 1, "but now and then");
}

#[tokio::test]
async fn the_tenant_used_longest_ago_leaves_first() {
    let (api, first, instance) = two_assets().await;
    names(&first).await;
    let one = instance.store.list_index_bytes();
    let instance = api.instance(0, one * 5 / 2);
    let others = [api.tenant().await, api.tenant().await];
    for other in &others {
        for name in ["a", "b"] {
            other.asset(json!({"name": name})).await;
        }
    }
    let [first, second, third] = [&first, &others[0], &others[1]].map(|client| instance.client(client));
    let mut loads = Vec::new();
    for client in [&first, &second, &first, &third, &first, &second] {
        api.faults.take_seen();
        assert_eq!(names(client).await, ["a", "b"]);
        loads.push(index_reads(&api));
        assert!(instance.store.list_index_bytes() <= one * 5 / 2);
    }
    assert_eq!(loads, [1, 1, 0, 1, 0, 1], "the second left for the third");
}

#[tokio::test]
async fn a_stranger_makes_nobody_load_a_directory() {
    let (api, client, instance) = two_assets().await;
    let revoked = client.post("/keys", json!({"name": "r", "scopes": ["assets:read"]})).await.data();
    client.delete(&format!("/keys/{}", revoked["id"].as_str().unwrap())).await.data();
    let narrow = client.scoped(&["users:read"]).await;
    api.faults.take_seen();
    client.with_key(revoked["api_key"].as_str().unwrap()).get("/assets").await.problem(401, "UNAUTHORIZED");
    narrow.get("/assets").await.problem(403, "FORBIDDEN");
    let seen = api.faults.take_seen();
    assert!(seen.iter().all(|(operation, _)| operation != "Query"), "{seen:?}");
    assert_eq!(instance.store.list_index_bytes(), 0);
}
