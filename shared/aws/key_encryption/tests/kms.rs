//! Encryption with KMS, against a small fake server.
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
use shared::domain::values::id::{Id, TenantId};
use shared::domain::values::time::Timestamp;
use shared::key_encryption::{KeyEncryption, KeyEncryptionError, Purpose};
use std::sync::{Arc, Mutex};

/// The requests received so far, and the number of upcoming requests to throttle.
#[derive(Default)]
struct FakeKms {
    requests: Vec<(String, Value)>,
    throttle: usize,
}

type Shared = Arc<Mutex<FakeKms>>;

/// "Encrypts" by prefixing the text with the encryption context. Decrypts only with the same context.
async fn handle(State(kms): State<Shared>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let operation = headers["x-amz-target"].to_str().unwrap().strip_prefix("TrentService.").unwrap().to_owned();
    assert!(headers["authorization"].to_str().unwrap().contains("/kms/aws4_request"), "the request is signed for KMS");
    let request: Value = serde_json::from_slice(&body).unwrap();
    let mut kms = kms.lock().unwrap();
    kms.requests.push((operation.clone(), request.clone()));
    if kms.throttle > 0 {
        kms.throttle -= 1;
        return (StatusCode::BAD_REQUEST, json!({"__type": "ThrottlingException", "message": "slow down"}).to_string());
    }
    let error = |code: &str| (StatusCode::BAD_REQUEST, json!({"__type": code, "message": "no"}).to_string());
    if request["KeyId"] != "alias/receipts" {
        return error("NotFoundException");
    }
    // The members of the context can be in any order.
    let context: std::collections::BTreeMap<String, String> =
        serde_json::from_value(request["EncryptionContext"].clone()).unwrap();
    let before = format!("{context:?}\n").into_bytes();
    let bytes = |name: &str| STANDARD.decode_to_vec(request[name].as_str().unwrap()).unwrap();
    let response =
        |name: &str, bytes: &[u8]| (StatusCode::OK, json!({name: STANDARD.encode_to_string(bytes), "KeyId": "k"}).to_string());
    match operation.as_str() {
        "Encrypt" => response("CiphertextBlob", &[before.as_slice(), &bytes("Plaintext")].concat()),
        "Decrypt" => match bytes("CiphertextBlob").strip_prefix(before.as_slice()) {
            Some(secret) => response("Plaintext", secret),
            None => error("InvalidCiphertextException"),
        },
        other => error(other),
    }
}

async fn fake_kms() -> (KmsKeyEncryption, Shared, String) {
    let kms = Shared::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/", post(handle)).with_state(Arc::clone(&kms));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (provider(&url, "alias/receipts"), kms, url)
}

fn provider(url: &str, key: &str) -> KmsKeyEncryption {
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
async fn a_ciphertext_is_decrypted_for_its_tenant_only() {
    let (provider, kms, _) = fake_kms().await;
    let ciphertext = provider.encrypt_key(Purpose::ReceiptKey, tenant(1), b"seed").await.unwrap();
    assert_eq!(provider.decrypt_key(Purpose::ReceiptKey, tenant(1), &ciphertext).await.unwrap(), b"seed");
    assert!(matches!(
        provider.decrypt_key(Purpose::ReceiptKey, tenant(2), &ciphertext).await,
        Err(KeyEncryptionError::Rejected(_))
    ));
    let requests = std::mem::take(&mut kms.lock().unwrap().requests);
    let operations: Vec<&str> = requests.iter().map(|(operation, _)| operation.as_str()).collect();
    assert_eq!(operations, ["Encrypt", "Decrypt", "Decrypt"]);
    let context = json!({"purpose": "asset-lifecycle receipt key", "tenant_id": tenant(1).to_string()});
    assert_eq!((&requests[0].1["EncryptionContext"], &requests[0].1["KeyId"]), (&context, &json!("alias/receipts")));
    assert_eq!((&requests[1].1["EncryptionContext"], &requests[1].1["KeyId"]), (&context, &json!("alias/receipts")));
}

#[tokio::test]
async fn throttling_is_retried_and_then_means_unavailable() {
    let (provider, kms, _) = fake_kms().await;
    kms.lock().unwrap().throttle = 1;
    assert!(provider.encrypt_key(Purpose::ReceiptKey, tenant(1), b"seed").await.is_ok());
    kms.lock().unwrap().throttle = 100;
    assert!(matches!(
        provider.encrypt_key(Purpose::ReceiptKey, tenant(1), b"seed").await,
        Err(KeyEncryptionError::Unavailable(_))
    ));
}

#[tokio::test]
async fn an_unknown_key_is_rejected_and_no_response_means_unavailable() {
    let (_, _, url) = fake_kms().await;
    assert!(matches!(
        provider(&url, "alias/other").encrypt_key(Purpose::ReceiptKey, tenant(1), b"seed").await,
        Err(KeyEncryptionError::Rejected(_))
    ));
    let unreachable = provider("http://127.0.0.1:1", "alias/receipts");
    assert!(matches!(
        unreachable.encrypt_key(Purpose::ReceiptKey, tenant(1), b"seed").await,
        Err(KeyEncryptionError::Unavailable(_))
    ));
}
