//! The clients of AWS: their timeouts and retries (docs/adr/0003-client.md), and what they take from the environment.

use crate::store::object_store::{ObjectStore, S3};
use crate::store::{Clock, Store};
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedHttpClient};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore};
use std::sync::Arc;
use std::time::Duration;

/// The root certificates of AWS's endpoints. `AWS_CA_BUNDLE` names a file with others. Reading the system's 150 or so
/// certificates would take a third of a cold start.
const ROOT_CERTIFICATES: &[u8] = include_bytes!("roots.pem");

/// How often the SDK tries a call that is throttled, times out or gets an error of the service.
const MAX_ATTEMPTS: u32 = 3;
/// The longest pause before the second attempt; before the third it is twice as long. Pauses are random. The SDK's
/// default of a second is for services that need seconds to respond.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an operation may take with all its attempts. A unit of work has as long from beginning to end, also when it
/// is retried because of conflicts. Lists rely on this limit (docs/adr/0008-list-index.md).
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the timeouts and retries that every client of the table has.
#[must_use]
pub fn configure(config: aws_sdk_dynamodb::config::Builder) -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(INITIAL_BACKOFF);
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(OPERATION_TIMEOUT);
    config.retry_config(retries).timeout_config(timeouts.build())
}

/// Returns the retries of a write that its request can do without: one, for connections that broke while the function
/// was frozen. Retries draw on a quota, and these have their own: other calls keep theirs when such writes are throttled.
pub(in crate::store) fn dispensable() -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(INITIAL_BACKOFF);
    Config::builder().retry_config(retries).retry_partition(RetryPartition::new("dispensable"))
}

/// Why a function's clients can't be made from its environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A variable that Lambda or the template sets is missing.
    #[error("set {0}")]
    Missing(&'static str),
    /// A variable that must be a URL is not one.
    #[error("{0} must begin with http:// or https://")]
    Endpoint(&'static str),
    /// The file that `AWS_CA_BUNDLE` names can't be read.
    #[error("can't read the certificates in {0}, which AWS_CA_BUNDLE names")]
    Bundle(String, #[source] std::io::Error),
    /// The file that `AWS_CA_BUNDLE` names has no certificates.
    #[error("there is no certificate in {0}, which AWS_CA_BUNDLE names")]
    NoCertificate(String),
    /// The HTTP client can't be made.
    #[error("can't set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What a function's clients of AWS are made from.
pub struct Environment {
    /// The region that the function runs in.
    pub region: Region,
    /// The credentials of the function's role.
    pub credentials: Credentials,
    /// The root certificates of AWS's endpoints, or those in `AWS_CA_BUNDLE`.
    pub trusted: TlsContext,
    /// An HTTPS client that trusts these certificates.
    pub http: SharedHttpClient,
}

/// Returns an environment variable; `None` if it is missing or empty.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns an environment variable that must be set.
///
/// # Errors
///
/// Returns [`EnvironmentError::Missing`] when it is missing or empty.
pub fn required_variable(name: &'static str) -> Result<String, EnvironmentError> {
    variable(name).ok_or(EnvironmentError::Missing(name))
}

/// Returns the URL in an environment variable; `None` if it is missing or empty.
///
/// The check is here because the SDK's error about a URL without a scheme quotes the request, which must not be logged.
///
/// # Errors
///
/// Returns [`EnvironmentError::Endpoint`] when it is not a URL.
pub fn endpoint(name: &'static str) -> Result<Option<String>, EnvironmentError> {
    match variable(name) {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(EnvironmentError::Endpoint(name)),
        url => Ok(url),
    }
}

/// Returns region, credentials and HTTP client from the variables that Lambda sets. Nothing else is searched for
/// credentials (docs/adr/0011-cold-start.md).
///
/// # Errors
///
/// Returns an [`EnvironmentError`] when a variable is missing, or the certificates can't be used.
pub fn function_environment() -> Result<Environment, EnvironmentError> {
    let session_token = variable("AWS_SESSION_TOKEN");
    let (key_id, secret) = (required_variable("AWS_ACCESS_KEY_ID")?, required_variable("AWS_SECRET_ACCESS_KEY")?);
    let credentials = Credentials::new(key_id, secret, session_token, None, "Lambda's environment");
    let certificates = match variable("AWS_CA_BUNDLE") {
        Some(path) => read_certificates(path)?,
        None => ROOT_CERTIFICATES.to_vec(),
    };
    let trusted = TlsContext::builder().with_trust_store(TrustStore::empty().with_pem_certificate(certificates)).build();
    let trusted = trusted.map_err(|error| EnvironmentError::Tls(error.into()))?;
    let http = aws_smithy_http_client::Builder::new().tls_provider(tls_provider()).tls_context(trusted.clone()).build_https();
    Ok(Environment { region: Region::new(required_variable("AWS_REGION")?), credentials, trusted, http })
}

fn read_certificates(path: String) -> Result<Vec<u8>, EnvironmentError> {
    match std::fs::read(&path) {
        // Without any certificate nothing is trusted, and every request would fail instead of the start.
        Ok(text) if memchr::memmem::find(&text, b"-----BEGIN CERTIFICATE-----").is_none() => {
            Err(EnvironmentError::NoCertificate(path))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(EnvironmentError::Bundle(path, error)),
    }
}

/// Returns a function's table: the one that `TABLE_NAME` names, at `AWS_ENDPOINT_URL_DYNAMODB` if that is set, with the
/// snapshots in the bucket at `SNAPSHOTS_URL` if that is set.
///
/// # Errors
///
/// As [`function_environment`] and [`endpoint`].
pub fn function_store(clock: Clock) -> Result<Store, EnvironmentError> {
    let table = required_variable("TABLE_NAME")?;
    let environment = function_environment()?;
    let snapshots = endpoint("SNAPSHOTS_URL")?.map(|url| S3::new(&url, &environment, clock.clone()));
    let mut config = configure(Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .region(environment.region)
        .credentials_provider(environment.credentials)
        .http_client(environment.http);
    config.set_endpoint_url(endpoint("AWS_ENDPOINT_URL_DYNAMODB")?);
    let store = Store::new(Client::from_conf(config.build()), table, clock);
    Ok(store.with_snapshots(snapshots.map(|snapshots| Arc::new(snapshots) as Arc<dyn ObjectStore>)))
}

/// Returns the HTTPS client of the operator's tools. It trusts what the system trusts.
#[must_use]
pub fn system_https() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().tls_provider(tls_provider()).build_https()
}

/// Returns what the operator's tools make clients of AWS from. They trust what the system trusts.
#[must_use]
pub fn operator_environment(region: Region, credentials: Credentials) -> Environment {
    Environment { region, credentials, trusted: TlsContext::default(), http: system_https() }
}

pub(in crate::store) fn tls_provider() -> tls::Provider {
    tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring)
}
