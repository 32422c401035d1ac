//! A link's secret is not an API key, and an API key is not a link's secret. Guesses cost next to nothing.

use crate::keys::secrets::traces;
use crate::support::prelude::*;
use tracing::level_filters::LevelFilter;

const LIMIT: u64 = 60;
const MAX_UNITS: f64 = 2.0;

async fn instance(client: &Client) -> String {
    started(client, json!([step("text", "note"), signature_step()])).await
}

/// Sends each kind of request that a link permits.
async fn every_request(client: &Client) -> Vec<Reply> {
    let body = json!({"step_data": {"note": "by a stranger"}});
    vec![
        client.get("/sign/session").await,
        client.send("HEAD", "/sign/session", None, "").await,
        client.sign(body.clone()).await,
        client.sign_once(&body, "k").await,
        client.get("/sign/receipt").await,
        client.get("/sign/receipt?format=html").await,
    ]
}

/// Fails unless the response says only that the secret is invalid.
#[track_caller]
fn assert_unknown(reply: &Reply, detail: &Value, what: &str) {
    assert_eq!(reply.status.as_u16(), 401, "{what}: {}", reply.text());
    assert_eq!((reply.header("www-authenticate"), reply.header("x-ratelimit-limit")), ("Bearer", ""), "{what}");
    if !reply.bytes.is_empty() {
        let problem = reply.problem(401, "UNAUTHORIZED");
        assert_eq!((&problem["detail"], problem.get("link_status")), (detail, None), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_links_secret_opens_no_operation_for_api_keys() {
    let (api, client, samples) = Api::with_samples().await;
    let (document, operations) = operations();
    let path = instance(&client).await;
    let link = Link::for_guest(&client, &path).await;
    let signer = link.signer(&client);
    signer.session().await;
    // This function instance has also verified a used link.
    let used = Link::create(&client, &path, json!({"signer": {"name": "G"}, "until": "note"})).await;
    used.signer(&client).sign(json!({"step_data": {"note": "n"}})).await.data();
    let before = api.dump().await;
    let mut tried = 0;
    for operation in operations.iter().filter(|operation| operation.needs_key) {
        for secret in [&link.secret, &used.secret] {
            api.faults.take_requests();
            let reply = operation.send(&client.with_key(secret), &samples).await;
            reply.problem(401, "UNAUTHORIZED");
            assert_eq!(reply.json().get("link_status"), None, "{operation}");
            assert_eq!(api.faults.take_requests().len(), 0, "{operation} reads something for a link");
        }
        tried += 1;
    }
    for path in [&link.path, &format!("{path}/links"), "/me"] {
        signer.get(path).await.problem(401, "UNAUTHORIZED");
        signer.delete(path).await;
    }
    assert!(tried > 50, "only {tried} operations");
    assert_eq!(api.dump().await, before);
    assert_eq!(for_links(document), ["post /sign/advance", "get /sign/receipt", "get /sign/session"]);
}

#[tokio::test(start_paused = true)]
async fn an_api_key_opens_no_link_and_mistyped_secrets_read_nothing() {
    let (api, client) = Api::with_tenant().await;
    let link = Link::for_guest(&client, &instance(&client).await).await;
    let detail = client.with_key("").get("/sign/session").await.problem(401, "UNAUTHORIZED")["detail"].clone();
    let mut strangers = vec![client.key.clone(), link.secret.replace("sgn_", "apl_"), client.key.replace("apl_", "sgn_")];
    strangers.extend(["", "x", "sgn_", &link.secret[4..], &link.secret[..97], &format!("{}0", link.secret)].map(str::to_owned));
    strangers.push(link.secret.replace("sgn_", "SGN_"));
    for place in (4..link.secret.len()).step_by(3) {
        let mut mistyped = link.secret.clone();
        mistyped.replace_range(place..=place, if &mistyped[place..=place] == "0" { "1" } else { "0" });
        strangers.push(mistyped);
    }
    let before = api.dump().await;
    for stranger in strangers {
        api.faults.take_requests();
        for reply in every_request(&client.with_key(&stranger)).await {
            assert_unknown(&reply, &detail, &stranger);
        }
        let requests = api.faults.take_requests();
        assert_eq!(requests.len(), 0, "{stranger} causes {requests:?}");
    }
    for (name, value) in [("x-api-key", link.secret.as_str()), ("cookie", &link.secret), ("authorization", "Basic x")] {
        let reply = client.with_key("").send_with("GET", "/sign/session", None, "", &[(name, value)]).await;
        assert_unknown(&reply, &detail, name);
    }
    let in_query = client.with_key("").get(&format!("/sign/session?secret={}", link.secret)).await;
    assert_unknown(&in_query, &detail, "in the query");
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_made_up_secret_costs_one_read_at_most_and_says_nothing() {
    let (api, client) = Api::with_tenant().await;
    let other = api.tenant().await;
    let path = instance(&client).await;
    let (link, revoked) = (Link::for_guest(&client, &path).await, Link::for_guest(&client, &path).await);
    let foreign = Link::for_guest(&other, &instance(&other).await).await;
    let secret = |link: &Link| {
        let half =
            |range: std::ops::Range<usize>| shared::domain::values::base62::decode(&link.secret[range]).unwrap().to_be_bytes();
        let bytes: [u8; 32] = [half(48..70), half(70..92)].concat().try_into().unwrap();
        bytes
    };
    assert_eq!(forged(&link.id, client.tenant, secret(&link)), link.secret, "the form of a secret has changed");
    for link in [&link, &revoked] {
        link.signer(&client).session().await;
    }
    foreign.signer(&other).session().await;
    client.delete(&revoked.path).await.data();
    let made_up = LinkId::new(api.now(), [5; 10]).to_string();
    let no_tenant = TenantId::new(api.now(), [5; 10]);
    let key_id = client.get("/keys").await.data()[0]["id"].as_str().unwrap().to_owned();
    let detail = client.with_key("").get("/sign/session").await.json()["detail"].clone();
    let before = api.dump().await;
    for (name, stranger) in [
        ("a made-up link", forged(&made_up, client.tenant, [1; 32])),
        ("a wrong secret", forged(&link.id, client.tenant, [2; 32])),
        ("a wrong secret of a revoked link", forged(&revoked.id, client.tenant, [2; 32])),
        ("an unknown tenant", forged(&link.id, no_tenant, secret(&link))),
        ("another tenant's link", forged(&foreign.id, client.tenant, secret(&foreign))),
        ("a link with another tenant", forged(&link.id, other.tenant, secret(&link))),
        ("another link's secret", forged(&link.id, client.tenant, secret(&revoked))),
        ("the ID of an instance", forged(id_of(&path), client.tenant, secret(&link))),
        ("the ID of an API key", forged(&key_id, client.tenant, secret(&link))),
        ("no ID", forged(UNKNOWN_ID, client.tenant, [0; 32])),
    ] {
        let Replica { router: cold, .. } = api.replica(0, 1 << 20);
        for (function, router) in [("cold", cold), ("warm", client.router.clone())] {
            let stranger = Client { router, ..client.with_key(&stranger) };
            api.meter.take();
            for reply in every_request(&stranger).await {
                assert_unknown(&reply, &detail, name);
            }
            let cost = api.meter.take();
            let is_cheap = cost.calls <= 6 && cost.read_units <= 6.0 * MAX_UNITS && cost.write_units == 0.0;
            assert!(is_cheap, "{name}, {function} function, six requests: {cost:?}");
            stranger.get("/sign/session").await;
            let cost = api.meter.take();
            assert!(cost.calls <= 1 && cost.read_units <= MAX_UNITS, "{name}, {function} function: {cost:?}");
        }
    }
    assert_eq!(api.dump().await, before);
    link.signer(&client).session().await;
}

#[tokio::test(start_paused = true)]
async fn a_link_may_send_sixty_requests_a_minute_which_count_for_nobody_else() {
    let (api, maker) = Api::with_tenant().await;
    let path = instance(&maker).await;
    let (link, other) = (Link::for_guest(&maker, &path).await, Link::for_guest(&maker, &path).await);
    api.advance_clock_millis(60_000 - api.now().millis() % 60_000);
    api.stop_clock();
    let left_to_maker = async || maker.get("/settings").await.header("x-ratelimit-remaining").parse::<u64>().unwrap();
    let at_first = left_to_maker().await;
    let warm = link.signer(&maker);
    let cold = Client { router: api.replica(0, 1 << 20).router, ..warm.clone() };
    for n in 1..=LIMIT {
        let reply = if n % 2 == 0 { &warm } else { &cold }.get("/sign/session").await;
        assert_eq!((reply.status.as_u16(), reply.header("x-ratelimit-limit")), (200, "60"), "{n}: {}", reply.text());
        // Each instance has leased some requests, which the other instance doesn't see.
        let remaining: u64 = reply.header("x-ratelimit-remaining").parse().unwrap();
        assert!(remaining.abs_diff(LIMIT - n) <= LIMIT / 10, "{n}: {remaining}");
        assert!(reply.header("x-ratelimit-reset").parse::<u64>().is_ok());
    }
    let before = api.dump().await;
    for reply in
        [warm.get("/sign/session").await, warm.sign(json!({"step_data": {"note": "n"}})).await, cold.get("/sign/receipt").await]
    {
        reply.problem(429, "RATE_LIMITED");
        assert!((1..=60).contains(&reply.header("retry-after").parse::<u64>().unwrap()));
        assert_eq!(reply.header("x-ratelimit-remaining"), "0");
    }
    assert_eq!(api.dump().await, before);
    assert_eq!(left_to_maker().await, at_first - 1, "a link's requests must not count against its creator's limit");
    let reply = other.signer(&maker).get("/sign/session").await;
    assert_eq!(reply.header("x-ratelimit-remaining"), (LIMIT - 1).to_string());
    // Requests with a wrong secret don't count against the limit.
    let impostor = maker.with_key(&forged(&other.id, maker.tenant, [7; 32]));
    for _ in 0..5 {
        impostor.get("/sign/session").await.problem(401, "UNAUTHORIZED");
    }
    assert_eq!(other.signer(&maker).get("/sign/session").await.header("x-ratelimit-remaining"), (LIMIT - 2).to_string());
    api.advance_clock(60);
    warm.session().await;
    let refused = warm.sign(json!({"step_data": {"note": 1}})).await;
    assert_eq!((refused.status.as_u16(), refused.header("x-ratelimit-remaining")), (422, "58"));
    // Requests with an ended link count toward the limit, too.
    api.advance_clock(60);
    maker.delete(&link.path).await.data();
    for _ in 0..LIMIT {
        assert_eq!(link_status(&warm.get("/sign/session").await), "revoked");
    }
    let (_, cost) = api.cost(async { warm.get("/sign/session").await.problem(429, "RATE_LIMITED") }).await;
    assert!(cost.read_units <= 1.0 && cost.write_units <= 1.0, "beyond the rate limit, only the link is read: {cost:?}");
}

#[tokio::test(start_paused = true)]
async fn the_log_has_neither_secrets_nor_names() {
    log::begin_everything();
    let (api, client) = Api::with_tenant().await;
    let path = instance(&client).await;
    let body = json!({"signer": {"name": "Zyxwv Person", "email": "zyxwv@example.com"}});
    let link = Link::create(&client, &path, body).await;
    let signer = link.signer(&client);
    signer.session().await;
    for body in [json!({"step_data": {"note": "Zyxwv"}}), json!({"step_data": {"Zyxwv": "Zyxwv", "sign": "Zyxwv"}, "Zyxwv": 1})] {
        signer.sign_once(&body, "Zyxwv").await;
    }
    client.with_key(&forged(&link.id, client.tenant, [7; 32])).get("/sign/session").await;
    client.get(&format!("/sign/{}", link.secret)).await;
    client.get(&format!("/sign?{}", link.secret)).await.problem(422, "VALIDATION_ERROR");
    let moved = client.get(&format!("/sign%23{}", link.secret)).await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (302, format!("/v1/sign#{}", link.secret).as_str()));
    client.post(&format!("{path}/links"), signer_named(&format!("Zyxwv\u{202e}{}", link.secret))).await;
    let invalid = json!({"__type": "com.amazonaws.dynamodb.v20120810#ValidationException", "message": "refused"});
    api.faults.plan("TransactWriteItems", 1, 400, &invalid, false);
    signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.problem(500, "INTERNAL_ERROR");
    signer.sign(json!({"step_data": {"sign": SIGNATURE}})).await.data();
    signer.get("/sign/receipt?format=html").await;
    client.delete(&link.path).await;
    let log = log::text();
    assert!(log.lines().count() > 30, "a log of {} lines", log.lines().count());
    let lower = log.to_lowercase();
    for (number, trace) in traces(&link.secret).iter().enumerate() {
        let line = log.lines().find(|line| line.to_lowercase().contains(trace));
        assert!(!lower.contains(trace), "the secret is logged in form {number}: {line:?}");
    }
    let mut own_lines = 0;
    for line in log.lines() {
        let fields: Value = serde_json::from_str(line).unwrap();
        let level: LevelFilter = fields["level"].as_str().unwrap().parse().unwrap();
        if log::is_ours(fields["target"].as_str().unwrap()) || level <= LevelFilter::INFO {
            own_lines += 1;
            let line = line.to_lowercase();
            assert!(!line.contains("zyxwv") && !line.contains("base64"), "{line}");
        }
    }
    assert!(own_lines >= 10, "{own_lines} lines");
}
