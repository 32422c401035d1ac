//! Receipts: checked without a table, and keys that are replaced.

use crate::operator::Operator;
use key_encryption::FileKeyEncryption;
use serde_json::{Value, json};
use shared::domain::receipt_key::{CurrentKey, EncryptedSeed, Jwks, KEY_BYTES, ReceiptKeys, SigningKey};
use shared::domain::time::Timestamp;
use shared::store::ChangeContext;
use std::path::Path;
use std::process::Output;

/// A receipt by the key of this seed.
fn signed(seed: u8) -> Value {
    let key = SigningKey::from_seed(&[seed; KEY_BYTES]).unwrap();
    let receipt = json!({
        "format": "asset-lifecycle-receipt/1", "tenant_id": "t", "instance_id": "i", "asset": {"asset_tag": "AST-1"},
        "completed_at": "2026-03-05T10:00:00.000Z"
    });
    let value = key.sign(&serde_json_canonicalizer::to_string(&receipt).unwrap());
    json!({"receipt": receipt, "signature": {"alg": "EdDSA", "kid": key.public().unwrap().kid(), "value": value}})
}

fn keys(seed: u8) -> Value {
    let public_key = SigningKey::from_seed(&[seed; KEY_BYTES]).unwrap().public().unwrap();
    let key = CurrentKey {
        public_key,
        encrypted_seed: EncryptedSeed(vec![]),
        encrypted_by: "x".into(),
        since: Timestamp::from_millis(0),
    };
    let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    json!(Jwks::from(&ReceiptKeys::new(id, key)))
}

fn run(operator: &Operator, receipt: &Path, keys: &Path) -> Output {
    operator.run(&["verify-receipt", receipt.to_str().unwrap(), "--keys", keys.to_str().unwrap()])
}

#[tokio::test]
async fn a_receipt_is_checked_offline() {
    let mut operator = Operator::start().await;
    // Nothing is asked of a table.
    operator.engine.url = "http://127.0.0.1:1".into();
    let folder = tempfile::tempdir().unwrap();
    let [receipt, set] = ["receipt.json", "keys.json"].map(|name| folder.path().join(name));
    std::fs::write(&set, keys(1).to_string()).unwrap();
    // However it is spelled: the signature is over the canonical form.
    for text in [signed(1).to_string(), format!("{:#}\n", signed(1))] {
        std::fs::write(&receipt, text).unwrap();
        let output = run(&operator, &receipt, &set);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&said["valid"], &said["asset"]["asset_tag"]), (&json!(true), &json!("AST-1")));
    }
    let good = signed(1).to_string();
    for (text, reason) in [
        (good.replace("AST-1", "AST-2"), "was changed, or never signed"),
        (signed(2).to_string(), "not among those given"),
        (good.replacen("\"tenant_id\"", "\"tenant_id\":\"u\",\"tenant_id\"", 1), "twice"),
        (good.replace("receipt/1", "receipt/2"), "asset-lifecycle-receipt/1"),
        (good.replace("EdDSA", "none"), "EdDSA"),
        ("{}".into(), "receipt and signature"),
        ("x".into(), "expected"),
    ] {
        std::fs::write(&receipt, &text).unwrap();
        let output = run(&operator, &receipt, &set);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{text}");
        assert!(said.contains(reason), "{text}: {said}");
    }
    assert_eq!(run(&operator, &folder.path().join("none"), &set).status.code(), Some(1));
    std::fs::write(&set, "[]").unwrap();
    assert!(String::from_utf8(run(&operator, &receipt, &set).stderr).unwrap().contains("not a JSON Web Key Set"));
}

#[tokio::test]
async fn a_key_is_replaced_and_the_old_one_stays_known() {
    let mut operator = Operator::start().await;
    let tenant = operator.json(&["tenant", "create", "--name", "Acme"])["tenant_id"].as_str().unwrap().to_owned();
    let rotate = ["receipt-key", "rotate", "--tenant", &tenant];
    assert!(operator.refusal(&rotate).contains("RECEIPT_KMS_KEY_ID"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("receipt.key");
    operator.more = vec![("RECEIPT_KEY_FILE", file.to_str().unwrap().to_owned())];
    let store = shared::store::Store::new(operator.client(), local::server::TABLE, shared::app::system_clock());
    let store = store.tenant(tenant.parse().unwrap());
    let context = ChangeContext::operator(store.store().now());
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
    // The change is in the audit trail like any other.
    assert_eq!(operator.json(&["verify", "--tenant", &tenant])["valid"], true);
}
