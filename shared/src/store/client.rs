//! The SDK client: made once, with limits on every wait (docs/adr/0003).

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedHttpClient};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore};
use std::time::Duration;

/// The roots that AWS's endpoints chain to; `AWS_CA_BUNDLE` names a file of others. Reading the system's store of some
/// hundred and fifty would be a third of a function's start.
const ROOTS: &[u8] = include_bytes!("roots.pem");

/// How often the SDK tries a call that is throttled, times out or meets an error of the service.
const ATTEMPTS: u32 = 3;
/// What the SDK's first wait is a random part of; the second's is twice that. Its own default of a second is for
/// services that answer in seconds.
const BACKOFF: Duration = Duration::from_millis(50);
/// How long opening a connection may take.
const CONNECT: Duration = Duration::from_secs(1);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(2);
/// How long an operation may take with all its attempts. A unit of work ends as long after its beginning, however
/// often others are in its way: lists rely on it (docs/adr/0008).
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Limits and retries, for every client of the table.
#[must_use]
pub fn configure(config: aws_sdk_dynamodb::config::Builder) -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(BACKOFF);
    config.retry_config(retries).timeout_config(
        TimeoutConfig::builder()
            .connect_timeout(CONNECT)
            .operation_attempt_timeout(ATTEMPT)
            .operation_timeout(OPERATION_TIMEOUT)
            .build(),
    )
}

/// What a function's client takes from its environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// Lambda sets it, or the template.
    #[error("set {0}")]
    Missing(&'static str),
    /// It is no address.
    #[error("{0} must begin with http:// or https://")]
    Endpoint(&'static str),
    /// The file that `AWS_CA_BUNDLE` names.
    #[error("can't read the certificates in {0}, which AWS_CA_BUNDLE names")]
    Bundle(String, #[source] std::io::Error),
    /// It has none.
    #[error("there is no certificate in {0}, which AWS_CA_BUNDLE names")]
    NoCertificate(String),
    /// The HTTP client.
    #[error("can't set TLS up")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What Lambda gives a function for its clients of AWS.
pub struct Environment {
    /// Where it runs.
    pub region: Region,
    /// Its role's.
    pub credentials: Credentials,
    /// HTTPS that trusts the roots of AWS's endpoints, or `AWS_CA_BUNDLE`.
    pub http: SharedHttpClient,
}

/// A variable, if it is set to something.
#[must_use]
pub fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A variable that must be set.
///
/// # Errors
///
/// It is not.
pub fn needed(name: &'static str) -> Result<String, EnvironmentError> {
    set(name).ok_or(EnvironmentError::Missing(name))
}

/// The address in a variable, if it is set. The SDK's error about one without a scheme would quote the request, and with
/// it what a log may not have.
///
/// # Errors
///
/// It is no address.
pub fn endpoint(name: &'static str) -> Result<Option<String>, EnvironmentError> {
    match set(name) {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(EnvironmentError::Endpoint(name)),
        url => Ok(url),
    }
}

/// Region and credentials as Lambda puts them into the environment. Nothing is looked for anywhere else
/// (docs/adr/0011).
///
/// # Errors
///
/// Names the variable that is missing.
pub fn environment() -> Result<Environment, EnvironmentError> {
    let session = set("AWS_SESSION_TOKEN");
    let credentials =
        Credentials::new(needed("AWS_ACCESS_KEY_ID")?, needed("AWS_SECRET_ACCESS_KEY")?, session, None, "Lambda's environment");
    let roots = match set("AWS_CA_BUNDLE") {
        Some(path) => bundle(path)?,
        None => ROOTS.to_vec(),
    };
    let trusted = TlsContext::builder().with_trust_store(TrustStore::empty().with_pem_certificate(roots)).build();
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(ring())
        .tls_context(trusted.map_err(|error| EnvironmentError::Tls(error.into()))?)
        .build_https();
    Ok(Environment { region: Region::new(needed("AWS_REGION")?), credentials, http })
}

/// The certificates in a file.
fn bundle(path: String) -> Result<Vec<u8>, EnvironmentError> {
    match std::fs::read(&path) {
        // Without any, nothing would be trusted, and each request would fail instead of the start.
        Ok(text) if memchr::memmem::find(&text, b"-----BEGIN CERTIFICATE-----").is_none() => {
            Err(EnvironmentError::NoCertificate(path))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(EnvironmentError::Bundle(path, error)),
    }
}

/// A function's client of the table, at `AWS_ENDPOINT_URL_DYNAMODB` if there is one.
///
/// # Errors
///
/// As [`environment`].
pub fn of_function() -> Result<Client, EnvironmentError> {
    let Environment { region, credentials, http } = environment()?;
    let mut config = configure(Config::builder())
        .behavior_version(BehaviorVersion::latest())
        .region(region)
        .credentials_provider(credentials)
        .http_client(http);
    config.set_endpoint_url(endpoint("AWS_ENDPOINT_URL_DYNAMODB")?);
    Ok(Client::from_conf(config.build()))
}

/// The HTTP client of an operator's tools, which trust what the system trusts.
#[must_use]
pub fn system_https() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().tls_provider(ring()).build_https()
}

fn ring() -> tls::Provider {
    tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring)
}
