//! Unreadable records: errors name them, other records stay available, and the operator can restore or remove them.

use crate::support::prelude::*;
use shared::store::keys::{PK, SK};

/// Kinds that have lists, each with its collection.
const LISTED: [(Kind, &str); 9] = [
    (Kind::Asset, "/assets"),
    (Kind::User, "/users"),
    (Kind::AssetType, "/catalog/asset-types"),
    (Kind::Manufacturer, "/catalog/manufacturers"),
    (Kind::Model, "/catalog/models"),
    (Kind::Process, "/processes"),
    (Kind::Instance, "/processes/instances"),
    (Kind::Movement, "/movements"),
    (Kind::ApiKey, "/keys"),
];
/// Attributes that aren't needed for reading a record.
const OTHERS: [&str; 5] = [PK, SK, "LS", "HS", "type"];

async fn put(api: &Api, item: &Item) {
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item.clone())).send().await.unwrap();
}

/// Returns the ID of the collection's sample, and the key of its item.
fn sample_item(client: &Client, samples: &Samples, kind: Kind, collection: &str) -> (Uuid, Item) {
    let path = samples.path(&format!("/v1{collection}/{{id}}"));
    let id: Uuid = path.rsplit('/').next().unwrap().parse().unwrap();
    (id, Keys::of(client.tenant).record(kind, id).item())
}

/// Returns damaged attributes of the item: wrong types, an unknown ID, a wrong hash of steps, and an invalid time.
fn damages(item: &Item) -> Vec<(String, AttributeValue)> {
    let wrong = |value: &AttributeValue| match value {
        AttributeValue::S(_) => AttributeValue::N("1".into()),
        _ => AttributeValue::S("?".into()),
    };
    let own = item.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
    let mut damages: Vec<_> = own.map(|(name, value)| (name.clone(), wrong(value))).collect();
    damages.push(("id".into(), AttributeValue::S(UNKNOWN_ID.into())));
    damages.push(("steps_hash".into(), AttributeValue::S("0".repeat(64))));
    damages.push(("created_at".into(), AttributeValue::S("soon".into())));
    damages.sort_by(|a, b| a.0.cmp(&b.0));
    damages
}

