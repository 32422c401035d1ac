//! A key hands out nothing that it does not have: no stronger keys, no higher roles, and no further requests this minute.

use crate::support::{Api, Client, over_http, property, runtime};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::domain::keys::api_key::ApiKey;
use shared::domain::keys::scope::{Role, Scope};
use shared::domain::keys::token::Token;
use shared::domain::user::User;

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
    let weak = client.with_key_of(&client.post("/keys", own.clone()).await.data());
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
    // Missing fields are inherited.
    let child = weak.post("/keys", json!({"name": "c", "scopes": ["assets:read"]})).await.data();
    assert_eq!((child["rate_limit_per_minute"].as_u64(), child["expires_at"].as_str()), (Some(50), Some(EXPIRY)));
    assert_eq!(child["user_id"], user);
    weak.post(&format!("/keys/{weak_id}/rotate"), json!({})).await.data();
    let weak = client.with_key_of(&client.post("/keys", own.clone()).await.data());
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
        assert!(problem["detail"].as_str().unwrap().contains("counts as viewer"), "{problem}");
        let body = json!({"email": format!("{role}@example.com"), "display_name": "x", "role": role});
        scoped.post("/users", body).await.problem(403, "FORBIDDEN");
    }
    scoped.post("/users", json!({"email": "v@example.com", "display_name": "x"})).await.data();
    // A caller with all of a role's scopes counts as that role, and a role that was given before can be kept.
    let technician: Vec<&str> = Scope::ALL.iter().filter(|scope| Role::Technician.allows(**scope)).map(|s| s.as_str()).collect();
    let technician = client.scoped(&[technician, vec!["users:write"]].concat()).await;
    technician.patch(&path, json!({"role": "technician"})).await.data();
    technician.patch(&path, json!({"role": "admin"})).await.problem(403, "FORBIDDEN");
    client.patch(&path, json!({"role": "admin"})).await.data();
    scoped.patch(&path, json!({"role": "admin", "display_name": "y"})).await.data();
    // A user who becomes active again gets the role again.
    scoped.patch(&path, json!({"is_active": false})).await.data();
    scoped.patch(&path, json!({"display_name": "z"})).await.data();
    assert_eq!(scoped.patch(&path, json!({"is_active": true})).await.problem(403, "FORBIDDEN")["field"], "role");
    client.patch(&path, json!({"is_active": true})).await.data();
    // A bound key counts as its owner.
    let bound = json!({"name": "b", "scopes": ["users:write"], "user_id": viewer});
    let bound = client.with_key_of(&client.post("/keys", bound).await.data());
    bound.post("/users", json!({"email": "a@example.com", "display_name": "x", "role": "admin"})).await.data();
}

/// Sends requests until one is refused, at most `most`. Returns the number of the others.
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
    assert_eq!(total, 20, "with all keys together");
    for holder in &holders {
        holder.get("/assets").await.problem(429, "RATE_LIMITED");
    }
    api.advance_clock(60);
    for holder in &holders {
        assert_eq!(allowed(holder, 100).await, 20, "in the next minute, each has its own limit");
    }
}

/// The holder of the old secret must keep nothing after the grace period.
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

/// One request of a chain.
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
    let store = api.store.tenant(client.tenant);
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
        let first = client.with_key_of(&client.post("/keys", body).await.data());
        // Keys that K does not hold, but may try to rotate.
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
