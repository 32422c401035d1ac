//! What the operator can ask for.

use crate::{environment, events, receipts, verify};
use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::Client;
use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};
use shared::app::system_clock;
use shared::domain::api_key::{ApiKey, DEFAULT_RATE_LIMIT, MAX_RATE_LIMIT};
use shared::domain::id::{ApiKeyId, TenantId};
use shared::domain::scope::{Scopes, parse_list};
use shared::domain::tenant::Tenant;
use shared::domain::text::Name;
use shared::domain::time::Timestamp;
use shared::domain::token::{Secret, Token};
use shared::domain::user::Email;
use shared::store::{ChangeContext, Store, TenantStore, UnitOfWork, WriteError, client};
use std::path::PathBuf;

/// Makes tenants and keys on the table of the asset lifecycle service, and checks its audit trail.
///
/// Credentials, region and endpoint come from the usual AWS environment (AWS_PROFILE, AWS_REGION,
/// AWS_ENDPOINT_URL_DYNAMODB, …).
#[derive(Debug, Parser)]
#[command(name = "admin", version)]
pub struct Options {
    /// The table: the stack's output TableName.
    #[arg(long, env = "TABLE_NAME", global = true, default_value = "asset-lifecycle")]
    table: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tenants.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// The keys that receipts are signed with.
    #[command(subcommand)]
    ReceiptKey(ReceiptKeyCommand),
    /// Checks a receipt by its signature, without a table or a network; exit code 1 if it is not genuine.
    VerifyReceipt {
        /// What GET /v1/processes/instances/ID/receipt answered.
        file: PathBuf,
        /// What GET /v1/.well-known/receipt-keys?tenant=ID answered.
        #[arg(long)]
        keys: PathBuf,
    },
    /// Tells every change in a tenant, oldest first: who, when, what. Those of the last seconds come later.
    Events {
        /// Whose.
        #[arg(long)]
        tenant: TenantId,
        /// From when on, such as 2027-01-01T00:00:00Z; from the first when left out.
        #[arg(long)]
        since: Option<Timestamp>,
    },
    /// Re-computes every chain of a tenant's audit trail and compares it with the records; exit code 1 if one breaks.
    Verify {
        /// Whose.
        #[arg(long)]
        tenant: TenantId,
    },
}

#[derive(Debug, Subcommand)]
enum TenantCommand {
    /// Makes a tenant and its first key, which is shown this once.
    Create {
        /// What the tenant is called.
        #[arg(long)]
        name: Name,
        /// The e-mail address of a first user with the role admin.
        #[arg(long)]
        admin_email: Option<Email>,
    },
    /// Lists every tenant, oldest first.
    List,
    /// Gives tenants the system processes that they do not have yet.
    Upgrade {
        /// Only this tenant; every one when left out.
        #[arg(long)]
        tenant: Option<TenantId>,
    },
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Makes a key, which is shown this once.
    Create(NewKey),
    /// Revokes a key: the very next request with it is refused.
    Revoke {
        /// Whose key.
        #[arg(long)]
        tenant: TenantId,
        /// Which key.
        #[arg(long)]
        key: ApiKeyId,
    },
}

#[derive(Debug, Subcommand)]
enum ReceiptKeyCommand {
    /// Makes a new key that signs from now on. What the old one signed stays verifiable; its secret half is destroyed.
    ///
    /// Needs what seals keys: RECEIPT_KMS_KEY_ID, as the function has it, or RECEIPT_KEY_FILE.
    Rotate {
        /// Whose.
        #[arg(long)]
        tenant: TenantId,
    },
}

#[derive(Debug, Args)]
struct NewKey {
    /// Whose key.
    #[arg(long)]
    tenant: TenantId,
    /// What it is for.
    #[arg(long)]
    name: Name,
    /// What it may do, such as assets:read,assets:write.
    #[arg(long, value_parser = parse_list)]
    scopes: Scopes,
    /// From when on it is refused, such as 2027-01-01T00:00:00Z.
    #[arg(long)]
    expires_at: Option<Timestamp>,
    /// How many requests a minute.
    #[arg(long, default_value_t = DEFAULT_RATE_LIMIT, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RATE_LIMIT)))]
    rate_limit: u32,
}

/// A client by the usual AWS environment, at `AWS_ENDPOINT_URL_DYNAMODB` if that is set.
async fn client_by_environment() -> Result<Client> {
    let config = environment::load().await?;
    Ok(Client::from_conf(client::configure(aws_sdk_dynamodb::config::Builder::from(&config)).build()))
}

