//! The DynamoDB client: timeouts and retries (docs/adr/0003-client.md).

use crate::aws::environment::{EnvironmentError, endpoint, function_environment, required_variable};
use crate::aws::object_store::{ObjectStore, S3};
use crate::store::{Clock, Store};
use aws_sdk_dynamodb::config::BehaviorVersion;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::{Client, Config};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of SDK attempts for a call that is throttled, times out or gets a server error.
const MAX_ATTEMPTS: u32 = 3;
/// Maximum backoff before the second attempt, doubled before the third, with jitter. The SDK's default of a second suits services
/// that take seconds to respond.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for an operation with all its attempts. The same limit applies to a whole unit of work, including its retries after
/// conflicts. Lists rely on it (docs/adr/0008-list-index.md).
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the timeouts and retries of every DynamoDB client.
#[must_use]
pub fn configure(config: aws_sdk_dynamodb::config::Builder) -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(INITIAL_BACKOFF);
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).operation_timeout(OPERATION_TIMEOUT);
    config.retry_config(retries).timeout_config(timeouts.build())
}

/// For calls whose failure doesn't fail their request: one retry, for connections that broke while the function was frozen. They
/// have their own retry quota, so that throttling them doesn't use up the retries of other calls.
pub(in crate::store) fn dispensable() -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(INITIAL_BACKOFF);
    Config::builder().retry_config(retries).retry_partition(RetryPartition::new("dispensable"))
}

/// In rows. A smaller list loads from the table in one or two round trips, so a snapshot would store people's names without need.
const SMALLEST_SNAPSHOT: usize = 5_000;

/// The store for the table `TABLE_NAME`, at the endpoint `AWS_ENDPOINT_URL_DYNAMODB` if set, with snapshots in the bucket at
/// `SNAPSHOTS_URL` if set.
///
/// # Errors
///
/// Same as [`function_environment`] and [`endpoint`].
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
