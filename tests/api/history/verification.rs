//! `?verify=true` and the operator's check find every change that was made behind the service's back.

use crate::support::Api;
use crate::support::table::history::{append_event, changed_asset, delete_item, event_key, set_text, text_attribute, versions};
use serde_json::json;
use shared::domain::history::event::hash;
use shared::domain::record::Kind;
use shared::store::StoreError;
use shared::store::keys::Keys;

#[tokio::test(start_paused = true)]
async fn one_changed_byte_of_any_event_is_found() {
    for version in 1..=3 {
        let (api, client) = Api::with_tenant().await;
        let (_, path) = changed_asset(&client).await;
        let history = client.get(&path).await.json();
        let key = event_key(&client, &history, version);
        let entry = text_attribute(&api, &key, "entry").await;
        set_text(&api, &key, "entry", entry.replacen("first key", "First key", 1)).await;
        let found = client.get(&format!("{path}?verify=true")).await.json();
        let event = history["data"][3 - version as usize]["id"].clone();
        let broken = json!({"event_id": event, "version": version, "reason": "wrong_hash"});
        assert_eq!(found["verification"], json!({"valid": false, "checked": version - 1, "broken": broken}));
        // With a matching hash, the next event or the record itself shows the change.
        set_text(&api, &key, "hash", hash(&text_attribute(&api, &key, "entry").await)).await;
        let found = client.get(&format!("{path}?verify=true")).await.json();
        let (place, reason) = if version == 3 { (3, "wrong_head") } else { (version + 1, "wrong_previous") };
        assert_eq!(
            (&found["verification"]["broken"]["version"], &found["verification"]["broken"]["reason"]),
            (&json!(place), &json!(reason))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_event_leaves_a_gap_and_is_found() {
    for version in 1..=3 {
        let (api, client) = Api::with_tenant().await;
        let (_, path) = changed_asset(&client).await;
        let history = client.get(&path).await.json();
        delete_item(&api, &event_key(&client, &history, version)).await;
        // The index may not have it yet.
        client.get(&path).await.problem(503, "UNAVAILABLE");
        api.advance_clock(3_700);
        let found = client.get(&format!("{path}?verify=true")).await.json();
        assert_eq!(versions(&found), (1..=3).rev().filter(|known| *known != version).collect::<Vec<_>>());
        assert_eq!(found["meta"]["total"], 3);
        let broken = json!({"event_id": null, "version": version, "reason": "missing"});
        assert_eq!(found["verification"], json!({"valid": false, "checked": version - 1, "broken": broken}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_removed_without_an_event_is_found() {
    let (api, client) = Api::with_tenant().await;
    let (id, path) = changed_asset(&client).await;
    let key = Keys::of(client.tenant).record(Kind::Asset, id.parse().unwrap()).item();
    delete_item(&api, &key).await;
    client.get(&format!("{path}?verify=true")).await.problem(503, "UNAVAILABLE");
    api.advance_clock(11);
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(found["verification"]["broken"], json!({"event_id": null, "version": 4, "reason": "gone"}));
}

/// Without the tombstone, the chain of a deleted record could be cut off unnoticed.
#[tokio::test(start_paused = true)]
async fn a_deleted_record_whose_last_entries_were_removed_is_found() {
    let (api, client) = Api::with_tenant().await;
    let (id, path) = changed_asset(&client).await;
    client.delete(&format!("/assets/{id}")).await.data();
    let history = client.get(&path).await.json();
    for version in [3, 4] {
        delete_item(&api, &event_key(&client, &history, version)).await;
    }
    api.advance_clock(3_700);
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(found["verification"]["broken"], json!({"event_id": null, "version": 3, "reason": "missing"}));
    let verification = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verification.broken_links.len(), 1, "the operator's check must find it, too");
    let tombstone = Keys::of(client.tenant).tombstone(Kind::Asset, id.parse().unwrap()).item();
    delete_item(&api, &tombstone).await;
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(found["verification"]["broken"], json!({"event_id": null, "version": 3, "reason": "gone"}));
    let verification = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verification.broken_links.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_event_is_left_out_and_found() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let history = client.get(&path).await.json();
    set_text(&api, &event_key(&client, &history, 2), "entry", "{}".into()).await;
    let found = client.get(&format!("{path}?verify=true")).await.json();
    assert_eq!(versions(&found), [3, 1]);
    assert_eq!(found["verification"]["broken"]["reason"], "unreadable");
}

#[tokio::test(start_paused = true)]
async fn an_event_after_the_last_is_found() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let history = client.get(&path).await.json();
    append_event(&api, &client, &history, "asset.approved").await;
    // The record may still follow.
    client.get(&format!("{path}?verify=true")).await.problem(503, "UNAVAILABLE");
    let unsettled = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await;
    assert!(matches!(unsettled, Err(StoreError::Unsettled(_))), "{unsettled:?}");
    api.advance_clock(11);
    let checked = client.get(&format!("{path}?verify=true")).await.json();
    let verification = &checked["verification"];
    assert_eq!((&verification["valid"], &verification["broken"]["reason"]), (&json!(false), &json!("wrong_head")), "{checked}");
    let verification = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert!(!verification.broken_links.is_empty(), "the operator's check must find it, too");
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_the_scope_starts_no_verification() {
    let (api, client) = Api::with_tenant().await;
    let (_, path) = changed_asset(&client).await;
    let lacking = client.scoped(&["users:read"]).await;
    api.faults.take_requests();
    lacking.get(&format!("{path}?verify=true")).await.problem(403, "FORBIDDEN");
    let batches = api.faults.take_requests().into_iter().filter(|(operation, _)| operation == "BatchGetItem").count();
    assert!(batches <= 1, "{batches} batches were read for a refused request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_can_be_verified_while_others_write() {
    let (api, client) = Api::with_tenant().await;
    let writers = [0, -1_500, 1_500].map(|skew| {
        let client = api.replica(skew, 0).client(&client);
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
        let verification = store.verify_chains(|done, of| assert!(done <= of)).await.unwrap();
        assert_eq!(verification.broken_links, [], "after {checks} checks");
        checks += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let verification = store.verify_chains(|_, _| {}).await.unwrap();
    assert_eq!((verification.broken_links, verification.records, verification.events), (vec![], 9 + 36, 9 + 36 * 3 + 12));
    assert!(checks > 1, "no check ended while others were writing");
}
