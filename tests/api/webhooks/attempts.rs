//! The API of deliveries: tests, lists, retries and replays. Each request sends one message.

use crate::support::prelude::*;
use crate::support::queue::delivery;
use crate::support::webhooks::*;
use shared::domain::webhooks::{
    Delivery, DeliveryRequest, DeliveryStatus, MAX_REPLAYS_PER_DAY, Message, ReplayRequest, WebhookEvents,
};

#[track_caller]
fn asked(api: &Api) -> DeliveryRequest {
    match api.queue.take().as_slice() {
        [Message::Delivery(request)] => request.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn replayed(api: &Api) -> ReplayRequest {
    match api.queue.take().as_slice() {
        [Message::Replay(request)] => request.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn test_of_a_webhook_queues_an_event_outside_the_history() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["asset.created"])).await;
    client.patch(&webhook_path(&webhook), json!({"is_active": false})).await.data();
    let reply = client.send("POST", &format!("{}/test", webhook_path(&webhook)), None, "").await;
    let shown = reply.data();
    assert_eq!((reply.status.as_u16(), reply.header("etag")), (200, ""));
    let request = asked(&api);
    assert_eq!((request.tenant_id, request.webhook_id), (client.tenant, webhook_id(&webhook)));
    assert_eq!(shown["id"], request.event_id.to_string());
    let actor = &request.test.expect("a test").actor;
    assert_eq!(actor.key_id.unwrap().to_string(), client.get("/me").await.data()["key"]["id"]);
    let expected = json!({
        "id": shown["id"], "webhook_id": webhook["id"], "event_type": "webhook.test", "status": "pending", "attempts": [],
        "attempt_count": 0, "next_attempt_at": null, "created_at": request.requested_at, "requested_at": request.requested_at
    });
    assert_eq!(shown, expected);
    api.advance_clock(60);
    assert!(!client.get("/events?limit=100").await.text().contains(shown["id"].as_str().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn deliveries_are_listed_newest_first_and_by_status() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["*"])).await;
    let list = format!("{}/deliveries", webhook_path(&webhook));
    assert_eq!(client.get(&list).await.json()["meta"]["total"], 0);
    let statuses = [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Failed];
    let mut deliveries: Vec<Delivery> =
        (0..12).map(|n| delivery(webhook["id"].as_str().unwrap(), api.now().plus_seconds(n), statuses[n as usize % 3])).collect();
    // The list must leave out deliveries of the tenant's other webhook, and deliveries of another tenant's webhook with the same
    // ID.
    let other = client.webhook(json!(["*"])).await;
    api.queue.put(client.tenant, &delivery(other["id"].as_str().unwrap(), api.now(), statuses[0])).await;
    let stranger = api.tenant().await;
    api.queue.put(stranger.tenant, &deliveries[0]).await;
    for delivery in &deliveries {
        api.queue.put(client.tenant, delivery).await;
    }
    deliveries.reverse();
    let ids = |reply: &Value| -> Vec<String> {
        reply["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let expected = |status: Option<DeliveryStatus>| -> Vec<String> {
        let wanted = deliveries.iter().filter(|delivery| status.is_none_or(|status| delivery.status == status));
        wanted.map(|delivery| delivery.event_id.to_string()).collect()
    };
    let all = client.get(&list).await.json();
    assert_eq!(ids(&all), expected(None));
    let shown = json!({
        "id": deliveries[0].event_id, "webhook_id": webhook["id"], "event_type": "asset.created", "status": "failed",
        "attempts": [{"at": deliveries[0].requested_at, "status": 500, "error": null, "duration_ms": 12}],
        "attempt_count": 1, "next_attempt_at": null, "created_at": deliveries[0].requested_at,
        "requested_at": deliveries[0].requested_at
    });
    assert_eq!(all["data"][0], shown);
    for status in statuses {
        let page = client.get(&format!("{list}?status={status}&limit=3&page=2")).await.json();
        assert_eq!(page["meta"], json!({"total": 4, "page": 2, "limit": 3, "total_pages": 2}), "{status}");
        assert_eq!(ids(&page), expected(Some(status))[3..], "{status}");
    }
    assert_eq!(all["data"][2]["next_attempt_at"], json!(deliveries[2].next_attempt_at.unwrap()));
    assert_eq!(client.get(&format!("{list}?status=lost&limit=0")).await.field_errors(), ["limit", "status"]);
    client.get(&list.replace(webhook["id"].as_str().unwrap(), UNKNOWN_ID)).await.problem(404, "NOT_FOUND");
    stranger.get(&list).await.problem(404, "NOT_FOUND");
    // DynamoDB can take days to delete expired items.
    api.advance_clock(30 * 24 * 3600 + 60);
    assert_eq!(
        (client.get(&list).await.json()["meta"]["total"].as_u64(), client.total(&format!("{list}?status=delivered")).await),
        (Some(0), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_counts_the_newest_five_hundred_at_a_bounded_cost() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["*"])).await;
    let (id, start) = (webhook["id"].as_str().unwrap(), api.now());
    // Records of 1 KB.
    let stored = |n: u32, status| {
        let mut delivery = delivery(id, start.plus_seconds(n), status);
        delivery.attempts = vec![delivery.attempts[0].clone(); 10];
        delivery
    };
    let failed: Vec<Delivery> = (1..=505).map(|n| stored(n, DeliveryStatus::Failed)).collect();
    let many: Vec<Delivery> = (1001..=1505).map(|n| stored(n, DeliveryStatus::Delivered)).collect();
    let store = api.store.writer(client.tenant);
    for some in [&failed[..], &many].concat().chunks(100) {
        join_all(some.iter().map(async |delivery| store.write_delivery(None, delivery).await.unwrap())).await;
    }
    let list = format!("{}/deliveries?limit=100", webhook_path(&webhook));
    let last = client.get(&format!("{list}&page=5")).await.json();
    assert_eq!((&last["meta"]["total"], &last["data"][99]["id"]), (&json!(500), &json!(many[5].event_id)));
    assert_eq!(client.get(&format!("{list}&page=6")).await.data(), json!([]));
    let of_failed = client.get(&format!("{list}&status=failed&page=5")).await.json();
    assert_eq!((&of_failed["meta"]["total"], &of_failed["data"][99]["id"]), (&json!(500), &json!(failed[5].event_id)));
    for status in ["", "&status=failed", "&status=delivered", "&status=pending"] {
        let (_, cost) = api.cost(async { client.get(&format!("{list}{status}")).await.data() }).await;
        assert!(cost.read_units > 0.0 && cost.read_units <= 100.0, "{status}: {cost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_queues_the_delivery_and_writes_nothing() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    for status in [DeliveryStatus::Failed, DeliveryStatus::Delivered, DeliveryStatus::Pending] {
        let (_, retry, delivery) = with_delivery(&api, &client, status).await;
        let before = api.dump().await;
        let shown = client.post(&retry, json!({})).await.data();
        let request = asked(&api);
        assert_eq!((request.event_id, request.test), (delivery.event_id, None));
        assert!(request.requested_at > delivery.requested_at);
        assert_eq!((shown["status"].as_str(), shown["attempt_count"].as_u64()), (Some("pending"), Some(1)));
        assert_eq!((&shown["requested_at"], &shown["next_attempt_at"]), (&json!(request.requested_at), &Value::Null));
        assert_eq!(shown["attempts"].as_array().unwrap().len(), 1);
        assert_eq!(api.dump().await, before);
    }
    let (_, retry, delivery) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    // The earlier request has the time of a clock that is ahead.
    let ahead = Delivery { requested_at: api.now().plus_seconds(600), ..delivery };
    api.queue.put(client.tenant, &ahead).await;
    client.post(&retry, json!({})).await.data();
    assert_eq!(asked(&api).requested_at, Timestamp::from_millis(ahead.requested_at.millis() + 1));

    let webhook = client.webhook(json!(["*"])).await;
    let test = client.send("POST", &format!("{}/test", webhook_path(&webhook)), None, "").await.id();
    api.queue.take();
    client.post(&format!("{}/deliveries/{test}/retry", webhook_path(&webhook)), json!({})).await.data();
    let request = asked(&api);
    assert!(request.test.is_some() && request.event_id.to_string() == test);
}

#[tokio::test(start_paused = true)]
async fn only_deliveries_of_an_active_webhook_are_retried() {
    let (api, client) = Api::with_tenant().await;
    let (webhook, retry, delivery) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    let other = client.webhook(json!(["*"])).await;
    let stranger = api.tenant().await;
    for missing in [
        format!("{webhook}/deliveries/{UNKNOWN_ID}/retry"),
        format!("{webhook}/deliveries/x/retry"),
        format!("{}/deliveries/{}/retry", webhook_path(&other), delivery.event_id),
        format!("/webhooks/{UNKNOWN_ID}/deliveries/{}/retry", delivery.event_id),
    ] {
        client.post(&missing, json!({})).await.problem(404, "NOT_FOUND");
    }
    stranger.post(&retry, json!({})).await.problem(404, "NOT_FOUND");
    client.patch(&webhook, json!({"is_active": false})).await.data();
    for (path, body) in [(retry, json!({})), (format!("{webhook}/replay"), json!({"since": "2026-03-01T00:00:00Z"}))] {
        let problem = client.post(&path, body).await.problem(409, "CONFLICT");
        assert!(problem["detail"].as_str().unwrap().contains("is not active"), "{problem}");
    }
    assert_eq!(api.queue.take(), []);
}

#[tokio::test(start_paused = true)]
async fn replay_queues_the_events_of_a_period() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["asset.*"])).await;
    let replay = format!("{}/replay", webhook_path(&webhook));
    let since: Timestamp = "2026-03-04T00:00:00.000Z".parse().unwrap();
    let shown = client.post(&replay, json!({"since": since})).await.data();
    let request = replayed(&api);
    assert_eq!((request.tenant_id, request.webhook_id), (client.tenant, webhook_id(&webhook)));
    let (before, first) = (EventId::new(Timestamp::from_millis(since.millis() - 1), [255; 10]), EventId::new(since, [0; 10]));
    assert!(request.after >= before && request.after < first, "an event of the first millisecond is sent");
    assert_eq!((request.until, &request.events), (request.requested_at, &WebhookEvents(vec!["asset.*".to_owned()])));
    let expected = json!({
        "webhook_id": webhook["id"], "since": since, "until": request.until, "events": ["asset.*"],
        "requested_at": request.requested_at
    });
    assert_eq!(shown, expected);
    let body = json!({"since": since, "until": "2026-03-04T12:00:00+01:00", "events": ["user.created", "asset.deleted"]});
    let other = client.webhook(json!(["*"])).await;
    let shown = client.post(&format!("{}/replay", webhook_path(&other)), body).await.data();
    let request = replayed(&api);
    assert_eq!(
        (&shown["until"], &shown["events"]),
        (&json!("2026-03-04T11:00:00.000Z"), &json!(["user.created", "asset.deleted"]))
    );
    assert_eq!((json!(request.until), json!(request.events)), (shown["until"].clone(), shown["events"].clone()));
    for (body, wrong) in [
        (json!({}), "/since"),
        (json!({"since": "yesterday"}), "/since"),
        (json!({"since": since, "until": since}), "/since"),
        (json!({"since": "2099-01-01T00:00:00Z"}), "/since"),
        (json!({"since": since, "until": "2099-01-01T00:00:00Z"}), "/until"),
        (json!({"since": since, "until": "soon"}), "/until"),
        (json!({"since": since, "events": ["asset"]}), "/events/0"),
    ] {
        assert_eq!(client.post(&replay, body.clone()).await.field_errors(), [wrong], "{body}");
    }
    client.send("POST", &replay, None, "").await.problem(400, "MALFORMED_REQUEST");
    assert_eq!(api.queue.take(), []);
}

