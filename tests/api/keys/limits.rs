//! Rate limits of keys, and the operator's limit for all requests of a tenant together.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_key_may_send_as_many_requests_a_minute_as_its_limit_also_at_once() {
    let api = Api::start().await;
    let client = api.limited_tenant(5).await;
    let other = client.scoped(&["assets:read"]).await;
    let second = api.replica(0, usize::MAX).client(&client);
    // The tests' clock starts at a full minute. In its first minute, a key shares the limit of the key that created it.
    api.advance_clock(60);
    client.get("/assets").await.data();
    let mut left = Vec::new();
    for n in 0..4 {
        let reply = if n % 2 == 0 { &client } else { &second }.get("/assets").await;
        assert_eq!((reply.status.as_u16(), reply.header("x-ratelimit-limit")), (200, "5"));
        left.push(reply.header("x-ratelimit-remaining").to_owned());
    }
    assert_eq!(left, ["3", "2", "1", "0"]);
    let before = api.dump().await;
    let reply = client.post("/assets", json!({"name": "x"})).await;
    let problem = reply.problem(429, "RATE_LIMITED");
    assert_eq!(reply.header("x-ratelimit-remaining"), "0");
    let wait: i64 = reply.header("retry-after").parse().unwrap();
    let reset: i64 = reply.header("x-ratelimit-reset").parse().unwrap();
    assert!((1..=60).contains(&wait), "{problem}");
    assert_eq!(reset % 60, 0);
    assert_eq!(api.dump().await, before);
    assert_eq!(other.get("/assets").await.status, 200, "each key of the tenant has a separate limit");
    // Requests with the key's ID and a wrong secret don't count against its limit, and responses don't show the limit.
    let impostor = client.impostor();
    api.advance_clock(wait);
    for _ in 0..6 {
        let refused = impostor.get("/assets").await;
        refused.problem(401, "UNAUTHORIZED");
        assert_eq!(refused.header("x-ratelimit-limit"), "");
    }
    let reply = client.get("/assets").await;
    assert_eq!((reply.status.as_u16(), reply.header("x-ratelimit-remaining")), (200, "4"), "the next minute");

    let client = api.limited_tenant(10).await;
    let all = join_all((0..16).map(|_| client.get("/settings"))).await;
    assert_eq!(all.iter().filter(|reply| reply.status == 200).count(), 10);
    assert_eq!(all.iter().filter(|reply| reply.status == 429).count(), 6);
}

#[tokio::test(start_paused = true)]
async fn instance_leases_several_requests_at_once_and_reports_the_known_remainder() {
    let api = Api::start().await;
    let client = api.limited_tenant(100).await;
    let other = api.replica(0, usize::MAX).client(&client);
    client.use_key_once().await;
    let remaining = async |client: &Client| client.get("/settings").await.header("x-ratelimit-remaining").parse::<u64>().unwrap();
    api.faults.take_requests();
    assert_eq!([remaining(&client).await, remaining(&client).await], [98, 97]);
    let written = api.faults.take_requests().into_iter().filter(|(operation, _)| operation == "UpdateItem");
    assert_eq!(written.count(), 0, "the first request took four");
    assert_eq!(remaining(&other).await, 95, "the first instance has leased four requests, and this is one more");
    assert_eq!(remaining(&client).await, 96, "this instance hasn't read the shared count again");
}

/// Sends a request every 240 ms for two minutes and the start of a third. Returns how many were accepted in each minute, in
/// total and before the first refusal.
async fn minutes<'c>(
    api: &Api,
    caller: impl Fn(usize) -> &'c Client,
    before_each: impl Fn(usize),
) -> Vec<(usize, Option<usize>)> {
    let mut minutes: BTreeMap<String, (usize, Option<usize>)> = BTreeMap::new();
    for n in 0..540 {
        before_each(n);
        let reply = caller(n).get("/settings").await;
        let (let_through, at_first_refusal) = minutes.entry(reply.header("x-ratelimit-reset").to_owned()).or_default();
        match reply.status.as_u16() {
            429 => _ = at_first_refusal.get_or_insert(*let_through),
            status => {
                assert_eq!(status, 200, "{}", reply.text());
                *let_through += 1;
            }
        }
        api.advance_clock_millis(240);
    }
    minutes.into_values().collect()
}

