//! API keys: creating, rotating and revoking them, and their scopes.

use crate::support::{Api, call, over_http};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_key_is_shown_once_and_works_immediately() {
    let (api, client) = Api::with_tenant().await;
    let made =
        client.post("/keys", json!({"name": "ci", "scopes": ["assets:read"], "expires_at": "2027-01-01T00:00:00+01:00"})).await;
    assert_eq!(made.status, 201);
    let key = made.data();
    let text = key["api_key"].as_str().unwrap();
    assert_eq!(key["prefix"], text[..12]);
    assert_eq!(
        (key["rate_limit_per_minute"].as_u64(), key["expires_at"].as_str()),
        (Some(600), Some("2026-12-31T23:00:00.000Z"))
    );
    assert!(key["last_used_at"].is_null() && key["user_id"].is_null() && key["created_by"].is_string());
    let read = client.get(made.header("location").strip_prefix("/v1").unwrap()).await;
    assert!(!read.text().contains(text) && read.data().get("api_key").is_none());
    assert_eq!(client.with_key(text).get("/assets").await.status, 200);
    let secret = &text[4 + 44..4 + 88];
    assert!(!api.dump().await.0.iter().any(|item| item.contains(secret)), "the secret is in the table");
    assert!(!client.get("/keys").await.text().contains(secret));
}

