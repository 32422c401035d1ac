//! Steps that can't be submitted together.

use super::{steps, values};
use crate::support::processes::{advance, cancel, create_process, start, system_process};
use crate::support::samples::SIGNATURE;
use crate::support::{Api, over_http};
use serde_json::{Map, Value, json};

#[tokio::test(start_paused = true)]
async fn the_first_step_that_cannot_be_submitted_says_why_and_nothing_is_written() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    let path = format!("/processes/instances/{instance}/advance");
    let rest = client.asset(json!({"name": "y"})).await;
    let other = client.assets(2).await;
    // The number of a movement that does not start is lost.
    let without_number = async || api.dump().await.without("NUMBER#MOVEMENT");
    let before = without_number().await;
    for (data, through, expected) in [
        (json!({"who": user}), "done", vec!["/step_data/sign"]),
        (json!({"list": ["z"], "note": 1}), "done", vec!["/step_data/who"]),
        (json!({"who": user, "list": ["z"], "sign": "x"}), "note", vec!["/step_data/list"]),
        (json!({"who": 1, "what": 1}), "sign", vec!["/step_data/what", "/step_data/who"]),
        (json!({"who": user, "list": [], "sign": SIGNATURE, "note": 1}), "sign", vec!["/step_data/note"]),
        (json!({"who": user}), "nothing", vec!["/through"]),
    ] {
        let advanced = client.post(&path, json!({"step_data": data, "through": through})).await;
        assert_eq!(advanced.field_errors(), expected, "{through}");
        for assets in [("asset_id", json!(rest)), ("asset_ids", json!(other))] {
            let body = json!({assets.0: assets.1, "step_data": data, "through": through});
            assert_eq!(client.post(&format!("/processes/{process}/start"), body).await.field_errors(), expected, "{through}");
        }
        assert_eq!(without_number().await, before);
    }
    let unknown = client.post(&path, json!({"step_data": {}, "through": "nothing"})).await.json();
    assert_eq!(unknown["errors"][0]["detail"], "must be the key of a step: who, list, sign, note, done");
    advance(&client, &instance, json!({"who": user})).await.data();
    let before = api.dump().await;
    let early = client.post(&path, json!({"step_data": {}, "through": "who"})).await.problem(409, "STEP_SUBMITTED");
    assert_eq!(early["step"], "who");
    client.post(&path, json!({"step_data": {"who": null}, "through": "list"})).await.problem(409, "STEP_SUBMITTED");
    let moved = client.post(&path, json!({"step_data": {}, "through": "who", "current_step": 0})).await;
    assert_eq!(moved.problem(409, "STEP_MOVED")["current_step"], 1);
    assert_eq!(api.dump().await, before);
    cancel(&client, &instance).await.data();
    client.post(&path, json!({"step_data": {}, "through": "who"})).await.problem(409, "INSTANCE_CLOSED");
}

#[tokio::test(start_paused = true)]
async fn the_recipient_must_be_active_in_a_handover_in_one_call() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = system_process(&client, "employee-onboarding").await;
    let asset = client.asset(json!({"name": "x", "status": "preparing"})).await;
    let instance = client
        .post(&format!("/processes/{process}/start"), json!({"asset_id": asset, "step_data": {"employee": user}}))
        .await
        .id();
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    let before = api.dump().await;
    let data = json!({"signature": SIGNATURE});
    let refused =
        client.post(&format!("/processes/instances/{instance}/advance"), json!({"step_data": data, "through": "complete"})).await;
    assert_eq!(refused.problem(409, "CONFLICT")["user_id"], user.as_str());
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn more_steps_than_a_transaction_holds_are_refused_with_the_number_that_fits() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let path = format!("/processes/{process}/start");
    let detail = |reply: &crate::support::Reply| {
        assert_eq!(reply.field_errors(), ["/through"]);
        reply.json()["errors"][0]["detail"].as_str().unwrap().to_owned()
    };
    let assets = client.assets(12).await;
    let all = json!({"asset_ids": assets, "step_data": values(&user), "through": "done"});
    let refused = client.post(&path, all.clone()).await;
    assert_eq!(
        detail(&refused),
        "makes 5 steps, which are too many changes for one transaction; the first 3 fit, up to sign; \
         with all steps, the first 9 of the assets fit"
    );
    assert_eq!(client.post(&format!("{path}?dry_run=true"), all).await.field_errors(), ["/through"]);
    let started = client.post(&path, json!({"asset_ids": assets, "step_data": values(&user), "through": "sign"})).await.data();
    let movement = format!("/movements/{}/advance", started["id"].as_str().unwrap());
    assert_eq!(started["current_step"], 3);
    let done = client.post(&movement, json!({"step_data": {}, "through": "done"})).await.data();
    assert_eq!(done["status"], "completed");
    let nine = client.assets(9).await;
    let body = json!({"asset_ids": nine, "step_data": values(&user), "through": "done"});
    assert_eq!(client.post(&path, body).await.data()["status"], "completed");

    // As many images as steps, for one asset.
    let keys: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let signatures: Vec<Value> = keys.iter().map(|key| json!({"type": "signature", "key": key, "label": "S"})).collect();
    let process = create_process(&client, json!(signatures)).await;
    let path = format!("/processes/{process}/start");
    let data: Map<String, Value> = keys.iter().map(|key| (key.clone(), json!(SIGNATURE))).collect();
    let asset = client.asset(json!({"name": "x"})).await;
    let refused = client.post(&path, json!({"asset_id": asset, "step_data": data, "through": "s49"})).await;
    assert!(detail(&refused).starts_with("makes 50 steps"), "{}", refused.text());
    let instance = start(&client, &process, &asset).await;
    let advance = async |through: &str| {
        let body = json!({"step_data": data, "through": through});
        client.post(&format!("/processes/instances/{instance}/advance"), body).await
    };
    let said = detail(&advance("s49").await);
    let fitting = said.rsplit_once("up to ").unwrap().1.to_owned();
    let beyond = format!("s{}", fitting[1..].parse::<usize>().unwrap() + 1);
    assert_eq!(detail(&advance(&beyond).await).rsplit_once("up to ").unwrap().1, fitting);
    assert!(advance(&fitting).await.data()["current_step"].as_u64().unwrap() > 20);
    assert_eq!(advance("s49").await.data()["status"], "completed");
}
