//! Snapshots of list indexes in S3.

use crate::environment;
use anyhow::{Context, Result, bail};
use shared::app::system_clock;
use shared::aws::environment::{endpoint, operator_environment};
use shared::aws::s3::S3;
use shared::store::TenantStore;

/// The variable with the bucket's URL, as the functions have it.
pub const VARIABLE: &str = "SNAPSHOTS_URL";

/// The bucket with the snapshots.
pub struct Bucket(S3);

impl Bucket {
    /// Returns the bucket that the environment names; `None` if it names none.
    ///
    /// # Errors
    ///
    /// Returns an error when the variable is no URL, or without AWS credentials.
    pub async fn from_env() -> Result<Option<Self>> {
        let Some(url) = endpoint(VARIABLE)? else { return Ok(None) };
        let config = environment::load().await?;
        let (Some(region), Some(provider)) = (config.region(), config.credentials_provider()) else {
            bail!("no AWS region or no AWS credentials");
        };
        let credentials = environment::credentials(&provider).await?;
        let environment = operator_environment(region.clone(), credentials);
        Ok(Some(Self(S3::new(&url, &environment, system_clock()))))
    }

    /// Deletes a tenant's snapshots.
    ///
    /// # Errors
    ///
    /// Returns an error when one can't be deleted.
    pub async fn delete(&self, store: &TenantStore) -> Result<()> {
        for key in store.snapshot_keys() {
            self.0.delete(&key).await.with_context(|| format!("can't delete the snapshot {key} in {VARIABLE}"))?;
        }
        Ok(())
    }
}
