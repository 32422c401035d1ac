//! The secrets of webhooks are shown once, stored encrypted, and written nowhere else.

use crate::http::idempotency::post;
use crate::keys::secrets::items_as_text;
use crate::support::webhooks::deliveries::{URL, path};
use crate::support::webhooks::key_encryption::ObservedKeyEncryption;
use crate::support::{Api, Client, all_items, log};
use base64_simd::STANDARD;
use serde_json::{Value, json};
use shared::app::App;
use shared::key_encryption::{KeyEncryption, Purpose};
use std::fmt::Write;
use std::sync::Arc;

/// The secret must have the form that libraries for Standard Webhooks read.
fn bytes(webhook: &Value) -> Vec<u8> {
    let text = webhook["secret"].as_str().expect("a secret");
    standardwebhooks::Webhook::new(text).expect("a secret that a receiver can use");
    let bytes = STANDARD.decode_to_vec(text.strip_prefix("whsec_").expect("a prefix")).expect("base64");
    assert_eq!(bytes.len(), 32);
    bytes
}

/// Forms in which a secret could be written, in lower case.
fn traces(secret: &[u8]) -> Vec<String> {
    let encoded = STANDARD.encode_to_string(secret);
    let encoded = encoded.trim_end_matches('=');
    let encoded = &encoded[..encoded.len() - 1];
    let hex = secret.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let (decimal, hexadecimal) = (format!("{secret:?}"), format!("{secret:x?}"));
    let listed = |text: &str| text[1..text.len() - 1].to_owned();
    let url_safe = encoded.replace('+', "-").replace('/', "_");
    let twice = STANDARD.encode_to_string(encoded);
    let twice = twice.trim_end_matches('=');
    let all = [encoded.to_owned(), url_safe, twice[..twice.len() - 1].to_owned(), hex, listed(&decimal), listed(&hexadecimal)];
    all.map(|text| text.to_lowercase()).into()
}

/// Of the only webhook, decrypted: the current secret, and the previous one if it is kept.
async fn stored_secrets(api: &Api, client: &Client) -> Vec<Vec<u8>> {
    let items = all_items(api).await;
    let of_webhook =
        |item: &&shared::store::keys::Item| item.get("type").and_then(|it| it.as_s().ok()).is_some_and(|it| it == "webhook");
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
    for get in [path(&created), "/webhooks".to_owned()] {
        let reply = client.get(&get).await;
        assert!(reply.status == 200 && !reply.text().contains(&secret[6..]) && !reply.text().contains("\"secret\""), "{get}");
    }
    let patched = client.patch(&path(&created), json!({"description": "x"})).await;
    let deleted = client.delete(&path(&created)).await;
    for reply in [patched, deleted] {
        assert!(reply.data().get("secret").is_none(), "{}", reply.text());
    }
    // Nobody chooses a secret.
    let chosen = json!({"url": URL, "events": ["*"], "secret": secret});
    assert_eq!(client.post("/webhooks", chosen).await.field_errors(), ["/secret"]);
}

#[tokio::test(start_paused = true)]
async fn a_rotation_keeps_the_previous_secret_for_its_grace_only() {
    let (api, client) = Api::with_tenant().await;
    let first = client.webhook(json!(["*"])).await;
    let rotate = format!("{}/rotate", path(&first));
    let second = client.post(&rotate, json!({"grace_seconds": 60})).await.data();
    assert_ne!(first["secret"], second["secret"]);
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&second), bytes(&first)]);
    let rotated_at: shared::domain::values::time::Timestamp = second["rotated_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(second["previous_secret_until"], json!(rotated_at.plus_seconds(60)));
    let mut shown = second.clone();
    shown.as_object_mut().unwrap().remove("secret");
    assert_eq!(client.get(&path(&first)).await.data(), shown);
    let third = client.send("POST", &rotate, None, "").await.data();
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&third)]);
    assert!(third["previous_secret_until"].is_null());
    for invalid in [json!(-1), json!(604_801), json!("1"), json!(1.5)] {
        assert_eq!(client.post(&rotate, json!({"grace_seconds": invalid})).await.field_errors(), ["/grace_seconds"]);
    }
    client
        .post(&rotate.replace(first["id"].as_str().unwrap(), crate::support::UNKNOWN_ID), json!({}))
        .await
        .problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn of_two_simultaneous_rotations_neither_returns_a_secret_that_does_not_sign() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let rotate = format!("{}/rotate", path(&client.webhook(json!(["*"])).await));
    let rotate = || client.post(&rotate, json!({}));
    let (late, rotated) = api.faults.overtake("TransactWriteItems", rotate(), rotate()).await;
    late.problem(409, "CONFLICT");
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&rotated.data())]);
}

