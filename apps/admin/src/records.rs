//! Removes records that can't be read.

use crate::output::Output;
use crate::tenants::mark_dry_run;
use anyhow::{Result, bail};
use serde_json::json;
use shared::domain::record::Kind;
use shared::store::{Removal, TenantStore};
use uuid::Uuid;

/// Removes a record that can't be read.
pub async fn remove(store: &TenantStore, kind: Kind, id: Uuid) -> Result<Output> {
    let (noun, tenant) = (kind.noun(), store.id());
    match store.remove_unreadable(kind, id).await? {
        Removal::Removed => {
            let value = json!({"tenant_id": tenant, "kind": noun, "id": id, "removed": !store.is_dry_run()});
            Ok(mark_dry_run(value, store.is_dry_run(), &[]).into())
        }
        Removal::Missing => bail!("{noun} {id} not found in tenant {tenant}"),
        Removal::Tenant => {
            bail!("the tenant itself can't be removed: nothing works without it; take its item from a backup")
        }
        Removal::Readable => bail!("{noun} {id} can be read; delete it over the API"),
        Removal::Changing => bail!("{noun} {id} is changing; try again"),
    }
}
