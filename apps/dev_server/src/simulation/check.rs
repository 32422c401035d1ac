//! Checks against the model: lists while clients write, the event feed, and everything once the traffic has ended and every index
//! has caught up.

use super::records::{COLORS, STATUSES};
use super::service::Service;
use super::tenant::{AssetState, Model, Register, Tenant, UserState};
use crate::faulty_table::{SeededRandom, WHOLE_LISTS, Weaknesses};
use crate::invariants::violations;
use crate::server::TABLE;
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// If `list_index` lags more than this behind the table, lists read the table itself (docs/adr/0008-list-index.md).
const MAX_LIST_INDEX_LAG_MILLIS: u64 = 60_000;
/// Interval between reads of the feed.
const FEED_INTERVAL: Duration = Duration::from_secs(7);

/// Checks that lists came from their list indexes, unless `list_index` lagged for too long.
pub fn check_lists(service: &Service) {
    let whole = service.table.shown().get(WHOLE_LISTS).copied().unwrap_or_default();
    if whole > 0 && service.table.weaknesses().list_index_lag_millis <= MAX_LIST_INDEX_LAG_MILLIS {
        service.add_violation(format!("lists read {whole} pages of all records of a kind from the table"));
    }
}

pub async fn check(service: &Service, tenant: &Tenant, client: &Client) -> Result<()> {
    let wrong = |what: String| service.add_violation(format!("{}: in the end, {what}", tenant.name));
    // Waits longer than the feed delays events.
    sleep(Duration::from_secs(30)).await;
    let random = SeededRandom::new(0);
    for _ in 0..6 {
        list_assets(service, tenant, &random).await;
    }
    list_users(service, tenant).await;
    read_on(service, tenant).await;
    // Waits longer than any index lags.
    service.table.set(Weaknesses::default());
    sleep(Duration::from_secs(3_600)).await;
    for _ in 0..6 {
        list_assets(service, tenant, &random).await;
        list_instances(service, tenant, &random).await;
    }
    list_users(service, tenant).await;
    for violation in violations(&service.store().writer(tenant.id), client, TABLE).await? {
        wrong(violation);
    }
    check_feed(tenant, client, &wrong).await?;
    check_histories(service, tenant, &wrong).await;
    Ok(())
}

/// Compares the events that the feed has shown with the events in the table.
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
        wrong(format!("the feed showed {} events twice", shown.len() - unique.len()));
    }
    for missing in stored.difference(&unique) {
        wrong(format!("the feed did not show the event {missing}"));
    }
    for unknown in unique.difference(&stored) {
        wrong(format!("the feed showed the event {unknown}, which is not in the table"));
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
            wrong(format!("{path} returned {} {} after {changes} changes", history["meta"], history["verification"]));
        }
    }
}

/// Follows the feed until the simulation is over.
pub async fn follow_feed(service: &Service, tenant: &Tenant) {
    while !service.is_over() {
        service.wait_while_idle().await;
        read_on(service, tenant).await;
        sleep(FEED_INTERVAL).await;
    }
}

