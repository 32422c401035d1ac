//! Simultaneous requests about one process instance: exactly one succeeds, and no data is lost.

use crate::support::Api;
use crate::support::processes::{advance, cancel, create_process, start, system_process};
use crate::support::table::history::event_chain;
use futures_util::future::join_all;
use serde_json::json;

#[tokio::test]
async fn of_simultaneous_starts_exactly_one_succeeds() {
    let (_api, client) = Api::with_tenant().await;
    let process = system_process(&client, "prepare").await;
    for _ in 0..5 {
        let asset = client.asset(json!({"name": "x"})).await;
        let path = format!("/processes/{process}/start");
        let replies = join_all((0..3).map(|_| client.post(&path, json!({"asset_id": asset})))).await;
        let started: Vec<_> = replies.iter().filter(|reply| reply.status == 201).collect();
        assert_eq!(started.len(), 1);
        for reply in replies.iter().filter(|reply| reply.status != 201) {
            assert_eq!(reply.problem(409, "PROCESS_RUNNING")["instance_id"], started[0].id());
        }
    }
    assert_eq!(client.total("/processes/instances").await, 5);
}

#[tokio::test]
async fn of_simultaneous_advances_of_a_step_exactly_one_succeeds() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}, {"type": "text", "key": "b", "label": "B"}]);
    let process = create_process(&client, steps).await;
    for _ in 0..5 {
        let asset = client.asset(json!({"name": "x"})).await;
        let instance = start(&client, &process, &asset).await;
        for step in 0..2 {
            let path = format!("/processes/instances/{instance}/advance");
            let replies = join_all((0..3).map(|_| client.post(&path, json!({"step_data": {}, "current_step": step})))).await;
            assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
            for reply in replies.iter().filter(|reply| reply.status != 200) {
                let code = reply.json()["code"].as_str().unwrap().to_owned();
                assert!(code == "STEP_MOVED" || (step == 1 && code == "INSTANCE_CLOSED"), "{code}");
            }
        }
        assert_eq!(event_chain(&api, &client, &instance).await.len(), 3);
        assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["status"], "in_use");
    }
}

#[tokio::test]
async fn an_advance_finds_the_instance_closed_when_its_asset_was_deleted_meanwhile() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    // The instance is read first, and then its asset.
    let mut first = api.faults.hold("BatchGetItem");
    let other_request = async {
        first.arrived().await;
        let mut second = api.faults.hold("BatchGetItem");
        first.release();
        second.arrived().await;
        cancel(&client, &instance).await.data();
        client.delete(&format!("/assets/{asset}")).await.data();
        second.release();
    };
    let (late, ()) = tokio::join!(advance(&client, &instance, json!({})), other_request);
    assert_eq!(late.problem(409, "INSTANCE_CLOSED")["instance_status"], "cancelled");
}

#[tokio::test]
async fn of_a_cancellation_and_the_last_advance_exactly_one_succeeds() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    for _ in 0..8 {
        let asset = client.asset(json!({"name": "x"})).await;
        let instance = start(&client, &process, &asset).await;
        let (advanced, cancelled) = tokio::join!(advance(&client, &instance, json!({})), cancel(&client, &instance));
        let status = client.get(&format!("/assets/{asset}")).await.data()["status"].clone();
        match (advanced.status.as_u16(), cancelled.status.as_u16()) {
            (200, 409) => assert_eq!(status, "in_use"),
            (409, 200) => assert_eq!(status, "in_stock"),
            other => panic!("{other:?}: {} {}", advanced.text(), cancelled.text()),
        }
        assert_eq!(event_chain(&api, &client, &asset).await.len(), 3);
        client.delete(&format!("/assets/{asset}")).await;
    }
}

#[tokio::test]
async fn of_a_start_and_a_change_of_the_status_exactly_one_succeeds() {
    let (_api, client) = Api::with_tenant().await;
    let process = system_process(&client, "prepare").await;
    for _ in 0..8 {
        let asset = client.asset(json!({"name": "x"})).await;
        let path = format!("/assets/{asset}");
        let start = format!("/processes/{process}/start");
        let (started, patched) =
            tokio::join!(client.post(&start, json!({"asset_id": asset})), client.patch(&path, json!({"status": "scrapped"})));
        match (started.status.as_u16(), patched.status.as_u16()) {
            (201, 409) => drop(patched.problem(409, "PROCESS_RUNNING")),
            (409, 200) => drop(started.problem(409, "WRONG_ASSET_STATUS")),
            other => panic!("{other:?}"),
        }
    }
}
