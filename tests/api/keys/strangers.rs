//! Unauthenticated requests cost at most two read units, and write nothing.

use crate::support::prelude::*;
use dev_server::test_data::{made_up_key, unknown_tenant};

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
async fn ids_in_an_unauthenticated_request_are_not_read() {
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
