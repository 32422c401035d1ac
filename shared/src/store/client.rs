//! The client of the table: its timeouts and retries (docs/adr/0003-client.md).

use crate::aws::environment::{EnvironmentError, endpoint, function_environment, required_variable};
use crate::aws::object_store::ObjectStore;
use crate::aws::s3::S3;
use crate::store::{Clock, Store};
use aws_sdk_dynamodb::config::BehaviorVersion;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::{Client, Config};
use std::sync::Arc;
use std::time::Duration;

/// The SDK's attempts at a call that is throttled, times out or gets an error of the service.
const MAX_ATTEMPTS: u32 = 3;
/// The longest pause before the second attempt; before the third it is twice as long. Pauses are random. The SDK's
/// default of a second is for services that need seconds to respond.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time of an operation with all its attempts. A unit of work has as long from beginning to end, also when it
/// is retried because of conflicts. Lists rely on this limit (docs/adr/0008-list-index.md).
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the timeouts and retries that every client of the table has.
#[must_use]
pub fn configure(config: aws_sdk_dynamodb::config::Builder) -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(INITIAL_BACKOFF);
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).operation_timeout(OPERATION_TIMEOUT);
    config.retry_config(retries).timeout_config(timeouts.build())
}

/// For writes that their request can do without: one retry, for connections that broke while the function was frozen. Retries
/// draw on a quota, and these have their own: other calls keep theirs when such writes are throttled.
pub(in crate::store) fn dispensable() -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(INITIAL_BACKOFF);
    Config::builder().retry_config(retries).retry_partition(RetryPartition::new("dispensable"))
}

/// In rows. A smaller list loads from the table in one or two trips, and its snapshot would name people for nothing.
const SMALLEST_SNAPSHOT: usize = 5_000;

/// The one that `TABLE_NAME` names, at `AWS_ENDPOINT_URL_DYNAMODB` if that is set, with the snapshots in the bucket at
/// `SNAPSHOTS_URL` if that is set.
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
        .http_client(environment.http_client())
        .region(environment.region)
        .credentials_provider(environment.credentials);
    config.set_endpoint_url(endpoint("AWS_ENDPOINT_URL_DYNAMODB")?);
    let store = Store::new(Client::from_conf(config.build()), table, clock).with_smallest_snapshot(SMALLEST_SNAPSHOT);
    Ok(store.with_snapshots(snapshots.map(|snapshots| Arc::new(snapshots) as Arc<dyn ObjectStore>)))
}
