//! The limits of a repair: it changes no record and no event, and leaves items of unknown records and changes in progress alone.

use super::{Items, items};
use crate::support::{Api, Client};
use serde_json::{Value, json};
use shared::domain::record::Kind;
use shared::domain::values::id::Id;
use shared::store::keys::{Item, Key, Keys};
use shared::store::{CheckMode, CheckReport, Removal};
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

/// Repairs twice: these problems are reported each time, without a repair, and nothing is written.
async fn stays_open(api: &Api, client: &Client, expected: &[&str]) {
    let damaged = items(api).await;
    for _ in 0..2 {
        let report = repair(api, client).await;
        assert_eq!(problems(&report), expected, "{report:#?}");
        for finding in &report.findings {
            let advice = finding.repair.as_ref().unwrap_err();
            assert!(advice.contains("from a backup: see the runbook's section \"Damaged records\""), "{advice}");
        }
        assert!(items(api).await == damaged, "{report:#?}");
    }
}

/// Starts a process of one step; returns its definition's id.
async fn start_process(client: &Client, assets: Value) -> String {
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    client.post(&format!("/processes/{process}/start"), assets).await.data();
    process
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_with_a_broken_history_stays_lost_with_what_belongs_to_it() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    for name in ["Ada B", "Ada C"] {
        client.patch(&format!("/users/{user}"), json!({"display_name": name})).await.data();
    }
    client.assigned_asset("a", &user).await;
    api.advance_clock(3600);
    remove(&api, |_, item| entry(item)["entity_id"] == json!(user) && entry(item)["version"] == 2).await;
    remove(&api, |sort, item| sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&user)).await;
    stays_open(&api, &client, &["its history is broken at version 2: the entry is missing"]).await;
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
async fn nothing_is_repaired_while_others_write() {
    let (api, client) = Api::with_tenant().await;
    client.user("Ada").await;
    remove(&api, |sort, _| sort.starts_with("UNIQ#user.email#")).await;
    // By a clock that is ahead, an event comes after the beginning of the check.
    api.advance_clock(60);
    client.asset(json!({"name": "a"})).await;
    api.advance_clock(-60);
    let (damaged, tenant) = (items(&api).await, api.store.tenant(client.tenant));
    let found = tenant.check_items(CheckMode::ReadOnly, |_| ()).await.unwrap();
    let [marker, others] = problems(&found)[..] else { panic!("{found:#?}") };
    assert!(marker.ends_with("is missing") && others.starts_with("others wrote to it meanwhile"), "{found:#?}");
    let refused = tenant.check_items(CheckMode::Repair, |_| ()).await.unwrap();
    assert_eq!(problems(&refused), ["others are writing to it"]);
    assert!(items(&api).await == damaged);
}

#[tokio::test(start_paused = true)]
async fn what_follows_from_records_is_made_again_once_there_are_all() {
    let (api, client) = Api::with_tenant().await;
    let (ada, _) = (client.user("Ada").await, client.user("Grace").await);
    let complete = items(&api).await;
    let is_ada = |sort: &str, item: &Item| sort.starts_with("USER#") && item["id"].as_s().ok() == Some(&ada);
    remove(&api, |sort, item| is_ada(sort, item) || sort.starts_with("UNIQ#user.email#")).await;
    let damaged = items(&api).await;
    let report = repair(&api, &client).await;
    let [lost, marker] = &report.findings[..] else { panic!("{report:#?}") };
    assert_eq!(lost.problem, "its history ends without a deletion, but the record is missing");
    assert!(marker.problem.starts_with("its unique marker UNIQ#user.email#grace"), "{marker:?}");
    assert!(marker.repair.as_ref().unwrap_err().contains("settle first"), "{marker:?}");
    assert_eq!(items(&api).await, damaged);

    let (_, item) = complete.iter().find(|((_, sort), item)| is_ada(sort, item)).unwrap();
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item.clone())).send().await.unwrap();
    let report = repair(&api, &client).await;
    assert!(report.findings.len() == 2 && report.findings.iter().all(|finding| finding.is_repaired), "{report:#?}");
    assert_eq!(items(&api).await, complete);
}

#[tokio::test(start_paused = true)]
async fn what_the_list_index_needs_is_written_again() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let complete = items(&api).await;
    let key = Keys::of(client.tenant).record(Kind::Asset, asset.parse().unwrap());
    let mut item = complete.iter().find(|((_, sort), _)| sort == key.sort()).unwrap().1.clone();
    assert!(item.remove("LS").is_some() && item.remove("type").is_some());
    api.dynamo.put_item().table_name(&api.table).set_item(Some(item)).send().await.unwrap();
    let report = repair(&api, &client).await;
    assert_eq!(problems(&report), ["its item lacks what the list index needs, or has it wrong"]);
    assert!(report.findings[0].is_repaired);
    assert_eq!(items(&api).await, complete);
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
    assert_eq!(problems(&report), ["its type is unknown"]);
    assert_eq!(items(&api).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_lost_movement_is_not_made_again_from_its_instances() {
    let (api, client) = Api::with_tenant().await;
    let assets = client.assets(2).await;
    start_process(&client, json!({"asset_ids": assets})).await;
    remove(&api, |sort, _| sort.starts_with("MOVEMENT#") || sort.starts_with("UNIQ#movement.number#")).await;
    let lost = "its history ends without a deletion, but the record is missing";
    stays_open(&api, &client, &[lost, "its instances name it, but it does not exist or can't be read"]).await;
}

#[tokio::test(start_paused = true)]
async fn lost_entries_are_not_made_again_from_the_record() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    for name in ["b", "c"] {
        client.patch(&format!("/assets/{asset}"), json!({"name": name})).await.data();
    }
    remove(&api, |_, item| entry(item)["entity_id"] == json!(asset) && entry(item)["version"] != 1).await;
    stays_open(&api, &client, &["its history is broken at version 2: the entry is missing"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_definition_is_not_made_again_from_its_history() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let process = start_process(&client, json!({"asset_id": asset})).await;
    let name = Keys::of(client.tenant).record(Kind::Process, process.parse().unwrap());
    remove(&api, |sort, _| sort == name.sort()).await;
    stays_open(&api, &client, &["its history ends without a deletion, but the record is missing"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_cannot_be_read_and_has_no_event_can_be_removed() {
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
    stays_open(&api, &client, &["it can't be read: its steps or its schema are lost"]).await;
    let removal = api.store.tenant(client.tenant).remove_unreadable(Kind::Process, process.parse().unwrap()).await;
    assert_eq!(removal.unwrap(), Removal::Removed);
    let report = repair(&api, &client).await;
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{report:#?}");
    let keys = |items: Items| items.into_keys().collect::<Vec<_>>();
    assert_eq!(keys(items(&api).await), keys(before), "{report:#?}");
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
async fn a_record_that_names_another_event_than_its_last_is_reported() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let complete = items(&api).await;
    let record = Keys::of(client.tenant).record(Kind::Asset, asset.parse().unwrap());
    let tenant = Keys::of(client.tenant).record(Kind::Tenant, client.tenant.uuid());
    let item = |key: &Key| complete.iter().find(|((_, sort), _)| sort == key.sort()).unwrap().1.clone();
    let mut damaged = item(&record);
    damaged.insert("last_event".into(), item(&tenant)["last_event"].clone());
    api.dynamo.put_item().table_name(&api.table).set_item(Some(damaged)).send().await.unwrap();
    stays_open(&api, &client, &["it names another event than its last"]).await;
}