/// Does what the command line says; gives the answer.
pub async fn run(options: Options) -> Result<Value> {
    if let Command::VerifyReceipt { file, keys } = &options.command {
        return receipts::check(file, keys);
    }
    let store = Store::new(client_by_environment().await?, &options.table, system_clock());
    let failed = || format!("nothing was done on the table {}", options.table);
    match options.command {
        Command::Tenant(TenantCommand::Create { name, admin_email }) => {
            let made = store.create_tenant(name, admin_email, DEFAULT_RATE_LIMIT).await.with_context(failed)?;
            let (tenant_id, key_id, user_id) = (made.tenant_id, made.key_id, made.user_id);
            Ok(json!({"tenant_id": tenant_id, "key_id": key_id, "api_key": made.api_key.expose(), "user_id": user_id}))
        }
        Command::Tenant(TenantCommand::List) => {
            let tenants = store.tenants().await.with_context(failed)?;
            let row = |tenant: shared::domain::record::Stored<Tenant>| json!({"tenant_id": tenant.value.id, "name": tenant.value.name, "created_at": tenant.created_at});
            Ok(tenants.into_iter().map(row).collect())
        }
        Command::Tenant(TenantCommand::Upgrade { tenant }) => upgrade(&store, tenant).await.with_context(failed),
        Command::VerifyReceipt { file, keys } => receipts::check(&file, &keys),
        Command::ReceiptKey(ReceiptKeyCommand::Rotate { tenant }) => {
            let store = existing(&store, tenant).await.with_context(failed)?;
            receipts::rotate(&store, &context(&store)).await.with_context(failed)
        }
        Command::Events { tenant, since } => events::since(&existing(&store, tenant).await.with_context(failed)?, since).await,
        Command::Verify { tenant } => verify::tenant(&existing(&store, tenant).await?).await,
        Command::Key(KeyCommand::Create(new)) => create_key(&store, new).await.with_context(failed),
        Command::Key(KeyCommand::Revoke { tenant, key }) => {
            let store = existing(&store, tenant).await.with_context(failed)?;
            revoke(&store, key).await.with_context(failed)?;
            Ok(json!({"tenant_id": tenant, "key_id": key, "revoked": true}))
        }
    }
}

/// The tenant's part of the table, if there is such a tenant.
async fn existing(store: &Store, id: TenantId) -> Result<TenantStore> {
    let store = store.tenant(id);
    match store.get::<Tenant>(id).await? {
        Some(_) => Ok(store),
        None => bail!("there is no tenant {id}; `admin tenant list` shows those there are"),
    }
}

fn context(store: &TenantStore) -> ChangeContext {
    ChangeContext::operator(store.store().now())
}

async fn upgrade(store: &Store, tenant: Option<TenantId>) -> Result<Value> {
    let tenants = match tenant {
        Some(id) => vec![existing(store, id).await?.id()],
        None => store.tenants().await?.into_iter().map(|tenant| tenant.value.id).collect(),
    };
    let mut rows = Vec::new();
    for id in tenants {
        rows.push(json!({"tenant_id": id, "added": store.upgrade_tenant(id).await?}));
    }
    Ok(rows.into())
}

async fn create_key(store: &Store, new: NewKey) -> Result<Value> {
    let store = existing(store, new.tenant).await?;
    let context = context(&store);
    if new.expires_at.is_some_and(|end| end <= context.at) {
        bail!("--expires-at must lie in the future");
    }
    let secret = Secret::new(store.store().random()?);
    let id = store.new_id(context.at)?;
    let key = ApiKey { expires_at: new.expires_at, ..ApiKey::new(id, new.name, new.scopes, secret.hash(), new.rate_limit) };
    let mut work = UnitOfWork::new(&store, &context);
    work.create(key)?;
    work.commit().await?;
    Ok(json!({"tenant_id": new.tenant, "key_id": id, "api_key": Token::new(new.tenant, id, secret).expose()}))
}

async fn revoke(store: &TenantStore, id: ApiKeyId) -> Result<()> {
    let context = context(store);
    loop {
        let Some(key) = store.get::<ApiKey>(id).await? else {
            bail!("the tenant has no key {id}");
        };
        match store.delete(&key, &context).await {
            Err(WriteError::Stale) => {} // changed meanwhile: revoke what it has become
            other => return Ok(other?),
        }
    }
}
