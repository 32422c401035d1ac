//! What each command does.

use crate::options::{Command, KeyCommand, NewKey, Options, ReceiptKeyCommand, TenantCommand};
use crate::{environment, events, receipts, verify};
use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use shared::app::system_clock;
use shared::domain::api_key::{ApiKey, DEFAULT_RATE_LIMIT};
use shared::domain::id::{ApiKeyId, TenantId};
use shared::domain::record::Stored;
use shared::domain::tenant::Tenant;
use shared::domain::token::{Secret, Token};
use shared::store::{ChangeContext, Store, TenantStore, UnitOfWork, WriteError, client};

/// Returns a client configured by the AWS environment.
async fn client_from_env() -> Result<Client> {
    let config = environment::load().await?;
    Ok(Client::from_conf(client::configure(aws_sdk_dynamodb::config::Builder::from(&config)).build()))
}

/// Runs a command and returns what it prints.
///
/// # Errors
///
/// Returns an error to print as one line when the command fails.
pub async fn run(options: Options) -> Result<Value> {
    // Needs neither AWS credentials nor a table.
    if let Command::VerifyReceipt { file, keys } = &options.command {
        return receipts::verify(file, keys);
    }
    let store = Store::new(client_from_env().await?, &options.table, system_clock());
    let failed = || format!("the command failed on table {}", options.table);
    match options.command {
        Command::Tenant(TenantCommand::Create { name, admin_email }) => {
            let created = store.create_tenant(name, admin_email, DEFAULT_RATE_LIMIT).await.with_context(failed)?;
            let (tenant_id, key_id, user_id) = (created.tenant_id, created.key_id, created.user_id);
            Ok(json!({"tenant_id": tenant_id, "key_id": key_id, "api_key": created.api_key.expose(), "user_id": user_id}))
        }
        Command::Tenant(TenantCommand::List) => {
            let row = |tenant: Stored<Tenant>| json!({"tenant_id": tenant.value.id, "name": tenant.value.name, "created_at": tenant.created_at});
            Ok(store.tenants().await.with_context(failed)?.into_iter().map(row).collect())
        }
        Command::Tenant(TenantCommand::Upgrade { tenant }) => upgrade(&store, tenant).await.with_context(failed),
        Command::VerifyReceipt { file, keys } => receipts::verify(&file, &keys),
        Command::ReceiptKey(ReceiptKeyCommand::Rotate { tenant }) => {
            let store = tenant_store(&store, tenant).await.with_context(failed)?;
            receipts::rotate_key(&store, &change_context(&store)).await.with_context(failed)
        }
        Command::Events { tenant, since } => {
            let store = tenant_store(&store, tenant).await.with_context(failed)?;
            events::list(&store, since).await.with_context(failed)
        }
        Command::Verify { tenant } => verify::tenant(&tenant_store(&store, tenant).await.with_context(failed)?).await,
        Command::Key(KeyCommand::Create(new)) => create_key(&store, new).await.with_context(failed),
        Command::Key(KeyCommand::Revoke { tenant, key }) => {
            let store = tenant_store(&store, tenant).await.with_context(failed)?;
            revoke_key(&store, key).await.with_context(failed)?;
            Ok(json!({"tenant_id": tenant, "key_id": key, "revoked": true}))
        }
    }
}

/// Returns the store of an existing tenant.
async fn tenant_store(store: &Store, id: TenantId) -> Result<TenantStore> {
    let store = store.tenant(id);
    match store.get::<Tenant>(id).await? {
        Some(_) => Ok(store),
        None => bail!("tenant {id} not found; `admin tenant list` shows all tenants"),
    }
}

fn change_context(store: &TenantStore) -> ChangeContext {
    ChangeContext::operator(store.store().now())
}

/// Adds missing system processes to one tenant or, without an id, to all.
async fn upgrade(store: &Store, tenant: Option<TenantId>) -> Result<Value> {
    let tenants = match tenant {
        Some(id) => vec![tenant_store(store, id).await?.id()],
        None => store.tenants().await?.into_iter().map(|tenant| tenant.value.id).collect(),
    };
    let mut rows = Vec::new();
    for id in tenants {
        rows.push(json!({"tenant_id": id, "added": store.upgrade_tenant(id).await?}));
    }
    Ok(rows.into())
}

async fn create_key(store: &Store, new: NewKey) -> Result<Value> {
    let store = tenant_store(store, new.tenant).await?;
    let context = change_context(&store);
    if new.expires_at.is_some_and(|expires_at| expires_at <= context.at) {
        bail!("--expires-at must be in the future");
    }
    let secret = Secret::new(store.store().random()?);
    let id = store.new_id(context.at)?;
    let key = ApiKey { expires_at: new.expires_at, ..ApiKey::new(id, new.name, new.scopes, secret.hash(), new.rate_limit) };
    let mut unit = UnitOfWork::new(&store, &context);
    unit.create(key)?;
    unit.commit().await?;
    Ok(json!({"tenant_id": new.tenant, "key_id": id, "api_key": Token::new(new.tenant, id, secret).expose()}))
}

async fn revoke_key(store: &TenantStore, id: ApiKeyId) -> Result<()> {
    let context = change_context(store);
    loop {
        let Some(key) = store.get::<ApiKey>(id).await? else {
            bail!("API key {id} not found in tenant {}", store.id());
        };
        match store.delete(&key, &context).await {
            // The key changed after it was read: delete its new version.
            Err(WriteError::Stale) => {}
            other => return Ok(other?),
        }
    }
}
