//! Unauthenticated requests cost at most two read units, and their bodies aren't parsed.

use crate::support::prelude::*;
use axum::body::Bytes;
use dev_server::meter::cpu_time;
use dev_server::test_data::{made_up_key, unknown_tenant};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;

const MAX_UNITS: f64 = 2.0;

/// Returns invalid keys by name. Keys that were valid at first were used before they became invalid.
async fn strangers(api: &Api, client: &Client) -> Vec<(&'static str, String)> {
    let mut strangers = vec![
        ("a made-up key", client.stranger().key),
        ("a wrong secret", client.impostor().key),
        ("an unknown tenant", made_up_key(unknown_tenant())),
    ];
    let scopes = json!(["assets:read", "users:read", "processes:read", "catalog:read"]);
    let user = client.user("Ada").await;
    for (name, more) in [
        ("a revoked key", json!({})),
        ("an expired key", json!({"expires_at": api.now().plus_seconds(60)})),
        ("an inactive owner", json!({"user_id": user})),
    ] {
        let mut body = json!({"name": name, "scopes": scopes});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or(Map::new()));
        let made = client.post("/keys", body).await.data();
        let key = made["api_key"].as_str().unwrap().to_owned();
        client.with_key(&key).get("/assets").await.data();
        if name == "a revoked key" {
            client.delete(&format!("/keys/{}", made["id"].as_str().unwrap())).await.data();
        }
        strangers.push((name, key));
    }
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    api.advance_clock(61);
    strangers
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_valid_key_costs_at_most_two_units_on_every_route() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let strangers = strangers(&api, &client).await;
    // Loads all list indexes of the warm function.
    for operation in operations.iter().filter(|operation| operation.method == "GET") {
        operation.send(&client, &samples).await;
    }
    for (name, key) in strangers {
        let Replica { router: cold, .. } = api.replica(0, 1 << 20);
        for (function, router) in [("cold", cold), ("warm", client.router.clone())] {
            let stranger = Client { router, ..client.with_key(&key) };
            // For a recently verified key, the first request starts its reads before the check.
            stranger.get("/users").await.problem(401, "UNAUTHORIZED");
            for operation in sample(operations, 10) {
                let (reply, cost) = api.cost(operation.send(&stranger, &samples)).await;
                assert_eq!(reply.status == 401, operation.needs_key, "{name}, {operation}");
                let units = cost.read_units + cost.write_units;
                assert!(units <= MAX_UNITS, "{name}, {function} function, {operation}: {cost:?}");
            }
        }
    }
}

/// None of the items named by a request's body or headers is read.
#[tokio::test(start_paused = true)]
async fn what_a_stranger_sends_does_not_matter() {
    let (api, client, samples) = Api::with_samples().await;
    let ids: Vec<String> = (0..20u8).map(|n| ApiKeyId::new(api.now(), [n; 10]).to_string()).collect();
    let data: Map<_, _> = ids.iter().map(|id| (format!("k{}", &id[30..]), json!(id))).collect();
    let stranger = client.stranger();
    let advance = samples.path("/v1/processes/instances/{id}/advance");
    for (path, body) in
        [(advance.as_str(), json!({"step_data": data})), ("/assets", json!({"name": "n", "asset_type_id": ids[0]}))]
    {
        api.faults.take_requests();
        let header = ("idempotency-key", "a-key");
        stranger.send_json("POST", path, &body.to_string(), header).await.problem(401, "UNAUTHORIZED");
        let requests = api.faults.take_requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_first_request_of_a_key_waits_for_its_check() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "a"})).await);
    let other = api.replica(0, 1 << 20).client(&client);
    let mut round_trips = Vec::new();
    for wait in [0, 0, 60, 16 * 60, 0] {
        api.advance_clock(wait);
        api.meter.take();
        other.get(&path).await.data();
        round_trips.push(api.meter.take().round_trips);
    }
    assert_eq!(round_trips, [2, 1, 1, 2, 1]);
}

