//! Commands and options, the values that they accept, and how each command runs. The doc comments are the help texts.

use crate::deletion::{self, Deletion};
use crate::environment::{self, ServiceDate};
use crate::output::Output;
use crate::{check, doctor, erasures, events, keys, receipts, tenants, verify};
use anyhow::{Result, bail};
use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use clap::{Args, Parser, Subcommand};
use queue::Sqs;
use shared::domain::keys::api_key::{DEFAULT_RATE_LIMIT, MAX_RATE_LIMIT, Scopes, parse_list};
use shared::domain::people::Person;
use shared::domain::record::Kind;
use shared::domain::user::Email;
use shared::domain::values::field_error::nearest_first;
use shared::domain::values::id::{ApiKeyId, LinkId, UserId};
use shared::domain::values::text::Name;
use shared::domain::values::time::Timestamp;
use shared::services::system_clock;
use shared::store::{CheckMode, Store, StoreError, WriteError, configure_client};
use std::path::PathBuf;
use std::time::Duration;
use terminal::examples;
use uuid::Uuid;

const EXAMPLES: &str = "\
admin tenant create --name Acme --admin-email ada@example.com
admin key create --tenant Acme --name ci --scopes assets:read,assets:write
admin key list --tenant Acme
admin key list --tenant Acme --json | jq .prefix
admin verify --tenant Acme";

