//! Verifies receipts and replaces the keys that sign them.

use crate::environment;
use crate::output::{Field, Output, cell};
use anyhow::{Context, Result, anyhow, bail};
use key_encryption::sdk::Client;
use key_encryption::sdk::config::Builder;
use key_encryption::{KEY_FILE, KMS_KEY};
use serde_json::{Value, json};
use shared::aws::environment::variable;
use shared::domain::receipts::key::{self, Jwks};
use shared::store::{ChangeContext, Writer};
use std::fs;
use std::path::Path;
use terminal::Column;

const INSTANCES: &[Field] = &[
    (Column::new("TAG"), |row| cell(&row["asset"]["asset_tag"])),
    (Column::text("ASSET"), |row| cell(&row["asset"]["name"])),
    (Column::new("STATUS"), |row| cell(&row["status"])),
    (Column::new("INSTANCE"), |row| cell(&row["instance_id"])),
];

/// Verifies a receipt with the public keys in the file `keys`. Returns a summary of the receipt.
pub fn verify(file: &Path, keys: &Path) -> Result<Output> {
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()));
    let keys: Jwks =
        serde_json::from_str(&read(keys)?).with_context(|| format!("{} is not a JSON Web Key Set", keys.display()))?;
    let receipt = key::check(&read(file)?, &keys).map_err(|error| anyhow!("{} {error}", file.display()))?;
    let member = |name: &str| receipt[name].clone();
    let Some(instances) = receipt["instances"].as_array() else {
        let value = json!({
            "valid": true, "tenant_id": member("tenant_id"), "instance_id": member("instance_id"), "asset": member("asset"),
            "completed_at": member("completed_at")
        });
        return Ok(value.into());
    };
    let instance = |it: &Value| json!({"instance_id": it["instance_id"], "status": it["status"], "asset": it["asset"]});
    let value = json!({
        "valid": true, "tenant_id": member("tenant_id"), "movement_id": member("movement_id"), "number": member("number"),
        "instances": instances.iter().map(instance).collect::<Vec<_>>(), "completed_at": member("completed_at")
    });
    Ok(Output::nested(value, "instances", INSTANCES))
}

/// Returns the new key's ID and the number of retired keys.
pub async fn rotate_key(store: &Writer) -> Result<Output> {
    if store.is_dry_run() {
        // A real rotation creates the new key in the file, or encrypts it with AWS KMS.
        return dry_rotate(store).await;
    }
    let config = environment::load().await?;
    let kms = Client::from_conf(key_encryption::configure(Builder::from(&config)).build());
    let Some(key_encryption) = key_encryption::from_env(Box::new(move || Ok(kms.clone())))? else {
        bail!("set {KMS_KEY} or {KEY_FILE} to the key that encrypts signing keys");
    };
    let context = ChangeContext::operator(store.now());
    let keys = store.rotate_receipt_key(key_encryption.as_ref(), &context).await?;
    Ok(json!({"tenant_id": store.id(), "kid": keys.current.public_key.kid(), "retired": keys.retired.len()}).into())
}

/// Reports the key that a rotation would retire.
async fn dry_rotate(store: &Writer) -> Result<Output> {
    if variable(KMS_KEY).or(variable(KEY_FILE)).is_none() {
        bail!("set {KMS_KEY} or {KEY_FILE} to the key that encrypts signing keys");
    }
    let keys = store.receipt_keys().await?.map(|keys| keys.value);
    let retired = keys.as_ref().map_or(0, |keys| keys.retired.len() + 1);
    let retires = keys.map(|keys| keys.current.public_key.kid());
    Ok(json!({"tenant_id": store.id(), "kid": null, "retired": retired, "retires": retires, "dry_run": true}).into())
}
