//! Creates, lists and revokes API keys.

use crate::check;
use crate::options::NewKey;
use crate::output::{Field, Output, cell};
use crate::tenants::mark_dry_run;
use anyhow::{Result, bail};
use serde_json::{Value, json};
use shared::domain::keys::api_key::{ApiKey, Secret, Token, prefix};
use shared::domain::record::{Kind, Stored};
use shared::domain::user::User;
use shared::domain::values::id::{ApiKeyId, Id};
use shared::domain::values::time::Timestamp;
use shared::store::{BatchGet, ChangeContext, Reader, StoreError, UnitOfWork, WriteError, Writer};
use terminal::Column;

pub async fn create(store: &Writer, new: NewKey) -> Result<Output> {
    let context = ChangeContext::operator(store.now());
    if new.expires_at.is_some_and(|expires_at| expires_at <= context.at) {
        bail!("--expires-at must be in the future");
    }
    let secret = Secret::new(store.random()?);
    let id = store.new_id(context.at)?;
    let key = ApiKey { expires_at: new.expires_at, ..ApiKey::new(id, new.name, new.scopes, secret.hash(), new.rate_limit) };
    let mut unit = UnitOfWork::new(store, &context);
    unit.create(key)?;
    unit.commit().await?;
    let value = json!({"tenant_id": store.id(), "key_id": id, "api_key": Token::new(store.id(), id, secret).expose()});
    Ok(mark_dry_run(value, store.is_dry_run(), &["key_id", "api_key"]).into())
}

const LISTED: &[Field] = &[
    (Column::new("ID"), |row| cell(&row["key_id"])),
    (Column::text("NAME"), |row| cell(&row["name"])),
    (Column::new("PREFIX"), |row| cell(&row["prefix"])),
    (Column::text("SCOPES"), |row| cell(&row["scopes"])),
    (Column::text("OWNER"), owner),
    (Column::new("EXPIRES (UTC)"), expiry),
    (Column::new("LAST USED (UTC)"), |row| cell(&row["last_used_at"])),
    (Column::new("CREATED (UTC)"), |row| cell(&row["created_at"])),
];

fn owner(row: &Value) -> String {
    let known = ["user_email", "user_id"].into_iter().map(|name| &row[name]).find(|value| !value.is_null());
    known.map_or("the tenant".to_owned(), cell)
}

fn expiry(row: &Value) -> String {
    let mark = if row["expired"] == true { ", expired" } else { "" };
    cell(&row["expires_at"]) + mark
}

pub async fn list(store: &Reader) -> Result<Output> {
    let mut keys: Vec<Stored<ApiKey>> = store.all().await?;
    keys.sort_by_key(|key| key.value.id);
    let owners = keys.iter().filter_map(|key| key.value.user_id);
    let users = store.batch_get(BatchGet::new().with_all::<User>(owners)).await?;
    let now = store.now();
    let mut rows = Vec::new();
    for key in keys {
        let owner = users.get_readable::<User>(key.value.user_id)?;
        rows.push(row(&key, owner.as_ref().map(|owner| &owner.value), now));
    }
    Ok(Output::table(rows, LISTED, "The tenant has no API keys."))
}

fn row(key: &Stored<ApiKey>, owner: Option<&User>, now: Timestamp) -> Value {
    let ApiKey { id, name, scopes, user_id, expires_at, last_used_at, rate_limit_per_minute, .. } = &key.value;
    json!({
        "key_id": id, "name": name, "prefix": prefix(*id), "scopes": scopes, "user_id": user_id,
        "user_email": owner.map(|owner| &owner.email), "expires_at": expires_at,
        "expired": expires_at.is_some_and(|end| end <= now), "last_used_at": last_used_at,
        "rate_limit_per_minute": rate_limit_per_minute, "created_at": key.created_at
    })
}

pub async fn revoke(store: &Writer, id: ApiKeyId) -> Result<Output> {
    let context = ChangeContext::operator(store.now());
    let revoked = || {
        let value = json!({"tenant_id": store.id(), "key_id": id, "revoked": !store.is_dry_run()});
        Ok(mark_dry_run(value, store.is_dry_run(), &[]).into())
    };
    loop {
        let key = match store.get::<ApiKey>(id).await {
            Ok(Some(key)) => key,
            Ok(None) => bail!("API key {id} not found in tenant {}", store.id()),
            Err(StoreError::Unreadable(_)) => {
                check::remove(store, Kind::ApiKey, id.uuid()).await?;
                return revoked();
            }
            Err(error) => return Err(error.into()),
        };
        match store.delete(&key, &context).await {
            // The key was changed after it was read: delete the new version.
            Err(WriteError::Stale) => {}
            result => {
                result?;
                return revoked();
            }
        }
    }
}
