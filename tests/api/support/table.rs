//! The table behind the service: dumps, snapshots of a tenant, event chains, and changes that bypass the service.

use super::{Api, Client};
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, PutRequest, WriteRequest};
use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::domain::history::event::hash;
use shared::domain::record::Kind;
use shared::domain::values::id::{AssetId, EventId, Id, TenantId};
use shared::domain::values::time::Timestamp;
use shared::store::keys::{HISTORY, Item, Key, Keys, LIST_INDEX};
use std::collections::HashMap;

/// DynamoDB's limit for `BatchWriteItem`.
const MAX_BATCH_ITEMS: usize = 25;

/// All items of a table except request counters, as sorted texts.
#[derive(PartialEq, Eq)]
pub struct Dump(pub Vec<String>);

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} items, {} bytes", self.0.len(), self.0.iter().map(String::len).sum::<usize>())
    }
}

impl Dump {
    pub fn without(self, text: &str) -> Vec<String> {
        self.0.into_iter().filter(|item| !item.contains(text)).collect()
    }
}

impl Api {
    /// Leaves out request counters, which even refused requests change.
    pub async fn dump(&self) -> Dump {
        let items = all_items(self).await.into_iter().filter(|item| !is_request_counter(item));
        let rendered = |item| {
            let mut text = String::new();
            render(&AttributeValue::M(item), &mut text);
            text
        };
        let mut items: Vec<String> = items.map(rendered).collect();
        items.sort();
        Dump(items)
    }

    /// Returns the tenant's rows in the index `list_index`, grouped by the first letter of their sort keys; input for
    /// `freeze_list_index`.
    pub async fn list_index_rows(&self, tenant: TenantId) -> HashMap<char, Value> {
        let mut rows = HashMap::new();
        for letter in ['A', 'U', 'I', 'J', 'M'] {
            let query = self.dynamo.query().table_name(&self.table).index_name(LIST_INDEX);
            let found = query
                .key_condition_expression("PK = :pk AND begins_with(LS, :letter)")
                .expression_attribute_values(":pk", Keys::of(tenant).partition())
                .expression_attribute_values(":letter", AttributeValue::S(letter.to_string()))
                .into_paginator()
                .items()
                .send();
            let found: Vec<Item> = found.try_collect().await.unwrap();
            rows.insert(letter, found.iter().map(wire_json).collect());
        }
        rows
    }

    /// Returns the tenant's rows in the index `history`; input for `freeze_history`.
    pub async fn history_rows(&self, tenant: TenantId) -> Vec<Value> {
        let query = self.dynamo.query().table_name(&self.table).index_name(HISTORY).key_condition_expression("PK = :pk");
        let query = query.expression_attribute_values(":pk", Keys::of(tenant).partition());
        let found: Vec<Item> = query.into_paginator().items().send().try_collect().await.unwrap();
        found.iter().map(wire_json).collect()
    }
}

/// Scans the whole table, which only tests may do.
pub async fn all_items(api: &Api) -> Vec<Item> {
    api.dynamo.scan().table_name(&api.table).into_paginator().items().send().try_collect().await.unwrap()
}

fn is_request_counter(item: &Item) -> bool {
    item.get("type").and_then(|kind| kind.as_s().ok()).is_some_and(|kind| kind == "rate")
}

/// Appends a text that is the same for equal values. Leaves out `last_used_at`, which even a refused request can write. Avoids
/// `format!`, which is slow in a debug build.
fn render(value: &AttributeValue, text: &mut String) {
    match value {
        AttributeValue::S(value) => {
            text.push_str("S(\"");
            text.push_str(value);
            text.push_str("\")");
        }
        AttributeValue::M(members) => {
            let mut members: Vec<_> = members.iter().filter(|(name, _)| *name != "last_used_at").collect();
            members.sort_unstable_by(|a, b| a.0.cmp(b.0));
            for (name, value) in members {
                text.push_str(name);
                text.push_str(": ");
                render(value, text);
                text.push_str(", ");
            }
        }
        AttributeValue::L(values) => values.iter().for_each(|value| render(value, text)),
        other => text.push_str(&format!("{other:?}")),
    }
    text.push(';');
}

/// Converts an item to JSON as in DynamoDB's API and stream.
pub fn wire_json(item: &Item) -> Value {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        AttributeValue::B(bytes) => json!({"B": STANDARD.encode_to_string(bytes.as_ref())}),
        AttributeValue::M(values) => json!({"M": wire_json(values)}),
        other => panic!("the item has {other:?}"),
    };
    item.iter().map(|(name, attribute)| (name.clone(), value(attribute))).collect()
}

/// All items of a tenant at some time. Creating sample resources takes a hundred requests; restoring a snapshot takes two.
pub struct Snapshot {
    tenant: TenantId,
    items: HashMap<Key, Item>,
}

impl Snapshot {
    pub async fn of(api: &Api, tenant: TenantId) -> Self {
        let mut items = HashMap::new();
        for partition in api.store.reader(tenant).partitions().await.unwrap() {
            let query = api.dynamo.query().table_name(&api.table).consistent_read(true).key_condition_expression("PK = :pk");
            let pages = query.expression_attribute_values(":pk", partition).into_paginator();
            let found: Vec<Item> = pages.items().send().try_collect().await.unwrap();
            items.extend(found.into_iter().map(|item| (Key::of(&item).unwrap(), item)));
        }
        Self { tenant, items }
    }