/// Manage tenants and API keys of the asset lifecycle service, and verify its audit trail.
///
/// Works directly on the DynamoDB table. Prints tables on a terminal, and otherwise one JSON object per line. Credentials, region
/// and endpoint come from the usual AWS environment: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, …
///
/// Identify a tenant by its ID, or by its name if the name is unique. Names are case-insensitive.
///
/// Exits with code 0 if everything is fine, 1 if something failed or a check found something, and 2 if the arguments are wrong.
/// In a checkout, `cargo run -p admin --` is the same as `admin`.
#[derive(Debug, Parser)]
#[command(name = "admin", version, after_help = examples(EXAMPLES))]
pub struct Options {
    /// DynamoDB table: the CloudFormation stack's output TableName.
    #[arg(long, env = "TABLE_NAME", global = true, default_value = "asset-lifecycle", display_order = 100)]
    pub table: String,
    /// Print JSON even on a terminal.
    #[arg(long, global = true, display_order = 101)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create, list, limit, upgrade and delete tenants.
    #[command(subcommand, after_help = examples("admin tenant create --name Acme\nadmin tenant list"))]
    Tenant(TenantCommand),
    /// Create, list and revoke API keys.
    #[command(subcommand, after_help = examples("admin key create --tenant Acme --name ci --scopes assets:read\nadmin key list --tenant Acme"))]
    Key(KeyCommand),
    /// Remove records that can't be read.
    #[command(subcommand, after_help = examples("admin record remove --tenant Acme --kind key --dry-run \\\n  --id 01890a5d-ac96-774b-bcce-b302099a8057"))]
    Record(RecordCommand),
    /// Replace the keys that sign receipts.
    #[command(subcommand, after_help = examples("admin receipt-key rotate --tenant Acme --dry-run"))]
    ReceiptKey(ReceiptKeyCommand),
    /// Verify a receipt's signature offline. Exits with code 1 if the receipt is not genuine.
    #[command(after_help = examples("admin verify-receipt receipt.json --keys keys.json"))]
    VerifyReceipt {
        /// Receipt file: the response of GET /v1/processes/instances/{id}/receipt or GET /v1/movements/{id}/receipt.
        file: PathBuf,
        /// Public keys file: the response of GET /v1/.well-known/receipt-keys?tenant={tenant_id}.
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
    },
    /// Print every change in a tenant, oldest first. Changes made in the last few seconds may be missing.
    #[command(after_help = examples("admin events --tenant Acme --since 2027-01-01T00:00:00Z\nadmin events --tenant Acme --json | jq .type"))]
    Events {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
        /// Print only changes from this time on, for example 2027-01-01T00:00:00Z.
        #[arg(long, value_name = "TIME")]
        since: Option<Timestamp>,
    },
    /// Check a tenant's items for consistency, for example after a restore. Exits with code 1 if there are open findings.
    ///
    /// A point-in-time restore can contain only part of the last transactions. The check compares records, their history,
    /// processes, references, unique values and stored responses, and prints contradictions, each with its repair or with advice.
    /// It also finds webhook deliveries whose next attempt is an hour overdue because their message was lost. First stop
    /// everything that writes to the tenant.
    #[command(after_help = examples("admin check --tenant Acme\nadmin check --tenant Acme --repair --dry-run"))]
    Check {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
        /// Repair what can be derived from the records, such as unique values and reference counts. Never changes a record's
        /// fields or the audit trail.
        #[arg(long)]
        repair: bool,
        /// Print what --repair would do, and write nothing, like a check without --repair.
        #[arg(long)]
        dry_run: bool,
        /// Queue to which --repair sends the lost messages of overdue deliveries again: the stack's output RetryQueueUrl.
        #[arg(long, env = "RETRY_QUEUE_URL", value_name = "URL")]
        retry_queue: Option<String>,
    },
    /// List a tenant's erasures of people, oldest user first. The list contains no names; keep it outside the table.
    ///
    /// After a restore, `admin erase --repeat` repeats them.
    #[command(after_help = examples("admin erasures --tenant Acme\nadmin erasures --tenant Acme --since 2027-01-01T00:00:00Z --json"))]
    Erasures {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
        /// List only erasures that ended at or after this time, such as 2027-01-01T00:00:00Z, or that haven't ended.
        #[arg(long, value_name = "TIME")]
        since: Option<Timestamp>,
    },
    /// Erase a person's data, or repeat erasures after a restore. Exits with code 1 if an erasure is refused or fails.
    ///
    /// A pseudonym replaces the person's names, texts and signatures, including in the history, which can still be verified. As
    /// with the API, the user must be inactive, and have no assets and no open processes. --repeat ignores these conditions, and
    /// prints the records that still refer to the user. Repeat the command to continue an interrupted erasure. To delete the
    /// tenant's snapshots in S3 too, set SNAPSHOTS_URL to the same value as for the functions.
    #[command(after_help = examples("admin erase --tenant Acme --dry-run \\\n  --user 01890a5d-ac96-774b-bcce-b302099a8057\nadmin erase --repeat erasures.jsonl"))]
    Erase {
        /// Tenant ID or name.
        #[arg(long, requires = "person", required_unless_present = "repeat")]
        tenant: Option<String>,
        /// User ID. The user may be deleted already.
        #[arg(long, value_name = "ID", requires = "tenant", group = "person", value_parser = user_id)]
        user: Option<UserId>,
        /// ID of a signing link whose signer isn't a user. The process must have ended.
        #[arg(long, value_name = "ID", requires = "tenant", group = "person", value_parser = link_id)]
        link: Option<LinkId>,
        /// Output of `admin erasures`, for one or several tenants; - reads it from the standard input.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["tenant", "person"])]
        repeat: Option<PathBuf>,
        #[command(flatten)]
        effect: Effect,
    },
    /// Check the table's settings, and whether the account can run enough Lambda instances. Exits with code 1 if something is
    /// missing, too small, or can't be read.
    ///
    /// Checks the table's indexes, time to live, stream, point-in-time recovery and deletion protection, and compares the
    /// account's limit with what this release's template reserves.
    #[command(after_help = examples("admin doctor\nadmin doctor --lambda-limit 1000 --parameter ReservedConcurrency=20"))]
    Doctor {
        /// The account's limit, from `aws lambda get-account-settings --query AccountLimit.ConcurrentExecutions`.
        #[arg(long, value_name = "N")]
        lambda_limit: Option<u64>,
        /// A numeric parameter of the stack that differs from the template's default. Can be repeated.
        #[arg(long = "parameter", value_name = "NAME=N", value_parser = parameter)]
        parameters: Vec<(String, u64)>,
    },
    /// Verify a tenant's audit trail. Exits with code 1 if a hash chain is broken.
    ///
    /// Recomputes the hash chain of every record and compares it with the record itself.
    #[command(after_help = examples("admin verify --tenant Acme"))]
    Verify {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
    },
}

