//! A POST that comes again is done once (contract 8).

use crate::coverage::operations;
use crate::support::samples::{SIGNATURE, Samples};
use crate::support::{Api, Client, Reply};
use serde_json::{Value, json};

pub async fn post(client: &Client, path: &str, body: &Value, key: &str) -> Reply {
    let headers = [("idempotency-key", key)];
    client.send_with("POST", path, Some("application/json"), body.to_string(), &headers).await
}

/// An answer's body without what is shown once.
fn kept(reply: &Reply) -> Value {
    let mut body = reply.json();
    if let Some(data) = body["data"].as_object_mut() {
        data.remove("api_key");
    }
    body
}

#[tokio::test]
async fn every_post_is_answered_again_and_done_once() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::of(&client).await;
    let (_, operations) = operations(&client).await;
    let mut replayed = 0;
    for operation in operations.iter().filter(|operation| operation.method == "POST") {
        let (path, body) = (samples.fill(&operation.path), samples.body("POST", &operation.path));
        let path = path.strip_prefix("/v1").unwrap();
        let key = format!("key of {path}");
        let first = post(&client, path, &body, &key).await;
        assert!(first.status.is_success(), "{path}: {}", first.text());
        assert_eq!(first.header("idempotent-replayed"), "");
        let before = api.dump().await;
        let again = post(&client, path, &body, &key).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (first.status, "true"), "{path}: {}", again.text());
        assert_eq!(kept(&again), kept(&first), "{path}");
        assert_eq!(again.json()["data"].get("api_key"), None, "a secret was kept");
        assert_eq!(again.header("location"), first.header("location"));
        if !path.starts_with("/keys") {
            assert_eq!(again.header("etag"), first.header("etag"), "{path}");
        }
        let mut other = body.clone();
        other["unknown"] = json!(1);
        assert_eq!(post(&client, path, &other, &key).await.field_errors(), ["Idempotency-Key"], "{path}");
        assert_eq!(api.dump().await, before, "{path} did something again");
        replayed += 1;
    }
    assert!(replayed >= 12, "only {replayed} endpoints");
}

#[tokio::test]
async fn sixteen_at_once_are_one() {
    let (api, client) = Api::with_tenant().await;
    let (asset, steps) = (
        client.asset(json!({"name": "a"})).await,
        json!([{"type": "text", "key": "a", "label": "A"}, {"type": "text", "key": "b", "label": "B"}, {"type": "text", "key": "c", "label": "C"}]),
    );
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    let start = format!("/processes/{process}/start");
    let run = post(&client, &start, &json!({"asset_id": asset}), "start").await.id();
    let advance = format!("/processes/instances/{run}/advance");
    let instances = [api.instance(0, usize::MAX), api.instance(-1500, usize::MAX)];
    let clients = [instances[0].client(&client), instances[1].client(&client)];
    for (path, body) in [("/assets", json!({"name": "once"})), (advance.as_str(), json!({"step_data": {"a": "1"}}))] {
        let all = (0..16).map(|n| post(&clients[n % 2], path, &body, path));
        let all = futures_util::future::join_all(all).await;
        let done: Vec<&Reply> = all.iter().filter(|reply| reply.status.is_success()).collect();
        assert!(!done.is_empty(), "{path}: {}", all[0].text());
        for reply in &all {
            if !reply.status.is_success() {
                reply.problem(409, "REQUEST_IN_PROGRESS");
            }
        }
        assert!(done.iter().all(|reply| reply.json() == done[0].json()), "{path}");
        assert_eq!(done.iter().filter(|reply| reply.header("idempotent-replayed").is_empty()).count(), 1, "{path}");
    }
    assert_eq!(client.get("/assets?q=once").await.json()["meta"]["total"], 1);
    assert_eq!(client.get(&format!("/processes/instances/{run}")).await.data()["current_step"], 1);
}

#[tokio::test]
async fn whatever_call_fails_the_same_request_again_is_done_once() {
    let (api, client) = Api::with_tenant().await;
    let mut failed = 0;
    for kind in ["throttled", "conflict", "timed out before", "timed out after"] {
        for place in 0.. {
            let name = format!("{kind} {place}");
            api.faults.fail_call(place, kind);
            let body = json!({"name": name});
            let mut reply = post(&client, "/assets", &body, &name).await;
            for _ in 0..3 {
                if reply.status.is_success() {
                    break;
                }
                reply.problem(503, "UNAVAILABLE");
                reply = post(&client, "/assets", &body, &name).await;
            }
            assert_eq!(reply.status, 201, "{name}: {}", reply.text());
            let healed = api.faults.heal();
            let query = name.replace(' ', "%20");
            let found = client.get(&format!("/assets?q={query}")).await.json();
            let exactly = found["data"].as_array().unwrap().iter().filter(|asset| asset["name"] == name.as_str()).count();
            assert_eq!(exactly, 1, "{name}");
            if !healed {
                break;
            }
            failed += 1;
        }
    }
    assert!(failed >= 16, "only {failed}");
}

