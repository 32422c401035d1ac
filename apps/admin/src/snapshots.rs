//! Snapshots of list indexes in S3.

use crate::environment;
use anyhow::{Context, Result, bail};
use shared::app::system_clock;
use shared::aws::environment::{endpoint, operator_environment};
use shared::aws::object_store::ObjectStore;
use shared::aws::s3::S3;
use shared::store::TenantStore;

/// The functions have the same variable.
pub const VARIABLE: &str = "SNAPSHOTS_URL";

pub struct Bucket(S3);

impl Bucket {
    /// `None` if the environment names no bucket.
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

    pub async fn delete(&self, store: &TenantStore) -> Result<()> {
        for key in store.snapshot_keys() {
            self.0.delete(&key).await.with_context(|| format!("can't delete the snapshot {key} in {VARIABLE}"))?;
        }
        Ok(())
    }
}
