//! The history of a thing: right after a write, whatever the index does, and proof against changes behind its back.

use crate::processes::{advance, define, start};
use crate::support::{Api, Client};
use aws_sdk_dynamodb::types::AttributeValue;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use shared::domain::event::hash;
use shared::domain::id::Id;
use shared::store::keys::Keys;

/// An asset that was changed twice, and where its history is.
async fn changed_asset(client: &Client) -> (String, String) {
    let id = client.asset(json!({"name": "a"})).await;
    for name in ["b", "c"] {
        client.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
    }
    (id.clone(), format!("/assets/{id}/history"))
}

fn versions(history: &Value) -> Vec<u64> {
    history["data"].as_array().unwrap().iter().map(|event| event["version"].as_u64().unwrap()).collect()
}

/// The key of the event of this version.
fn event_key(client: &Client, history: &Value, version: u64) -> shared::store::keys::Item {
    let event = history["data"].as_array().unwrap().iter().find(|event| event["version"] == version).unwrap();
    Keys::of(client.tenant).event(event["id"].as_str().unwrap().parse().unwrap()).item()
}

async fn set(api: &Api, key: &shared::store::keys::Item, name: &str, value: String) {
    let update = api.dynamo.update_item().table_name(&api.table).set_key(Some(key.clone())).update_expression("SET #n = :v");
    let update = update.expression_attribute_names("#n", name).expression_attribute_values(":v", AttributeValue::S(value));
    update.send().await.unwrap();
}

async fn text(api: &Api, key: &shared::store::keys::Item, name: &str) -> String {
    let found = api.dynamo.get_item().table_name(&api.table).set_key(Some(key.clone())).send().await.unwrap();
    found.item.unwrap()[name].as_s().unwrap().clone()
}

async fn delete(api: &Api, key: &shared::store::keys::Item) {
    api.dynamo.delete_item().table_name(&api.table).set_key(Some(key.clone())).send().await.unwrap();
}

#[tokio::test]
async fn a_history_tells_who_changed_what_newest_first() {
    let (_api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let key = json!({"name": "ada's", "scopes": ["assets:read", "assets:write"], "user_id": user});
    let made = client.post("/keys", key).await.data();
    client.patch(&format!("/users/{user}"), json!({"role": "technician"})).await.data();
    let ada = client.with_key(made["api_key"].as_str().unwrap());
    let id = ada.asset(json!({"name": "x", "purchase_price": 2499.00})).await;
    client.patch(&format!("/assets/{id}"), json!({"name": "y", "notes": "n"})).await.data();
    let history = ada.get(&format!("/assets/{id}/history")).await.json();
    assert_eq!(history["meta"], json!({"total": 2, "page": 1, "limit": 20, "total_pages": 1}));
    let [newest, first] = [&history["data"][0], &history["data"][1]];
    assert_json_snapshot!(newest, {
        ".id" => "[id]", ".at" => "[time]", ".entity_id" => "[id]", ".actor.key_id" => "[id]", ".previous_hash" => "[hash]", ".hash" => "[hash]"
    }, @r#"
    {
      "id": "[id]",
      "at": "[time]",
      "type": "asset.updated",
      "entity_id": "[id]",
      "version": 2,
      "actor": {
        "key_id": "[id]",
        "key_name": "first key",
        "user_id": null,
        "user_name": null
      },
      "changes": {
        "name": {
          "new": "y",
          "old": "x"
        },
        "notes": {
          "new": "n",
          "old": null
        }
      },
      "previous_hash": "[hash]",
      "hash": "[hash]"
    }
    "#);
    assert_eq!(first["actor"], json!({"key_id": made["id"], "key_name": "ada's", "user_id": user, "user_name": "Ada"}));
    assert_eq!((&first["previous_hash"], &newest["previous_hash"]), (&Value::Null, &first["hash"]));
    assert_eq!(first["changes"]["purchase_price"], json!({"old": null, "new": "2499.0"}));
    // What an outsider can check with nothing but the answer.
    for event in [newest, first] {
        let mut entry = event.clone();
        let kept = entry.as_object_mut().unwrap().remove("hash").unwrap();
        assert_eq!(hash(&serde_json_canonicalizer::to_string(&entry).unwrap()), kept.as_str().unwrap());
    }
}

#[tokio::test]
async fn a_history_has_pages() {
    let (_api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "0"})).await;
    for name in 1..25 {
        client.patch(&format!("/assets/{id}"), json!({"name": name.to_string()})).await.data();
    }
    let path = format!("/assets/{id}/history");
    let all: Vec<u64> = (1..=25).rev().collect();
    for (query, meta, expected) in [
        ("", [25, 1, 20, 2], &all[..20]),
        ("?page=2", [25, 2, 20, 2], &all[20..]),
        ("?page=3&limit=7", [25, 3, 7, 4], &all[14..21]),
        ("?page=4&limit=7&verify=true", [25, 4, 7, 4], &all[21..]),
        ("?page=9&verify=false", [25, 9, 20, 2], &[]),
        ("?limit=100", [25, 1, 100, 1], &all[..]),
    ] {
        let told = client.get(&format!("{path}{query}")).await.json();
        assert_eq!(versions(&told), expected, "{query}");
        let [total, page, limit, total_pages] = meta;
        assert_eq!(told["meta"], json!({"total": total, "page": page, "limit": limit, "total_pages": total_pages}), "{query}");
        assert_eq!(told.get("verification").is_some(), query.contains("verify=true"), "{query}");
    }
    assert_eq!(client.get(&format!("{path}?page=0&limit=101&verify=yes")).await.field_errors(), ["limit", "page", "verify"]);
}