/// Returns requests that send a message, with their bodies.
fn sending(webhook: &str, retry: &str) -> [(String, Value); 3] {
    [
        (format!("{webhook}/test"), json!({})),
        (retry.to_owned(), json!({})),
        (format!("{webhook}/replay"), json!({"since": "2026-03-01T00:00:00Z"})),
    ]
}

#[tokio::test(start_paused = true)]
async fn request_to_the_queue_refuses_if_match_and_is_sent_once_per_idempotency_key() {
    let (api, client) = Api::with_tenant().await;
    let (webhook, retry, _) = with_delivery(&api, &client, DeliveryStatus::Failed).await;
    for (path, body) in sending(&webhook, &retry) {
        let reply = client.send_json("POST", &path, &body.to_string(), ("if-match", "*")).await;
        reply.problem(412, "PRECONDITION_FAILED");
        let dry = client.post(&format!("{path}?dry_run=true"), body).await;
        assert_eq!((dry.status.as_u16(), dry.header("dry-run")), (200, "true"), "{path}");
        assert_eq!(dry.data().get("id").is_some_and(Value::is_null), path.ends_with("/test"));
    }
    assert_eq!(api.queue.take(), []);

    for path in [format!("{webhook}/test"), retry.clone()] {
        for (content_type, body) in [(None, ""), (Some("application/json"), "{}")] {
            assert_eq!(client.send("POST", &path, content_type, body).await.status.as_u16(), 200, "{path} {body}");
            assert_eq!(api.queue.take().len(), 1);
        }
        let reply = client.post(&path, json!({"a": 1, "b": 2})).await;
        let errors = reply.problem(422, "VALIDATION_ERROR")["errors"].clone();
        assert_eq!((errors[0]["pointer"].as_str(), errors[1]["pointer"].as_str()), (Some("/a"), Some("/b")));
        client.send("POST", &path, Some("application/json"), "{").await.problem(400, "MALFORMED_REQUEST");
        assert!(api.queue.take().is_empty(), "nothing is sent for a request that is refused");
    }

    for (path, body) in sending(&webhook, &retry) {
        api.queue.fail(1);
        let reply = client.post(&path, body.clone()).await;
        assert!(reply.problem(503, "UNAVAILABLE")["detail"].as_str().unwrap().starts_with("The delivery queue"));
        assert_eq!(reply.header("retry-after"), "1");
        api.queue.fail(2);
        for _ in 0..2 {
            client.post_once(&path, &body, &path).await.problem(503, "UNAVAILABLE");
        }
        let sent = client.post_once(&path, &body, &path).await.data();
        assert_eq!(client.post_once(&path, &body, &path).await.data(), sent, "{path}");
        let messages = api.queue.take();
        assert_eq!(messages.len(), 1, "{path}");
        let text = serde_json::to_string(&messages[0]).unwrap();
        assert!(text.contains(sent["requested_at"].as_str().unwrap()), "{path}");
    }
}

