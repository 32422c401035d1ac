//! Checking the audit trail.

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use shared::domain::chain::BrokenLink;
use shared::domain::record::Kind;
use shared::store::TenantStore;
use uuid::Uuid;

/// Re-computes every chain of a tenant.
///
/// # Errors
///
/// Names the first link that does not hold; or the table's.
pub async fn tenant(store: &TenantStore) -> Result<Value> {
    // Draws on stderr, and only where that is a terminal.
    let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template("{bar:40} {pos} of {len} changes, {elapsed}")?);
    let found = store
        .verify_chains(|done, of| {
            bar.set_length(of);
            bar.set_position(done);
        })
        .await?;
    bar.finish_and_clear();
    if let Some((kind, id, broken)) = found.broken_links.first() {
        bail!("{} of {} histories do not hold; first: {}", found.broken_links.len(), found.records, told(*kind, *id, broken));
    }
    Ok(json!({"tenant_id": store.id(), "valid": true, "things": found.records, "changes": found.events}))
}

fn told(kind: Option<Kind>, id: Uuid, broken: &BrokenLink) -> String {
    let noun = kind.map_or("unknown thing", Kind::noun);
    let event = broken.event_id.map_or("no event".to_owned(), |event| format!("event {event}"));
    format!("{noun} {id}, version {}, {event}: {}", broken.version, broken.reason)
}
