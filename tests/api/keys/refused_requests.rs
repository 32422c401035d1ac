//! The bodies of refused requests cost nothing but their bytes.

use crate::support::operations::operations;
use crate::support::processes::dotted_signature;
use crate::support::samples::{Samples, content_type};
use crate::support::{Api, Client, UNKNOWN_ID, sample};
use axum::body::Bytes;
use dev_server::meter::cpu_time;
use serde_json::{Map, Value, json};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::domain::keys::scope::Scope;
use std::time::Duration;

const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Runs of each request. The cheapest run counts, since the machine may be busy with others.
const RUNS: usize = 3;
/// The time to receive a megabyte in a debug build.
const RECEIVING: Duration = Duration::from_millis(4);

/// `text` as often as it fits into `bytes`, separated by commas.
fn list_of(text: &str, bytes: usize) -> String {
    vec![text; bytes / (text.len() + 1)].join(",")
}

/// An object of so many bytes with distinct members.
fn many_members(bytes: usize) -> String {
    let members: Vec<String> = (0..bytes / 11).map(|n| format!("\"{n:06x}\":1")).collect();
    format!("{{{}}}", members.join(","))
}

/// Bodies that take longest to read, by name.
fn heavy_bodies() -> Vec<(&'static str, String)> {
    let large = MAX_BODY_BYTES - 1024;
    let patterns: Vec<Value> = (0..200).map(|n| json!({"pattern": format!(r"\pL{{20}}%{n}")})).collect();
    let schema = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": {"allOf": patterns}});
    let image = dotted_signature(2000, 2000);
    let images: Map<_, _> = (0..50).map(|n| (format!("s{n}"), json!(image))).collect();
    let users: Map<_, _> = (0..50).map(|n| (format!("u{n}"), json!(UNKNOWN_ID))).collect();
    let marks = "\u{0323}\u{0301}".repeat(large / 8);
    let steps: Vec<Value> = (0..5_000).map(|n| json!({"type": "text", "key": format!("k{n}"), "label": "L"})).collect();
    vec![
        ("a schema", schema.to_string()),
        ("nesting", format!("{}{}", "[".repeat(large / 2), "]".repeat(large / 2))),
        ("nested custom fields", format!(r#"{{"custom_fields":{}{}}}"#, "[".repeat(large / 2), "]".repeat(large / 2))),
        ("members", many_members(large)),
        ("custom fields", format!(r#"{{"name":"n","custom_fields":{}}}"#, many_members(large))),
        ("signatures", json!({"step_data": images}).to_string()),
        ("users", json!({"step_data": users}).to_string()),
        ("ids", format!(r#"{{"asset_ids":[{}]}}"#, list_of(&format!("\"{UNKNOWN_ID}\""), large))),
        ("combining characters", json!({"name": marks, "display_name": marks}).to_string()),
        ("steps", json!({"name": "n", "steps": steps}).to_string()),
        ("rows", format!("name,notes\n{}", "\"a\",\"\"\"\"\n".repeat(large / 9))),
        ("operations", format!(r#"{{"operations":[{}]}}"#, list_of(r#"{"op":"create","body":{"name":"n"}}"#, large))),
        ("scopes", format!(r#"{{"name":"n","scopes":[{}]}}"#, list_of("\"assets:read\"", large))),
    ]
}

async fn least_time(client: &Client, method: &str, path: &str, body: &Bytes, status: u16) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        let before = cpu_time();
        let reply = client.send(method, path, Some(content_type(path)), body.clone()).await;
        least = least.min(cpu_time() - before);
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
    }
    least
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_takes_no_time_for_its_body_on_any_route() {
    let (api, client) = Api::with_tenant().await;
    api.stop_clock();
    let samples = Samples::create(&client).await;
    let (_, operations) = operations(&client).await;
    let bodies: Vec<(&str, Bytes)> = heavy_bodies().into_iter().map(|(name, body)| (name, body.into())).collect();
    assert!(bodies.iter().all(|(_, body)| body.len() <= MAX_BODY_BYTES));
    let all: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let unscoped = json!({"name": "k", "scopes": ["events:read"], "rate_limit_per_minute": MAX_RATE_LIMIT});
    let unscoped = client.with_key_of(&client.post("/keys", unscoped).await.data());
    let exhausted = json!({"name": "k", "scopes": all, "rate_limit_per_minute": 1});
    let exhausted = client.with_key_of(&client.post("/keys", exhausted).await.data());
    exhausted.get("/settings").await.data();
    for (name, refused, status) in [
        ("an unknown key", client.stranger(), 401),
        ("a key without the scope", unscoped, 403),
        ("an exhausted key", exhausted, 429),
    ] {
        refused.get("/events").await;
        let with_body = operations.iter().filter(|operation| matches!(operation.method.as_str(), "POST" | "PATCH" | "PUT"));
        for operation in sample(with_body, 4) {
            let (path, _) = samples.request(&operation.method, &operation.path);
            let empty = least_time(&refused, &operation.method, &path, &Bytes::new(), status).await;
            for (body_name, body) in &bodies {
                let time = least_time(&refused, &operation.method, &path, body, status).await;
                assert!(time <= empty * 2 + RECEIVING, "{name}, {operation}: {body_name} took {time:?}, nothing {empty:?}");
            }
        }
    }
}
