//! Webhooks and their secrets: creating, changing, rotating and deleting them, and accepted values.

use crate::keys::secrets::items_as_text;
use crate::support::prelude::*;
use crate::support::webhooks::*;
use base64_simd::STANDARD;
use shared::domain::webhooks::AddressPolicy;

/// Starts the service on the same table, with a different configuration by the operator.
fn configured(api: &Api, client: &Client, configure: impl Fn(App) -> App) -> Client {
    Client { router: dev_server::server::router(configure(App::new(api.store.clone()))), ..client.clone() }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_created_listed_changed_and_deleted() {
    let (api, client) = Api::with_tenant().await;
    let body =
        json!({"url": "https://Hooks.example.com:443/assets?a=b", "description": "ERP", "events": ["asset.*", "user.deleted"]});
    let created = client.post("/webhooks", body).await;
    assert_eq!((created.status.as_u16(), created.header("etag")), (201, ""));
    let mut webhook = created.data();
    assert_eq!(created.header("location"), format!("/v1{}", webhook_path(&webhook)));
    webhook.as_object_mut().unwrap().remove("secret").expect("a secret");
    let expected = json!({
        "id": webhook["id"], "url": "https://hooks.example.com/assets?a=b", "description": "ERP",
        "events": ["asset.*", "user.deleted"], "is_active": true, "disabled_reason": null, "created_at": webhook["created_at"],
        "updated_at": webhook["created_at"], "rotated_at": null, "previous_secret_until": null
    });
    assert_eq!(webhook, expected);
    let read = client.get(&webhook_path(&webhook)).await;
    assert_eq!(read.data(), webhook);
    let etag = read.header("etag").to_owned();
    let other = client.webhook(json!(["*"])).await;
    let listed = client.get("/webhooks").await.json();
    assert_eq!(listed["meta"], json!({"total": 2, "page": 1, "limit": 20, "total_pages": 1}));
    assert_eq!((&listed["data"][0]["id"], &listed["data"][1]), (&other["id"], &webhook));

    let patched = client.send_json("PATCH", &webhook_path(&webhook), r#"{"is_active": false}"#, ("if-match", &etag)).await.data();
    assert_eq!((patched["is_active"].as_bool(), &patched["url"]), (Some(false), &webhook["url"]));
    client
        .send_json("PATCH", &webhook_path(&webhook), r#"{"is_active": true}"#, ("if-match", &etag))
        .await
        .problem(412, "PRECONDITION_FAILED");
    // A response can be sent back.
    assert_eq!(client.patch(&webhook_path(&webhook), patched.clone()).await.data(), patched);
    let refused = json!({"secret": "whsec_x", "disabled_reason": "gone", "id": other["id"], "slot": 1});
    assert_eq!(
        client.patch(&webhook_path(&webhook), refused).await.field_errors(),
        ["/disabled_reason", "/id", "/secret", "/slot"]
    );

    assert_eq!(client.delete(&webhook_path(&webhook)).await.data(), patched);
    client.get(&webhook_path(&webhook)).await.problem(404, "NOT_FOUND");
    assert_eq!(client.total("/webhooks").await, 1);
    let types: Vec<Value> =
        event_chain(&api, &client, webhook["id"].as_str().unwrap()).await.iter().map(|it| it["type"].clone()).collect();
    assert_eq!(types, ["webhook.created", "webhook.updated", "webhook.deleted"]);
}

#[tokio::test(start_paused = true)]
async fn addresses_and_events_are_checked_together() {
    let client = over_http().await;
    let both = json!({"url": "https://10.0.0.1/", "events": ["*"], "description": "a\u{7}", "colour": "red"});
    assert_eq!(client.post("/webhooks", both).await.field_errors(), ["/colour", "/description", "/url"]);
    let events = json!({"url": PUBLIC_URL, "events": ["asset.craeted", "asset.*", "asset.*", "webhook.test", "*.created", ""]});
    let refused = client.post("/webhooks", events).await;
    assert_eq!(refused.field_errors(), ["/events/0", "/events/2", "/events/3", "/events/4", "/events/5"]);
    for detail in ["unknown event type; known: asset.created, ", "must contain asset.* only once"] {
        assert!(refused.text().contains(detail), "{}", refused.text());
    }
    for events in [json!([]), json!("*"), json!([1]), json!(vec!["*"; 51]), Value::Null] {
        let reply = client.post("/webhooks", json!({"url": PUBLIC_URL, "events": events})).await;
        assert_eq!(reply.field_errors(), ["/events"], "{events}");
    }
    assert_eq!(client.post("/webhooks", json!({})).await.field_errors(), ["/events", "/url"]);
    assert_eq!(client.total("/webhooks").await, 0);

    let webhook = client.webhook(json!(["*"])).await;
    for body in [json!({"url": "https://[::1]/"}), json!({"url": "http://example.com/"}), json!({"url": null})] {
        assert_eq!(client.patch(&webhook_path(&webhook), body).await.field_errors(), ["/url"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_can_allow_addresses_of_this_machine_and_nothing_else() {
    let (api, client) = Api::with_tenant().await;
    let (key_encryption, queue) = (api.key_encryption.clone(), api.queue.clone());
    let local = configured(&api, &client, |app| {
        let app = app.with_key_encryption(Some(key_encryption.clone())).with_queue(Some(queue.clone()));
        app.with_address_policy(AddressPolicy::PublicOrLoopback)
    });
    let mut created = Value::Null;
    for url in ["http://127.0.0.1:9000/hook", "http://localhost:9000/", "https://[::1]/", PUBLIC_URL] {
        created = local.post("/webhooks", json!({"url": url, "events": ["*"]})).await.data();
        assert_eq!(created["url"], url);
    }
    for url in ["http://10.0.0.1/", "http://example.com/", "https://192.168.0.1/"] {
        assert_eq!(local.post("/webhooks", json!({"url": url, "events": ["*"]})).await.field_errors(), ["/url"], "{url}");
    }
    // Without the dev server's policy, such a URL can be sent back unchanged, but not set again.
    let here = json!({"url": "http://127.0.0.1:9000/hook"});
    local.patch(&webhook_path(&created), here.clone()).await.data();
    let mut read = client.get(&webhook_path(&created)).await.data();
    read["description"] = json!("still here");
    assert_eq!(client.patch(&webhook_path(&created), read).await.data()["url"], here["url"]);
    client.patch(&webhook_path(&created), json!({"url": PUBLIC_URL})).await.data();
    assert_eq!(client.patch(&webhook_path(&created), here).await.field_errors(), ["/url"]);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_at_most_twenty_webhooks_however_many_are_created_at_once() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let body = json!({"url": PUBLIC_URL, "events": ["*"]});
    let all = join_all((0..25).map(|_| client.post("/webhooks", body.clone()))).await;
    let created: Vec<Value> = all.iter().filter(|reply| reply.status == 201).map(|reply| reply.data()).collect();
    for refused in all.iter().filter(|reply| reply.status != 201) {
        refused.problem(409, "CONFLICT");
    }
    // A request that lost too many races can be retried.
    let mut created = created;
    while created.len() < 20 {
        created.push(client.post("/webhooks", body.clone()).await.data());
    }
    let problem = client.post("/webhooks", body.clone()).await.problem(409, "CONFLICT");
    assert_eq!(problem["limit"], 20);
    assert_eq!(client.total("/webhooks?limit=100").await, 20);
    assert_eq!(client.post("/webhooks?dry_run=true", body.clone()).await.status, 409);
    client.delete(&webhook_path(&created[7])).await.data();
    client.post("/webhooks", body.clone()).await.data();
    client.post("/webhooks", body.clone()).await.problem(409, "CONFLICT");
    // Another tenant has separate webhooks.
    let other = api.tenant().await;
    assert_eq!(other.total("/webhooks").await, 0);
    other.webhook(json!(["*"])).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_or_an_encryption_key_there_are_no_webhooks() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["*"])).await;
    let (key_encryption, queue) = (api.key_encryption.clone(), api.queue.clone());
    let without_queue = configured(&api, &client, |app| app.with_key_encryption(Some(key_encryption.clone())));
    let without_key = configured(&api, &client, |app| app.with_queue(Some(queue.clone())));
    let before = api.dump().await;
    let body = json!({"url": PUBLIC_URL, "events": ["*"]});
    for (client, post, body) in [
        (&without_queue, "/webhooks".to_owned(), body.clone()),
        (&without_key, "/webhooks".to_owned(), body.clone()),
        (&without_key, format!("{}/rotate", webhook_path(&webhook)), json!({})),
        (&without_queue, format!("{}/test", webhook_path(&webhook)), json!({})),
        (&without_queue, format!("{}/replay", webhook_path(&webhook)), json!({"since": "2026-03-01T00:00:00Z"})),
    ] {
        let problem = client.post(&post, body).await.problem(409, "CONFLICT");
        assert!(problem["detail"].as_str().unwrap().starts_with("Webhooks are not available: "), "{problem}");
    }
    assert_eq!(api.dump().await, before);
    assert_eq!(api.queue.take(), []);
    // Existing webhooks can be read, changed and deleted.
    without_queue.patch(&webhook_path(&webhook), json!({"is_active": false})).await.data();
    assert_eq!(without_key.get(&webhook_path(&webhook)).await.data()["is_active"], false);
    without_key.delete(&webhook_path(&webhook)).await.data();
}

/// Decodes the secret, which must have the form that Standard Webhooks libraries accept.
fn bytes(webhook: &Value) -> Vec<u8> {
    let text = webhook["secret"].as_str().expect("a secret");
    standardwebhooks::Webhook::new(text).expect("a secret that a receiver can use");
    let bytes = STANDARD.decode_to_vec(text.strip_prefix("whsec_").expect("a prefix")).expect("base64");
    assert_eq!(bytes.len(), 32);
    bytes
}

/// Returns the forms in which a secret could be stored, in lower case.
fn traces(secret: &[u8]) -> Vec<String> {
    let encoded = STANDARD.encode_to_string(secret);
    let encoded = encoded.trim_end_matches('=');
    let encoded = &encoded[..encoded.len() - 1];
    let (decimal, hexadecimal) = (format!("{secret:?}"), format!("{secret:x?}"));
    let listed = |text: &str| text[1..text.len() - 1].to_owned();
    let url_safe = encoded.replace('+', "-").replace('/', "_");
    let twice = STANDARD.encode_to_string(encoded);
    let twice = twice.trim_end_matches('=');
    let all = [
        encoded.to_owned(),
        url_safe,
        twice[..twice.len() - 1].to_owned(),
        hex::encode(secret),
        listed(&decimal),
        listed(&hexadecimal),
    ];
    all.map(|text| text.to_lowercase()).into()
}

/// Returns the decrypted secrets of the only webhook: the current one and, if kept, the previous one.
async fn stored_secrets(api: &Api, client: &Client) -> Vec<Vec<u8>> {
    let items = all_items(api).await;
    let of_webhook = |item: &&Item| item.get("type").and_then(|it| it.as_s().ok()).is_some_and(|it| it == "webhook");
    let item = items.iter().find(of_webhook).expect("a webhook");
    let current = item["secret"].as_s().unwrap().clone();
    let previous = item.get("previous_secret").map(|previous| previous.as_m().unwrap()["secret"].as_s().unwrap().clone());
    let mut secrets = Vec::new();
    for text in std::iter::once(current).chain(previous) {
        let ciphertext = STANDARD.decode_to_vec(text).unwrap();
        let decrypted = api.key_encryption.decrypt_key(Purpose::WebhookSecret, client.tenant, &ciphertext).await;
        assert!(api.key_encryption.decrypt_key(Purpose::ReceiptKey, client.tenant, &ciphertext).await.is_err());
        secrets.push(decrypted.unwrap());
    }
    secrets
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_shown_once_and_stored_encrypted() {
    let (api, client) = Api::with_tenant().await;
    let created = client.webhook(json!(["*"])).await;
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&created)]);
    let secret = created["secret"].as_str().unwrap();
    for get in [webhook_path(&created), "/webhooks".to_owned()] {
        let reply = client.get(&get).await;
        assert!(reply.status == 200 && !reply.text().contains(&secret[6..]) && !reply.text().contains("\"secret\""), "{get}");
    }
    let patched = client.patch(&webhook_path(&created), json!({"description": "x"})).await;
    let deleted = client.delete(&webhook_path(&created)).await;
    for reply in [patched, deleted] {
        assert!(reply.data().get("secret").is_none(), "{}", reply.text());
    }
    let chosen = json!({"url": PUBLIC_URL, "events": ["*"], "secret": secret});
    assert_eq!(client.post("/webhooks", chosen).await.field_errors(), ["/secret"]);
}

#[tokio::test(start_paused = true)]
async fn a_rotation_keeps_the_previous_secret_for_its_grace_only() {
    let (api, client) = Api::with_tenant().await;
    let first = client.webhook(json!(["*"])).await;
    let rotate = format!("{}/rotate", webhook_path(&first));
    let second = client.post(&rotate, json!({"grace_seconds": 60})).await.data();
    assert_ne!(first["secret"], second["secret"]);
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&second), bytes(&first)]);
    let rotated_at: Timestamp = second["rotated_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(second["previous_secret_until"], json!(rotated_at.plus_seconds(60)));
    let mut shown = second.clone();
    shown.as_object_mut().unwrap().remove("secret");
    assert_eq!(client.get(&webhook_path(&first)).await.data(), shown);
    let third = client.send("POST", &rotate, None, "").await.data();
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&third)]);
    assert!(third["previous_secret_until"].is_null());
    for invalid in [json!(-1), json!(604_801), json!("1"), json!(1.5)] {
        assert_eq!(client.post(&rotate, json!({"grace_seconds": invalid})).await.field_errors(), ["/grace_seconds"]);
    }
    client.post(&rotate.replace(first["id"].as_str().unwrap(), UNKNOWN_ID), json!({})).await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn rotations_at_once_or_within_a_millisecond_leave_no_secret_that_does_not_sign() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let rotate = format!("{}/rotate", webhook_path(&client.webhook(json!(["*"])).await));
    let rotate = || client.post(&rotate, json!({}));
    let (late, rotated) = api.faults.overtake("TransactWriteItems", rotate(), rotate()).await;
    late.problem(409, "CONFLICT");
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&rotated.data())]);
    // Two rotations within a millisecond both replace the secret.
    api.stop_clock();
    rotate().await.data();
    let second = rotate().await.data();
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&second)]);
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_stored_or_logged() {
    log::begin_everything();
    let (api, client) = Api::with_tenant().await;
    let body = json!({"url": PUBLIC_URL, "events": ["*"]});
    let created = client.post_once("/webhooks", &body, "create").await.data();
    let rotate = format!("{}/rotate", webhook_path(&created));
    let rotated = client.post_once(&rotate, &json!({"grace_seconds": 60}), "rotate").await.data();
    let again = client.post(&rotate, json!({"grace_seconds": 60})).await.data();
    client.patch(&webhook_path(&created), json!({"description": "x"})).await.data();
    client.send("POST", &format!("{}/test", webhook_path(&created)), None, "").await.data();
    let messages = serde_json::to_string(&api.queue.take()).unwrap();
    let invalid = json!({"__type": "com.amazonaws.dynamodb.v20120810#ValidationException", "message": "refused"});
    api.faults.plan("TransactWriteItems", 1, 400, &invalid, false);
    client.post(&rotate, json!({})).await.problem(500, "INTERNAL_ERROR");
    api.advance_clock(60);
    let events = client.get("/events?limit=100&types=webhook.*").await;
    assert_eq!(events.data().as_array().unwrap().len(), 4, "{}", events.text());
    let log = log::text();
    let items = items_as_text(&api).await;
    assert!(["webhook", "stored_response", "event", "delivery"].iter().all(|kind| items.iter().any(|(it, _)| it == kind)));
    let mut everything: String = items.iter().flat_map(|(_, text)| [text.as_str(), "\n"]).collect();
    everything.extend([log.as_str(), events.text(), &messages]);
    let everything = everything.to_lowercase();
    for webhook in [&created, &rotated, &again] {
        for (number, trace) in traces(&bytes(webhook)).iter().enumerate() {
            assert!(!everything.contains(trace), "a secret is written in form {number}");
        }
    }
    // URLs aren't logged either, because their paths can contain secrets.
    let own = log.lines().filter(|line| !line.contains("\"target\":\"aws")).filter(|line| line.contains("hooks.example.com"));
    assert_eq!(own.collect::<Vec<_>>(), [""; 0]);
}

