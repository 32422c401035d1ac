//! Configuration of AWS clients from the environment: region, credentials and trusted certificates.

use aws_sdk_dynamodb::config::{Credentials, Region, SharedHttpClient};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpConnector, http_client_fn};
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Root certificates of AWS endpoints, used unless `AWS_CA_BUNDLE` names a different file. Reading the system's 150 or so
/// certificates would take a third of a cold start.
const ROOT_CERTIFICATES: &[u8] = include_bytes!("roots.pem");

#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A variable that Lambda or the template sets is missing.
    #[error("set {0}")]
    Missing(&'static str),
    #[error("{0} must start with http:// or https://")]
    Endpoint(&'static str),
    #[error("can't read the certificates in {0}, named in AWS_CA_BUNDLE")]
    Bundle(String, #[source] std::io::Error),
    #[error("there is no certificate in {0}, named in AWS_CA_BUNDLE")]
    NoCertificate(String),
    #[error("can't set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

pub struct Environment {
    pub region: Region,
    pub credentials: Credentials,
    /// Sends the requests of all clients, with a fixed connect timeout.
    pub connector: SharedHttpConnector,
}

impl Environment {
    /// Returns the HTTP client for SDK clients. This HTTP client ignores the connect timeouts of SDK clients. The SDK's default
    /// HTTP client would set up TLS twice: to check the configuration, and for the first request.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = self.connector.clone();
        http_client_fn(move |_, _| connector.clone())
    }
}

/// Returns the value of an environment variable; `None` if the variable is missing or empty.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the value of an environment variable.
///
/// # Errors
///
/// Returns [`EnvironmentError::Missing`] when the variable is missing or empty.
pub fn required_variable(name: &'static str) -> Result<String, EnvironmentError> {
    variable(name).ok_or(EnvironmentError::Missing(name))
}

/// Returns a URL from an environment variable; `None` if the variable is missing or empty.
///
/// Checks the scheme here, because the SDK's error about a missing scheme quotes the request, which must not be logged.
///
/// # Errors
///
/// Returns [`EnvironmentError::Endpoint`] when the value is not a URL.
pub fn endpoint(name: &'static str) -> Result<Option<String>, EnvironmentError> {
    match variable(name) {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(EnvironmentError::Endpoint(name)),
        url => Ok(url),
    }
}

/// Reads the variables that Lambda sets. Uses no other source of credentials (docs/adr/0011-cold-start.md).
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
    Ok(Environment { region: Region::new(required_variable("AWS_REGION")?), credentials, connector: connector(trusted) })
}

fn read_certificates(path: String) -> Result<Vec<u8>, EnvironmentError> {
    match std::fs::read(&path) {
        // Without a certificate, nothing is trusted: fail at startup rather than on every request.
        Ok(text) if memchr::memmem::find(&text, b"-----BEGIN CERTIFICATE-----").is_none() => {
            Err(EnvironmentError::NoCertificate(path))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(EnvironmentError::Bundle(path, error)),
    }
}

fn tls_provider() -> Provider {
    Provider::Rustls(CryptoMode::Ring)
}

fn connector(trusted: TlsContext) -> SharedHttpConnector {
    let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).build();
    let builder = Connector::builder().connector_settings(settings).tls_provider(tls_provider()).tls_context(trusted);
    SharedHttpConnector::new(builder.build())
}

/// Returns the retries and timeouts for the KMS and SQS clients: the same limits as for the table (docs/adr/0003-client.md).
#[must_use]
pub fn limits() -> (RetryConfig, TimeoutConfig) {
    let retries = RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(50));
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(2));
    (retries, timeouts.operation_timeout(Duration::from_secs(5)).build())
}

/// Returns an HTTP client for the operator's tools. Trusts the system's certificates.
#[must_use]
pub fn system_https() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().tls_provider(tls_provider()).build_https()
}

/// Returns the environment of the operator's tools. Trusts the system's certificates.
#[must_use]
pub fn operator_environment(region: Region, credentials: Credentials) -> Environment {
    Environment { region, credentials, connector: connector(TlsContext::default()) }
}
