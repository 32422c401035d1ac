//! Checks the invariants of a tenant's items, which hold even after faults and races.

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use shared::store::keys::{Item, Key, LIST_INDEX, LS};
use shared::store::{CheckMode, Writer};
use std::collections::HashMap;

/// Attributes that must have the record's values in each row of the GSI `list_index`.
const PROJECTED: [&str; 5] = ["version", "updated_at", "status", "name", "listed"];

/// Checks a tenant like `admin check`, and checks that the GSI `list_index` has a row with the record's values for each listed
/// record. Returns a description of each violation. Nothing may write to the tenant at the same time.
///
/// # Errors
///
/// Returns an error if the table can't be read.
pub async fn violations(store: &Writer, client: &Client, table: &str) -> Result<Vec<String>> {
    let report = store.check_items(CheckMode::ReadOnly, |_| ()).await?;
    let mut violations: Vec<String> =
        report.findings.iter().map(|finding| format!("{}: {}", finding.subject, finding.problem)).collect();
    let mut listed: HashMap<Key, Item> = HashMap::new();
    let mut rows = Vec::new();
    for partition in store.partitions().await? {
        let query = client.query().table_name(table).key_condition_expression("PK = :pk");
        let query = query.expression_attribute_values(":pk", partition);
        let mut pages = query.clone().consistent_read(true).into_paginator().send();
        while let Some(page) = pages.next().await {
            let items = page?.items.unwrap_or_default().into_iter().filter(|item| item.contains_key(LS));
            listed.extend(items.filter_map(|item| Some((Key::of(&item)?, item))));
        }
        let mut pages = query.index_name(LIST_INDEX).into_paginator().send();
        while let Some(page) = pages.next().await {
            rows.extend(page?.items.unwrap_or_default());
        }
    }
    for row in rows {
        let item = Key::of(&row).and_then(|key| listed.remove(&key));
        let is_equal = |item: &Item| PROJECTED.iter().all(|name| row.get(*name) == item.get(*name));
        if !item.as_ref().is_some_and(is_equal) {
            violations.push(format!("the list index differs from the record {:?}", Key::of(&row)));
        }
    }
    violations.extend(listed.into_keys().map(|key| format!("the list index has no row for {key:?}")));
    Ok(violations)
}