/// Encryption is a paid call to another service.
#[tokio::test(start_paused = true)]
async fn nothing_is_encrypted_for_a_webhook_that_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let observed = Arc::new(ObservedKeyEncryption::new(&api));
    let app = App::new(api.store.clone()).with_key_encryption(Some(Arc::clone(&observed) as Arc<dyn KeyEncryption>));
    let router = shared::http::service(webhooks::routes(), app.with_queue(Some(api.queue.clone())));
    let counted = Client { router, ..client.clone() };
    let body = json!({"url": PUBLIC_URL, "events": ["*"]});
    for _ in 0..19 {
        client.webhook(json!(["*"])).await;
    }
    let last = counted.post_once("/webhooks", &body, "twentieth").await;
    assert_eq!((last.status.as_u16(), observed.encryptions()), (201, 1));
    for path in ["/webhooks", "/webhooks?dry_run=true"] {
        assert_eq!(counted.post(path, body.clone()).await.problem(409, "CONFLICT")["limit"], 20);
    }
    counted.post("/webhooks", json!({"url": "ftp://example.com", "events": ["*"]})).await.problem(422, "VALIDATION_ERROR");
    // The same request still gets the stored response.
    assert_eq!(counted.post_once("/webhooks", &body, "twentieth").await.status, 201);
    assert_eq!(observed.encryptions(), 1);
}
