//! Verifies receipts and replaces the keys that sign them.

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

/// Verifies the receipt in `file` against the public keys in the file `keys`; returns a summary of the receipt.
///
/// # Errors
///
/// Returns an error with the reason when the receipt is not genuine, or when a file can't be read.
pub fn verify(file: &Path, keys: &Path) -> Result<Value> {
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()));
    let keys: Jwks =
        serde_json::from_str(&read(keys)?).with_context(|| format!("{} is not a JSON Web Key Set", keys.display()))?;
    let receipt = signed_receipt::check(&read(file)?, &keys).map_err(|error| anyhow!("{} {error}", file.display()))?;
    let member = |name: &str| receipt[name].clone();
    Ok(json!({
        "valid": true, "tenant_id": member("tenant_id"), "instance_id": member("instance_id"), "asset": member("asset"),
        "completed_at": member("completed_at")
    }))
}

/// Replaces a tenant's signing key; returns the new key's id and the number of retired keys.
///
/// # Errors
///
/// Returns an error when no encryption key is configured, or when encrypting or writing the new key fails.
pub async fn rotate_key(store: &TenantStore, context: &ChangeContext) -> Result<Value> {
    let config = environment::load().await?;
    let kms = Client::from_conf(key_encryption::configure(Builder::from(&config)).build());
    let Some(key_encryption) = key_encryption::from_env(Box::new(move || Ok(kms.clone())))? else {
        bail!("set {} or {} to the key that encrypts signing keys", key_encryption::KMS_KEY, key_encryption::KEY_FILE);
    };
    let keys = store.rotate_receipt_key(key_encryption.as_ref(), context).await?;
    Ok(json!({"tenant_id": store.id(), "kid": keys.current.public_key.kid(), "retired": keys.retired.len()}))
}