    pub fn events(&self) -> usize {
        self.items.keys().filter(|key| key.sort().starts_with("EVENT#")).count()
    }

    /// Restores this snapshot. `now` has the tenant's current items.
    pub async fn restore(&self, api: &Api, now: &Self) {
        assert_eq!(self.tenant, now.tenant);
        let added = now.items.keys().filter(|key| !self.items.contains_key(key));
        let deletions = added.map(|key| {
            let deletion = DeleteRequest::builder().set_key(Some(key.item())).build().unwrap();
            WriteRequest::builder().delete_request(deletion).build()
        });
        let lost = self.items.iter().filter(|(key, item)| now.items.get(key) != Some(item));
        let puts = lost.map(|(_, item)| put(item.clone()));
        write_all(api, deletions.chain(puts).collect()).await;
        api.store.forget_list_indexes();
    }
}

fn put(item: Item) -> WriteRequest {
    WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build().unwrap()).build()
}

async fn write_all(api: &Api, writes: Vec<WriteRequest>) {
    for batch in writes.chunks(MAX_BATCH_ITEMS) {
        let written = api.dynamo.batch_write_item().request_items(&api.table, batch.to_vec()).send().await.unwrap();
        assert!(written.unprocessed_items().is_none_or(HashMap::is_empty), "the engine left items out");
    }
}

/// Writes items directly, which is much faster than with requests.
pub async fn put_all(api: &Api, items: impl IntoIterator<Item = Item>) {
    write_all(api, items.into_iter().map(put).collect()).await;
}

pub async fn item(api: &Api, key: &Item) -> Option<Item> {
    let get = api.dynamo.get_item().table_name(&api.table).set_key(Some(key.clone())).consistent_read(true);
    get.send().await.unwrap().item
}

/// Writes an event to the table. A member `id` is replaced by a current ID.
pub async fn put_event(api: &Api, client: &Client, mut entry: Value) {
    let id = EventId::new(api.now(), [7; 10]);
    if entry.get("id").is_some() {
        entry["id"] = json!(id);
    }
    let mut item = Keys::of(client.tenant).event(id).item();
    item.insert("entry".into(), AttributeValue::S(entry.to_string()));
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
}

/// Writes copies of a record with different IDs and without histories, as if they had been created before the record. `change`
/// gets the number of each copy, from 1.
pub async fn copy_record(
    api: &Api,
    client: &Client,
    (kind, id, is_ended): (Kind, &str, bool),
    count: u64,
    change: impl Fn(u64, &mut Item),
) {
    let keys = Keys::of(client.tenant);
    let original = item(api, &keys.record(kind, id.parse().unwrap()).item()).await.unwrap();
    let copies = (1..=count).map(|n| {
        let id = AssetId::new(Timestamp::from_millis(api.now().millis() - n as i64), [n as u8; 10]).uuid();
        let mut copy = original.clone();
        copy.extend(keys.record(kind, id).item());
        copy.insert("id".into(), AttributeValue::S(id.to_string()));
        copy.insert("LS".into(), Keys::list_index(kind, id, is_ended).unwrap());
        change(n, &mut copy);
        copy
    });
    put_all(api, copies).await;
}

/// Computes an entry's hash from the response alone.
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

/// Returns the commitments in an event's item, as responses show them.
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

/// Returns a record's events, oldest first. Checks that they form a chain that ends with the record's hash.
pub async fn event_chain(api: &Api, client: &Client, id: &str) -> Vec<Value> {
    let partition = Keys::of(client.tenant).partition();
    let query = api.dynamo.query().table_name(&api.table).key_condition_expression("PK = :pk");
    let pages = query.expression_attribute_values(":pk", partition).into_paginator();
    let items: Vec<Item> = pages.items().send().try_collect().await.unwrap();
    let mut entries: Vec<(Value, String, String)> = Vec::new();
    let mut last_hash = None;
    for item in &items {
        let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
        match text("type").as_deref() {
            Some("event") => {
                let entry = text("entry").unwrap();
                // Parsing is slow in a debug build, and most events belong to other resources.
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
    entries.sort_by_key(|(event, ..)| event["version"].as_u64());
    let mut previous = Value::Null;
    for (place, (event, computed, stored)) in entries.iter().enumerate() {
        assert_eq!(event["version"], place + 1, "a version is missing or occurs twice");
        assert_eq!(event["previous_hash"], previous, "the chain is broken");
        assert_eq!(computed, stored);
        previous = json!(stored);
    }
    if let Some(last) = last_hash {
        assert_eq!(previous, json!(last), "the record lacks the hash of its latest event");
    }
    entries.into_iter().map(|(event, ..)| event).collect()
}

/// Creates an asset and changes it twice. Returns its ID and the path of its history.
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
    item(api, key).await.unwrap()[name].as_s().unwrap().clone()
}

pub async fn delete_item(api: &Api, key: &Item) {
    api.dynamo.delete_item().table_name(&api.table).set_key(Some(key.clone())).send().await.unwrap();
}

/// Appends an event with correct hashes to a history, without changing the record.
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
