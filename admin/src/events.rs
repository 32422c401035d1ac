//! Lists a tenant's changes.

use anyhow::Result;
use serde_json::Value;
use shared::domain::id::{EventId, Id};
use shared::domain::time::Timestamp;
use shared::store::TenantStore;

/// How many events one query reads.
const PAGE_SIZE: u32 = 1000;

/// Returns the entries of a tenant's audit trail as a JSON array, oldest first; with `since`, only those from that time
/// on. The last few seconds are left out, because earlier entries could still appear there.
///
/// # Errors
///
/// Returns an error when the table can't be read or an entry is not JSON.
pub async fn list(store: &TenantStore, since: Option<Timestamp>) -> Result<Value> {
    let mut after = since.map(|time| EventId::new(time, [0; 10]));
    let mut entries = Vec::new();
    loop {
        let feed = store.events(after, PAGE_SIZE).await?;
        for entry in feed.entries {
            entries.push(serde_json::from_str(&entry.text)?);
        }
        if !feed.has_more {
            return Ok(Value::Array(entries));
        }
        after = feed.last;
    }
}