async fn check_list(client: &Client, collection: &str, id: Uuid, others: usize, what: &str) {
    let reply = client.get(&format!("{collection}?limit=100")).await;
    assert_eq!(reply.status.as_u16(), 200, "{collection} {what}: {}", reply.text());
    let body = reply.json();
    assert_eq!(body["meta"]["unreadable"], json!([id]), "{collection} {what}");
    let ids: Vec<&str> = body["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(!ids.contains(&id.to_string().as_str()) && ids.len() == others, "{collection} {what}: {ids:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_names_a_damaged_record_and_shows_the_others() {
    let (api, client, samples) = Api::with_samples().await;
    api.advance_clock(11);
    let table = api.replica(0, 0).client(&client);
    log::begin();
    // Assets are always included, because the log line below names them.
    for (kind, collection) in std::iter::once(LISTED[0]).chain(sample(LISTED[1..].to_vec(), 1)) {
        let (id, key) = sample_item(&client, &samples, kind, collection);
        let sound = item(&api, &key).await.unwrap();
        let others = client.get(&format!("{collection}?limit=100")).await.data().as_array().unwrap().len() - 1;
        for (name, value) in sample(damages(&sound), 5) {
            if name == "steps_hash" && !sound.contains_key("steps_hash") {
                continue;
            }
            let what = format!("with a different {name}");
            set_attribute(&api, &key, &name, value).await;
            for client in [&client, &table] {
                check_list(client, collection, id, others, &what).await;
            }
            let reply = client.get(&format!("{collection}/{id}")).await;
            let problem = reply.problem(500, "INTERNAL_ERROR");
            assert_eq!(problem["unreadable"], json!(id), "{collection} {what}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(&id.to_string()) && detail.contains("damaged"), "{detail}");
            put(&api, &sound).await;
        }
        // An unreadable version prevents loading the list index.
        set_attribute(&api, &key, "version", AttributeValue::S("one".into())).await;
        check_list(&api.replica(0, usize::MAX).client(&client), collection, id, others, "loaded again").await;
        for (_, other) in LISTED.iter().filter(|(other, _)| *other != kind) {
            let reply = client.get(other).await;
            let may_show = kind == Kind::Instance && *other == "/movements";
            assert!(reply.status == 200 && (may_show || reply.json()["meta"].get("unreadable").is_none()), "{other}");
        }
        put(&api, &sound).await;
    }
    let line: Value = log::text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|line: &Value| line["metric"].is_string())
        .unwrap();
    assert_eq!((&line["metric"], &line["level"]), (&json!("unreadable_records"), &json!("ERROR")));
    assert_eq!((&line["kind"], &line["tenant_id"]), (&json!("asset"), &json!(client.tenant)));
}

#[tokio::test(start_paused = true)]
async fn assets_of_a_damaged_type_are_shown_without_its_name() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let id = client.asset(json!({"name": "x", "asset_type_id": laptop})).await;
    let key = Keys::of(client.tenant).record(Kind::AssetType, laptop.parse().unwrap()).item();
    set_attribute(&api, &key, "created_at", AttributeValue::S("soon".into())).await;
    let table = api.replica(0, 0).client(&client);
    assert_eq!(client.get(&format!("/assets/{id}")).await.data()["asset_type_name"], Value::Null);
    assert_eq!(table.get("/assets?kind=physical").await.data()[0]["asset_type_id"], laptop);
    client.patch(&format!("/assets/{id}"), json!({"name": "y"})).await.data();
    let refused = client.patch(&format!("/assets/{id}"), json!({"custom_fields": {"a": 1}})).await;
    assert_eq!(refused.problem(500, "INTERNAL_ERROR")["unreadable"], laptop);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_key_or_owner_is_a_401() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let made = client.post("/keys", json!({"name": "k", "scopes": ["assets:read"], "user_id": user})).await.data();
    let bound = client.with_key_of(&made);
    bound.get("/assets").await.data();
    for (kind, id) in [(Kind::User, user.as_str()), (Kind::ApiKey, made["id"].as_str().unwrap())] {
        let key = Keys::of(client.tenant).record(kind, id.parse().unwrap()).item();
        set_attribute(&api, &key, "created_at", AttributeValue::S("soon".into())).await;
        bound.get("/assets").await.problem(401, "UNAUTHORIZED");
    }
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_a_finding_until_it_is_taken_from_a_backup() {
    let (api, client, samples) = Api::with_samples().await;
    let store = api.store.writer(client.tenant);
    client.get(&samples.path("/v1/processes/instances/{id}/receipt")).await;
    let tenant_key = Keys::of(client.tenant).record(Kind::Tenant, Uuid::nil()).item();
    let mut all: Vec<(Kind, Uuid, Item)> = LISTED
        .iter()
        .map(|(kind, collection)| {
            let (id, key) = sample_item(&client, &samples, *kind, collection);
            (*kind, id, key)
        })
        .collect();
    all.push((Kind::Tenant, Id::uuid(client.tenant), tenant_key));
    all.push(receipt_keys(&api, &client).await);
    for (kind, id, key) in sample(all, 3) {
        let sound = item(&api, &key).await.unwrap();
        let refused = if kind == Kind::Tenant { Removal::Tenant } else { Removal::Readable };
        assert_eq!(store.remove_unreadable(kind, id).await.unwrap(), refused);
        set_attribute(&api, &key, "created_at", AttributeValue::S("soon".into())).await;
        api.advance_clock(11);
        let damaged = all_items(&api).await;
        for mode in [CheckMode::ReadOnly, CheckMode::Repair] {
            let report = store.check_items(mode, |_| ()).await.unwrap();
            let first = &report.findings[0];
            assert_eq!(first.subject, format!("{} {id}", kind.as_str()), "{report:#?}");
            assert!(
                first.problem.starts_with("it can't be read: ") && !report.findings.iter().any(|it| it.is_repaired),
                "{report:#?}"
            );
            let advice = first.repair.as_ref().unwrap_err();
            assert!(advice.starts_with(&format!("take the item {} from a backup", Key::of(&key).unwrap())), "{advice}");
            assert_eq!(advice.contains("`admin record remove`"), kind != Kind::Tenant, "{advice}");
        }
        assert_eq!(all_items(&api).await, damaged, "{kind:?}");
        assert!(store.verify_chains(|_, _| ()).await.unwrap().broken_links.is_empty(), "the history is intact");
        put(&api, &sound).await;
        assert_eq!(store.check_items(CheckMode::ReadOnly, |_| ()).await.unwrap().findings, [], "{kind:?}");
    }
}

/// Returns the tenant's receipt keys: kind, ID and key of the item.
async fn receipt_keys(api: &Api, client: &Client) -> (Kind, Uuid, Item) {
    let key = Keys::of(client.tenant).record(Kind::ReceiptKeys, Uuid::nil()).item();
    let id = item(api, &key).await.unwrap()["id"].as_s().unwrap().parse().unwrap();
    (Kind::ReceiptKeys, id, key)
}

#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_read_is_removed_with_all_that_belongs_to_it() {
    let (api, client, samples) = Api::with_samples().await;
    let store = api.store.writer(client.tenant);
    client.get(&samples.path("/v1/processes/instances/{id}/receipt")).await;
    let (id, key) = sample_item(&client, &samples, Kind::ApiKey, "/keys");
    for (kind, id, key) in [(Kind::ApiKey, id, key), receipt_keys(&api, &client).await] {
        set_attribute(&api, &key, "created_at", AttributeValue::S("soon".into())).await;
        assert_eq!(store.remove_unreadable(kind, id).await.unwrap(), Removal::Removed);
        assert_eq!(store.remove_unreadable(kind, id).await.unwrap(), Removal::Missing);
        api.advance_clock(11);
        let repaired = store.check_items(CheckMode::Repair, |_| ()).await.unwrap();
        assert!(repaired.findings.iter().all(|finding| finding.is_repaired), "{repaired:#?}");
        assert_eq!(store.check_items(CheckMode::ReadOnly, |_| ()).await.unwrap().findings, [], "{kind:?}");
        assert!(store.verify_chains(|_, _| ()).await.unwrap().broken_links.is_empty(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_removed_record_ends_with_the_operators_entry() {
    for (kind, collection) in sample(LISTED, 2) {
        let (api, client, samples) = Api::with_samples().await;
        let store = api.store.writer(client.tenant);
        let (id, key) = sample_item(&client, &samples, kind, collection);
        set_attribute(&api, &key, "version", AttributeValue::S("one".into())).await;
        let links = store.verify_chains(|_, _| ()).await.unwrap().broken_links;
        assert_eq!(links.iter().map(|(_, id, _)| *id).collect::<Vec<_>>(), [id], "{kind:?}");
        assert_eq!(store.remove_unreadable(kind, id).await.unwrap(), Removal::Removed);
        client.get(&format!("{collection}/{id}")).await.problem(404, "NOT_FOUND");
        assert!(client.get(collection).await.json()["meta"].get("unreadable").is_none(), "{collection}");
        assert!(store.verify_chains(|_, _| ()).await.unwrap().broken_links.is_empty(), "{kind:?}");
        let last = client.get("/events?limit=100").await;
        assert_eq!(last.status.as_u16(), 200);
        let head = Keys::of(client.tenant).tombstone(kind, id);
        let head = item(&api, &head.item()).await.expect("a tombstone");
        let event = <EventId as shared::domain::values::id::Id>::from_short(head["last_event"].as_s().unwrap()).unwrap();
        let event = item(&api, &Keys::of(client.tenant).event(event).item()).await.unwrap();
        let entry: Value = serde_json::from_str(event["entry"].as_s().unwrap()).unwrap();
        let deleted = format!("{}.deleted", kind.as_str());
        assert_eq!((&entry["type"], &entry["actor"]["key_name"]), (&json!(deleted), &json!("operator")));
        assert!(entry["changes"].as_object().unwrap().values().all(|change| change["new"].is_null()), "{entry}");
    }
}

/// A list with a recent write doesn't wait for a record whose steps were lost long ago.
#[tokio::test(start_paused = true)]
async fn lost_steps_are_not_waited_for_because_of_another_record() {
    let (api, client) = Api::with_tenant().await;
    let definition = |name: &str| {
        let steps = json!([{"type": "text", "key": "a", "label": name}]);
        json!({"name": name, "trigger_status": "in_stock", "target_status": "in_use", "steps": steps})
    };
    let damaged = client.post("/processes", definition("damaged")).await.id();
    let key = Keys::of(client.tenant).record(Kind::Process, damaged.parse().unwrap()).item();
    set_attribute(&api, &key, "steps_hash", AttributeValue::S("0".repeat(64))).await;
    api.advance_clock(11);
    let fresh = client.post("/processes", definition("fresh")).await.id();
    let list = api.replica(0, 0).client(&client).get("/processes").await;
    assert_eq!(list.status, 200, "{}", list.text());
    let list = list.json();
    assert!(list["data"].as_array().unwrap().iter().any(|process| process["id"] == json!(fresh)));
    assert_eq!(list["meta"]["unreadable"], json!([damaged]));
}
