//! Several steps in one request: `through` leads to the same state and the same history as one step after another.

mod divisions;
mod refusals;

use crate::support::Api;
use crate::support::processes::{advance, create_process};
use crate::support::samples::SIGNATURE;
use crate::support::table::history::event_chain;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

/// The keys of the steps of [`steps`], in order.
const KEYS: [&str; 5] = ["who", "list", "sign", "note", "done"];

fn steps() -> Value {
    json!([
        {"type": "user_picker", "key": "who", "label": "Who", "required": true},
        {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
        {"type": "signature", "key": "sign", "label": "Sign", "required": true},
        {"type": "text", "key": "note", "label": "Note"},
        {"type": "complete", "key": "done", "label": "Done"}
    ])
}

fn values(user: &str) -> Value {
    json!({"who": user, "list": ["b"], "sign": SIGNATURE, "note": "fine", "done": true})
}

fn values_of(values: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|key| ((*key).to_owned(), values[*key].clone())).collect::<Map<_, _>>().into()
}

#[tokio::test(start_paused = true)]
async fn a_start_without_through_keeps_values_and_submits_nothing() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let path = format!("/processes/{process}/start");
    let asset = client.asset(json!({"name": "x"})).await;
    let before = api.dump().await;
    let wrong = json!({"asset_id": asset, "step_data": {"who": "nobody", "list": ["z"], "other": 1}});
    assert_eq!(client.post(&path, wrong).await.field_errors(), ["/step_data/list", "/step_data/other", "/step_data/who"]);
    assert_eq!(api.dump().await, before);
    let started = client.post(&path, json!({"asset_id": asset, "step_data": values(&user)})).await.data();
    assert_eq!((&started["status"], &started["current_step"]), (&json!("in_progress"), &json!(0)));
    assert_eq!(started["step_data"], values(&user));
    let instance = started["id"].as_str().unwrap();
    let chain = event_chain(&api, &client, instance).await;
    assert_eq!((chain.len(), &chain[0]["changes"]["step_data"]["new"]["note"]), (1, &json!("fine")));
    assert_eq!(client.delete(&format!("/users/{user}")).await.problem(409, "IN_USE")["count"], 1);
    assert_eq!(advance(&client, instance, json!({})).await.data()["current_step"], 1);
    let done =
        client.post(&format!("/processes/instances/{instance}/advance"), json!({"step_data": {}, "through": "done"})).await;
    assert_eq!(done.data()["status"], "completed");
    assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["assigned_to"], user.as_str());
    assert_eq!(
        client.get(&format!("/processes/instances/{instance}/history?verify=true")).await.json()["meta"]["verified"]["broken"],
        Value::Null
    );
    // Also several at once.
    let assets = client.assets(2).await;
    let movement = client.post(&path, json!({"asset_ids": assets, "step_data": values(&user)})).await.data();
    for instance in movement["instances"].as_array().unwrap() {
        assert_eq!((&instance["current_step"], &instance["step_data"]), (&json!(0), &values(&user)));
    }
}

#[tokio::test(start_paused = true)]
async fn of_simultaneous_requests_with_through_exactly_one_succeeds() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    for _ in 0..3 {
        let asset = client.asset(json!({"name": "x"})).await;
        let path = format!("/processes/{process}/start");
        let start = |through: &'static str| {
            client.post(&path, json!({"asset_id": asset, "step_data": values(&user), "through": through}))
        };
        let replies = join_all(["who", "list", "sign"].map(start)).await;
        let started: Vec<_> = replies.iter().filter(|reply| reply.status == 201).collect();
        assert_eq!(started.len(), 1);
        let (instance, open) = (started[0].id(), started[0].data()["current_step"].as_u64().unwrap());
        for reply in replies.iter().filter(|reply| reply.status != 201) {
            reply.problem(409, "PROCESS_RUNNING");
        }
        let path = format!("/processes/instances/{instance}/advance");
        let advance = |through: &'static str| client.post(&path, json!({"step_data": {}, "through": through}));
        let replies = join_all(["note", "done", "done"].map(advance)).await;
        assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            let code = reply.json()["code"].as_str().unwrap().to_owned();
            assert!(["STEP_MOVED", "INSTANCE_CLOSED"].contains(&code.as_str()), "{code}");
        }
        let chain = event_chain(&api, &client, &instance).await;
        let ended = client.get(&format!("/processes/instances/{instance}")).await.data();
        let last = if ended["status"] == "completed" { 5 } else { ended["current_step"].as_u64().unwrap() };
        assert!(last >= 4 && open <= 3, "{ended}");
        assert_eq!(chain.len() as u64, 1 + last);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handover_in_one_call_happens_once_whatever_fails() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let path = format!("/processes/{process}/start");
    let asset = client.asset(json!({"name": "x"})).await;
    let body = json!({"asset_id": asset, "step_data": values(&user), "through": "done"}).to_string();
    let send = async |path: &str| {
        client.send_with("POST", path, Some("application/json"), body.clone(), &[("idempotency-key", "k")]).await
    };
    let before = api.dump().await;
    let dry = client.post(&format!("{path}?dry_run=true"), serde_json::from_str(&body).unwrap()).await.data();
    assert_eq!((&dry["status"], &dry["id"], &dry["current_step"]), (&json!("completed"), &Value::Null, &json!(4)));
    api.faults.throttle("TransactWriteItems", 3);
    send(&path).await.problem(503, "UNAVAILABLE");
    assert_eq!(api.dump().await, before);
    api.faults.lose_response("TransactWriteItems");
    let made = send(&path).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let again = send(&path).await;
    assert_eq!((again.header("idempotent-replayed"), again.data()), ("true", made.data()));
    assert_eq!(made.data()["step_data"]["sign"], SIGNATURE);
    assert_eq!(event_chain(&api, &client, &made.id()).await.len(), 6);
    assert_eq!(event_chain(&api, &client, &asset).await.len(), 3);
    // The change feed has the events of a record in the order of its versions.
    api.advance_clock(60);
    let feed = client.get("/events?limit=100").await.data();
    let of_instance = feed.as_array().unwrap().iter().filter(|event| event["entity_id"] == made.id());
    let versions: Vec<u64> = of_instance.map(|event| event["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, [1, 2, 3, 4, 5, 6]);
    let verified = client.get(&format!("/assets/{asset}/history?verify=true")).await;
    assert_eq!(verified.status, 200, "{}", verified.text());
}