#[tokio::test(start_paused = true)]
async fn a_key_grants_only_scopes_that_its_creator_has() {
    let (api, client) = Api::with_tenant().await;
    let limited = client.scoped(&["keys:write", "assets:read"]).await;
    let before = api.dump().await;
    let refused = limited.post("/keys", json!({"name": "x", "scopes": ["assets:read", "assets:write"]})).await;
    assert_eq!(refused.problem(403, "FORBIDDEN")["scope"], "assets:write");
    // A caller who rotates a key has its scopes afterwards.
    let own = client.get("/keys?limit=1&page=2").await.data()[0]["id"].as_str().unwrap().to_owned();
    limited.post(&format!("/keys/{own}/rotate"), json!({})).await.problem(403, "FORBIDDEN");
    assert_eq!(api.dump().await, before);
    limited.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_is_refused_with_the_next_request() {
    let client = over_http().await;
    let made = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let other = client.with_key_of(&made);
    other.get("/assets").await.data();
    let path = format!("/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(client.delete(&path).await.data()["name"], "x");
    other.get("/assets").await.problem(401, "UNAUTHORIZED");
    client.get(&path).await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_key_expires_to_the_millisecond() {
    let (api, client) = Api::with_tenant().await;
    let end = api.now().plus_seconds(60);
    let made = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"], "expires_at": end.to_string()})).await.data();
    let other = client.with_key_of(&made);
    other.get("/assets").await.data();
    api.advance_clock(60);
    other.get("/assets").await.problem(401, "UNAUTHORIZED");
    let past = json!({"name": "x", "scopes": ["assets:read"], "expires_at": "2020-01-01T00:00:00Z"});
    assert_eq!(client.post("/keys", past).await.field_errors(), ["/expires_at"]);
}

#[tokio::test(start_paused = true)]
async fn a_rotation_ends_the_old_secret_after_its_grace() {
    let (api, client) = Api::with_tenant().await;
    let made = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let path = format!("/keys/{}/rotate", made["id"].as_str().unwrap());
    let first = client.with_key_of(&made);
    let second = client.post(&path, json!({"grace_seconds": 60})).await.data();
    assert_eq!(second["id"], made["id"]);
    let second = client.with_key_of(&second);
    first.get("/assets").await.data();
    second.get("/assets").await.data();
    api.advance_clock(60);
    first.get("/assets").await.problem(401, "UNAUTHORIZED");
    let third = client.send("POST", &path, None, "").await.data();
    second.get("/assets").await.problem(401, "UNAUTHORIZED");
    client.with_key_of(&third).get("/assets").await.data();
    for invalid in [json!(-1), json!(604_801), json!("1"), json!(1.5)] {
        assert_eq!(client.post(&path, json!({"grace_seconds": invalid})).await.field_errors(), ["/grace_seconds"]);
    }
}

#[tokio::test(start_paused = true)]
async fn two_rotations_within_a_millisecond_both_replace_the_secret() {
    let (api, client) = Api::with_tenant().await;
    let created = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let path = format!("/keys/{}/rotate", created["id"].as_str().unwrap());
    api.stop_clock();
    let first = client.post(&path, json!({})).await.data();
    let second = client.post(&path, json!({})).await.data();
    for replaced in [&created, &first] {
        client.with_key(replaced["api_key"].as_str().unwrap()).get("/assets").await.problem(401, "UNAUTHORIZED");
    }
    client.with_key(second["api_key"].as_str().unwrap()).get("/assets").await.data();
    // Both are in the key's history, although the second changed nothing that the history shows.
    api.advance_clock(60);
    let events = client.get("/events?limit=100").await.data();
    let updates = events.as_array().unwrap().iter().filter(|event| event["type"] == "key.updated");
    let mut rotated: Vec<(u64, bool)> =
        updates.map(|event| (event["version"].as_u64().unwrap(), event["changes"].get("rotated_at").is_some())).collect();
    rotated.sort_unstable();
    assert_eq!(rotated, [(2, true), (3, false)]);
}

#[tokio::test(start_paused = true)]
async fn of_two_simultaneous_rotations_neither_returns_a_key_that_does_not_work() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let made = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let path = format!("/keys/{}/rotate", made["id"].as_str().unwrap());
    let rotate = || client.post(&path, json!({}));
    let (late, rotated) = api.faults.overtake("TransactWriteItems", rotate(), rotate()).await;
    late.problem(409, "CONFLICT");
    client.with_key_of(&rotated.data()).get("/assets").await.data();
}

#[tokio::test(start_paused = true)]
async fn a_bound_key_has_at_most_the_rights_of_its_owner() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let path = format!("/users/{user}");
    let all: Vec<Value> = shared::domain::keys::scope::Scope::ALL.iter().map(|scope| json!(scope)).collect();
    let made = client.post("/keys", json!({"name": "ada's", "scopes": all, "user_id": user})).await.data();
    let bound = client.with_key_of(&made);
    bound.get("/assets").await.data();
    assert_eq!(bound.post("/assets", json!({"name": "x"})).await.problem(403, "FORBIDDEN")["scope"], "assets:write");
    client.patch(&path, json!({"role": "technician"})).await.data();
    bound.post("/assets", json!({"name": "x"})).await.data();
    bound.get("/keys").await.problem(403, "FORBIDDEN");
    client.patch(&path, json!({"is_active": false})).await.data();
    bound.get("/assets").await.problem(401, "UNAUTHORIZED");
    assert_eq!(
        client.post("/keys", json!({"name": "x", "scopes": ["assets:read"], "user_id": user})).await.field_errors(),
        ["/user_id"]
    );
    client.patch(&path, json!({"is_active": true, "role": "admin"})).await.data();
    bound.get("/keys").await.data();
    client.delete(&path).await.data();
    bound.get("/assets").await.problem(401, "UNAUTHORIZED");
}

#[tokio::test(start_paused = true)]
async fn the_last_use_is_recorded_once_an_hour() {
    let (api, client) = Api::with_tenant().await;
    let made = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let other = client.with_key_of(&made);
    let used = async || client.get(&format!("/keys/{}", made["id"].as_str().unwrap())).await.data()["last_used_at"].clone();
    assert!(used().await.is_null());
    other.get("/assets").await.data();
    let first = used().await;
    assert!(first.is_string());
    api.advance_clock(3000);
    other.get("/assets").await.data();
    assert_eq!(used().await, first);
    api.advance_clock(601);
    other.get("/assets").await.data();
    assert!(used().await.as_str() > first.as_str());
}

#[tokio::test(start_paused = true)]
async fn invalid_fields_of_a_key_are_refused_by_name() {
    let client = over_http().await;
    let body = json!({"name": "", "scopes": ["assets"], "user_id": "x", "expires_at": "tomorrow", "rate_limit_per_minute": 0, "prefix": "x"});
    let faults = ["/expires_at", "/name", "/prefix", "/rate_limit_per_minute", "/scopes/0", "/user_id"];
    assert_eq!(client.post("/keys", body).await.field_errors(), faults);
    assert_eq!(client.post("/keys", json!({"name": "x", "scopes": []})).await.field_errors(), ["/scopes"]);
    let scopes = json!(["assets:read", "assets", "users:read", 1]);
    assert_eq!(client.post("/keys", json!({"name": "x", "scopes": scopes})).await.field_errors(), ["/scopes/1", "/scopes/3"]);
}

#[tokio::test(start_paused = true)]
async fn only_one_well_formed_authorization_header_counts() {
    let client = over_http().await;
    let send = async |values: &[&str]| {
        let mut request = axum::http::Request::builder().uri("/v1/assets");
        for value in values {
            request = request.header("authorization", *value);
        }
        let request = request.body(axum::body::Body::empty()).unwrap();
        call(&client.router, request).await.status.as_u16()
    };
    let key = client.key.as_str();
    assert_eq!(send(&[&format!("Bearer {key}")]).await, 200);
    assert_eq!(send(&[&format!("bearer {key}")]).await, 200);
    for wrong in
        [vec![key.to_owned()], vec![format!("Basic {key}")], vec![format!("Bearer {key}"), format!("Bearer {key}")], vec![]]
    {
        let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
        assert_eq!(send(&wrong).await, 401, "{} values", wrong.len());
    }
}

/// Each wrong entry has an error, but a body of a megabyte must not have half a million.
#[tokio::test(start_paused = true)]
async fn errors_of_scopes_are_bounded() {
    let client = over_http().await;
    let body = json!({"name": "k", "scopes": vec![1; 100_000]});
    let problem = client.post("/keys", body).await.problem(422, "VALIDATION_ERROR");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 1000);
}
