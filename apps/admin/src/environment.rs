//! AWS region and credentials, from the environment.

use anyhow::{Context, Result, bail};
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};
use shared::aws::environment::system_https;

/// Loads the AWS configuration (profiles, single sign-on, credential processes, roles) and its credentials.
pub async fn load() -> Result<SdkConfig> {
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(system_https()).load().await;
    if config.region().is_none() {
        bail!("no AWS region: set AWS_REGION, or set AWS_PROFILE to a profile with a region");
    }
    let provider = config.credentials_provider().context("no AWS credentials")?;
    // Loaded once, since a credential process may prompt the user each time.
    let credentials = credentials(&provider).await?;
    Ok(config.into_builder().credentials_provider(SharedCredentialsProvider::new(credentials)).build())
}

pub async fn credentials(provider: &SharedCredentialsProvider) -> Result<Credentials> {
    provider.provide_credentials().await.context("no AWS credentials")
}