/// A cached verification only starts reads early. Access is still decided by a read of the key.
#[tokio::test(start_paused = true)]
async fn a_key_that_was_verified_lately_is_refused_at_once_and_costs_early_reads_once() {
    let (api, client) = Api::with_tenant().await;
    let made = client.post("/keys", json!({"name": "k", "scopes": ["assets:read"]})).await.data();
    let caller = client.with_key(made["api_key"].as_str().unwrap());
    caller.get("/assets").await.data();
    let path = format!("/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(client.delete(&path).await.data()["name"], "k");
    let mut calls = Vec::new();
    for _ in 0..3 {
        api.meter.take();
        caller.get("/assets").await.problem(401, "UNAUTHORIZED");
        calls.push(api.meter.take().calls);
    }
    assert!(calls[0] <= 3 && calls[1..] == [1, 1], "{calls:?}");
    client.get(&path).await.problem(404, "NOT_FOUND");
}

const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Runs of each request. The fastest counts, because the machine can be busy.
const RUNS: usize = 3;
/// Time to receive a megabyte in a debug build.
const RECEIVING: Duration = Duration::from_millis(4);

fn list_of(text: &str, bytes: usize) -> String {
    vec![text; bytes / (text.len() + 1)].join(",")
}

/// Returns an object of this many bytes with distinct members.
fn many_members(bytes: usize) -> String {
    let members: Vec<String> = (0..bytes / 11).map(|n| format!("\"{n:06x}\":1")).collect();
    format!("{{{}}}", members.join(","))
}

/// Returns the bodies that are slowest to parse, by name.
fn heavy_bodies() -> Vec<(&'static str, String)> {
    let large = MAX_BODY_BYTES - 1024;
    let property = |n: usize| (format!("f{n}"), json!({"type": "string", "pattern": format!(r"\pL{{8}}%{n}")}));
    let patterns = json!({"properties": (0..100).map(property).collect::<Map<_, _>>()});
    let schema = json!({"name": "T", "code": "TT", "kind": "physical", "custom_fields_schema": patterns});
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
    let (api, client, samples) = Api::with_samples().await;
    api.stop_clock();
    let (_, operations) = operations();
    let bodies: Vec<(&str, Bytes)> = heavy_bodies().into_iter().map(|(name, body)| (name, body.into())).collect();
    assert!(bodies.iter().all(|(_, body)| body.len() <= MAX_BODY_BYTES));
    let all: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let unscoped = json!({"name": "k", "scopes": ["events:read"], "rate_limit_per_minute": MAX_RATE_LIMIT});
    let unscoped = client.with_new_key(unscoped).await;
    let exhausted = json!({"name": "k", "scopes": all, "rate_limit_per_minute": 1});
    let exhausted = client.with_new_key(exhausted).await;
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
                let mut time = least_time(&refused, &operation.method, &path, body, status).await;
                // Other work on the machine can delay a few runs in a row.
                for _ in 0..9 {
                    if time > empty * 2 + RECEIVING {
                        time = time.min(least_time(&refused, &operation.method, &path, body, status).await);
                    }
                }
                assert!(time <= empty * 2 + RECEIVING, "{name}, {operation}: {body_name} took {time:?}, nothing {empty:?}");
            }
        }
    }
}

/// Handlers start to read and could write, but the key check stops them.
#[tokio::test(start_paused = true)]
async fn a_key_that_was_verified_lately_and_is_revoked_writes_nothing_on_any_route() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let scopes: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    for operation in sample(operations.iter().filter(|operation| operation.is_write()), 10) {
        let made = client.post("/keys", json!({"name": "k", "scopes": scopes})).await.data();
        let caller = client.with_key_of(&made);
        caller.use_key_once().await;
        client.delete(&format!("/keys/{}", made["id"].as_str().unwrap())).await.data();
        let before = api.dump().await;
        operation.send(&caller, &samples).await.problem(401, "UNAUTHORIZED");
        assert!(api.dump().await == before, "{operation} changed the table");
    }
}
