//! Lists, and the comparison of each with the model. The writer of snapshots: a function of its own, whose clock differs from the
//! others'.

use super::assets::{COLORS, STATUSES};
use super::service::Service;
use super::tenant::{Register, Tenant};
use crate::faulty_table::SeededRandom;
use chrono::TimeDelta;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A record in a list: the name that identifies it, and its other shown values.
type Row = (String, String);

/// Sends a list request and checks its rows. `registers` returns each record's possible rows: `None` for a state in which
/// the list doesn't contain it.
async fn check(
    service: &Service,
    tenant: &Tenant,
    path: &str,
    read_row: impl Fn(&Value) -> Row,
    possible: impl Fn(&Tenant, Instant) -> Vec<Vec<Option<Row>>>,
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
    let records = possible(tenant, from);
    for (place, row) in rows.iter().enumerate() {
        if data[..place].iter().any(|earlier| earlier["id"] == data[place]["id"]) {
            wrong(format!("{row:?} is listed twice"));
        }
        if !records.iter().flatten().flatten().any(|allowed| allowed == row) {
            let known: Vec<_> = records.iter().flatten().flatten().filter(|known| known.0 == row.0).collect();
            wrong(format!("{row:?} is listed, which is not possible any more, or not in this list; {known:?} would be"));
        }
    }
    if path.contains("sort=name") && !rows.is_sorted() {
        wrong(format!("{rows:?} is not sorted"));
    }
    let least = records.iter().filter(|states| states.iter().all(Option::is_some)).count() as u64;
    let most = records.iter().filter(|states| states.iter().any(Option::is_some)).count() as u64;
    let total = response.body["meta"]["total"].as_u64().unwrap_or_default();
    if !(least..=most).contains(&total) {
        wrong(format!("the total is {total}, not {least} to {most}"));
    }
    // The whole list is on one page.
    if path.contains("limit=100") && total <= 100 {
        for states in records.iter().filter(|states| states.iter().all(Option::is_some)) {
            if !states.iter().flatten().any(|state| rows.contains(state)) {
                wrong(format!("{states:?} is missing"));
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

/// Lists assets with a random filter, sort order and page.
pub async fn list_assets(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let status = (random.below(2) == 0).then(|| STATUSES[random.below(3) as usize]);
    let color = (random.below(3) == 0).then(|| COLORS[random.below(3) as usize]);
    let sort = ["", "&sort=name", "&sort=-updated_at"][random.below(3) as usize];
    let page = ["limit=100", "limit=100", "limit=5&page=2", "limit=7"][random.below(4) as usize];
    let mut path = format!("/assets?{page}{sort}");
    path.extend(status.map(|status| format!("&status={status}")));
    path.extend(color.map(|color| format!("&q={color}")));
    check(
        service,
        tenant,
        &path,
        |row| (text(&row["name"]), text(&row["status"])),
        |tenant, from| {
            let model = tenant.model();
            let row = |state: &super::tenant::AssetState| {
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
    check(
        service,
        tenant,
        path,
        |row| (text(&row["display_name"]), String::new()),
        |tenant, from| {
            let model = tenant.model();
            let row = |state: &super::tenant::UserState| state.is_active.then(|| (state.name.clone(), String::new()));
            model.users.iter().map(|user| rows_of(&user.register, from, row)).collect()
        },
    )
    .await;
}

pub async fn list_instances(service: &Service, tenant: &Tenant, random: &SeededRandom) {
    let status = ["in_progress", "completed", "cancelled"][random.below(3) as usize];
    let path = format!("/processes/instances?status={status}&limit=100");
    check(
        service,
        tenant,
        &path,
        |row| (text(&row["asset_name"]), text(&row["status"])),
        |tenant, from| {
            let model = tenant.model();
            let row =
                |state: &super::tenant::InstanceState| (state.status == status).then(|| (state.name.clone(), status.to_owned()));
            model.instances.iter().map(|instance| rows_of(&instance.register, from, row)).collect()
        },
    )
    .await;
}

const MAX_INTERVAL_MILLIS: u64 = 15_000;
const MAX_RUN: TimeDelta = TimeDelta::minutes(10);

/// Writes snapshots until the simulation is over. Sometimes all objects are lost before a run, which then loads the
/// indexes from the table.
pub async fn write(service: &Service, random: SeededRandom) {
    while !service.is_over() {
        service.wait_while_idle().await;
        if random.below(3) == 0 {
            service.objects.clear();
        }
        let (store, was_calm) = (service.store_with_random_clock(), service.is_calm());
        let run = store.write_snapshots(store.now().plus(MAX_RUN)).await;
        let is_right = run.as_ref().is_ok_and(|report| report.failed == 0);
        if !is_right && was_calm && service.is_calm() {
            service.add_violation(format!("the writer of snapshots fails: {run:?}"));
        }
        sleep(Duration::from_millis(random.below(MAX_INTERVAL_MILLIS))).await;
    }
}
