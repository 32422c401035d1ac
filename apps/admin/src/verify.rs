//! Verifies a tenant's audit trail.

use crate::output::{Output, progress};
use anyhow::{Result, bail};
use indicatif::ProgressBar;
use serde_json::json;
use shared::domain::history::chain::BrokenLink;
use shared::domain::record::Kind;
use shared::store::Reader;
use uuid::Uuid;

/// Recomputes every hash chain. Returns the number of records and changes.
pub async fn tenant(store: &Reader) -> Result<Output> {
    let bar = progress(ProgressBar::new(0), "{bar:40} {pos} of {len} changes, {elapsed}")?;
    let verification = store
        .verify_chains(|done, total| {
            bar.set_length(total);
            bar.set_position(done);
        })
        .await?;
    bar.finish_and_clear();
    if let Some((kind, id, link)) = verification.broken_links.first() {
        let (broken, total) = (verification.broken_links.len(), verification.records);
        bail!("{broken} of {total} histories are broken; the first: {}", describe(*kind, *id, link));
    }
    let (records, events) = (verification.records, verification.events);
    Ok(json!({"tenant_id": store.id(), "valid": true, "records": records, "events": events}).into())
}

fn describe(kind: Option<Kind>, id: Uuid, link: &BrokenLink) -> String {
    let noun = kind.map_or("record of unknown type", Kind::as_str);
    let event = link.event_id.map_or("no event".to_owned(), |event| format!("event {event}"));
    format!("{noun} {id}, version {}, {event}: {}", link.version, link.reason)
}
