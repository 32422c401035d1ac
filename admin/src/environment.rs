//! Who the operator is to AWS, and where.

use anyhow::{Context, Result, bail};
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::config::{ProvideCredentials, SharedCredentialsProvider};
use shared::store::client;

/// The usual AWS environment: profiles, single sign-on, processes, roles; with credentials that are known to be there.
///
/// # Errors
///
/// There is no region, or nothing gives credentials.
pub async fn load() -> Result<SdkConfig> {
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(client::system_https()).load().await;
    if config.region().is_none() {
        bail!("there is no AWS region: set AWS_REGION, or choose a profile that has one with AWS_PROFILE");
    }
    let provider = config.credentials_provider().context("there are no AWS credentials")?;
    // RequestHeaders for once: a process behind them may ask its user.
    let credentials = provider.provide_credentials().await.context("there are no AWS credentials")?;
    Ok(config.into_builder().credentials_provider(SharedCredentialsProvider::new(credentials)).build())
}
