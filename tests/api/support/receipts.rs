//! Receipts and the keys to verify them with.

use super::client::Client;
use super::processes::complete_onboarding;
use shared::domain::receipts::key::Jwks;

/// Completes a handover to `user`. Returns the asset's id and the receipt's path.
pub async fn completed_receipt(client: &Client, user: &str) -> (String, String) {
    let instance = complete_onboarding(client, user).await;
    let path = format!("/processes/instances/{instance}");
    let asset = client.get(&path).await.data()["asset_id"].as_str().unwrap().to_owned();
    (asset, format!("{path}/receipt"))
}

pub async fn public_keys(client: &Client) -> Jwks {
    let path = format!("/.well-known/receipt-keys?tenant={}", client.tenant);
    serde_json::from_value(client.with_key("").get(&path).await.json()).unwrap()
}
