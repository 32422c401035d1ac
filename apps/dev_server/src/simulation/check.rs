//! The checks after all traffic has ended and every index has caught up. A reader of a tenant's event feed.

use super::lists;
use super::service::Service;
use super::tenant::Tenant;
use crate::faulty_table::{SeededRandom, WHOLE_LISTS, Weaknesses};
use crate::invariants::violations;
use crate::server::TABLE;
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// The lag of `list_index` behind the table from which lists read the table itself (docs/adr/0008-list-index.md).
const MAX_LIST_INDEX_LAG_MILLIS: u64 = 60_000;

/// Checks that lists came from their list indexes, unless `list_index` lagged for too long.
pub fn check_lists(service: &Service) {
    let whole = service.table.shown().get(WHOLE_LISTS).copied().unwrap_or_default();
    if whole > 0 && service.table.weaknesses().list_index_lag_millis <= MAX_LIST_INDEX_LAG_MILLIS {
        service.add_violation(format!("lists have read {whole} pages of whole kinds from the table"));
    }
}

pub async fn check(service: &Service, tenant: &Tenant, client: &Client) -> Result<()> {
    let wrong = |what: String| service.add_violation(format!("{}: in the end, {what}", tenant.name));
    // Longer than the feed holds events back.
    sleep(Duration::from_secs(30)).await;
    let random = SeededRandom::new(0);
    for _ in 0..6 {
        lists::list_assets(service, tenant, &random).await;
    }
    lists::list_users(service, tenant).await;
    read_on(service, tenant).await;
    // Longer than any index lags.
    service.table.set(Weaknesses::default());
    sleep(Duration::from_secs(3_600)).await;
    for _ in 0..6 {
        lists::list_assets(service, tenant, &random).await;
        lists::list_instances(service, tenant, &random).await;
    }
    lists::list_users(service, tenant).await;
    for violation in violations(&service.store().tenant(tenant.id), client, TABLE).await? {
        wrong(violation);
    }
    check_feed(tenant, client, &wrong).await?;
    check_histories(service, tenant, &wrong).await;
    Ok(())
}

/// Compares the events that the feed has shown with those in the table.
async fn check_feed(tenant: &Tenant, client: &Client, wrong: &impl Fn(String)) -> Result<()> {
    let query =
        client.query().table_name(TABLE).consistent_read(true).key_condition_expression("PK = :pk AND begins_with(SK, :sk)");
    let value = |text: String| aws_sdk_dynamodb::types::AttributeValue::S(text);
    let query = query.expression_attribute_values(":pk", shared::store::keys::Keys::of(tenant.id).partition());
    let mut pages = query.expression_attribute_values(":sk", value("EVENT#".to_owned())).into_paginator().send();
    let mut stored = BTreeSet::new();
    while let Some(page) = pages.next().await {
        for item in page?.items.unwrap_or_default() {
            let entry = item.get("entry").and_then(|entry| entry.as_s().ok());
            let entry: Value = entry.and_then(|entry| serde_json::from_str(entry).ok()).unwrap_or_default();
            stored.extend(entry["id"].as_str().map(str::to_owned));
        }
    }
    let shown = tenant.model().events.clone();
    let unique: BTreeSet<String> = shown.iter().cloned().collect();
    if unique.len() != shown.len() {
        wrong(format!("the feed has shown {} events twice", shown.len() - unique.len()));
    }
    for missing in stored.difference(&unique) {
        wrong(format!("the feed has not shown the event {missing}"));
    }
    for unknown in unique.difference(&stored) {
        wrong(format!("the feed has shown the event {unknown}, which is not in the table"));
    }
    Ok(())
}

/// Compares the number of each asset's changes with its history.
async fn check_histories(service: &Service, tenant: &Tenant, wrong: &impl Fn(String)) {
    let assets: Vec<(Option<String>, u64)> =
        tenant.model().assets.iter().map(|asset| (asset.id.clone(), asset.register.changes)).collect();
    for (id, changes) in assets {
        let path = format!("/assets/{}/history?verify=true&limit=1", id.unwrap_or_default());
        let history = service.settle(&tenant.request("GET", path.clone(), Value::Null)).await.body;
        if history["verification"]["valid"] != true || history["meta"]["total"] != changes {
            wrong(format!("{path} is {} {} after {changes} changes", history["meta"], history["verification"]));
        }
    }
}

const INTERVAL: Duration = Duration::from_secs(7);

/// Follows the feed until the simulation is over.
pub async fn follow(service: &Service, tenant: &Tenant) {
    while !service.is_over() {
        service.wait_while_idle().await;
        read_on(service, tenant).await;
        sleep(INTERVAL).await;
    }
}

pub async fn read_on(service: &Service, tenant: &Tenant) {
    loop {
        let after = tenant.model().events.last().map(|last| format!("&after={last}")).unwrap_or_default();
        let Some(response) = service.send(&tenant.request("GET", format!("/events?limit=20{after}"), Value::Null)).await else {
            return;
        };
        let Some(events) = response.body["data"].as_array().filter(|_| response.status == 200) else { return };
        let ids = events.iter().filter_map(|event| event["id"].as_str().map(str::to_owned));
        tenant.model().events.extend(ids);
        if response.body["meta"]["has_more"] != true {
            return;
        }
    }
}