const SINCE: &str = "2026-03-01T00:00:00Z";

async fn running(client: &Client, replay: &str) -> Value {
    client.post(replay, json!({"since": SINCE})).await.problem(409, "CONFLICT")
}

fn sent(api: &Api) -> Vec<Message> {
    api.queue.take()
}

#[tokio::test(start_paused = true)]
async fn a_webhook_has_one_replay_at_a_time_and_a_later_one_ends_an_earlier_one() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    client.asset(json!({"name": "a"})).await;
    pipeline.finish(&api).await;
    let replay = format!("/webhooks/{}/replay", hook.id);
    client.post(&format!("{replay}?dry_run=true"), json!({"since": SINCE})).await.data();
    let first = client.post(&replay, json!({"since": SINCE})).await.data();
    let problem = running(&client, &replay).await;
    assert_eq!(problem["requested_at"], first["requested_at"]);
    client.post(&format!("{replay}?dry_run=true"), json!({"since": SINCE})).await.problem(409, "CONFLICT");
    for message in sent(&api) {
        send(&pipeline, message).await;
    }
    pipeline.run().await;
    running(&client, &replay).await;
    // The replay ends once the feed has settled.
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 2, "once when it happened, once by the replay");
    client.post(&replay, json!({"since": SINCE})).await.data();
    // The replay's message arrives late, from the retry queue, when a later replay has ended it.
    let late = sent(&api).remove(0);
    api.advance_clock(15 * 60);
    client.post(&replay, json!({"since": SINCE})).await.data();
    pipeline.receivers.take();
    send(&pipeline, late).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 0);
    for message in sent(&api) {
        send(&pipeline, message).await;
    }
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);
    client.post(&replay, json!({"since": SINCE})).await.data();
    // If the webhook is inactive, the message ends the replay.
    hook.activate(false).await;
    for message in sent(&api) {
        send(&pipeline, message).await;
    }
    pipeline.run_to_end(&api).await;
    hook.activate(true).await;
    client.post(&replay, json!({"since": SINCE})).await.data();
}