#[tokio::test]
async fn the_history_of_a_run_tells_its_steps_and_keeps_images_out() {
    let (_api, client) = Api::with_tenant().await;
    let process = define(&client, json!([{"type": "signature", "key": "s", "label": "S"}])).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let run = start(&client, &process, &asset).await;
    advance(&client, &run, json!({"s": crate::support::samples::SIGNATURE})).await.data();
    let history = client.get(&format!("/processes/instances/{run}/history?verify=true")).await;
    assert!(!history.text().contains("base64"));
    let history = history.json();
    assert_eq!(history["verification"], json!({"valid": true, "checked": 2, "broken": null}));
    assert_eq!(history["data"][0]["changes"]["status"], json!({"old": "in_progress", "new": "completed"}));
    assert_eq!(history["data"][0]["changes"]["step_data"]["new"]["s"]["bytes"], 67);
    // The asset's own history has the same change from its side.
    let history = client.get(&format!("/assets/{asset}/history")).await.json();
    assert_eq!(history["data"][0]["changes"]["status"], json!({"old": "in_stock", "new": "in_use"}));
}

#[tokio::test]
async fn a_deleted_thing_keeps_its_history_and_nothing_has_none() {
    let (api, client) = Api::with_tenant().await;
    let (id, path) = changed_asset(&client).await;
    client.delete(&format!("/assets/{id}")).await;
    for wait in [0, 3600 * 24] {
        api.wait(wait);
        let history = client.get(&format!("{path}?verify=true")).await.json();
        assert_eq!(versions(&history), [4, 3, 2, 1]);
        assert_eq!(history["data"][0]["type"], "asset.deleted");
        assert_eq!(history["verification"], json!({"valid": true, "checked": 4, "broken": null}));
        let recent = shared::domain::id::AssetId::new(api.now(), [7; 10]);
        for nothing in ["01890a5d-ac96-774b-bcce-b302099a8057".to_owned(), recent.to_string(), "x".into()] {
            client.get(&format!("/assets/{nothing}/history?verify=true")).await.problem(404, "NOT_FOUND");
        }
    }
    client.get(&format!("/processes/instances/{id}/history")).await;
}

/// The index as it was before the thing was made, after each of its changes, and with gaps.
#[tokio::test]
async fn a_lagging_index_hides_nothing() {
    let (api, client) = Api::with_tenant().await;
    let mut frozen = vec![api.history_index(client.tenant).await];
    let id = client.asset(json!({"name": "a"})).await;
    for name in ["b", "c"] {
        client.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
        frozen.push(api.history_index(client.tenant).await);
    }
    let short = shared::domain::id::AssetId::short(id.parse().unwrap());
    let rows = api.history_index(client.tenant).await;
    let lacks = |version: &str| {
        let row = format!("{short}#{version:0>10}");
        rows.iter().filter(|item| item["HS"]["S"] != row.as_str()).cloned().collect::<Vec<_>>()
    };
    frozen.extend([lacks("1"), lacks("2"), lacks("3")]);
    for (deleted, total) in [(false, 3), (true, 4)] {
        if deleted {
            client.delete(&format!("/assets/{id}")).await;
        }
        for (n, index) in frozen.iter().enumerate() {
            api.faults.freeze_history(Some(index.clone()));
            for (query, expected) in [("", vec![3, 2, 1]), ("?limit=1", vec![3]), ("?limit=1&page=3", vec![1])] {
                let history = client.get(&format!("/assets/{id}/history{query}")).await.json();
                assert_eq!(history["meta"]["total"], total, "{n} {query}");
                let expected: Vec<u64> = match (deleted, query) {
                    (false, _) => expected,
                    (true, "") => vec![4, 3, 2, 1],
                    (true, _) => expected.iter().map(|version| version + 1).collect(),
                };
                assert_eq!(versions(&history), expected, "{n} {query}");
            }
            let history = client.get(&format!("/assets/{id}/history?verify=true")).await.json();
            assert_eq!(history["verification"], json!({"valid": true, "checked": total, "broken": null}), "{n}");
        }
        api.faults.freeze_history(None);
    }
}

