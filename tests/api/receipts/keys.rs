//! The keys that sign receipts.

use crate::support::receipts::{completed_receipt, public_keys};
use crate::support::{Api, Client, UNKNOWN_ID};
use serde_json::{Value, json};
use shared::app::App;
use shared::domain::receipts::key::check;
use shared::key_encryption::Purpose;
use shared::store::ChangeContext;

#[tokio::test(start_paused = true)]
async fn without_key_encryption_receipts_are_refused_with_an_explanation() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed_receipt(&client, &user).await;
    let without_encryption = Client { router: dev_server::server::router(App::new(api.store.clone())), ..client.clone() };
    let refused = without_encryption.get(&path).await.problem(409, "CONFLICT");
    assert!(refused["detail"].as_str().unwrap().contains("has not configured an encryption key"));
    assert_eq!(public_keys(&client).await.keys, []);
}

#[tokio::test(start_paused = true)]
async fn simultaneous_receipts_create_one_key_and_one_event() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed_receipt(&client, &user).await;
    let all = futures_util::future::join_all((0..8).map(|_| client.get(&path))).await;
    assert!(all.iter().all(|reply| reply.text() == all[0].text()));
    let keys = public_keys(&client).await;
    assert_eq!(keys.keys.len(), 1);
    api.advance_clock(11);
    let events = client.get("/events?limit=100").await.data();
    let made: Vec<&Value> = events.as_array().unwrap().iter().filter(|event| event["type"] == "receipt_keys.created").collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["changes"]["kid"]["new"], keys.keys[0].kid);
    // The private key is in no event and not in the table, unless encrypted.
    let key = api.store.tenant(client.tenant).receipt_keys().await.unwrap().unwrap().value.current;
    let encrypted = String::from(key.encrypted_seed.clone());
    assert!(!json!(events).to_string().contains(&encrypted));
    let seed = api.key_encryption.decrypt_key(Purpose::ReceiptKey, client.tenant, &key.encrypted_seed.0).await.unwrap();
    assert!(!api.dump().await.0.iter().any(|item| item.contains(&format!("{seed:?}"))));
    assert!(!key.encrypted_seed.0.windows(seed.len()).any(|window| window == seed));
    let other = api.tenant().await;
    assert!(api.key_encryption.decrypt_key(Purpose::ReceiptKey, other.tenant, &key.encrypted_seed.0).await.is_err());
    // Lists accept the new type of event.
    assert_eq!(client.total("/assets").await, 1);
}

#[tokio::test(start_paused = true)]
async fn old_receipts_stay_verifiable_after_a_rotation() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (_, path) = completed_receipt(&client, &user).await;
    let old = client.get(&path).await.text().to_owned();
    let store = api.store.tenant(client.tenant);
    let context = ChangeContext::operator(api.now());
    store.rotate_receipt_key(api.key_encryption.as_ref(), &context).await.unwrap();
    let new = client.get(&path).await.text().to_owned();
    assert_ne!(old, new);
    let keys = public_keys(&client).await;
    assert_eq!(check(&old, &keys), check(&new, &keys));
    assert!(check(&old, &keys).is_ok());
    let untils: Vec<bool> = keys.keys.iter().map(|key| key.until.is_some()).collect();
    assert_eq!(untils, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn public_keys_need_no_api_key_and_do_not_show_whether_a_tenant_exists() {
    let (api, client) = Api::with_tenant().await;
    let without_key = client.with_key("");
    let path = "/.well-known/receipt-keys";
    for tenant in [client.tenant.to_string(), UNKNOWN_ID.into()] {
        assert_eq!(without_key.get(&format!("{path}?tenant={tenant}")).await.json(), json!({"keys": []}));
    }
    assert_eq!(without_key.get(path).await.field_errors(), ["tenant"]);
    assert_eq!(without_key.get(&format!("{path}?tenant=x&page=1")).await.field_errors(), ["page", "tenant"]);
    let user = client.user("Ada").await;
    let (_, receipt) = completed_receipt(&client, &user).await;
    let kid = client.get(&receipt).await.json()["signature"]["kid"].clone();
    let public_key = json!(public_keys(&client).await.keys[0]);
    assert_eq!((&public_key["kty"], &public_key["crv"], &public_key["alg"]), (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA")));
    assert_eq!((&public_key["use"], &public_key["kid"], &public_key["until"]), (&json!("sig"), &kid, &Value::Null));
    assert_eq!(public_keys(&api.tenant().await).await.keys, []);
}