#[tokio::test]
async fn an_answer_is_kept_for_a_day_and_for_one_key() {
    let (api, client) = Api::with_tenant().await;
    let other = client.scoped(&["assets:read", "assets:write"]).await;
    let body = json!({"name": "n"});
    let first = post(&client, "/assets", &body, "k").await.id();
    assert_ne!(post(&other, "/assets", &body, "k").await.id(), first, "kept per API key");
    assert_eq!(
        post(&client, "/users", &json!({"email": "a@b.c", "display_name": "A"}), "k").await.field_errors(),
        ["Idempotency-Key"]
    );
    api.wait(24 * 3600 - 60);
    assert_eq!(post(&client, "/assets", &body, "k").await.id(), first);
    api.wait(120);
    assert_ne!(post(&client, "/assets", &body, "k").await.id(), first, "a day is over");
}

#[tokio::test]
async fn what_was_refused_may_be_corrected_under_the_same_key() {
    let (_api, client) = Api::with_tenant().await;
    assert_eq!(post(&client, "/assets", &json!({"name": ""}), "k").await.field_errors(), ["/name"]);
    assert_eq!(post(&client, "/assets", &json!({"name": "n"}), "k").await.status, 201);
    for bad in ["", "ä", &"x".repeat(256)] {
        assert_eq!(post(&client, "/assets", &json!({"name": "n"}), bad).await.field_errors(), ["Idempotency-Key"], "{bad}");
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    let reply = client.send_with("POST", "/assets", Some("application/json"), r#"{"name":"n"}"#, &twice).await;
    assert_eq!(reply.field_errors(), ["Idempotency-Key"]);
}

#[tokio::test]
async fn a_signature_is_shown_again() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "signature", "key": "s", "label": "S"}, {"type": "text", "key": "t", "label": "T"}]);
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    let mut assets = Vec::new();
    for name in ["a", "b", "c"] {
        assets.push(client.asset(json!({"name": name})).await);
    }
    let start = format!("/processes/{process}/start");
    let run = client.post(&start, json!({"asset_id": assets[0]})).await.id();
    let movement = client.post(&start, json!({"asset_ids": assets[1..]})).await.id();
    for path in [format!("/processes/instances/{run}/advance"), format!("/movements/{movement}/advance")] {
        let body = json!({"step_data": {"s": SIGNATURE}});
        let first = post(&client, &path, &body, &path).await;
        client.post(&path, json!({"step_data": {"t": "what comes later changes nothing"}})).await.data();
        let again = post(&client, &path, &body, &path).await;
        assert!(first.text().contains(SIGNATURE), "{}", first.text());
        assert_eq!((again.text(), again.header("idempotent-replayed")), (first.text(), "true"));
    }
}

#[tokio::test]
async fn an_answer_too_long_to_be_kept_is_refused_before_anything_is_done() {
    let (api, client) = Api::with_tenant().await;
    let options: Vec<String> = (0..20).map(|n| format!("{n}{}", "x".repeat(50))).collect();
    let step = |n| json!({"type": "select", "key": format!("k{n}"), "label": "L", "options": options});
    let steps: Vec<Value> = (0..50).map(step).collect();
    let process = json!({"name": "P", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", process).await.id();
    let mut assets = Vec::new();
    for n in 0..20 {
        assets.push(client.asset(json!({"name": format!("{n}")})).await);
    }
    let (start, body) = (format!("/processes/{process}/start"), json!({"asset_ids": assets}));
    let before = api.dump().await;
    let reply = post(&client, &start, &body, "k").await;
    assert_eq!(reply.field_errors(), ["Idempotency-Key"]);
    let rest = |dump: crate::support::Dump| dump.0.into_iter().filter(|item| !item.contains("NUMBER#")).collect::<Vec<_>>();
    assert_eq!(rest(api.dump().await), rest(before));
    client.post(&start, body).await.data();
}