/// Whether a command writes, or only prints what it would do.
#[derive(Debug, Clone, Copy, Args)]
pub struct Effect {
    /// Print what would happen, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub enum TenantCommand {
    /// Create a tenant and its first API key. The key is shown once.
    #[command(after_help = examples("admin tenant create --name Acme\nadmin tenant create --name Acme --admin-email ada@example.com --dry-run"))]
    Create {
        /// Tenant name.
        #[arg(long)]
        name: Name,
        /// Also create a user with the role admin and this email address.
        #[arg(long, value_name = "EMAIL")]
        admin_email: Option<Email>,
        /// Create the tenant even if another tenant has this name.
        #[arg(long)]
        allow_same_name: bool,
        #[command(flatten)]
        effect: Effect,
    },
    /// List all tenants, oldest first.
    #[command(after_help = examples("admin tenant list\nadmin tenant list --json"))]
    List,
    /// Limit the combined requests per minute of a tenant's API keys and signing links.
    ///
    /// Requests above the limit get 429. `admin tenant list` shows the limits. Without a limit, only each key's own limit
    /// applies.
    #[command(after_help = examples("admin tenant limit --tenant Acme --per-minute 3000\nadmin tenant limit --tenant Acme --none"))]
    Limit {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
        /// Requests allowed per minute.
        #[arg(long, value_name = "N", required_unless_present = "none", conflicts_with = "none", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RATE_LIMIT)))]
        per_minute: Option<u32>,
        /// Remove the limit.
        #[arg(long)]
        none: bool,
        #[command(flatten)]
        effect: Effect,
    },
    /// Add system processes that tenants created by an older version lack.
    #[command(after_help = examples("admin tenant upgrade --dry-run\nadmin tenant upgrade --tenant Acme"))]
    Upgrade {
        /// Tenant ID or name [default: all tenants].
        #[arg(long)]
        tenant: Option<String>,
        #[command(flatten)]
        effect: Effect,
    },
    /// Delete a tenant and all its data.
    ///
    /// First prints what will be deleted and what will remain, and asks for the tenant's name. Repeat the command to continue an
    /// interrupted deletion. To delete the tenant's snapshots in S3 too, set SNAPSHOTS_URL to the same value as for the
    /// functions.
    #[command(after_help = examples("admin tenant delete Acme --dry-run\nadmin tenant delete Acme"))]
    Delete {
        /// Tenant ID or name.
        tenant: String,
        /// Delete without asking.
        #[arg(long)]
        yes: bool,
        /// How long to wait for requests that started before the API keys were deleted.
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        settle: u64,
        #[command(flatten)]
        effect: Effect,
    },
}

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create an API key. The key is shown once.
    #[command(after_help = examples("admin key create --tenant Acme --name ci --scopes assets:read,assets:write\nadmin key create --tenant Acme --name audit --scopes events:read \\\n  --expires-at 2100-01-01T00:00:00Z"))]
    Create(NewKey),
    /// List a tenant's API keys, oldest first, with their scopes, owners and last use.
    #[command(after_help = examples("admin key list --tenant Acme\nadmin key list --tenant Acme --json | jq .prefix"))]
    List {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
    },
    /// Revoke an API key, effective with its next request.
    #[command(after_help = examples("admin key revoke --tenant Acme --key 01890a5d-ac96-774b-bcce-b302099a8057"))]
    Revoke {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
        /// API key ID, as `admin key list` shows it.
        #[arg(long, value_name = "ID", value_parser = key_id)]
        key: ApiKeyId,
        #[command(flatten)]
        effect: Effect,
    },
}

#[derive(Debug, Subcommand)]
pub enum RecordCommand {
    /// Remove a record that can't be read, and end its history. Refuses records that can be read.
    ///
    /// First try to restore the record from a backup: see the runbook's section "Damaged records". If there is no backup, use
    /// this command, and then run `admin check --repair` for everything that belonged to the record.
    #[command(after_help = examples("admin record remove --tenant Acme --kind key --dry-run \\\n  --id 01890a5d-ac96-774b-bcce-b302099a8057"))]
    Remove {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
        /// Kind of record, as `admin check` prints it, for example asset.
        #[arg(long, value_parser = kind)]
        kind: Kind,
        /// Record ID, from `admin check` or from `meta.unreadable` of a list.
        #[arg(long, value_parser = record_id)]
        id: Uuid,
        #[command(flatten)]
        effect: Effect,
    },
}

#[derive(Debug, Subcommand)]
pub enum ReceiptKeyCommand {
    /// Create a new key that signs a tenant's receipts from now on.
    ///
    /// Receipts signed by the old key can still be verified, but its private key is destroyed. The new private key is stored
    /// encrypted: set RECEIPT_KMS_KEY_ID to the same value as for the processes function or, for a dev server, RECEIPT_KEY_FILE
    /// to the file receipt.key in its data folder.
    #[command(after_help = examples("admin receipt-key rotate --tenant Acme --dry-run"))]
    Rotate {
        /// Tenant ID or name.
        #[arg(long)]
        tenant: String,
        #[command(flatten)]
        effect: Effect,
    },
}

