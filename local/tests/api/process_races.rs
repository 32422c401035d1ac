//! Processes, several at once: exactly one wins, and the data is whole.

use crate::processes::{advance, define, start, system};
use crate::support::Api;
use futures_util::future::join_all;
use serde_json::json;

#[tokio::test]
async fn of_two_starts_at_once_exactly_one_wins() {
    let (_api, client) = Api::with_tenant().await;
    let process = system(&client, "prepare").await;
    for _ in 0..5 {
        let asset = client.asset(json!({"name": "x"})).await;
        let path = format!("/processes/{process}/start");
        let replies = join_all((0..3).map(|_| client.post(&path, json!({"asset_id": asset})))).await;
        let won: Vec<_> = replies.iter().filter(|reply| reply.status == 201).collect();
        assert_eq!(won.len(), 1);
        for reply in replies.iter().filter(|reply| reply.status != 201) {
            assert_eq!(reply.problem(409, "PROCESS_RUNNING")["instance_id"], won[0].id());
        }
    }
    assert_eq!(client.get("/processes/instances").await.json()["meta"]["total"], 5);
}

#[tokio::test]
async fn of_two_advances_of_a_step_exactly_one_wins() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}, {"type": "text", "key": "b", "label": "B"}]);
    let process = define(&client, steps).await;
    for _ in 0..5 {
        let asset = client.asset(json!({"name": "x"})).await;
        let run = start(&client, &process, &asset).await;
        for step in 0..2 {
            let path = format!("/processes/instances/{run}/advance");
            let replies = join_all((0..3).map(|_| client.post(&path, json!({"step_data": {}, "current_step": step})))).await;
            assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
            for reply in replies.iter().filter(|reply| reply.status != 200) {
                let code = reply.json()["code"].as_str().unwrap().to_owned();
                assert!(code == "STEP_MOVED" || (step == 1 && code == "INSTANCE_CLOSED"), "{code}");
            }
        }
        assert_eq!(crate::events::chain(&api, &client, &run).await.len(), 3);
        assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["status"], "in_use");
    }
}

#[tokio::test]
async fn an_advance_whose_asset_goes_meanwhile_finds_its_run_closed() {
    let (api, client) = Api::with_tenant().await;
    let process = define(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let run = start(&client, &process, &asset).await;
    // The key and the run are read in batches; the asset by itself.
    let mut held = api.faults.hold("GetItem");
    let overtake = async {
        held.arrived().await;
        client.post(&format!("/processes/instances/{run}/cancel"), json!({})).await.data();
        client.delete(&format!("/assets/{asset}")).await;
        held.release();
    };
    let (late, ()) = tokio::join!(advance(&client, &run, json!({})), overtake);
    assert_eq!(late.problem(409, "INSTANCE_CLOSED")["instance_status"], "cancelled");
}

#[tokio::test]
async fn a_cancel_against_the_last_advance_leaves_one_winner_and_whole_data() {
    let (api, client) = Api::with_tenant().await;
    let process = define(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    for _ in 0..8 {
        let asset = client.asset(json!({"name": "x"})).await;
        let run = start(&client, &process, &asset).await;
        let cancel = format!("/processes/instances/{run}/cancel");
        let (advanced, cancelled) = tokio::join!(advance(&client, &run, json!({})), client.post(&cancel, json!({})));
        let status = client.get(&format!("/assets/{asset}")).await.data()["status"].clone();
        match (advanced.status.as_u16(), cancelled.status.as_u16()) {
            (200, 409) => assert_eq!(status, "in_use"),
            (409, 200) => assert_eq!(status, "in_stock"),
            other => panic!("{other:?}: {} {}", advanced.text(), cancelled.text()),
        }
        assert_eq!(crate::events::chain(&api, &client, &asset).await.len(), 3);
        client.delete(&format!("/assets/{asset}")).await;
    }
}

#[tokio::test]
async fn a_start_against_a_patch_of_the_status_is_decided_by_who_is_first() {
    let (_api, client) = Api::with_tenant().await;
    let process = system(&client, "prepare").await;
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
