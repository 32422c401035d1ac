//! The limits of a repair: it leaves items of unknown records and changes in progress alone, and goes on with the rest.

use super::transaction::{Items, items};
use crate::support::{Api, Client};
use serde_json::{Value, json};
use shared::domain::record::Kind;
use shared::domain::values::id::Id;
use shared::store::keys::{Item, Key, Keys};
use shared::store::{CheckMode, CheckReport};
use std::time::Duration;

async fn repair(api: &Api, client: &Client) -> CheckReport {
    api.advance_clock(11);
    api.store.tenant(client.tenant).check_items(CheckMode::Repair, |_| ()).await.unwrap()
}

fn entry(item: &Item) -> Value {
    item.get("entry").map(|entry| serde_json::from_str(entry.as_s().unwrap()).unwrap()).unwrap_or_default()
}

/// Removes the items for which `is_removed` is true, by sort key and item.
async fn remove(api: &Api, is_removed: impl Fn(&str, &Item) -> bool) {
    let removed: Vec<Item> =
        items(api).await.into_iter().filter(|((_, sort), item)| is_removed(sort, item)).map(|(_, item)| item).collect();
    assert!(!removed.is_empty());
    for item in removed {
        let key = Key::of(&item).unwrap().item();
        api.dynamo.delete_item().table_name(&api.table).set_key(Some(key)).send().await.unwrap();
    }
}

/// The items whose sort key begins with one of these.
async fn items_with(api: &Api, prefixes: &[&str]) -> Items {
    let items = items(api).await.into_iter();
    items.filter(|((_, sort), _)| prefixes.iter().any(|prefix| sort.starts_with(prefix))).collect()
}

fn problems(report: &CheckReport) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.problem.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_a_lost_record_stays_if_the_record_cannot_be_restored() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    for name in ["Ada B", "Ada C"] {
        client.patch(&format!("/users/{user}"), json!({"display_name": name})).await.data();
    }
    client.assigned_asset("a", &user).await;
    api.advance_clock(3600);
    remove(&api, |_, item| entry(item)["entity_id"] == json!(user) && entry(item)["version"] == 2).await;
    remove(&api, |sort, item| sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&user)).await;
    let kept = ["UNIQ#", "REFERENCES#", "ASSET#", "EVENT#"];
    let before = items_with(&api, &kept).await;
    for _ in 0..2 {
        let report = repair(&api, &client).await;
        assert!(problems(&report)[0].starts_with("its history is broken at version"), "{report:#?}");
        assert_eq!(problems(&report).last(), Some(&"it was not compared"));
        assert_eq!(items_with(&api, &kept).await, before, "{report:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_stays_if_the_history_of_its_record_is_broken_further_back() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let process = json!({
        "name": "P", "trigger_status": "in_stock", "target_status": "in_use",
        "steps": [{"type": "text", "key": "a", "label": "A"}, {"type": "text", "key": "b", "label": "B"}, {"type": "text", "key": "c", "label": "C"}]
    });
    let process = client.post("/processes", process).await.id();
    let instance = client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await.id();
    let path = format!("/processes/instances/{instance}/advance");
    client.post(&path, json!({"step_data": {"a": "1"}})).await.data();
    let body = json!({"step_data": {"b": "2"}}).to_string();
    let first = client.send_json("POST", &path, &body, ("idempotency-key", "once")).await;
    assert!(first.status.is_success(), "{}", first.text());
    remove(&api, |_, item| entry(item)["entity_id"] == json!(instance) && entry(item)["version"] == 2).await;
    let report = repair(&api, &client).await;
    assert!(problems(&report)[0].starts_with("its history is broken at version"), "{report:#?}");
    let again = client.send_json("POST", &path, &body, ("idempotency-key", "once")).await;
    assert_eq!((again.header("idempotent-replayed"), again.json()), ("true", first.json()));
}