#[derive(Debug, Args)]
pub struct NewKey {
    /// Tenant ID or name.
    #[arg(long)]
    pub tenant: String,
    /// Key name, for example ci.
    #[arg(long)]
    pub name: Name,
    /// Scopes, separated by commas, for example assets:read,assets:write; `admin key list` shows the scopes of other keys.
    #[arg(long, value_parser = parse_list)]
    pub scopes: Scopes,
    /// Expiry time, for example 2027-01-01T00:00:00Z [default: never].
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<Timestamp>,
    /// Requests allowed per minute.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RATE_LIMIT, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RATE_LIMIT)))]
    pub rate_limit: u32,
    #[command(flatten)]
    pub effect: Effect,
}

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// # Errors
///
/// Returns a message with an example. If the text is a key, the message asks for its ID instead.
pub fn key_id(text: &str) -> Result<ApiKeyId, String> {
    text.parse().map_err(|_| {
        let what = if text.starts_with("apl_") { "must be the ID of the key, not the key itself" } else { "must be an ID" };
        format!("{what}, such as {ID}; `admin key list` shows it")
    })
}

pub fn record_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| format!("must be an ID, such as {ID}; `admin check` shows it"))
}

/// # Errors
///
/// Returns a message with an example.
pub fn user_id(text: &str) -> Result<UserId, String> {
    text.parse().map_err(|_| format!("must be an ID, such as {ID}"))
}

/// Parses the ID of a signing link.
///
/// # Errors
///
/// Returns a message with an example.
pub fn link_id(text: &str) -> Result<LinkId, String> {
    text.parse().map_err(|_| format!("must be an ID, such as {ID}"))
}

/// Parses the noun for a kind, such as `asset`.
///
/// # Errors
///
/// Returns a message with the most similar kind, and with all kinds.
pub fn kind(text: &str) -> Result<Kind, String> {
    let nouns = || Kind::ALL.iter().map(|kind| kind.as_str());
    Kind::ALL.iter().copied().find(|kind| kind.as_str() == text).ok_or_else(|| {
        let nearest = nearest_first(text, nouns()).first().copied().unwrap_or_default();
        format!("did you mean {nearest}? It must be one of {}", nouns().collect::<Vec<_>>().join(", "))
    })
}

/// # Errors
///
/// Returns a message with an example.
pub fn parameter(text: &str) -> Result<(String, u64), String> {
    let parts = text.split_once('=').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    parts.ok_or_else(|| "must be a name and a number, such as ReservedConcurrency=20".to_owned())
}

/// Fails if this computer's clock differs too much from the service's.
async fn store_from_env(table: &str) -> Result<(Store, SdkConfig)> {
    let aws = environment::load().await?;
    let date = ServiceDate::default();
    let config = configure_client(aws_sdk_dynamodb::config::Builder::from(&aws)).interceptor(date.clone());
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
    // Handled first, because it needs neither AWS credentials nor a table.
    if let Command::VerifyReceipt { file, keys } = &options.command {
        return receipts::verify(file, keys);
    }
    // Handled before the table is used, because for `doctor`, a table that doesn't respond is a finding.
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
            tenants::limit(&tenants::writable(store, &tenant, effect.dry_run).await?, per_minute).await
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
        Command::Erase { tenant, user, link, repeat, effect } => {
            match (tenant, user.map(Person::from).or(link.map(Person::from)), repeat) {
                (Some(tenant), Some(person), _) => {
                    erasures::erase(&tenants::writable(store, &tenant, effect.dry_run).await?, person).await
                }
                (_, _, Some(file)) => erasures::repeat(store, &file, effect.dry_run).await,
                _ => bail!("pass a tenant and a user, or a file to repeat"),
            }
        }
        Command::Verify { tenant } => verify::tenant(&tenants::existing(store, &tenant).await?).await,
        Command::Check { tenant, repair, dry_run, retry_queue: url } => {
            let mode = if repair && !dry_run { CheckMode::Repair } else { CheckMode::ReadOnly };
            // Unlike `existing`, doesn't read the tenant's record if the tenant is specified by ID: the record may be missing.
            let store = store.writer(tenants::id_of(store, &tenant).await?);
            tenants::refuse_deletion(&store).await?;
            check::tenant(&store, mode, url.map(|url| retry_queue(aws, url))).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_help_has_examples_that_are_right() {
        Options::command().debug_assert();
        assert_eq!(terminal::check_examples(Options::command()), Ok(()));
    }

    #[test]
    fn wrong_values_are_told_what_is_right() {
        assert!(key_id(ID).is_ok() && record_id(ID).is_ok());
        assert_eq!(key_id("ci").unwrap_err(), format!("must be an ID, such as {ID}; `admin key list` shows it"));
        assert!(key_id("apl_0351f4Sj").unwrap_err().contains("not the key itself"));
        assert!(user_id(ID).is_ok() && user_id("ada@example.com").unwrap_err().contains(ID));
        assert!(record_id("AST-1").unwrap_err().contains(ID));
        assert!(kind("assets").unwrap_err().starts_with("did you mean asset? It must be one of "));
    }
}
