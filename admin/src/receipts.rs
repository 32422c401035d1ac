//! Receipts and the keys that they are signed with.

use crate::environment;
use anyhow::{Context, Result, anyhow, bail};
use key_encryption::sdk::Client;
use key_encryption::sdk::config::Builder;
use serde_json::{Value, json};
use shared::domain::receipt_key::Jwks;
use shared::domain::signed_receipt;
use shared::store::{ChangeContext, TenantStore};
use std::fs;
use std::path::Path;

/// Checks a receipt by the keys in a file.
///
/// # Errors
///
/// It is not genuine, and why; or a file can't be read.
pub fn check(file: &Path, keys: &Path) -> Result<Value> {
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()));
    let keys: Jwks = serde_json::from_str(&read(keys)?).with_context(|| format!("{} is no set of keys", keys.display()))?;
    let receipt = signed_receipt::check(&read(file)?, &keys).map_err(|refusal| anyhow!("{} {refusal}", file.display()))?;
    let member = |name: &str| receipt[name].clone();
    Ok(json!({
        "valid": true, "tenant_id": member("tenant_id"), "instance_id": member("instance_id"), "asset": member("asset"),
        "completed_at": member("completed_at")
    }))
}

/// Gives a tenant a new key.
///
/// # Errors
///
/// Nothing seals keys here; or the key_encryption's and the table's.
pub async fn rotate(store: &TenantStore, context: &ChangeContext) -> Result<Value> {
    let config = environment::load().await?;
    let kms = Client::from_conf(key_encryption::configure(Builder::from(&config)).build());
    let Some(key_encryption) = key_encryption::from_env(Box::new(move || Ok(kms.clone())))? else {
        bail!("set {} or {} to what seals receipts' keys", key_encryption::KMS_KEY, key_encryption::KEY_FILE);
    };
    let keys = store.rotate_receipt_key(key_encryption.as_ref(), context).await?;
    Ok(json!({"tenant_id": store.id(), "kid": keys.current.public_key.kid(), "retired": keys.retired.len()}))
}
