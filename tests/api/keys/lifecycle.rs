//! API keys: creating, rotating and revoking them. A key can't grant rights that it doesn't have.

use crate::support::prelude::*;
use proptest::prelude::*;
use shared::domain::keys::api_key::ApiKey;

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
    // Rotating a key gives the caller that key's scopes, so the key must not have more scopes than the caller.
    let own = client.get("/keys?limit=1&page=2").await.data()[0]["id"].as_str().unwrap().to_owned();
    limited.post(&format!("/keys/{own}/rotate"), json!({})).await.problem(403, "FORBIDDEN");
    assert_eq!(api.dump().await, before);
    limited.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
}

#[tokio::test(start_paused = true)]
async fn a_key_expires_to_the_millisecond() {
    let (api, client) = Api::with_tenant().await;
    let end = api.now().plus_seconds(60);
    let other = client.with_new_key(json!({"name": "x", "scopes": ["assets:read"], "expires_at": end.to_string()})).await;
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

    // Of two simultaneous rotations, neither returns a key that doesn't work.
    client.use_key_once().await;
    let made = client.post("/keys", json!({"name": "x", "scopes": ["assets:read"]})).await.data();
    let path = format!("/keys/{}/rotate", made["id"].as_str().unwrap());
    let rotate = || client.post(&path, json!({}));
    let (late, rotated) = api.faults.overtake("TransactWriteItems", rotate(), rotate()).await;
    late.problem(409, "CONFLICT");
    client.with_key_of(&rotated.data()).get("/assets").await.data();
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
    // Both rotations are in the key's history, although the second one changed no visible field.
    api.advance_clock(60);
    let events = client.get("/events?limit=100").await.data();
    let updates = events.as_array().unwrap().iter().filter(|event| event["type"] == "key.updated");
    let mut rotated: Vec<(u64, bool)> =
        updates.map(|event| (event["version"].as_u64().unwrap(), event["changes"].get("rotated_at").is_some())).collect();
    rotated.sort_unstable();
    assert_eq!(rotated, [(2, true), (3, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_bound_key_has_at_most_the_rights_of_its_owner() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let path = format!("/users/{user}");
    let all: Vec<Value> = Scope::ALL.iter().map(|scope| json!(scope)).collect();
    let bound = client.with_new_key(json!({"name": "ada's", "scopes": all, "user_id": user})).await;
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
    let many = client.post("/keys", json!({"name": "x", "scopes": vec![1; 100_000]})).await;
    assert_eq!(many.field_errors().len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn only_one_well_formed_authorization_header_counts() {
    let client = over_http().await;
    let send = async |values: &[&str]| {
        let mut request = Request::builder().uri("/v1/assets");
        for value in values {
            request = request.header("authorization", *value);
        }
        let request = request.body(Body::empty()).unwrap();
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

const EXPIRY: &str = "2026-12-31T00:00:00.000Z";
const LATER: &str = "2027-12-31T00:00:00.000Z";

#[tokio::test(start_paused = true)]
async fn a_key_creates_and_rotates_only_keys_that_are_no_stronger() {
    let (api, client) = Api::with_tenant().await;
    let (user, other) = (client.user("Ada").await, client.user("Grace").await);
    client.patch(&format!("/users/{user}"), json!({"role": "admin"})).await.data();
    let own = json!({
        "name": "k", "scopes": ["keys:write", "assets:read"], "rate_limit_per_minute": 50, "expires_at": EXPIRY, "user_id": user
    });
    let weak = client.with_new_key(own.clone()).await;
    let weak_id = Token::parse(&weak.key).unwrap().id.to_string();
    weak.post("/keys", json!({"name": "", "scopes": ["assets:read"]})).await.field_errors();
    let before = api.dump().await;
    for (field, value) in [
        ("rate_limit_per_minute", json!(51)),
        ("expires_at", json!(LATER)),
        ("expires_at", Value::Null),
        ("user_id", Value::Null),
        ("user_id", json!(other)),
    ] {
        let mut body = own.clone();
        body[field] = value;
        let problem = weak.post("/keys", body).await.problem(403, "FORBIDDEN");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with("The API key "), "{problem}");
    }
    assert_eq!(api.dump().await, before, "a refused key was written");
    // Missing fields get the caller's values.
    let child = weak.post("/keys", json!({"name": "c", "scopes": ["assets:read"]})).await.data();
    assert_eq!((child["rate_limit_per_minute"].as_u64(), child["expires_at"].as_str()), (Some(50), Some(EXPIRY)));
    assert_eq!(child["user_id"], user);
    weak.post(&format!("/keys/{weak_id}/rotate"), json!({})).await.data();
    let weak = client.with_new_key(own.clone()).await;
    for (field, value) in [("rate_limit_per_minute", json!(51)), ("expires_at", json!(LATER)), ("user_id", json!(other))] {
        let mut body = own.clone();
        body[field] = value;
        let stronger = client.post("/keys", body).await.id();
        let problem = weak.post(&format!("/keys/{stronger}/rotate"), json!({})).await.problem(403, "FORBIDDEN");
        assert_eq!(problem["field"], field);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_a_role_above_their_own() {
    let client = over_http().await;
    let scoped = client.scoped(&["users:read", "users:write"]).await;
    let viewer = client.user("Ada").await;
    let path = format!("/users/{viewer}");
    for role in ["helpdesk", "technician", "admin"] {
        let problem = scoped.patch(&path, json!({"role": role})).await.problem(403, "FORBIDDEN");
        assert_eq!(problem["field"], "role");
        assert!(problem["detail"].as_str().unwrap().contains("has the effective role viewer"), "{problem}");
        let body = json!({"email": format!("{role}@example.com"), "display_name": "x", "role": role});
        scoped.post("/users", body).await.problem(403, "FORBIDDEN");
    }
    scoped.post("/users", json!({"email": "v@example.com", "display_name": "x"})).await.data();
    // A caller with all scopes of a role can grant the role. A user's existing higher role can be kept.
    let technician: Vec<&str> = Scope::ALL.iter().filter(|scope| Role::Technician.allows(**scope)).map(|s| s.as_str()).collect();
    let technician = client.scoped(&[technician, vec!["users:write"]].concat()).await;
    technician.patch(&path, json!({"role": "technician"})).await.data();
    technician.patch(&path, json!({"role": "admin"})).await.problem(403, "FORBIDDEN");
    client.patch(&path, json!({"role": "admin"})).await.data();
    let keeper = format!("/users/{}", client.user("Grace").await);
    client.patch(&keeper, json!({"role": "technician"})).await.data();
    scoped.patch(&keeper, json!({"role": "technician", "display_name": "y"})).await.data();
    // Reactivating a user grants the role again.
    scoped.patch(&keeper, json!({"is_active": false})).await.data();
    scoped.patch(&keeper, json!({"display_name": "z"})).await.data();
    assert_eq!(scoped.patch(&keeper, json!({"is_active": true})).await.problem(403, "FORBIDDEN")["field"], "role");
    // A bound key has its owner's role.
    let bound = json!({"name": "b", "scopes": ["users:write"], "user_id": viewer});
    let bound = client.with_new_key(bound).await;
    bound.post("/users", json!({"email": "a@example.com", "display_name": "x", "role": "admin"})).await.data();
}

#[tokio::test(start_paused = true)]
async fn key_of_a_user_is_made_and_rotated_only_from_the_rank_of_the_user() {
    let (api, client) = Api::with_tenant().await;
    let admin = client.user("Ada").await;
    let technician = client.user("Grace").await;
    client.patch(&format!("/users/{admin}"), json!({"role": "admin"})).await.data();
    client.patch(&format!("/users/{technician}"), json!({"role": "technician"})).await.data();
    let all_but_one: Vec<&str> = Scope::ALL.iter().filter(|scope| **scope != Scope::EventsRead).map(|s| s.as_str()).collect();
    let scoped = client.scoped(&all_but_one).await;
    let body = |user: &str| json!({"name": "k", "user_id": user, "scopes": ["users:write", "keys:write"]});
    let of_admin = client.post("/keys", body(&admin)).await.id();
    scoped.get("/me").await.data();
    let before = api.dump().await;
    let refusals = [scoped.post("/keys", body(&admin)).await, scoped.post(&format!("/keys/{of_admin}/rotate"), json!({})).await];
    for refused in refusals {
        let problem = refused.problem(403, "FORBIDDEN");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("role technician") && detail.contains("role admin"), "{problem}");
        assert_eq!(problem["field"], "user_id");
    }
    assert_eq!(api.dump().await, before, "a refused key was written");
    // The own rank is enough, and revoking needs none: it gives nobody a right.
    let of_technician = scoped.post("/keys", body(&technician)).await.id();
    scoped.post(&format!("/keys/{of_technician}/rotate"), json!({})).await.data();
    client.scoped(&["keys:write"]).await.delete(&format!("/keys/{of_admin}")).await.data();
}

#[tokio::test(start_paused = true)]
async fn user_promoted_during_the_request_gets_no_key_from_below() {
    let (api, client) = Api::with_tenant().await;
    let scoped = client.scoped(&["keys:write", "assets:read"]).await;
    let viewer = client.user("Ada").await;
    let path = format!("/users/{viewer}");
    let body = json!({"name": "k", "user_id": viewer, "scopes": ["assets:read"]});
    let key = scoped.post("/keys", body.clone()).await.id();
    scoped.get("/me").await.data();
    let promote = |role: &'static str| {
        let (client, path) = (client.clone(), path.clone());
        async move { drop(client.patch(&path, json!({"role": role})).await.data()) }
    };
    let created = api.faults.overtake("TransactWriteItems", scoped.post("/keys", body), promote("admin")).await.0;
    assert_eq!(created.problem(403, "FORBIDDEN")["field"], "user_id");
    client.patch(&path, json!({"role": "viewer"})).await.data();
    let rotate = format!("/keys/{key}/rotate");
    let rotated = api.faults.overtake("TransactWriteItems", scoped.post(&rotate, json!({})), promote("admin")).await.0;
    rotated.problem(409, "CONFLICT");
    scoped.post(&rotate, json!({})).await.problem(403, "FORBIDDEN");
}

#[tokio::test(start_paused = true)]
async fn admin_is_changed_only_by_who_counts_as_an_admin() {
    let (api, client) = Api::with_tenant().await;
    let admin = client.user("Ada").await;
    let path = format!("/users/{admin}");
    client.patch(&path, json!({"role": "admin"})).await.data();
    let scoped = client.scoped(&["users:read", "users:write", "processes:write", "assets:read"]).await;
    let email = scoped.get(&path).await.data()["email"].as_str().unwrap().to_owned();
    let before = api.dump().await;
    let batch = |op: &str, body: Value| json!({"operations": [{"op": op, "id": admin, "body": body}]});
    let changes =
        [json!({"is_active": false}), json!({"role": "viewer"}), json!({"display_name": "x"}), json!({"email": "x@example.com"})];
    let mut refused = Vec::new();
    for change in changes {
        refused.push(scoped.patch(&path, change.clone()).await);
        let reply = scoped.post("/users/batch", batch("update", change)).await;
        refused.push(reply);
    }
    refused.push(scoped.delete(&path).await);
    refused.push(scoped.post("/users/batch", json!({"operations": [{"op": "delete", "id": admin}]})).await);
    refused.push(scoped.post(&format!("{path}/offboard"), json!({})).await);
    refused.push(scoped.post(&format!("{path}/offboard"), json!({"deactivate": false})).await);
    refused.push(scoped.post(&format!("{path}/erase"), json!({})).await);
    for reply in refused {
        let problem = reply.problem(403, "FORBIDDEN");
        assert!(problem.to_string().contains("role viewer") && problem.to_string().contains("admin"), "{problem}");
    }
    let rows = format!("id,email,display_name\n{admin},{email},x\n");
    assert_eq!(outcomes(&scoped.import("/users", "?match=id", &rows).await), ["refused"]);
    let rows = format!("email,display_name\n{email},x\n");
    assert_eq!(outcomes(&scoped.import("/users", "?match=email", &rows).await), ["refused"]);
    assert_eq!(api.dump().await, before, "a refused change was written");
    // What changes nothing is no change.
    scoped.patch(&path, json!({"role": "admin", "display_name": "Ada", "is_active": true})).await.data();
    let rows = format!("email,display_name\n{email},Ada\n");
    assert_eq!(outcomes(&scoped.import("/users", "?match=email", &rows).await), ["unchanged"]);
    // An admin who was deactivated is still protected.
    client.patch(&path, json!({"is_active": false})).await.data();
    scoped.patch(&path, json!({"display_name": "x"})).await.problem(403, "FORBIDDEN");
    scoped.delete(&path).await.problem(403, "FORBIDDEN");
    client.delete(&path).await.data();
}

#[tokio::test(start_paused = true)]
async fn user_promoted_during_the_request_is_not_changed_from_below() {
    let (api, client) = Api::with_tenant().await;
    let scoped = client.scoped(&["users:write", "processes:write", "assets:read"]).await;
    for request in ["PATCH", "DELETE", "offboard"] {
        let path = format!("/users/{}", client.user(request).await);
        let promote = async { drop(client.patch(&path, json!({"role": "admin"})).await.data()) };
        let change = async {
            match request {
                "PATCH" => scoped.patch(&path, json!({"is_active": false})).await,
                "DELETE" => scoped.delete(&path).await,
                _ => scoped.post(&format!("{path}/offboard"), json!({})).await,
            }
        };
        let reply = api.faults.overtake("TransactWriteItems", change, promote).await.0;
        reply.problem(403, "FORBIDDEN");
        assert_eq!(client.get(&path).await.data()["is_active"], true, "{request}");
    }
}

/// Sends up to `most` requests, and stops at the first 429. Returns how many were accepted.
async fn allowed(client: &Client, most: usize) -> usize {
    for n in 0..most {
        if client.get("/assets").await.status == 429 {
            return n;
        }
    }
    most
}

#[tokio::test(start_paused = true)]
async fn neither_creating_nor_rotating_a_key_allows_further_requests_this_minute() {
    let api = Api::start().await;
    let client = api.limited_tenant(20).await;
    let mut holders = vec![client.clone()];
    let body = |name: &str| json!({"name": name, "scopes": ["keys:write", "assets:read"]});
    for n in 0..3 {
        let maker = holders.last().unwrap().clone();
        holders.push(client.with_key_of(&maker.post("/keys", body(&n.to_string())).await.data()));
    }
    let deepest = holders.last().unwrap().clone();
    deepest.post("/keys", body("too deep")).await.problem(429, "RATE_LIMITED");
    let id = Token::parse(&client.key).unwrap().id;
    let rotated = client.post(&format!("/keys/{id}/rotate"), json!({})).await.data();
    holders[0] = client.with_key_of(&rotated);
    let mut total = 5;
    for holder in &holders {
        total += allowed(holder, 100).await;
    }
    assert_eq!(total, 20, "all keys combined");
    for holder in &holders {
        holder.get("/assets").await.problem(429, "RATE_LIMITED");
    }
    api.advance_clock(60);
    for holder in &holders {
        assert_eq!(allowed(holder, 100).await, 20, "in the next minute, each has its own limit");
    }
}

/// A replaced secret must be useless after its grace period.
#[tokio::test(start_paused = true)]
async fn a_replaced_secret_gives_out_nothing_that_outlives_it() {
    let (api, client) = Api::with_tenant().await;
    let made = client.post("/keys", json!({"name": "k", "scopes": ["keys:write", "assets:read"]})).await.data();
    let (old, path) = (client.with_key_of(&made), format!("/keys/{}/rotate", made["id"].as_str().unwrap()));
    let new = client.with_key_of(&client.post(&path, json!({"grace_seconds": 60})).await.data());
    let problem = old.post(&path, json!({})).await.problem(403, "FORBIDDEN");
    assert_eq!(problem["field"], "expires_at", "{problem}");
    let child = old.post("/keys", json!({"name": "child", "scopes": ["assets:read"]})).await.data();
    let child = client.with_key_of(&child);
    child.get("/assets").await.data();
    old.post("/keys", json!({"name": "x", "scopes": ["assets:read"], "expires_at": null})).await.problem(403, "FORBIDDEN");
    api.advance_clock(61);
    old.get("/assets").await.problem(401, "UNAUTHORIZED");
    child.get("/assets").await.problem(401, "UNAUTHORIZED");
    new.get("/assets").await.data();
    new.post(&path, json!({})).await.data();
}

#[derive(Debug, Clone)]
enum Step {
    Create { scopes: Vec<Scope>, limit: Option<u32>, expiry: Option<Option<&'static str>>, user: Option<Option<usize>> },
    Rotate(usize),
    SetRole(usize, Role),
    CreateUser(Role),
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let few = vec![Scope::KeysWrite, Scope::UsersWrite, Scope::AssetsRead, Scope::SettingsWrite];
    let scopes = proptest::sample::subsequence(few, 1..=3);
    let expiry = proptest::sample::select(vec![None, Some(None), Some(Some(EXPIRY)), Some(Some(LATER))]);
    let limit = proptest::option::of(proptest::sample::select(vec![1u32, 400, 500, 1000]));
    let user = proptest::option::of(proptest::option::of(0usize..3));
    let role = proptest::sample::select(Role::ALL.to_vec());
    let step = prop_oneof![
        4 => (scopes, limit, expiry, user).prop_map(|(scopes, limit, expiry, user)| Step::Create { scopes, limit, expiry, user }),
        2 => (0usize..8).prop_map(Step::Rotate),
        2 => (0usize..3, role.clone()).prop_map(|(user, role)| Step::SetRole(user, role)),
        1 => role.prop_map(Step::CreateUser),
    ];
    proptest::collection::vec((0usize..8, step), 1..10)
}

async fn rights(api: &Api, client: &Client) -> Option<(ApiKey, Vec<Scope>)> {
    let store = api.store.writer(client.tenant);
    let key = store.get::<ApiKey>(Token::parse(&client.key).unwrap().id).await.unwrap()?.value;
    let owner = match key.user_id {
        Some(user) => store.get::<User>(user).await.unwrap().map(|user| user.value),
        None => None,
    };
    let scopes = key.effective_scopes(owner.map(|owner| owner.role)).into_iter().collect();
    Some((key, scopes))
}

#[test]
fn no_chain_of_requests_ends_with_a_key_that_can_do_more() {
    let starts = (any::<bool>(), any::<bool>(), proptest::sample::select(Role::ALL.to_vec()));
    property::check(&runtime(), 48, &(starts, steps()), async |((is_bound, has_users, role), steps)| {
        let (api, client) = Api::with_tenant().await;
        let mut users = Vec::new();
        for name in ["Ada", "Grace", "Alan"] {
            users.push(client.user(name).await);
        }
        client.patch(&format!("/users/{}", users[0]), json!({"role": role})).await.data();
        let scopes =
            if has_users { json!(["keys:write", "users:write", "assets:read"]) } else { json!(["keys:write", "assets:read"]) };
        let mut body = json!({"name": "K", "scopes": scopes, "rate_limit_per_minute": 500, "expires_at": EXPIRY});
        if is_bound {
            body["user_id"] = json!(users[0]);
        }
        let first = client.with_new_key(body).await;
        // IDs of keys that the key K may try to rotate without knowing their secrets.
        let mut ids = vec![Token::parse(&client.key).unwrap().id.to_string()];
        let stronger = json!({"name": "s", "scopes": ["assets:read", "settings:write"], "user_id": users[1]});
        ids.push(client.post("/keys", stronger).await.id());
        ids.push(client.post("/keys", json!({"name": "l", "scopes": ["assets:read"], "expires_at": LATER})).await.id());
        let (own, own_scopes) = rights(&api, &first).await.unwrap();
        let mut held = vec![first];
        for (holder, step) in steps {
            api.advance_clock(60);
            let holder = held[holder % held.len()].clone();
            let reply = match step {
                Step::Create { scopes, limit, expiry, user } => {
                    let mut body = json!({"name": "c", "scopes": scopes});
                    if let Some(limit) = limit {
                        body["rate_limit_per_minute"] = json!(limit);
                    }
                    if let Some(expiry) = expiry {
                        body["expires_at"] = json!(expiry);
                    }
                    if let Some(user) = user {
                        body["user_id"] = json!(user.map(|user| &users[user]));
                    }
                    holder.post("/keys", body).await
                }
                Step::Rotate(n) => holder.post(&format!("/keys/{}/rotate", ids[n % ids.len()]), json!({})).await,
                Step::SetRole(user, role) => holder.patch(&format!("/users/{}", users[user]), json!({"role": role})).await,
                Step::CreateUser(role) => {
                    let email = format!("u{}@example.com", api.now().millis());
                    holder.post("/users", json!({"email": email, "display_name": "x", "role": role})).await
                }
            };
            assert!(reply.status.as_u16() < 500, "{}", reply.text());
            let data = if reply.status.is_success() { reply.data() } else { Value::Null };
            if data.get("api_key").is_some() {
                ids.push(data["id"].as_str().unwrap().to_owned());
                held.push(client.with_key_of(&data));
            }
        }
        for holder in &held {
            let Some((key, scopes)) = rights(&api, holder).await else { continue };
            assert!(scopes.iter().all(|scope| own_scopes.contains(scope)), "{scopes:?} of {own_scopes:?}");
            assert!(key.rate_limit_per_minute <= own.rate_limit_per_minute && key.expires_at <= own.expires_at, "{key:?}");
            assert!(key.expires_at.is_some() && (own.user_id.is_none() || key.user_id == own.user_id), "{key:?}");
        }
        Ok(())
    });
}
