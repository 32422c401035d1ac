//! Deletes a tenant with all its items, and its snapshots of list indexes in S3.

use crate::output::{Output, progress};
use crate::{environment, tenants};
use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use serde_json::json;
use shared::aws::environment::{endpoint, operator_environment};
use shared::aws::object_store::{ObjectStore, S3};
use shared::domain::tenants::tenant::Tenant;
use shared::services::system_clock;
use shared::store::{Reader, Store, StoreError, Writer};
use std::collections::BTreeMap;
use std::time::Duration;
use terminal::{clean, print_note};

/// The functions use the same variable.
const SNAPSHOTS_URL: &str = "SNAPSHOTS_URL";

pub struct Deletion {
    /// Skips the confirmation.
    pub yes: bool,
    /// How long to wait for requests that started before the API keys were deleted.
    pub settle: Duration,
    pub is_dry_run: bool,
}

struct Plan {
    /// The tenant's name, or its ID if the name can't be read.
    name: String,
    items: BTreeMap<String, u64>,
    /// Data of the tenant that remains outside the table.
    stays: Vec<String>,
}

pub async fn delete(store: &Store, tenant: &str, deletion: Deletion) -> Result<Output> {
    let store = store.writer(tenants::id_of(store, tenant).await?);
    let bucket = Bucket::from_env().await?;
    let plan = plan(&store, bucket.is_some()).await?;
    let id = store.id();
    if deletion.is_dry_run {
        let value = json!({"tenant_id": id, "name": plan.name, "items": plan.items, "stays": plan.stays, "dry_run": true});
        return Ok(Output::described(value, plan.text()));
    }
    print_note(&plan.text());
    if !deletion.yes && !is_confirmed(&plan.name)? {
        bail!("the names differ, so nothing was deleted");
    }
    print_note(&format!("deleting tenant {id} ({})", clean(&plan.name)));
    let bar = progress(ProgressBar::new(plan.items.values().sum()), "{bar:40} {pos} of {len} items, {elapsed}")?;
    store.begin_deletion().await?;
    let deleted = store.delete_items(deletion.settle, |done| bar.set_position(done)).await?;
    bar.finish_and_clear();
    if let Some(bucket) = &bucket {
        bucket.delete(&store).await?;
    }
    store.finish_deletion().await?;
    print_note(&format!("deleted tenant {id}: {deleted} items and the tenant itself"));
    Ok(json!({"tenant_id": id, "name": plan.name, "deleted": true, "items": deleted + 1, "snapshots": bucket.is_some()}).into())
}

async fn plan(store: &Reader, has_bucket: bool) -> Result<Plan> {
    let name = match store.get::<Tenant>(store.id()).await {
        Ok(tenant) => tenant.map(|tenant| tenant.value.name.to_string()),
        Err(StoreError::Unreadable(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let bar = ProgressBar::new_spinner().with_message("counting items");
    let items = store.count_items(|_| bar.tick()).await?;
    bar.finish_and_clear();
    if items.is_empty() && store.deletion_began().await?.is_none() {
        bail!("tenant {} not found; `admin tenant list` shows all tenants", store.id());
    }
    Ok(Plan { name: name.unwrap_or_else(|| store.id().to_string()), items, stays: stays(has_bucket) })
}

fn stays(has_bucket: bool) -> Vec<String> {
    let snapshots = format!("snapshots of lists in S3, which expire within 7 days: set {} to delete them too", SNAPSHOTS_URL);
    let mut stays = vec![
        "backups: the table's point-in-time recovery (35 days) and any exports or copies".to_owned(),
        "logs, until they expire; they contain IDs, but no names".to_owned(),
        "request counters, which expire after 10 minutes".to_owned(),
        "receipts already handed out, which can only be verified with public keys that were saved before".to_owned(),
    ];
    stays.extend((!has_bucket).then_some(snapshots));
    stays
}

impl Plan {
    fn text(&self) -> String {
        let mut lines = vec![format!("This deletes tenant {}:", clean(&self.name))];
        lines.extend(self.items.iter().map(|(kind, count)| format!("  {count:>9}  {}", kind.replace('_', " "))));
        lines.push("Not deleted:".to_owned());
        lines.extend(self.stays.iter().map(|what| format!("  - {what}")));
        lines.join("\n")
    }
}

/// Asks for the tenant's exact name: a different tenant's name may differ only in case.
fn is_confirmed(name: &str) -> Result<bool> {
    let Some(typed) = terminal::ask("Type the tenant's name to delete it:")? else {
        bail!("nothing was deleted: type the tenant's name, or use --yes");
    };
    Ok(typed.trim() == name)
}

/// The bucket with snapshots of list indexes.
pub struct Bucket(S3);

impl Bucket {
    /// Returns `None` if `SNAPSHOTS_URL` names no bucket.
    pub async fn from_env() -> Result<Option<Self>> {
        let Some(url) = endpoint(SNAPSHOTS_URL)? else { return Ok(None) };
        let config = environment::load().await?;
        let (Some(region), Some(provider)) = (config.region(), config.credentials_provider()) else {
            bail!("no AWS region or no AWS credentials");
        };
        let credentials = environment::credentials(&provider).await?;
        let environment = operator_environment(region.clone(), credentials);
        Ok(Some(Self(S3::new(&url, &environment, system_clock()))))
    }

    pub async fn delete(&self, store: &Writer) -> Result<()> {
        for key in store.snapshot_keys() {
            self.0.delete(&key).await.with_context(|| format!("can't delete the snapshot {key} in {SNAPSHOTS_URL}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_says_what_goes_and_what_stays() {
        let items = BTreeMap::from([("asset".to_owned(), 1_200), ("api_key".to_owned(), 3)]);
        let text = Plan { name: "Acme\u{1b}[2J".into(), items, stays: stays(false) }.text();
        assert!(
            text.starts_with("This deletes tenant Acme\u{fffd}[2J:\n          3  api key\n       1200  asset\nNot deleted:\n"),
            "{text}"
        );
        assert!(text.contains("SNAPSHOTS_URL") && !stays(true).concat().contains("SNAPSHOTS_URL"), "{text}");
    }
}