#[tokio::test(start_paused = true)]
async fn ten_instances_together_keep_the_limit() {
    let api = Api::start().await;
    let client = api.limited_tenant(100).await;
    // The clocks of the instances differ by up to a second.
    let instances: Vec<Client> = (0..10).map(|n| api.replica(n * 100, 0).client(&client)).collect();
    // More than twice the limit, distributed unevenly among the instances.
    let minutes = minutes(&api, |n| &instances[[0, 1, 0, 2, 0, 1, 3, n % 10][n % 8]], |_| ()).await;
    // The last minute is incomplete.
    let whole: Vec<_> = minutes.iter().filter_map(|(count, at_first_refusal)| Some((*count, (*at_first_refusal)?))).collect();
    assert!(minutes.len() >= 3 && whole.len() >= 2, "{minutes:?}");
    for (count, at_first_refusal) in whole {
        assert!(count <= 100 && at_first_refusal >= 90, "{count} in all, {at_first_refusal} before the first refusal");
    }
}

#[tokio::test(start_paused = true)]
async fn both_secrets_of_a_rotated_key_share_one_limit_and_every_response_shows_it() {
    let client = over_http().await;
    let body = json!({"name": "k", "scopes": ["assets:read"], "rate_limit_per_minute": 4});
    let made = client.post("/keys", body).await.data();
    let old = client.with_key_of(&made);
    let rotate = format!("/keys/{}/rotate", made["id"].as_str().unwrap());
    let made = client.post(&rotate, json!({"grace_seconds": 600})).await;
    let new = client.with_key_of(&made.data());
    for n in 0..4 {
        assert_eq!(if n % 2 == 0 { &old } else { &new }.get("/assets").await.status, 200);
    }
    old.get("/assets").await.problem(429, "RATE_LIMITED");
    new.get("/assets").await.problem(429, "RATE_LIMITED");

    let lacking = client.scoped(&["assets:read"]).await;
    for reply in [
        client.get("/assets").await,
        client.get("/assets?x=1").await,
        client.get(&format!("/assets/{UNKNOWN_ID}")).await,
        client.post("/assets", json!({})).await,
        lacking.post("/assets", json!({"name": "x"})).await,
    ] {
        for header in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
            assert!(reply.header(header).parse::<u64>().is_ok(), "{} lacks {header}", reply.status);
        }
    }
}

