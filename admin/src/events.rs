//! What happened in a tenant.

use anyhow::Result;
use serde_json::Value;
use shared::domain::id::{EventId, Id};
use shared::domain::time::Timestamp;
use shared::store::TenantStore;

/// How many events are read at once.
const PAGE: u32 = 1000;

/// Every entry of a tenant's audit trail since a moment, oldest first; those of the last seconds come later.
///
/// # Errors
///
/// The table's, or an entry is no JSON.
pub async fn since(store: &TenantStore, moment: Option<Timestamp>) -> Result<Value> {
    let mut after = moment.map(|moment| EventId::new(moment, [0; 10]));
    let mut entries = Vec::new();
    loop {
        let feed = store.events(after, PAGE).await?;
        for entry in feed.entries {
            entries.push(serde_json::from_str(&entry.text)?);
        }
        if !feed.has_more {
            return Ok(Value::Array(entries));
        }
        after = feed.last;
    }
}
