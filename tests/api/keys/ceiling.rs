//! The operator's limit for all requests of a tenant together.

use super::limits::minutes;
use crate::support::processes::complete_onboarding;
use crate::support::signing::{Link, signature_step, started};
use crate::support::{Api, Client, log};
use serde_json::{Value, json};

async fn set(api: &Api, client: &Client, limit: Option<u32>) {
    api.store.tenant(client.tenant).set_ceiling(limit).await.unwrap();
    // It holds from the next minute on.
    api.advance_clock(60);
}

async fn statuses(client: &Client, requests: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..requests {
        statuses.push(client.get("/settings").await.status.as_u16());
    }
    statuses
}

#[tokio::test(start_paused = true)]
async fn keys_and_signing_links_of_a_tenant_share_its_ceiling() {
    let (api, client) = Api::with_tenant().await;
    let instance = started(&client, json!([signature_step()])).await;
    let signer = Link::for_guest(&client, &instance).await.signer(&client);
    let other = client.scoped(&["settings:read"]).await;
    let neighbour = api.limited_tenant(600).await;
    set(&api, &client, Some(6)).await;
    for caller in [&client, &other] {
        assert_eq!(statuses(caller, 2).await, [200, 200]);
    }
    for _ in 0..2 {
        signer.session().await;
    }
    for refused in [client.get("/settings").await, other.get("/settings").await] {
        let problem = refused.problem(429, "RATE_LIMITED");
        assert!(problem["detail"].as_str().unwrap().starts_with("The organization has used up its requests"), "{problem}");
        assert_eq!([refused.header("x-ratelimit-limit"), refused.header("x-ratelimit-remaining")], ["6", "0"]);
        assert!((1..=60).contains(&refused.header("retry-after").parse::<i64>().unwrap()));
    }
    signer.get("/sign/session").await.problem(429, "RATE_LIMITED");
    assert_eq!(neighbour.get("/settings").await.status, 200, "another tenant");
    api.advance_clock(60);
    let reply = client.get("/settings").await;
    assert!(reply.status == 200 && reply.header("x-ratelimit-limit") != "6", "the key's own limit: {}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_effect_with_the_next_minute() {
    let (api, client) = Api::with_tenant().await;
    let ceilings = [(Some(2), vec![200, 200, 429, 429]), (Some(3), vec![200, 200, 200, 429]), (None, vec![200; 4])];
    for (limit, expected) in ceilings {
        set(&api, &client, limit).await;
        assert_eq!(api.store.tenant(client.tenant).ceiling().await.unwrap(), limit);
        assert_eq!(statuses(&client, 4).await, expected, "{limit:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_requests_use_up_nothing_of_the_ceiling() {
    let api = Api::start().await;
    let client = api.limited_tenant(600).await;
    let body = json!({"name": "k", "scopes": ["settings:read"], "rate_limit_per_minute": 2});
    let eager = client.with_key_of(&client.post("/keys", body).await.data());
    set(&api, &client, Some(4)).await;
    assert_eq!(statuses(&eager, 20).await[..3], [200, 200, 429], "its own limit");
    assert_eq!(statuses(&client.impostor(), 3).await, [401; 3]);
    assert_eq!(statuses(&client.stranger(), 3).await, [401; 3]);
    assert_eq!(statuses(&client, 3).await, [200, 200, 429]);
}

/// The [`minutes`] of three keys at ten instances, whose clocks are up to a second apart.
async fn let_through(api: &Api, client: &Client, before_each: impl Fn(usize)) -> Vec<(usize, Option<usize>)> {
    let keys = [client.clone(), client.scoped(&["settings:read"]).await, client.scoped(&["settings:read"]).await];
    set(api, client, Some(100)).await;
    let instances: Vec<_> = (0..10).map(|n| api.replica(n * 100, 0)).collect();
    let callers: Vec<Client> = (0..30).map(|n| instances[n % 10].client(&keys[n % 3])).collect();
    minutes(api, |n| &callers[[0, 11, 0, 22, 10, 21, 3, n % 30][n % 8]], before_each).await
}

#[tokio::test(start_paused = true)]
async fn ten_instances_and_three_keys_let_through_exactly_the_ceiling_and_at_most_a_tenth_too_late() {
    let (api, client) = Api::with_tenant().await;
    let minutes = let_through(&api, &client, |_| ()).await;
    assert!(minutes.iter().filter(|(_, refused)| refused.is_some()).count() >= 2, "{minutes:?}");
    assert!(minutes.iter().all(|(count, refused)| *count <= 100 && refused.is_none_or(|early| early >= 90)), "{minutes:?}");
}

#[tokio::test(start_paused = true)]
async fn lost_answers_let_no_more_through_than_the_ceiling() {
    let (api, client) = Api::with_tenant().await;
    let lose = |n: usize| {
        if n.is_multiple_of(20) {
            api.faults.lose_response("UpdateItem");
        }
    };
    let minutes = let_through(&api, &client, lose).await;
    assert!(minutes.iter().filter(|(_, refused)| refused.is_some()).count() >= 2 && api.faults.planned() < 18, "{minutes:?}");
    assert!(minutes.iter().all(|(count, _)| *count <= 100), "{minutes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_ceiling_that_can_not_be_read_refuses_nobody_and_a_log_line_says_so() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    set(&api, &client, Some(1)).await;
    log::begin();
    api.faults.throttle("GetItem", 2);
    assert_eq!(statuses(&client, 3).await, [200, 200, 429], "read again with the next request");
    assert_eq!(log::text().matches(r#""metric":"uncounted_requests""#).count(), 1, "{}", log::text());
}

#[tokio::test(start_paused = true)]
async fn nobody_but_the_operator_sees_or_changes_the_ceiling() {
    let (api, client) = Api::with_tenant().await;
    complete_onboarding(&client, &client.user("Ada").await).await;
    let before: Value = client.get("/settings").await.data();
    set(&api, &client, Some(500)).await;
    assert_eq!(client.get("/settings").await.data(), before);
    let unknown = api.store.tenant(shared::domain::values::id::Id::from_uuid(uuid::Uuid::nil()));
    assert!(unknown.set_ceiling(Some(5)).await.is_err(), "a tenant that does not exist gets none");
}
