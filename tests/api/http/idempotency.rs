//! Idempotency keys: a repeated POST is executed once.

use crate::support::bulk::outcomes;
use crate::support::operations::operations;
use crate::support::processes::{create_process, start_movement};
use crate::support::samples::{SIGNATURE, Samples, content_type};
use crate::support::{Api, Client, Reply, at_each_place};
use dev_server::faulty_table::planned::CallFailure;
use serde_json::{Value, json};

pub async fn post(client: &Client, path: &str, body: &Value, key: &str) -> Reply {
    let headers = [("idempotency-key", key)];
    client.send_with("POST", path, Some("application/json"), body.to_string(), &headers).await
}

/// The member that a creation shows once: the text of a key, the URL of a signing link, the secret of a webhook.
fn shown_once(path: &str) -> Option<&'static str> {
    let names = [("/keys", "api_key"), ("/links", "url"), ("/webhooks", "secret")];
    names.iter().find(|(part, _)| path.contains(part)).map(|(_, name)| *name)
}

/// The body without the member that is shown once.
fn stored(path: &str, reply: &Reply) -> Value {
    let mut body = reply.json();
    if let (Some(data), Some(name)) = (body["data"].as_object_mut(), shown_once(path)) {
        data.remove(name);
    }
    body
}

#[tokio::test]
async fn every_repeated_post_gets_the_first_response_and_is_executed_once() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let (_, operations) = operations(&client).await;
    let mut replayed = 0;
    for operation in operations.iter().filter(|operation| operation.method == "POST") {
        let (path, body) = samples.request("POST", &operation.path);
        let key = format!("key of {path}");
        let send = async |body: &str| {
            let headers = [("idempotency-key", key.as_str())];
            client.send_with("POST", &path, Some(content_type(&operation.path)), body.to_owned(), &headers).await
        };
        let first = send(&body).await;
        assert!(first.status.is_success(), "{path}: {}", first.text());
        assert_eq!(first.header("idempotent-replayed"), "");
        let before = api.dump().await;
        let again = send(&body).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (first.status, "true"), "{path}: {}", again.text());
        assert_eq!(stored(&path, &again), stored(&path, &first), "{path}");
        let secret = shown_once(&path).and_then(|name| again.json()["data"].get(name).cloned());
        assert_eq!(secret, None, "the secret was stored");
        assert_eq!(again.header("location"), first.header("location"));
        if !path.starts_with("/keys") {
            assert_eq!(again.header("etag"), first.header("etag"), "{path}");
        }
        assert_eq!(send(&format!("{body} ")).await.field_errors(), ["Idempotency-Key"], "{path}");
        assert_eq!(api.dump().await, before, "{path} was executed again");
        replayed += 1;
    }
    assert!(replayed >= 12, "only {replayed} endpoints");
}

#[tokio::test(start_paused = true)]
async fn sixteen_simultaneous_requests_are_executed_once() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let step = |key: &str| json!({"type": "text", "key": key, "label": "L"});
    let process = create_process(&client, json!([step("a"), step("b"), step("c")])).await;
    let start = format!("/processes/{process}/start");
    let instance = post(&client, &start, &json!({"asset_id": asset}), "start").await.id();
    let advance = format!("/processes/instances/{instance}/advance");
    let clients = [0, -1500].map(|skew| api.replica(skew, usize::MAX).client(&client));
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
    assert_eq!(client.total("/assets?q=once").await, 1);
    assert_eq!(client.get(&format!("/processes/instances/{instance}")).await.data()["current_step"], 1);
}

#[tokio::test]
async fn a_request_repeated_after_any_failed_call_is_executed_once() {
    let (api, client) = Api::with_tenant().await;
    at_each_place(&CallFailure::ALL, 5, 6, async |place, failure| {
        let name = format!("{failure:?} {place}");
        api.faults.fail_call(place, failure);
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
        let has_failed = api.faults.stop_failing();
        let query = name.replace(' ', "%20");
        let found = client.get(&format!("/assets?q={query}")).await.json();
        let exactly = found["data"].as_array().unwrap().iter().filter(|asset| asset["name"] == name.as_str()).count();
        assert_eq!(exactly, 1, "{name}");
        has_failed
    })
    .await;
}