#[tokio::test]
async fn an_index_that_is_too_far_behind_is_503_and_not_a_broken_chain() {
    let (api, client) = Api::with_tenant().await;
    let index = api.history_index(client.tenant).await;
    let (_, path) = changed_asset(&client).await;
    api.wait(300);
    api.faults.freeze_history(Some(index));
    for query in ["", "?verify=true", "?page=2&limit=1"] {
        client.get(&format!("{path}{query}")).await.problem(503, "UNAVAILABLE");
    }
    api.faults.freeze_history(None);
    assert_eq!(versions(&client.get(&path).await.json()), [3, 2, 1]);
}

#[tokio::test]
async fn one_changed_byte_of_any_entry_is_found() {
    for version in 1..=3 {
        let (api, client) = Api::with_tenant().await;
        let (_, path) = changed_asset(&client).await;
        let history = client.get(&path).await.json();
        let key = event_key(&client, &history, version);
        let entry = text(&api, &key, "entry").await;
        set(&api, &key, "entry", entry.replacen("first key", "First key", 1)).await;
        let found = client.get(&format!("{path}?verify=true")).await.json();
        let event = history["data"][3 - version as usize]["id"].clone();
        let broken = json!({"event_id": event, "version": version, "reason": "wrong_hash"});
        assert_eq!(found["verification"], json!({"valid": false, "checked": version - 1, "broken": broken}));
        // With a hash that fits, the next entry or the record itself gives it away.
        set(&api, &key, "hash", hash(&text(&api, &key, "entry").await)).await;
        let found = client.get(&format!("{path}?verify=true")).await.json();
        let (place, reason) = if version == 3 { (3, "wrong_head") } else { (version + 1, "wrong_previous") };
        assert_eq!(
            (&found["verification"]["broken"]["version"], &found["verification"]["broken"]["reason"]),
            (&json!(place), &json!(reason))
        );
    }
}

#[tokio::test]
async fn a_lost_entry_leaves_a_gap_and_is_found() {
    for version in 1..=3 {
        let (api, client) = Api::with_tenant().await;
        let (_, path) = changed_asset(&client).await;
        let history = client.get(&path).await.json();
        delete(&api, &event_key(&client, &history, version)).await;
        // It might still be on its way into the index.
        client.get(&path).await.problem(503, "UNAVAILABLE");
        api.wait(3_700);
        let found = client.get(&format!("{path}?verify=true")).await.json();
        assert_eq!(versions(&found), (1..=3).rev().filter(|known| *known != version).collect::<Vec<_>>());
        assert_eq!(found["meta"]["total"], 3);
        let broken = json!({"event_id": null, "version": version, "reason": "missing"});
        assert_eq!(found["verification"], json!({"valid": false, "checked": version - 1, "broken": broken}));
    }
}

#[tokio::test]
async fn a_record_that_vanished_without_an_entry_is_found() {
    let (api, client) = Api::with_tenant().await;
    let (id, path) = changed_asset(&client).await;
    let key = Keys::of(client.tenant).record(shared::domain::record::Kind::Asset, id.parse().unwrap()).item();
    delete(&api, &key).await;
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(found["verification"]["broken"], json!({"event_id": null, "version": 4, "reason": "gone"}));
}

#[tokio::test]
async fn an_entry_that_can_not_be_read_is_left_out_and_found() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let history = client.get(&path).await.json();
    set(&api, &event_key(&client, &history, 2), "entry", "{}".into()).await;
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(versions(&found), [3, 1]);
    assert_eq!(found["verification"]["broken"]["reason"], "unreadable");
}