#[tokio::test(start_paused = true)]
async fn two_rotations_within_a_millisecond_both_replace_the_secret() {
    let (api, client) = Api::with_tenant().await;
    let created = client.webhook(json!(["*"])).await;
    let rotate = format!("{}/rotate", path(&created));
    api.stop_clock();
    client.post(&rotate, json!({})).await.data();
    let second = client.post(&rotate, json!({})).await.data();
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&second)]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_creation_or_rotation_makes_nothing_and_shows_no_secret() {
    let (api, client) = Api::with_tenant().await;
    let body = json!({"url": URL, "events": ["*"]});
    let created = post(&client, "/webhooks", &body, "create").await;
    let rotate = format!("{}/rotate", path(&created.data()));
    let (before, secret) = (api.dump().await, created.data());
    let again = post(&client, "/webhooks", &body, "create").await;
    assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (201, "true"));
    assert!(again.data().get("secret").is_none() && again.id() == created.id());
    assert_eq!(api.dump().await, before);
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&secret)]);

    let rotated = post(&client, &rotate, &json!({"grace_seconds": 60}), "rotate").await.data();
    let before = api.dump().await;
    let again = post(&client, &rotate, &json!({"grace_seconds": 60}), "rotate").await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert!(again.data().get("secret").is_none(), "{}", again.text());
    assert_eq!(api.dump().await, before);
    assert_eq!(stored_secrets(&api, &client).await, [bytes(&rotated), bytes(&secret)]);
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_stored_or_logged() {
    log::begin_everything();
    let (api, client) = Api::with_tenant().await;
    let body = json!({"url": URL, "events": ["*"]});
    let created = post(&client, "/webhooks", &body, "create").await.data();
    let rotate = format!("{}/rotate", path(&created));
    let rotated = post(&client, &rotate, &json!({"grace_seconds": 60}), "rotate").await.data();
    let again = client.post(&rotate, json!({"grace_seconds": 60})).await.data();
    client.patch(&path(&created), json!({"description": "x"})).await.data();
    client.send("POST", &format!("{}/test", path(&created)), None, "").await.data();
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
    // Nor is an address logged, which may have a secret of its own in its path.
    let own = log.lines().filter(|line| !line.contains("\"target\":\"aws")).filter(|line| line.contains("hooks.example.com"));
    assert_eq!(own.collect::<Vec<_>>(), [""; 0]);
}

/// Encryption is a paid call of another service.
#[tokio::test(start_paused = true)]
async fn nothing_is_encrypted_for_a_webhook_that_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let observed = Arc::new(ObservedKeyEncryption::new(&api));
    let app = App::new(api.store.clone()).with_key_encryption(Some(Arc::clone(&observed) as Arc<dyn KeyEncryption>));
    let router = shared::http::service(webhooks::routes(), app.with_queue(Some(api.queue.clone())));
    let counted = Client { router, ..client.clone() };
    let body = json!({"url": URL, "events": ["*"]});
    for _ in 0..19 {
        client.webhook(json!(["*"])).await;
    }
    let last = post(&counted, "/webhooks", &body, "twentieth").await;
    assert_eq!((last.status.as_u16(), observed.encryptions()), (201, 1));
    for path in ["/webhooks", "/webhooks?dry_run=true"] {
        assert_eq!(counted.post(path, body.clone()).await.problem(409, "CONFLICT")["limit"], 20);
    }
    counted.post("/webhooks", json!({"url": "ftp://example.com", "events": ["*"]})).await.problem(422, "VALIDATION_ERROR");
    // What was created before is still the response to the same request.
    assert_eq!(post(&counted, "/webhooks", &body, "twentieth").await.status, 201);
    assert_eq!(observed.encryptions(), 1);
}
