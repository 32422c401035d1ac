//! What each command does.

use crate::clock::ClockSamples;
use crate::options::{Command, KeyCommand, NewKey, Options, ReceiptKeyCommand, RecordCommand, TenantCommand};
use crate::output::Output;
use crate::{check, environment, events, receipts, verify};
use anyhow::{Result, bail};
use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use shared::app::system_clock;
use shared::domain::api_key::{ApiKey, DEFAULT_RATE_LIMIT};
use shared::domain::id::{ApiKeyId, Id, TenantId};
use shared::domain::record::{Kind, Stored};
use shared::domain::tenant::Tenant;
use shared::domain::token::{Secret, Token};
use shared::store::{ChangeContext, CheckMode, Removal, Store, StoreError, TenantStore, UnitOfWork, WriteError, client};
use uuid::Uuid;

/// Returns the table as the AWS environment configures it, with a clock that agrees with the service's.
async fn store_from_env(table: &str) -> Result<Store> {
    let config = environment::load().await?;
    let samples = ClockSamples::default();
    let config = client::configure(aws_sdk_dynamodb::config::Builder::from(&config)).interceptor(samples.clone());
    let client = Client::from_conf(config.build());
    let clock = samples.service_clock(&Store::new(client.clone(), table, system_clock())).await?;
    Ok(Store::new(client, table, clock))
}

/// Runs a command and returns what it prints.
///
/// # Errors
///
/// Returns an error to print as one line when the command fails.
pub async fn run(options: Options) -> Result<Output> {
    // Needs neither AWS credentials nor a table.
    if let Command::VerifyReceipt { file, keys } = &options.command {
        return receipts::verify(file, keys).map(Output::from);
    }
    let is_table_error = |error: &anyhow::Error| error.is::<StoreError>() || error.is::<WriteError>();
    let executed = async { execute(&store_from_env(&options.table).await?, options.command).await };
    executed.await.map_err(|error| match is_table_error(&error) {
        true => error.context(format!("table {}", options.table)),
        false => error,
    })
}

async fn execute(store: &Store, command: Command) -> Result<Output> {
    let value: Result<Value> = match command {
        Command::Tenant(TenantCommand::Create { name, admin_email }) => {
            let created = store.create_tenant(name, admin_email, DEFAULT_RATE_LIMIT).await?;
            let (tenant_id, key_id, user_id) = (created.tenant_id, created.key_id, created.user_id);
            Ok(json!({"tenant_id": tenant_id, "key_id": key_id, "api_key": created.api_key.expose(), "user_id": user_id}))
        }
        Command::Tenant(TenantCommand::List) => Ok(store.tenants().await?.into_iter().map(tenant_row).collect()),
        Command::Tenant(TenantCommand::Upgrade { tenant }) => upgrade(store, tenant).await,
        Command::Key(KeyCommand::Create(new)) => create_key(store, new).await,
        Command::Key(KeyCommand::Revoke { tenant, key }) => revoke_key(&tenant_store(store, tenant).await?, key).await,
        Command::Record(RecordCommand::Remove { tenant, kind, id }) => {
            remove_record(&tenant_store(store, tenant).await?, kind, id).await
        }
        Command::ReceiptKey(ReceiptKeyCommand::Rotate { tenant }) => {
            let store = tenant_store(store, tenant).await?;
            receipts::rotate_key(&store, &change_context(&store)).await
        }
        Command::VerifyReceipt { file, keys } => receipts::verify(&file, &keys),
        Command::Events { tenant, since } => events::list(&tenant_store(store, tenant).await?, since).await,
        Command::Verify { tenant } => verify::tenant(&tenant_store(store, tenant).await?).await,
        Command::Check { tenant, repair, dry_run } => {
            let mode = if repair && !dry_run { CheckMode::Repair } else { CheckMode::ReadOnly };
            // The tenant's own record may be among what is lost.
            return check::tenant(&store.tenant(tenant), mode).await;
        }
    };
    value.map(Output::from)
}

/// Returns the store of an existing tenant.
async fn tenant_store(store: &Store, id: TenantId) -> Result<TenantStore> {
    let store = store.tenant(id);
    match store.get::<Tenant>(id).await {
        // A tenant whose record is damaged must be repairable.
        Ok(Some(_)) | Err(StoreError::Unreadable(_)) => Ok(store),
        Err(error) => Err(error.into()),
        Ok(None) => bail!("tenant {id} not found; `admin tenant list` shows all tenants"),
    }
}

fn change_context(store: &TenantStore) -> ChangeContext {
    ChangeContext::operator(store.store().now())
}

/// Adds missing system processes to one tenant or, without an id, to all.
async fn upgrade(store: &Store, tenant: Option<TenantId>) -> Result<Value> {
    let tenants = match tenant {
        Some(id) => vec![tenant_store(store, id).await?.id()],
        None => store.tenants().await?.into_iter().map(|(id, _)| id).collect(),
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

async fn revoke_key(store: &TenantStore, id: ApiKeyId) -> Result<Value> {
    let context = change_context(store);
    loop {
        let key = match store.get::<ApiKey>(id).await {
            Ok(Some(key)) => key,
            Ok(None) => bail!("API key {id} not found in tenant {}", store.id()),
            Err(StoreError::Unreadable(_)) => {
                remove_record(store, Kind::ApiKey, id.uuid()).await?;
                return Ok(json!({"tenant_id": store.id(), "key_id": id, "revoked": true}));
            }
            Err(error) => return Err(error.into()),
        };
        match store.delete(&key, &context).await {
            // The key changed after it was read: delete its new version.
            Err(WriteError::Stale) => {}
            result => {
                result?;
                return Ok(json!({"tenant_id": store.id(), "key_id": id, "revoked": true}));
            }
        }
    }
}

/// Removes a record that can't be read.
async fn remove_record(store: &TenantStore, kind: Kind, id: Uuid) -> Result<Value> {
    let (noun, tenant) = (kind.noun(), store.id());
    match store.remove_unreadable(kind, id).await? {
        Removal::Removed => Ok(json!({"tenant_id": tenant, "kind": noun, "id": id, "removed": true})),
        Removal::Missing => bail!("{noun} {id} not found in tenant {tenant}"),
        Removal::Tenant => {
            bail!("the tenant itself can't be removed: nothing works without it; restore the table to another moment")
        }
        Removal::Restorable => {
            bail!("the history of {noun} {id} says what it was; restore it with `admin check --tenant {tenant} --repair`")
        }
        Removal::Readable => bail!("{noun} {id} can be read; delete it over the API"),
        Removal::Changing => bail!("{noun} {id} or its tenant is changing; stop what writes to the tenant, or try again"),
    }
}

fn tenant_row((id, tenant): (TenantId, Option<Stored<Tenant>>)) -> Value {
    match tenant {
        Some(tenant) => json!({"tenant_id": id, "name": tenant.value.name, "created_at": tenant.created_at}),
        None => json!({"tenant_id": id, "name": null, "created_at": null}),
    }
}