#[tokio::test(start_paused = true)]
async fn copies_of_a_request_start_one_replay_and_a_failed_request_starts_none() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["asset.created"])).await;
    let (replay, body) = (format!("{}/replay", webhook_path(&webhook)), json!({"since": SINCE}));
    api.queue.fail(1);
    client.post(&replay, body.clone()).await.problem(503, "UNAVAILABLE");
    let with_version = client.send_json("POST", &replay, &body.to_string(), ("if-match", "\"1-0\"")).await;
    with_version.problem(412, "PRECONDITION_FAILED");
    let copies = join_all((0..3).map(|_| client.post_once(&replay, &body, "key"))).await;
    let shown: Vec<Value> = copies.iter().map(Reply::data).collect();
    assert!(shown.iter().all(|copy| *copy == shown[0]), "{shown:?}");
    assert_eq!(sent(&api).len(), 1);
    assert_eq!(client.post_once(&replay, &body, "key").await.data(), shown[0]);
    client.post_once(&replay, &body, "another").await.problem(409, "CONFLICT");
}

#[tokio::test(start_paused = true)]
async fn tenant_can_start_50_replays_a_day() {
    let (api, client) = Api::with_tenant().await;
    let webhooks = [client.webhook(json!(["*"])).await, client.webhook(json!(["*"])).await];
    for n in 0..MAX_REPLAYS_PER_DAY {
        let replay = format!("{}/replay", webhook_path(&webhooks[n as usize % 2]));
        client.post(&replay, json!({"since": SINCE})).await.data();
        api.advance_clock(8 * 60);
    }
    let replay = format!("{}/replay", webhook_path(&webhooks[0]));
    let problem = running(&client, &replay).await;
    let next: Timestamp = problem["retry_at"].as_str().unwrap().parse().unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("50 replays a day"), "{problem}");
    let (_, stranger) = (api.advance_clock_millis(next.since(api.now()).num_milliseconds()), api.tenant().await);
    client.post(&replay, json!({"since": SINCE})).await.data();
    let webhook = stranger.webhook(json!(["*"])).await;
    stranger.post(&format!("{}/replay", webhook_path(&webhook)), json!({"since": SINCE})).await.data();
}
