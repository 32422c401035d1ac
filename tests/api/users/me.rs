//! `GET /v1/me`: the owner of a key.

use crate::support::{Api, over_http};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_key_says_what_it_is_and_what_it_permits() {
    let (api, client) = Api::with_tenant().await;
    let body =
        json!({"name": "scanner", "scopes": ["assets:read"], "rate_limit_per_minute": 7, "expires_at": "2027-01-01T00:00:00Z"});
    let key = client.post("/keys", body).await.data();
    let me = client.with_key_of(&key).get("/me").await.data();
    let expected = json!({
        "key": {
            "id": key["id"], "name": "scanner", "prefix": key["prefix"], "scopes": ["assets:read"],
            "expires_at": "2027-01-01T00:00:00.000Z", "rate_limit_per_minute": 7, "created_at": key["created_at"]
        },
        "tenant": {"id": client.tenant.to_string(), "name": "Acme", "time_zone": "UTC", "locale": "en"},
        "user": null
    });
    assert_eq!(me, expected);
    client.patch("/settings", json!({"name": "New Acme", "time_zone": "Europe/Berlin"})).await.data();
    let tenant = client.get("/me").await.data()["tenant"].clone();
    assert_eq!((&tenant["name"], &tenant["time_zone"]), (&json!("New Acme"), &json!("Europe/Berlin")));
    let other = api.tenant().await;
    assert_eq!(other.get("/me").await.data()["tenant"]["id"], other.tenant.to_string());
}

#[tokio::test(start_paused = true)]
async fn the_owner_and_what_the_role_leaves_of_the_scopes_are_shown() {
    let client = over_http().await;
    let body = json!({"email": "ada@example.com", "display_name": "Ada", "role": "viewer"});
    let ada = client.post("/users", body).await.id();
    let key = json!({"name": "ada's", "scopes": ["assets:read", "assets:write", "keys:read"], "user_id": ada});
    let bound = client.with_key_of(&client.post("/keys", key).await.data());
    let me = bound.get("/me").await.data();
    assert_eq!(me["key"]["scopes"], json!(["assets:read"]));
    assert_eq!(me["user"], json!({"id": ada, "email": "ada@example.com", "display_name": "Ada", "role": "viewer"}));
    client.patch(&format!("/users/{ada}"), json!({"role": "technician", "display_name": "Countess"})).await.data();
    let me = bound.get("/me").await.data();
    assert_eq!(
        (&me["key"]["scopes"], &me["user"]["display_name"]),
        (&json!(["assets:read", "assets:write"]), &json!("Countess"))
    );
    client.patch(&format!("/users/{ada}"), json!({"is_active": false})).await.data();
    bound.get("/me").await.problem(401, "UNAUTHORIZED");
}

#[tokio::test(start_paused = true)]
async fn it_needs_a_valid_key_and_counts_against_its_rate() {
    let (api, client) = Api::with_tenant().await;
    for key in ["", "apl_x"] {
        client.with_key(key).get("/me").await.problem(401, "UNAUTHORIZED");
    }
    let limited = api.limited_tenant(2).await;
    limited.get("/me").await.data();
    let last = limited.get("/me").await;
    assert_eq!((last.status.as_u16(), last.header("x-ratelimit-remaining")), (200, "0"));
    limited.get("/me").await.problem(429, "RATE_LIMITED");
    assert_eq!(client.get("/me?x=1").await.field_errors(), ["x"]);
}

#[tokio::test(start_paused = true)]
async fn it_takes_one_round_trip_and_shows_when_a_rotated_secret_ends() {
    let (api, client) = Api::with_tenant().await;
    let key = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let old = client.with_key_of(&key);
    old.get("/me").await.data();
    // In its first minute, a key shares the limit of the one that created it.
    api.advance_clock(60);
    api.meter.take();
    assert_eq!(old.get("/me").await.data()["key"]["expires_at"], Value::Null);
    let cost = api.meter.take();
    // The key, its count and, once a minute, the tenant's limit.
    assert_eq!((cost.round_trips, cost.calls), (1, 3), "{cost:?}");
    let path = format!("/keys/{}/rotate", key["id"].as_str().unwrap());
    client.post(&path, json!({"grace_seconds": 60})).await.data();
    assert!(old.get("/me").await.data()["key"]["expires_at"].is_string());
}