#[tokio::test]
async fn a_response_is_stored_for_a_day_and_for_one_api_key() {
    let (api, client) = Api::with_tenant().await;
    let other = client.scoped(&["assets:read", "assets:write"]).await;
    let body = json!({"name": "n"});
    let first = post(&client, "/assets", &body, "k").await.id();
    assert_ne!(post(&other, "/assets", &body, "k").await.id(), first, "it is stored for one API key");
    assert_eq!(
        post(&client, "/users", &json!({"email": "a@b.c", "display_name": "A"}), "k").await.field_errors(),
        ["Idempotency-Key"]
    );
    api.advance_clock(24 * 3600 - 60);
    assert_eq!(post(&client, "/assets", &body, "k").await.id(), first);
    api.advance_clock(120);
    assert_ne!(post(&client, "/assets", &body, "k").await.id(), first, "a day has passed");
}

#[tokio::test]
async fn a_refused_request_may_be_corrected_under_the_same_key() {
    let (_api, client) = Api::with_tenant().await;
    assert_eq!(post(&client, "/assets", &json!({"name": ""}), "k").await.field_errors(), ["/name"]);
    assert_eq!(post(&client, "/assets", &json!({"name": "n"}), "k").await.status, 201);
    for invalid in ["", "ä", &"x".repeat(256)] {
        assert_eq!(
            post(&client, "/assets", &json!({"name": "n"}), invalid).await.field_errors(),
            ["Idempotency-Key"],
            "{invalid}"
        );
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    let reply = client.send_with("POST", "/assets", Some("application/json"), r#"{"name":"n"}"#, &twice).await;
    assert_eq!(reply.field_errors(), ["Idempotency-Key"]);
}

#[tokio::test]
async fn a_replayed_response_contains_the_signature() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "signature", "key": "s", "label": "S"}, {"type": "text", "key": "t", "label": "T"}]);
    let process = create_process(&client, json!(steps)).await;
    let mut assets = Vec::new();
    for name in ["a", "b", "c"] {
        assets.push(client.asset(json!({"name": name})).await);
    }
    let start = format!("/processes/{process}/start");
    let instance = client.post(&start, json!({"asset_id": assets[0]})).await.id();
    let movement = client.post(&start, json!({"asset_ids": assets[1..]})).await.id();
    for path in [format!("/processes/instances/{instance}/advance"), format!("/movements/{movement}/advance")] {
        let body = json!({"step_data": {"s": SIGNATURE}});
        let first = post(&client, &path, &body, &path).await;
        client.post(&path, json!({"step_data": {"t": "a later step changes nothing"}})).await.data();
        let again = post(&client, &path, &body, &path).await;
        assert!(first.text().contains(SIGNATURE), "{}", first.text());
        assert_eq!((again.text(), again.header("idempotent-replayed")), (first.text(), "true"));
    }
}

#[tokio::test]
async fn a_request_whose_response_is_too_long_to_store_is_refused_before_it_is_executed() {
    let (api, client) = Api::with_tenant().await;
    let step = |key: &str| json!({"type": "textarea", "key": key, "label": "L"});
    let process = create_process(&client, json!([step("a"), step("b"), step("c")])).await;
    let ids = client.assets(20).await;
    let movement = start_movement(&client, &process, &ids).await;
    let advance = format!("/movements/{}/advance", movement["id"].as_str().unwrap());
    let body = json!({"step_data": {"a": "x".repeat(9_500), "b": "x".repeat(9_500)}});
    let before = api.dump().await;
    assert_eq!(post(&client, &advance, &body, "k").await.field_errors(), ["Idempotency-Key"]);
    assert_eq!(api.dump().await, before);
    client.post(&advance, body).await.data();
}

#[tokio::test]
async fn the_same_text_as_csv_and_as_ndjson_are_two_requests() {
    let (_api, client) = Api::with_tenant().await;
    let text = "{\"name\":\"a\"}\n{\"name\":\"b\"}\n";
    let send = async |content_type| {
        let headers = [("idempotency-key", "k")];
        client.send_with("POST", "/assets/import", Some(content_type), text, &headers).await
    };
    assert_eq!(outcomes(&send("application/x-ndjson").await), ["created"; 2]);
    assert_eq!(outcomes(&send("Application/X-NDJSON; charset=utf-8").await), ["created"; 2]);
    assert_eq!(send("text/csv").await.field_errors(), ["Idempotency-Key"]);
    assert_eq!(client.total("/assets").await, 2);
}