async fn read_on(service: &Service, tenant: &Tenant) {
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

pub async fn list_assets(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let status = (random.below(2) == 0).then(|| STATUSES[random.below(3) as usize]);
    let color = (random.below(3) == 0).then(|| COLORS[random.below(3) as usize]);
    let sort = ["", "&sort=name", "&sort=-updated_at"][random.below(3) as usize];
    let page = ["limit=100", "limit=100", "limit=5&page=2", "limit=7"][random.below(4) as usize];
    let mut path = format!("/assets?{page}{sort}");
    path.extend(status.map(|status| format!("&status={status}")));
    path.extend(color.map(|color| format!("&q={color}")));
    check_list(
        service,
        tenant,
        &path,
        |row| (text(&row["name"]), text(&row["status"])),
        |model, from| {
            let row = |state: &AssetState| {
                let fits =
                    status.is_none_or(|status| status == state.status) && color.is_none_or(|color| state.name.starts_with(color));
                fits.then(|| (state.name.clone(), state.status.to_owned()))
            };
            model.assets.iter().map(|asset| rows_of(&asset.register, from, row)).collect()
        },
    )
    .await;
}

pub async fn list_users(service: &Service, tenant: &Tenant) {
    let path = "/users?is_active=true&limit=100";
    check_list(
        service,
        tenant,
        path,
        |row| (text(&row["display_name"]), String::new()),
        |model, from| {
            let row = |state: &UserState| state.is_active.then(|| (state.name.clone(), String::new()));
            model.users.iter().map(|user| rows_of(&user.register, from, row)).collect()
        },
    )
    .await;
}

pub async fn list_instances(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let status = ["in_progress", "completed", "cancelled"][random.below(3) as usize];
    let path = format!("/processes/instances?status={status}&limit=100");
    check_list(
        service,
        tenant,
        &path,
        |row| (text(&row["asset_name"]), text(&row["status"])),
        |model, from| {
            let row = |state: &AssetState| (state.status == status).then(|| (state.name.clone(), status.to_owned()));
            model.instances.iter().map(|instance| rows_of(&instance.register, from, row)).collect()
        },
    )
    .await;
}

/// A record in a list: the name that identifies it, and its other shown values.
type Row = (String, String);

/// Sends a list request and checks its rows. `possible` returns each record's possible rows: `None` for a state in which the list
/// doesn't contain the record.
async fn check_list(
    service: &Service,
    tenant: &Tenant,
    path: &str,
    read_row: impl Fn(&Value) -> Row,
    possible: impl Fn(&Model, Instant) -> Vec<Vec<Option<Row>>>,
) {
    let from = Instant::now();
    let Some(response) = service.send(&tenant.request("GET", path, Value::Null)).await else { return };
    if matches!(response.status, 503 | 429) {
        return;
    }
    let wrong = |why: String| service.add_violation(format!("{}: {path}: {why}", tenant.name));
    let Some(data) = response.body["data"].as_array().filter(|_| response.status == 200) else {
        return wrong(format!("{} {}", response.status, response.body));
    };
    let rows: Vec<Row> = data.iter().map(read_row).collect();
    let records = possible(&tenant.model(), from);
    for (place, row) in rows.iter().enumerate() {
        if data[..place].iter().any(|earlier| earlier["id"] == data[place]["id"]) {
            wrong(format!("{row:?} was listed twice"));
        }
        if !records.iter().flatten().flatten().any(|allowed| allowed == row) {
            let known: Vec<_> = records.iter().flatten().flatten().filter(|known| known.0 == row.0).collect();
            wrong(format!("{row:?} was listed, but was no longer possible; possible: {known:?}"));
        }
    }
    if path.contains("sort=name") && !rows.is_sorted() {
        wrong(format!("{rows:?} was not sorted"));
    }
    let least = records.iter().filter(|states| states.iter().all(Option::is_some)).count() as u64;
    let most = records.iter().filter(|states| states.iter().any(Option::is_some)).count() as u64;
    let total = response.body["meta"]["total"].as_u64().unwrap_or_default();
    if !(least..=most).contains(&total) {
        wrong(format!("the total was {total}, not {least} to {most}"));
    }
    // The page contains the whole list.
    if path.contains("limit=100") && total <= 100 {
        for states in records.iter().filter(|states| states.iter().all(Option::is_some)) {
            if !states.iter().flatten().any(|state| rows.contains(state)) {
                wrong(format!("{states:?} was missing"));
            }
        }
    }
}

fn rows_of<S: Clone>(register: &Register<S>, from: Instant, row: impl Fn(&S) -> Option<Row>) -> Vec<Option<Row>> {
    register.possible(from).into_iter().map(|state| state.as_ref().and_then(&row)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
