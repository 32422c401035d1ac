//! `admin verify-receipt` and `admin receipt-key rotate`.

use crate::{Operator, UNKNOWN_ID};
use key_encryption::FileKeyEncryption;
use serde_json::{Value, json};
use shared::domain::receipts::key::{CurrentKey, EncryptedSeed, Jwks, KEY_BYTES, ReceiptKeys, SigningKey};
use shared::domain::values::time::Timestamp;
use shared::store::ChangeContext;
use std::path::Path;
use std::process::Output;

fn signed(seed: u8) -> Value {
    let receipt = json!({
        "format": "asset-lifecycle-receipt/1", "tenant_id": "t", "instance_id": "i", "asset": {"asset_tag": "AST-1"},
        "completed_at": "2026-03-05T10:00:00.000Z"
    });
    with_signature(&receipt, seed)
}

fn with_signature(receipt: &Value, seed: u8) -> Value {
    let key = SigningKey::from_seed(&[seed; KEY_BYTES]).unwrap();
    let value = key.sign(&serde_json_canonicalizer::to_string(receipt).unwrap());
    json!({"receipt": receipt, "signature": {"alg": "EdDSA", "kid": key.public().unwrap().kid(), "value": value}})
}

fn public_keys(seed: u8) -> Value {
    let public_key = SigningKey::from_seed(&[seed; KEY_BYTES]).unwrap().public().unwrap();
    let key = CurrentKey {
        public_key,
        encrypted_seed: EncryptedSeed(vec![]),
        encrypted_by: "x".into(),
        since: Timestamp::from_millis(0),
    };
    let id = UNKNOWN_ID.parse().unwrap();
    json!(Jwks::from(&ReceiptKeys::new(id, key)))
}

fn verify(operator: &Operator, receipt: &Path, keys: &Path) -> Output {
    operator.run(&["verify-receipt", receipt.to_str().unwrap(), "--keys", keys.to_str().unwrap()])
}

#[tokio::test]
async fn a_receipt_is_verified_without_a_table() {
    let mut operator = Operator::start().await;
    // Nothing listens at this address.
    operator.engine.url = "http://127.0.0.1:1".into();
    let folder = tempfile::tempdir().unwrap();
    let [receipt, set] = ["receipt.json", "keys.json"].map(|name| folder.path().join(name));
    std::fs::write(&set, public_keys(1).to_string()).unwrap();
    // The format of the JSON doesn't matter, because the canonical form is signed.
    for text in [signed(1).to_string(), format!("{:#}\n", signed(1))] {
        std::fs::write(&receipt, text).unwrap();
        let output = verify(&operator, &receipt, &set);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&result["valid"], &result["asset"]["asset_tag"]), (&json!(true), &json!("AST-1")));
    }
    let instances = json!([{"instance_id": "i", "status": "cancelled", "asset": {"asset_tag": "AST-1"}, "events": []}]);
    let of_movement = json!({
        "format": "asset-lifecycle-movement-receipt/1", "tenant_id": "t", "movement_id": "m", "number": "MOV-000001",
        "instances": instances, "completed_at": "2026-03-05T10:00:00.000Z"
    });
    std::fs::write(&receipt, with_signature(&of_movement, 1).to_string()).unwrap();
    let output = verify(&operator, &receipt, &set);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let instances = json!([{"instance_id": "i", "status": "cancelled", "asset": {"asset_tag": "AST-1"}}]);
    assert_eq!((&result["valid"], &result["number"], &result["instances"]), (&json!(true), &json!("MOV-000001"), &instances));
    let (shown, _) = operator.show(&["verify-receipt", receipt.to_str().unwrap(), "--keys", set.to_str().unwrap()], "");
    assert!(shown.starts_with("TAG    ASSET  STATUS     INSTANCE\nAST-1  -      cancelled  i\n\nvalid "), "{shown}");
    let valid = signed(1).to_string();
    for (text, reason) in [
        (valid.replace("AST-1", "AST-2"), "was changed, or never signed"),
        (signed(2).to_string(), "not among the given keys"),
        (valid.replacen("\"tenant_id\"", "\"tenant_id\":\"u\",\"tenant_id\"", 1), "twice"),
        (valid.replace("receipt/1", "receipt/2"), "asset-lifecycle-receipt/1"),
        (valid.replace("EdDSA", "none"), "EdDSA"),
        ("{}".into(), "receipt and signature"),
        ("x".into(), "expected"),
    ] {
        std::fs::write(&receipt, &text).unwrap();
        let output = verify(&operator, &receipt, &set);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{text}");
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert_eq!(verify(&operator, &folder.path().join("none"), &set).status.code(), Some(1));
    std::fs::write(&set, "[]").unwrap();
    assert!(String::from_utf8(verify(&operator, &receipt, &set).stderr).unwrap().contains("not a JSON Web Key Set"));
}

#[tokio::test]
async fn after_a_rotation_the_old_key_is_still_published() {
    let mut operator = Operator::start().await;
    let tenant = operator.create_tenant();
    let rotate = ["receipt-key", "rotate", "--tenant", &tenant];
    assert!(operator.error(&rotate).contains("RECEIPT_KMS_KEY_ID"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("receipt.key");
    operator.more_variables = vec![("RECEIPT_KEY_FILE", file.to_str().unwrap().to_owned())];
    let store = operator.store().writer(tenant.parse().unwrap());
    let context = ChangeContext::operator(store.now());
    let first = store.signing_key(&FileKeyEncryption::open(&file).unwrap(), &context).await.unwrap();
    let rotated = operator.json(&rotate);
    assert_eq!(rotated["retired"], 1);
    let second = store.signing_key(&FileKeyEncryption::open(&file).unwrap(), &context).await.unwrap();
    assert_eq!(rotated["kid"], second.public().unwrap().kid());
    let jwks = Jwks::from(&store.receipt_keys().await.unwrap().unwrap().value);
    for key in [first, second] {
        let public = key.public().unwrap();
        assert_eq!(jwks.find(&public.kid()), Some(public));
    }
    // The rotation appears in the events.
    assert_eq!(operator.json(&["verify", "--tenant", &tenant])["valid"], true);
}
