//! The SDK client: made once, with limits on every wait (docs/adr/0003).

use super::keys;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_smithy_http_client::tls;
use std::time::Duration;

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
pub const OPERATION: Duration = Duration::from_secs(5);

/// Limits and retries, for every client of the table.
#[must_use]
pub fn configure(config: aws_sdk_dynamodb::config::Builder) -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(BACKOFF);
    config.retry_config(retries).timeout_config(
        TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ATTEMPT).operation_timeout(OPERATION).build(),
    )
}

/// A client by the usual AWS environment: region, credentials, `AWS_ENDPOINT_URL_DYNAMODB`.
pub async fn from_env() -> Client {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https();
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest()).http_client(http).load().await;
    Client::from_conf(configure(aws_sdk_dynamodb::config::Builder::from(&config)).build())
}

/// Opens the connection by a read of nothing, so that the first request does not wait for TLS.
/// A failure is only logged: the first request will meet it again and answer for it.
pub async fn warm(client: &Client, table: &str) {
    let read = client.get_item().table_name(table).set_key(Some(keys::nothing().item())).send().await;
    if let Err(error) = read {
        tracing::warn!(error = %aws_sdk_dynamodb::error::DisplayErrorContext(&error), "the first read failed");
    }
}
