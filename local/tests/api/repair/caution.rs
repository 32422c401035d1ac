//! What a repair must leave alone: whatever belongs to a record that it doesn't know, and whatever is in progress.

use super::transaction::{Items, items};
use crate::support::{Api, Client};
use serde_json::{Value, json};
use shared::store::keys::{Item, Key};
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

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
async fn what_a_newer_release_wrote_stays() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    // As if users were a kind that this release doesn't know.
    for (_, mut item) in items(&api).await {
        if entry(&item)["entity_id"] == json!(user) {
            let text = item["entry"].as_s().unwrap().replace("\"user.created\"", "\"gadget.created\"");
            item.insert("hash".into(), aws_sdk_dynamodb::types::AttributeValue::S(shared::domain::event::hash(&text)));
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

#[tokio::test]
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
