//! Lists a tenant's changes.

use crate::output::{Field, Output, cell};
use anyhow::Result;
use serde_json::Value;
use shared::domain::values::id::{EventId, Id};
use shared::domain::values::time::Timestamp;
use shared::store::Reader;
use terminal::Column;

const PAGE_SIZE: u32 = 1000;

const FIELDS: &[Field] = &[
    (Column::new("TIME (UTC)"), |row| cell(&row["at"])),
    (Column::new("TYPE"), |row| cell(&row["type"])),
    (Column::new("RECORD"), |row| cell(&row["entity_id"])),
    (Column::number("VERSION"), |row| cell(&row["version"])),
    (Column::text("BY"), actor),
    (Column::text("FIELDS"), |row| {
        let names = row["changes"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }),
];

fn actor(row: &Value) -> String {
    let names = ["user_name", "key_name"].into_iter().map(|name| &row["actor"][name]);
    names.filter(|name| !name.is_null()).map(cell).collect::<Vec<_>>().join(", ")
}

/// Lists changes, oldest first; with `since`, only from that time on. Leaves out the last few seconds, in which earlier entries
/// could still appear.
pub async fn list(store: &Reader, since: Option<Timestamp>) -> Result<Output> {
    let mut after = since.map(|time| EventId::new(time, [0; 10]));
    let mut entries = Vec::new();
    loop {
        let feed = store.events(after, PAGE_SIZE).await?;
        for entry in feed.entries {
            entries.push(serde_json::from_str(&entry.text)?);
        }
        if !feed.has_more {
            return Ok(Output::table(entries, FIELDS, "No changes. The last few seconds are not listed yet."));
        }
        after = feed.last;
    }
}