#[tokio::test(start_paused = true)]
async fn a_repair_begins_when_no_event_is_recent() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    remove(&api, |sort, _| sort.starts_with("UNIQ#user.email#")).await;
    let tenant = api.store.tenant(client.tenant);
    let early = tokio::time::timeout(Duration::from_secs(1), tenant.check_items(CheckMode::Repair, |_| ())).await;
    assert!(early.is_err(), "a repair has begun while {user} may still be written: {early:?}");
    assert!(items_with(&api, &["UNIQ#user.email#"]).await.is_empty());
    let report = repair(&api, &client).await;
    assert!(report.findings.len() == 1 && report.findings[0].is_repaired, "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_creation_of_the_last_moment_is_completed_even_without_its_marker() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let complete = items(&api).await;
    remove(&api, |sort, item| {
        let is_record = sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&user);
        is_record || sort.starts_with("UNIQ#user.email#ada") || sort.starts_with("REFERENCES#user#")
    })
    .await;
    let report = repair(&api, &client).await;
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{report:#?}");
    assert_eq!(items(&api).await, complete, "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_newer_release_wrote_stays() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    // As if users were a kind that this release doesn't know.
    for (_, mut item) in items(&api).await {
        if entry(&item)["entity_id"] == json!(user) {
            let text = item["entry"].as_s().unwrap().replace("\"user.created\"", "\"gadget.created\"");
            item.insert("hash".into(), aws_sdk_dynamodb::types::AttributeValue::S(shared::domain::history::event::hash(&text)));
            item.insert("entry".into(), aws_sdk_dynamodb::types::AttributeValue::S(text));
            api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
        }
    }
    remove(&api, |sort, item| sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&user)).await;
    let before = items(&api).await;
    let report = repair(&api, &client).await;
    assert_eq!(problems(&report), ["its type is unknown", "it was not compared"]);
    assert_eq!(items(&api).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_movement_whose_history_has_ended_gets_no_second_one() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    let assets = client.assets(2).await;
    let movement = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": assets})).await.id();
    remove(&api, |sort, _| sort.starts_with("MOVEMENT#") || sort.starts_with("UNIQ#movement.number#")).await;
    // Long after the start, this is what a deletion leaves.
    api.advance_clock(3600);
    client.asset(json!({"name": "later"})).await;
    for _ in 0..2 {
        let report = repair(&api, &client).await;
        let created: Vec<Item> =
            items(&api).await.into_values().filter(|item| entry(item)["entity_id"] == json!(movement)).collect();
        let versions: Vec<Value> = created.iter().map(|item| entry(item)["version"].clone()).collect();
        assert!(versions == [json!(1)] || versions == [json!(1), json!(2)], "{versions:?} {report:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_entries_of_a_history_are_replaced_together() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    for name in ["b", "c"] {
        client.patch(&format!("/assets/{asset}"), json!({"name": name})).await.data();
    }
    remove(&api, |_, item| entry(item)["entity_id"] == json!(asset) && entry(item)["version"] != 1).await;
    let report = repair(&api, &client).await;
    assert_eq!(problems(&report), ["its history lacks the entries from version 2 to 3"]);
    assert!(report.findings[0].is_repaired);
    let history = client.get(&format!("/assets/{asset}/history?verify=true")).await.json();
    assert_eq!((&history["verification"]["valid"], &history["meta"]["total"]), (&json!(true), &json!(3)), "{history}");
    assert_eq!(history["data"][0]["changes"]["name"], json!({"old": "a", "new": "c"}));
    assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["name"], "c");
}

#[tokio::test(start_paused = true)]
async fn what_was_created_and_changed_in_the_last_moment_is_restored_with_what_uses_it() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    client.patch(&format!("/processes/{process}"), json!({"name": "Q"})).await.data();
    client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await.id();
    let complete = items(&api).await;
    let name = Keys::of(client.tenant).record(Kind::Process, process.parse().unwrap());
    let short = name.sort().strip_prefix("PROCESS#").unwrap().to_owned();
    remove(&api, |sort, _| (sort.starts_with("PROCESS#") || sort.starts_with("REFERENCES#")) && sort.ends_with(&short)).await;
    let report = repair(&api, &client).await;
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{report:#?}");
    assert_eq!(items(&api).await, complete, "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_cannot_be_read_and_has_no_event_is_removed() {
    let (api, client) = Api::with_tenant().await;
    let before = items(&api).await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    remove(&api, |sort, item| {
        let is_new = !before.keys().any(|(_, present)| present == sort);
        entry(item)["entity_id"] == json!(process) || (is_new && sort.starts_with("STEPS#"))
    })
    .await;
    let report = repair(&api, &client).await;
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{report:#?}");
    let last_used = |items: Items| items.into_keys().collect::<Vec<_>>();
    assert_eq!(last_used(items(&api).await), last_used(before), "{report:#?}");
    assert!(client.get("/processes?limit=50").await.data().is_array());
}

#[tokio::test(start_paused = true)]
async fn references_to_what_is_lost_can_be_removed_by_the_api() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let asset = client.assigned_asset("a", &user).await;
    let short = Keys::of(client.tenant).record(Kind::User, user.parse().unwrap()).sort().replace("USER#", "");
    remove(&api, |sort, item| sort.ends_with(&short) || entry(item)["entity_id"] == json!(user)).await;
    let report = repair(&api, &client).await;
    let open: Vec<_> = report.findings.iter().filter(|finding| !finding.is_repaired).collect();
    assert!(open.len() == 1 && open[0].problem.contains("which does not exist"), "{report:#?}");
    assert_eq!(client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data()["assigned_to"], Value::Null);
    assert!(repair(&api, &client).await.findings.iter().all(|finding| finding.is_repaired));
    assert_eq!(repair(&api, &client).await.findings, []);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_has_lost_itself_is_reported() {
    let (api, client) = Api::with_tenant().await;
    let id = client.tenant.to_string();
    remove(&api, |sort, item| sort == "TENANT" || entry(item)["entity_id"] == json!(id)).await;
    let report = repair(&api, &client).await;
    assert!(problems(&report).contains(&"its record and its history are lost"), "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_names_another_event_than_its_last_is_corrected() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let complete = items(&api).await;
    let record = Keys::of(client.tenant).record(Kind::Asset, asset.parse().unwrap());
    let tenant = Keys::of(client.tenant).record(Kind::Tenant, client.tenant.uuid());
    let item = |key: &Key| complete.iter().find(|((_, sort), _)| sort == key.sort()).unwrap().1.clone();
    let mut damaged = item(&record);
    damaged.insert("last_event".into(), item(&tenant)["last_event"].clone());
    api.dynamo.put_item().table_name(&api.table).set_item(Some(damaged)).send().await.unwrap();
    let report = repair(&api, &client).await;
    assert_eq!(problems(&report), ["it names another event than its last"]);
    assert_eq!(items(&api).await, complete);
}
