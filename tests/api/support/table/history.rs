//! Events in the table: reading their chains, and changing them behind the service's back.

use crate::support::{Api, Client};
use aws_sdk_dynamodb::types::AttributeValue;
use base64_simd::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::domain::history::event::hash;
use shared::domain::values::id::{EventId, Id};
use shared::store::keys::{Item, Keys};

/// The hash of an entry as a reader computes it who has nothing but the response.
pub fn readers_hash(entry: &Value) -> String {
    let mut entry = entry.clone();
    entry.as_object_mut().unwrap().remove("hash");
    let commitments = entry.as_object_mut().unwrap().remove("commitments").unwrap_or_default();
    for (pointer, commitment) in commitments.as_object().into_iter().flatten() {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = entry.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        let value = parent.remove(name).unwrap();
        let digest = commitment["digest"].as_str().map_or_else(
            || {
                let disclosure = serde_json_canonicalizer::to_vec(&json!([commitment["salt"], name, value])).unwrap();
                URL_SAFE_NO_PAD.encode_to_string(Sha256::digest(URL_SAFE_NO_PAD.encode_to_string(disclosure)))
            },
            str::to_owned,
        );
        let digests = parent.entry("_sd").or_insert(json!([])).as_array_mut().unwrap();
        digests.push(json!(digest));
        digests.sort_by_key(Value::to_string);
    }
    hash(&serde_json_canonicalizer::to_string(&entry).unwrap())
}

/// The commitments of an event's item, as responses show them.
fn commitments(item: &Item) -> Value {
    let stored = item.get("commitments").map(|commitments| commitments.as_m().unwrap());
    let shown = stored.into_iter().flatten().map(|(pointer, bytes)| {
        let bytes = bytes.as_b().unwrap().as_ref();
        let name = if bytes.len() == 16 { "salt" } else { "digest" };
        let pointer = if pointer.starts_with('/') { pointer.clone() } else { format!("/changes/{pointer}") };
        (pointer, json!({name: URL_SAFE_NO_PAD.encode_to_string(bytes)}))
    });
    Value::Object(shown.collect())
}

/// Oldest first, after checking that they form a chain which ends with the hash that the record holds.
pub async fn event_chain(api: &Api, client: &Client, id: &str) -> Vec<Value> {
    let partition = Keys::of(client.tenant).partition();
    let query = api.dynamo.query().table_name(&api.table).key_condition_expression("PK = :pk");
    let mut pages = query.expression_attribute_values(":pk", partition).into_paginator().send();
    let mut entries: Vec<(Value, String, String)> = Vec::new();
    let mut last_hash = None;
    while let Some(page) = pages.next().await {
        for item in page.unwrap().items() {
            let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
            match text("type").as_deref() {
                Some("event") => {
                    let entry = text("entry").unwrap();
                    // Parsing is slow in a debug build, and most events are of other resources.
                    let event: Value = if entry.contains(id) { serde_json::from_str(&entry).unwrap() } else { Value::Null };
                    if event["entity_id"] == id {
                        let mut shown = event.clone();
                        shown["commitments"] = commitments(item);
                        entries.push((event, readers_hash(&shown), text("hash").unwrap()));
                    }
                }
                _ if text("id").as_deref() == Some(id) => last_hash = text("last_hash"),
                _ => {}
            }
        }
    }
    entries.sort_by_key(|(event, ..)| event["version"].as_u64());
    let mut previous = Value::Null;
    for (place, (event, computed, stored)) in entries.iter().enumerate() {
        assert_eq!(event["version"], place + 1, "a version is missing or occurs twice");
        assert_eq!(event["previous_hash"], previous, "the chain is broken");
        assert_eq!(computed, stored);
        previous = json!(stored);
    }
    if let Some(last) = last_hash {
        assert_eq!(previous, json!(last), "the record does not hold the hash of its latest event");
    }
    entries.into_iter().map(|(event, ..)| event).collect()
}

/// Changed twice. Returns the asset's id and the path of its history.
pub async fn changed_asset(client: &Client) -> (String, String) {
    let id = client.asset(json!({"name": "a"})).await;
    for name in ["b", "c"] {
        client.patch(&format!("/assets/{id}"), json!({"name": name})).await.data();
    }
    (id.clone(), format!("/assets/{id}/history"))
}

pub fn versions(history: &Value) -> Vec<u64> {
    history["data"].as_array().unwrap().iter().map(|event| event["version"].as_u64().unwrap()).collect()
}

pub fn event_key(client: &Client, history: &Value, version: u64) -> Item {
    let event = history["data"].as_array().unwrap().iter().find(|event| event["version"] == version).unwrap();
    Keys::of(client.tenant).event(event["id"].as_str().unwrap().parse().unwrap()).item()
}

pub async fn set_attribute(api: &Api, key: &Item, name: &str, value: AttributeValue) {
    let update = api.dynamo.update_item().table_name(&api.table).set_key(Some(key.clone())).update_expression("SET #n = :v");
    update.expression_attribute_names("#n", name).expression_attribute_values(":v", value).send().await.unwrap();
}

pub async fn set_text(api: &Api, key: &Item, name: &str, value: String) {
    set_attribute(api, key, name, AttributeValue::S(value)).await;
}

pub async fn text_attribute(api: &Api, key: &Item, name: &str) -> String {
    let found = api.dynamo.get_item().table_name(&api.table).set_key(Some(key.clone())).send().await.unwrap();
    found.item.unwrap()[name].as_s().unwrap().clone()
}

pub async fn delete_item(api: &Api, key: &Item) {
    api.dynamo.delete_item().table_name(&api.table).set_key(Some(key.clone())).send().await.unwrap();
}

/// Appends an event to a history with every hash right, and leaves the record alone.
pub async fn append_event(api: &Api, client: &Client, history: &Value, event_type: &str) {
    let last = &history["data"][0];
    let id = EventId::new(api.now(), [9; 10]);
    let entry = json!({
        "id": id, "at": last["at"], "type": event_type, "entity_id": last["entity_id"],
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