#[tokio::test]
async fn a_page_that_would_be_too_long_leaves_out_changes() {
    let (_api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    for n in 0..60 {
        let notes: String = std::iter::repeat_n(char::from_u32(0x4e00 + n).unwrap(), 10_000).collect();
        let fields = json!({"a": "ä".repeat(15_000 + n as usize)});
        client.patch(&format!("/assets/{id}"), json!({"notes": notes, "custom_fields": fields})).await.data();
    }
    let reply = client.get(&format!("/assets/{id}/history?limit=100")).await;
    assert!(reply.bytes.len() < 5 * 1024 * 1024, "{} bytes", reply.bytes.len());
    let data = reply.data();
    assert_eq!(data.as_array().unwrap().len(), 61);
    assert!(data[0]["changes"].is_object() && data[60]["changes"].is_null());
}

#[tokio::test]
async fn a_stranger_makes_nobody_check_a_chain() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let narrow = client.scoped(&["users:read"]).await;
    api.faults.take_seen();
    narrow.get(&format!("{path}?verify=true")).await.problem(403, "FORBIDDEN");
    let batches = api.faults.take_seen().into_iter().filter(|(operation, _)| operation == "BatchGetItem").count();
    assert!(batches <= 1, "{batches} batches for nobody");
}

/// What the operator's check sees while others create, change and delete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_tenant_can_be_checked_while_others_write() {
    let (api, client) = Api::with_tenant().await;
    let writers = [0, -1_500, 1_500].map(|skew| {
        let client = api.instance(skew, 0).client(&client);
        tokio::spawn(async move {
            for n in 0..12 {
                let (id, _) = changed_asset(&client).await;
                if n % 3 == 0 {
                    client.delete(&format!("/assets/{id}")).await;
                }
            }
        })
    });
    let store = api.store.tenant(client.tenant);
    let mut checks = 0;
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let found = store.verify_chains(|done, of| assert!(done <= of)).await.unwrap();
        assert_eq!(found.broken_links, [], "after {checks} checks");
        checks += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let found = store.verify_chains(|_, _| {}).await.unwrap();
    assert_eq!((found.broken_links, found.records, found.events), (vec![], 9 + 36, 9 + 36 * 3 + 12));
    assert!(checks > 1, "nothing was checked meanwhile");
}

#[tokio::test]
async fn histories_of_one_kind_are_not_told_under_another() {
    let (_api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let gone = client.user("Grace").await;
    client.delete(&format!("/users/{gone}")).await.data();
    let key = client.get("/keys").await.data()[0]["id"].as_str().unwrap().to_owned();
    let asset = client.asset(json!({"name": "a"})).await;
    let process = client.get("/processes").await.data()[0]["id"].as_str().unwrap().to_owned();
    let tenant = client.tenant.to_string();
    for id in [&user, &gone, &key, &process, &tenant] {
        for of in ["assets", "processes/instances"] {
            for query in ["", "?verify=true", "?page=2&limit=1"] {
                client.get(&format!("/{of}/{id}/history{query}")).await.problem(404, "NOT_FOUND");
            }
        }
    }
    client.get(&format!("/processes/instances/{asset}/history")).await.problem(404, "NOT_FOUND");
    client.delete(&format!("/assets/{asset}")).await;
    client.get(&format!("/processes/instances/{asset}/history")).await.problem(404, "NOT_FOUND");
    assert_eq!(client.get(&format!("/assets/{asset}/history")).await.json()["meta"]["total"], 2);
}

/// Puts an entry behind the last one of a history, with every hash right, and leaves the record alone.
pub async fn append(api: &Api, client: &Client, history: &Value, kind: &str) {
    let last = &history["data"][0];
    let id = shared::domain::id::EventId::new(api.now(), [9; 10]);
    let entry = json!({
        "id": id, "at": last["at"], "type": kind, "entity_id": last["entity_id"],
        "version": last["version"].as_u64().unwrap() + 1, "actor": last["actor"], "changes": {}, "previous_hash": last["hash"]
    });
    let text = serde_json_canonicalizer::to_string(&entry).unwrap();
    let mut item = Keys::of(client.tenant).event(id).item();
    let entity: uuid::Uuid = last["entity_id"].as_str().unwrap().parse().unwrap();
    item.insert("HS".into(), Keys::history(entity, entry["version"].as_u64().unwrap()));
    item.insert("type".into(), AttributeValue::S("event".into()));
    item.insert("hash".into(), AttributeValue::S(hash(&text)));
    item.insert("entry".into(), AttributeValue::S(text));
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
}

#[tokio::test]
async fn an_entry_behind_the_last_is_found() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let history = client.get(&path).await.json();
    append(&api, &client, &history, "asset.approved").await;
    let checked = client.get(&format!("{path}?verify=true")).await.json();
    let verification = &checked["verification"];
    assert_eq!((&verification["valid"], &verification["broken"]["reason"]), (&json!(false), &json!("wrong_head")), "{checked}");
    let inspection = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert!(!inspection.broken_links.is_empty(), "the operator's check finds it, too");
}
