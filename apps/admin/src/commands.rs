//! The commands.

use crate::environment::ServiceDate;
use crate::deletion::{self, Deletion};
use crate::options::{Command, KeyCommand, Options, ReceiptKeyCommand, RecordCommand, TenantCommand};
use crate::output::Output;
use crate::{check, doctor, environment, erasures, events, keys, receipts, tenants, verify};
use anyhow::{Result, bail};
use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use queue::Sqs;
use shared::app::system_clock;
use shared::store::{CheckMode, Store, StoreError, WriteError, client};
use std::time::Duration;

/// Refuses a clock that differs from the service's.
async fn store_from_env(table: &str) -> Result<(Store, SdkConfig)> {
    let aws = environment::load().await?;
    let date = ServiceDate::default();
    let config = client::configure(aws_sdk_dynamodb::config::Builder::from(&aws)).interceptor(date.clone());
    let store = Store::new(Client::from_conf(config.build()), table, system_clock());
    date.compare(&store).await?;
    Ok((store, aws))
}

fn retry_queue(aws: &SdkConfig, url: String) -> Sqs {
    let config = queue::configure(queue::sdk::config::Builder::from(aws)).build();
    let connect = move || Ok(queue::sdk::Client::from_conf(config.clone()));
    Sqs::new(Box::new(connect), url.clone()).with_retries(url)
}

pub async fn run(options: Options) -> Result<Output> {
    // Needs neither AWS credentials nor a table.
    if let Command::VerifyReceipt { file, keys } = &options.command {
        return receipts::verify(file, keys);
    }
    // To it, a table that doesn't respond is a finding.
    if let Command::Doctor { lambda_limit, parameters } = &options.command {
        return doctor::run(&options.table, *lambda_limit, parameters).await;
    }
    let is_table_error = |error: &anyhow::Error| error.is::<StoreError>() || error.is::<WriteError>();
    let executed = async {
        let (store, aws) = store_from_env(&options.table).await?;
        execute(&store, &aws, &options.table, options.command).await
    };
    executed.await.map_err(|error| match is_table_error(&error) {
        true => error.context(format!("table {}", options.table)),
        false => error,
    })
}

async fn execute(store: &Store, aws: &SdkConfig, table: &str, command: Command) -> Result<Output> {
    match command {
        Command::Tenant(TenantCommand::Create { name, admin_email, allow_same_name, effect }) => {
            if !allow_same_name {
                tenants::refuse_same_name(store, &name).await?;
            }
            tenants::create(store, name, admin_email, effect.dry_run).await
        }
        Command::Tenant(TenantCommand::List) => tenants::list(store).await,
        Command::Tenant(TenantCommand::Limit { tenant, per_minute, none: _, effect }) => {
            tenants::limit(&tenants::existing(store, &tenant).await?, per_minute, effect.dry_run).await
        }
        Command::Tenant(TenantCommand::Upgrade { tenant, effect }) => {
            tenants::upgrade(store, tenant.as_deref(), effect.dry_run).await
        }
        Command::Tenant(TenantCommand::Delete { tenant, yes, settle, effect }) => {
            let deletion = Deletion { yes, settle: Duration::from_secs(settle), is_dry_run: effect.dry_run };
            deletion::delete(store, &tenant, deletion).await
        }
        Command::Key(KeyCommand::Create(new)) => {
            keys::create(&tenants::writable(store, &new.tenant, new.effect.dry_run).await?, new).await
        }
        Command::Key(KeyCommand::List { tenant }) => keys::list(&tenants::existing(store, &tenant).await?).await,
        Command::Key(KeyCommand::Revoke { tenant, key, effect }) => {
            keys::revoke(&tenants::writable(store, &tenant, effect.dry_run).await?, key).await
        }
        Command::Record(RecordCommand::Remove { tenant, kind, id, effect }) => {
            check::remove(&tenants::writable(store, &tenant, effect.dry_run).await?, kind, id).await
        }
        Command::ReceiptKey(ReceiptKeyCommand::Rotate { tenant, effect }) => {
            receipts::rotate_key(&tenants::writable(store, &tenant, effect.dry_run).await?).await
        }
        Command::VerifyReceipt { file, keys } => receipts::verify(&file, &keys),
        Command::Doctor { lambda_limit, parameters } => doctor::run(table, lambda_limit, &parameters).await,
        Command::Events { tenant, since } => events::list(&tenants::existing(store, &tenant).await?, since).await,
        Command::Erasures { tenant, since } => erasures::list(&tenants::existing(store, &tenant).await?, since).await,
        Command::Erase { tenant, user, repeat, effect } => match (tenant, user, repeat) {
            (Some(tenant), Some(user), _) => {
                erasures::erase(&tenants::writable(store, &tenant, effect.dry_run).await?, user).await
            }
            (_, _, Some(file)) => erasures::repeat(store, &file, effect.dry_run).await,
            _ => bail!("name a tenant and a user, or a file to repeat"),
        },
        Command::Verify { tenant } => verify::tenant(&tenants::existing(store, &tenant).await?).await,
        Command::Check { tenant, repair, dry_run, retry_queue: url } => {
            let mode = if repair && !dry_run { CheckMode::Repair } else { CheckMode::ReadOnly };
            // The tenant's own record may be among what is lost.
            let store = store.tenant(tenants::id_of(store, &tenant).await?);
            tenants::refuse_deletion(&store).await?;
            check::tenant(&store, mode, url.map(|url| retry_queue(aws, url))).await
        }
    }
}
