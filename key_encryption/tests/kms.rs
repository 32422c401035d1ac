//! Sealing by KMS, against a small stand-in that speaks its protocol.
#![expect(clippy::unwrap_used, reason = "tests, and helpers that only tests call")]

use aws_sdk_kms::config::{BehaviorVersion, Builder, Credentials, Region};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64_simd::STANDARD;
use key_encryption::KmsKeyEncryption;
use serde_json::{Value, json};
use shared::domain::id::{Id, TenantId};
use shared::domain::time::Timestamp;
use shared::key_encryption::{KeyEncryption, KeyEncryptionError};
use std::sync::{Arc, Mutex};

/// What was asked, and how often to answer "later" first.
#[derive(Default)]
struct Script {
    seen: Vec<(String, Value)>,
    throttle: usize,
}

type Shared = Arc<Mutex<Script>>;

/// "Encrypts" by putting the context before the text, and opens only what has the same before it.
async fn answer(State(script): State<Shared>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let operation = headers["x-amz-target"].to_str().unwrap().strip_prefix("TrentService.").unwrap().to_owned();
    assert!(headers["authorization"].to_str().unwrap().contains("/kms/aws4_request"), "it is signed for KMS");
    let request: Value = serde_json::from_slice(&body).unwrap();
    let mut script = script.lock().unwrap();
    script.seen.push((operation.clone(), request.clone()));
    if script.throttle > 0 {
        script.throttle -= 1;
        return (StatusCode::BAD_REQUEST, json!({"__type": "ThrottlingException", "message": "slow down"}).to_string());
    }
    let refused = |code: &str| (StatusCode::BAD_REQUEST, json!({"__type": code, "message": "no"}).to_string());
    if request["KeyId"] != "alias/receipts" {
        return refused("NotFoundException");
    }
    // The order of a map's members is not fixed.
    let context: std::collections::BTreeMap<String, String> =
        serde_json::from_value(request["EncryptionContext"].clone()).unwrap();
    let before = format!("{context:?}\n").into_bytes();
    let bytes = |name: &str| STANDARD.decode_to_vec(request[name].as_str().unwrap()).unwrap();
    let reply =
        |name: &str, bytes: &[u8]| (StatusCode::OK, json!({name: STANDARD.encode_to_string(bytes), "KeyId": "k"}).to_string());
    match operation.as_str() {
        "Encrypt" => reply("CiphertextBlob", &[before.as_slice(), &bytes("Plaintext")].concat()),
        "Decrypt" => match bytes("CiphertextBlob").strip_prefix(before.as_slice()) {
            Some(secret) => reply("Plaintext", secret),
            None => refused("InvalidCiphertextException"),
        },
        other => refused(other),
    }
}

async fn stand_in() -> (KmsKeyEncryption, Shared, String) {
    let script = Shared::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/", post(answer)).with_state(Arc::clone(&script));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (key_encryption(&url, "alias/receipts"), script, url)
}

fn key_encryption(url: &str, key: &str) -> KmsKeyEncryption {
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(url)
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    let client = aws_sdk_kms::Client::from_conf(config.build());
    KmsKeyEncryption::new(Box::new(move || Ok(client.clone())), key.into())
}

fn tenant(n: u8) -> TenantId {
    TenantId::new(Timestamp::from_millis(0), [n; 10])
}

#[tokio::test]
async fn what_is_sealed_for_a_tenant_opens_for_it_only() {
    let (key_encryption, script, _) = stand_in().await;
    let sealed = key_encryption.encrypt_key(tenant(1), b"seed").await.unwrap();
    assert_eq!(key_encryption.decrypt_key(tenant(1), &sealed).await.unwrap(), b"seed");
    assert!(matches!(key_encryption.decrypt_key(tenant(2), &sealed).await, Err(KeyEncryptionError::Refused(_))));
    let seen = std::mem::take(&mut script.lock().unwrap().seen);
    let operations: Vec<&str> = seen.iter().map(|(operation, _)| operation.as_str()).collect();
    assert_eq!(operations, ["Encrypt", "Decrypt", "Decrypt"]);
    let context = json!({"purpose": "asset-lifecycle receipt key", "tenant_id": tenant(1).to_string()});
    assert_eq!((&seen[0].1["EncryptionContext"], &seen[0].1["KeyId"]), (&context, &json!("alias/receipts")));
    assert_eq!((&seen[1].1["EncryptionContext"], &seen[1].1["KeyId"]), (&context, &json!("alias/receipts")));
}

#[tokio::test]
async fn throttling_is_tried_again_and_then_means_later() {
    let (key_encryption, script, _) = stand_in().await;
    script.lock().unwrap().throttle = 1;
    assert!(key_encryption.encrypt_key(tenant(1), b"seed").await.is_ok());
    script.lock().unwrap().throttle = 100;
    assert!(matches!(key_encryption.encrypt_key(tenant(1), b"seed").await, Err(KeyEncryptionError::Unavailable(_))));
}

#[tokio::test]
async fn a_key_that_is_not_there_is_refused_and_no_answer_means_later() {
    let (_, _, url) = stand_in().await;
    assert!(matches!(
        key_encryption(&url, "alias/other").encrypt_key(tenant(1), b"seed").await,
        Err(KeyEncryptionError::Refused(_))
    ));
    let nobody = key_encryption("http://127.0.0.1:1", "alias/receipts");
    assert!(matches!(nobody.encrypt_key(tenant(1), b"seed").await, Err(KeyEncryptionError::Unavailable(_))));
}