async fn counter_partition(api: &Api, client: &Client) -> String {
    api.faults.take_requests();
    client.get("/settings").await.data();
    let requests = api.faults.take_requests();
    let counted = requests.iter().find(|(operation, _)| operation == "UpdateItem").unwrap();
    counted.1["Key"]["PK"]["S"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn reads_keep_answering_while_the_tenants_writes_are_throttled() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    let own = Keys::of(client.tenant).partition().as_s().unwrap().clone();
    // After two hours, a request also writes the key's last use.
    api.advance_clock(7200);
    api.faults.throttle_writes_to(&[own]);
    client.stranger().get("/assets").await.problem(401, "UNAUTHORIZED");
    assert_eq!(api.faults.throttled_writes(), 0, "a stranger has written into the tenant's partition");
    for path in [path.as_str(), "/assets", "/events", "/settings", "/users"] {
        let reply = client.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert!(reply.header("x-ratelimit-remaining").parse::<u64>().is_ok(), "{path} was not counted");
    }
    assert!(api.faults.throttled_writes() >= 5, "the writes of the key's last use were throttled");
    client.patch(&path, json!({"name": "y"})).await.problem(503, "UNAVAILABLE");
}

#[tokio::test(start_paused = true)]
async fn request_that_cannot_be_counted_is_accepted() {
    let api = Api::start().await;
    let client = api.limited_tenant(3).await;
    let counters = counter_partition(&api, &client).await;
    log::begin();
    api.faults.throttle_writes_to(std::slice::from_ref(&counters));
    for _ in 0..5 {
        let reply = client.get("/settings").await;
        assert_eq!((reply.status.as_u16(), reply.header("x-ratelimit-limit")), (200, "3"), "{}", reply.text());
        assert_eq!(reply.header("x-ratelimit-remaining"), "", "the number of remaining requests is unknown");
        assert!(!reply.header("x-ratelimit-reset").is_empty());
    }
    assert_eq!(api.faults.throttled_writes(), 10, "two attempts per request");
    assert_eq!(log::text().matches(r#""metric":"uncounted_requests""#).count(), 5, "{}", log::text());
    client.with_key("apl_guessed").get("/settings").await.problem(401, "UNAUTHORIZED");
    api.faults.throttle_writes_to(&[]);
    assert_eq!(client.get("/settings").await.header("x-ratelimit-remaining"), "1", "the limit applies again");

    // With a limit below 20, each request is counted in the table.
    let client = api.limited_tenant(10).await;
    client.use_key_once().await;
    let mut held = api.faults.hold("UpdateItem");
    let (reply, ()) = futures_util::join!(client.get("/settings"), async { held.arrived().await });
    assert_eq!((reply.status.as_u16(), reply.header("x-ratelimit-remaining")), (200, ""));
    held.release();
}

async fn set(api: &Api, client: &Client, limit: Option<u32>) {
    api.store.writer(client.tenant).set_ceiling(limit).await.unwrap();
    // The new limit takes effect in the next minute.
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
        assert!(problem["detail"].as_str().unwrap().starts_with("The organization's rate limit"), "{problem}");
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
async fn only_the_operator_changes_the_ceiling_and_an_unreadable_one_refuses_nobody() {
    let (api, client) = Api::with_tenant().await;
    let ceilings = [(Some(2), vec![200, 200, 429, 429]), (Some(3), vec![200, 200, 200, 429]), (None, vec![200; 4])];
    for (limit, expected) in ceilings {
        set(&api, &client, limit).await;
        assert_eq!(api.store.writer(client.tenant).ceiling().await.unwrap(), limit);
        assert_eq!(statuses(&client, 4).await, expected, "{limit:?}");
    }

    complete_onboarding(&client, &client.user("Ada").await).await;
    let before: Value = client.get("/settings").await.data();
    set(&api, &client, Some(500)).await;
    assert_eq!(client.get("/settings").await.data(), before);
    let unknown = api.store.writer(Id::from_uuid(uuid::Uuid::nil()));
    assert!(unknown.set_ceiling(Some(5)).await.is_err(), "a tenant that does not exist gets none");

    client.use_key_once().await;
    set(&api, &client, Some(1)).await;
    log::begin();
    api.faults.throttle("GetItem", 2);
    // The request itself reads with another operation.
    assert_eq!(client.get("/catalog/manufacturers").await.status, 200);
    assert_eq!(statuses(&client, 2).await, [200, 429], "read again with the next request");
    assert_eq!(log::text().matches(r#""metric":"uncounted_requests""#).count(), 1, "{}", log::text());
}

#[tokio::test(start_paused = true)]
async fn refused_requests_use_up_nothing_of_the_ceiling() {
    let api = Api::start().await;
    let client = api.limited_tenant(600).await;
    let body = json!({"name": "k", "scopes": ["settings:read"], "rate_limit_per_minute": 2});
    let eager = client.with_new_key(body).await;
    set(&api, &client, Some(4)).await;
    assert_eq!(statuses(&eager, 20).await[..3], [200, 200, 429], "its own limit");
    assert_eq!(statuses(&client.impostor(), 3).await, [401; 3]);
    assert_eq!(statuses(&client.stranger(), 3).await, [401; 3]);
    assert_eq!(statuses(&client, 3).await, [200, 200, 429]);
}

/// The same function counts the requests of a key and of a whole tenant.
#[tokio::test(start_paused = true)]
async fn lost_responses_do_not_raise_the_ceiling() {
    let (api, client) = Api::with_tenant().await;
    let keys = [client.clone(), client.scoped(&["settings:read"]).await, client.scoped(&["settings:read"]).await];
    set(&api, &client, Some(100)).await;
    let instances: Vec<_> = (0..10).map(|n| api.replica(n * 100, 0)).collect();
    let callers: Vec<Client> = (0..30).map(|n| instances[n % 10].client(&keys[n % 3])).collect();
    let lose_some = |n: usize| {
        if n.is_multiple_of(20) {
            api.faults.lose_response("UpdateItem");
        }
    };
    let minutes = minutes(&api, |n| &callers[[0, 11, 0, 22, 10, 21, 3, n % 30][n % 8]], lose_some).await;
    // The last faults are planned after the minute's limit is used up.
    assert!(minutes.iter().filter(|(_, refused)| refused.is_some()).count() >= 2 && api.faults.planned() < 13, "{minutes:?}");
    assert!(minutes.iter().all(|(count, _)| *count <= 100), "{minutes:?}");
}
