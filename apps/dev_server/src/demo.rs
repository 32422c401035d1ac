//! Demo data: 200 assets at three sites with users, a catalog and a year of history, and a handover that waits for its signature.
//! The API creates the data, with a clock that starts a year ago.

use crate::api::ApiClient;
use anyhow::{Context, Result, bail};
use axum::Router;
use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::services::system_clock;
use shared::store::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Users: display name, role. The last one leaves the organization.
const USERS: [(&str, &str); 10] = [
    ("Ada Lovelace", "admin"),
    ("Grace Hopper", "technician"),
    ("Alan Turing", "technician"),
    ("Katherine Johnson", "viewer"),
    ("Edsger Dijkstra", "viewer"),
    ("Barbara Liskov", "viewer"),
    ("Jürgen Müller", "viewer"),
    ("Radia Perlman", "viewer"),
    ("Tony Hoare", "viewer"),
    ("Former Colleague", "viewer"),
];
const STAFF: usize = USERS.len() - 1;

/// Asset types: name, code, kind.
const TYPES: [(&str, &str, &str); 7] = [
    ("Laptop", "LAP", "physical"),
    ("Monitor", "MON", "physical"),
    ("Phone", "PHN", "physical"),
    ("Dock", "DCK", "physical"),
    ("Server", "SRV", "physical"),
    ("Software licence", "LIC", "logical"),
    ("SaaS subscription", "SAAS", "logical"),
];

/// Models: manufacturer, name, index of the asset type, price, number per 50 assets.
const MODELS: [(&str, &str, usize, &str, usize); 12] = [
    ("Dell", "Latitude 7450", 0, "1849.00", 8),
    ("Lenovo", "ThinkPad X1 Carbon", 0, "2199.50", 7),
    ("Apple", "MacBook Pro 14", 0, "2499.00", 6),
    ("Dell", "UltraSharp U2723QE", 1, "579.90", 7),
    ("LG", "UltraFine 32", 1, "899.00", 3),
    ("Apple", "iPhone 17", 2, "949.00", 5),
    ("Samsung", "Galaxy S26", 2, "799.00", 2),
    ("Dell", "WD22TB4", 3, "289.99", 4),
    ("HPE", "ProLiant DL380", 4, "11250.00", 2),
    ("JetBrains", "All Products Pack", 5, "779.00", 3),
    ("Adobe", "Creative Cloud", 6, "719.88", 2),
    ("Atlassian", "Jira Cloud", 6, "94.5", 1),
];
/// The sum of the last column of [`MODELS`].
const CYCLE: usize = 50;

const STATUSES: [&str; 8] = ["in_use", "in_use", "in_stock", "in_use", "preparing", "in_service", "returned", "in_use"];

/// Locations of assigned assets.
const ROOMS: [&str; 7] = [
    "Berlin / 1st floor / Reception",
    "Berlin / 3rd floor / 3.14",
    "Berlin / 3rd floor / 3.15",
    "London / 2nd floor / 2.01",
    "London / 2nd floor / 2.02",
    "Zürich / Ground floor / Workshop",
    "Zürich / 1st floor / 1.1",
];
const STORE: &str = "Berlin / Basement / Store";
const SERVER_ROOM: &str = "Berlin / Basement / Server room";
const COST_CENTERS: [&str; 10] = ["0815", "0815", "0815", "0815", "1200", "1200", "1200", "3300", "3300", "4711"];

const DAYS: i64 = 365;
/// Number of assets at the start, and number bought in each of the twelve months.
const FIRST: usize = 102;
const MONTHLY: usize = 8;
/// One in 40 assets is in use without an owner: remainder and divisor of the asset's number.
const OWNERLESS: (usize, usize) = (15, 40);
/// The asset that the leaver still has, and the month before which the leaver left.
const OVERDUE: usize = 19;
const LEAVES_IN: usize = 10;

/// The dev server's clock, which lags behind while demo data is created.
#[derive(Clone, Default)]
pub struct DemoClock(Arc<AtomicI64>);

impl DemoClock {
    #[must_use]
    pub fn clock(&self) -> Clock {
        let (system, days) = (system_clock(), Arc::clone(&self.0));
        Arc::new(move || system().plus(TimeDelta::days(-days.load(Ordering::Relaxed))))
    }

    /// Sets how many days the clock lags behind. The clock must never go backwards.
    pub fn set_days_ago(&self, days: i64) {
        self.0.store(days, Ordering::Relaxed);
    }

    /// Sets the clock to the start of the history. Must be called before the tenant is created.
    pub fn begin(&self) {
        self.set_days_ago(DAYS);
    }
}

/// A handover in the demo data that waits for its signature.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handover {
    instance_id: String,
    user_id: String,
}

struct DemoClient {
    api: ApiClient,
    host: String,
}

impl DemoClient {
    async fn send(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let content_type = if path.ends_with("/import") { "application/x-ndjson" } else { "application/json" };
        let headers = [("content-type", content_type), ("host", self.host.as_str())];
        let (status, response) = self.api.send(method, &format!("/{path}"), &headers, body).await?;
        if !status.is_success() {
            bail!("can't create demo data: {method} {path} returned {status}: {response}");
        }
        Ok(response)
    }

    async fn create(&self, path: &str, body: &Value) -> Result<String> {
        let response = self.send("POST", path, &body.to_string()).await?;
        Ok(response["data"]["id"].as_str().context("can't create demo data: a response has no id")?.to_owned())
    }

    /// Creates a key bound to this user. Returns a client that uses the key.
    async fn bound_to(&self, user: &str, name: &str) -> Result<Self> {
        let scopes = ["assets:read", "assets:write", "catalog:read", "processes:read", "processes:write", "users:read"];
        let key = json!({"name": name, "scopes": scopes, "user_id": user}).to_string();
        let made = self.send("POST", "keys", &key).await?;
        let api_key = made["data"]["api_key"].as_str().context("can't create demo data: a response has no api_key")?.to_owned();
        Ok(Self { api: ApiClient { router: self.api.router.clone(), api_key }, host: self.host.clone() })
    }

    /// Returns the IDs of the imported assets.
    async fn import(&self, rows: impl Iterator<Item = Value>) -> Result<Vec<String>> {
        let rows: Vec<String> = rows.map(|row| row.to_string()).collect();
        let made = self.send("POST", "assets/import", &rows.join("\n")).await?;
        let ids = made["data"].as_array().into_iter().flatten().map(|row| row["id"].as_str().map(str::to_owned));
        ids.collect::<Option<_>>().with_context(|| format!("can't create demo data: {made}"))
    }

    /// Updates assets, identified by number, in one batch.
    async fn update(&self, assets: &[String], changes: &[(usize, Value)]) -> Result<()> {
        let operation = |(n, body): &(usize, Value)| json!({"op": "update", "id": assets[*n], "body": body});
        let operations: Vec<Value> = changes.iter().map(operation).collect();
        self.send("POST", "assets/batch", &json!({"operations": operations}).to_string()).await?;
        Ok(())
    }
}

/// Creates a new signing link for a handover, because the previous link's secret isn't stored. Returns its URL on this host, or
/// `None` if the handover has ended or its records were changed.
pub async fn signing_url(router: Router, api_key: &str, host: &str, handover: &Handover) -> Option<String> {
    let Handover { instance_id, user_id } = handover;
    let api = DemoClient { api: ApiClient { router, api_key: api_key.to_owned() }, host: host.to_owned() };
    let body = json!({"signer": {"user_id": user_id}, "until": "complete"}).to_string();
    let link = api.send("POST", &format!("processes/instances/{instance_id}/links"), &body).await.ok()?;
    Some(link["data"]["url"].as_str()?.to_owned())
}

/// Creates the demo data up to the current time, with the keys of several users.
///
/// # Errors
///
/// Returns an error if a request fails.
pub async fn load(router: Router, api_key: &str, clock: &DemoClock) -> Result<Handover> {
    let api = DemoClient { api: ApiClient { router, api_key: api_key.to_owned() }, host: "localhost".to_owned() };
    let today = system_clock()().date();
    let users = create_users(&api).await?;
    let models = create_catalog(&api).await?;
    let (grace, alan) = (api.bound_to(&users[1], "Grace's key").await?, api.bound_to(&users[2], "Alan's key").await?);
    let asset = |n: usize| new_asset(n, &models, &users, today);
    let mut assets = api.import((0..FIRST).map(asset)).await?;
    for month in 0..12 {
        if month == LEAVES_IN {
            clock.set_days_ago(days_ago_of(month) + 5);
            start(&alan, "device-return", &assets[OVERDUE]).await?;
            api.send("PATCH", &format!("users/{}", users[STAFF]), &json!({"is_active": false}).to_string()).await?;
        }
        clock.set_days_ago(days_ago_of(month));
        assets.extend(grace.import((FIRST + month * MONTHLY..FIRST + (month + 1) * MONTHLY).map(asset)).await?);
        alan.update(&assets, &moves_in(month, &users)).await?;
    }
    clock.set_days_ago(3);
    let broken = json!({"status": "in_service", "notes": "The screen flickers.", "assigned_to": null, "location": STORE});
    grace.update(&assets, &[(0, broken), (1, json!({"location": ROOMS[4]}))]).await?;
    let laptops: Vec<&String> = (0..FIRST).filter(|n| is_prepared_laptop(*n)).map(|n| &assets[n]).collect();
    let [first, second, ..] = laptops.as_slice() else { bail!("can't create demo data: two laptops must be in preparation") };
    clock.set_days_ago(2);
    begin_handover(&grace, second, &users[6]).await?;
    clock.set_days_ago(1);
    for (name, notes, place) in [("Label printer", "In the mail room.", ROOMS[0]), ("Conference phone", "Loose cable.", ROOMS[6])]
    {
        let body = json!({"name": name, "manufacturer": "Various", "model": "unknown", "notes": notes, "location": place});
        api.create("assets", &body).await?;
    }
    let handover = begin_handover(&api, first, &users[0]).await?;
    clock.set_days_ago(0);
    Ok(handover)
}

fn days_ago_of(month: usize) -> i64 {
    DAYS - 30 * (i64::try_from(month).unwrap_or_default() + 1)
}

async fn create_users(api: &DemoClient) -> Result<Vec<String>> {
    let mut users = Vec::new();
    for (name, role) in USERS {
        let email = format!("{}@example.com", name.to_lowercase().replace(' ', ".").replace('ü', "ue"));
        users.push(api.create("users", &json!({"email": email, "display_name": name, "role": role})).await?);
    }
    Ok(users)
}

/// Returns the IDs of the models.
async fn create_catalog(api: &DemoClient) -> Result<Vec<String>> {
    let mut types = Vec::new();
    for (name, code, kind) in TYPES {
        let schema =
            (code == "LAP").then(|| json!({"type": "object", "properties": {"ram_gb": {"type": "integer", "minimum": 1}}}));
        let body = json!({"name": name, "code": code, "kind": kind, "custom_fields_schema": schema});
        types.push(api.create("catalog/asset-types", &body).await?);
    }
    let (mut manufacturers, mut models): (Vec<(&str, String)>, Vec<String>) = (Vec::new(), Vec::new());
    for (manufacturer, name, type_index, ..) in MODELS {
        let manufacturer_id = match manufacturers.iter().find(|(name, _)| *name == manufacturer) {
            Some((_, id)) => id.clone(),
            None => {
                let id = api.create("catalog/manufacturers", &json!({"name": manufacturer})).await?;
                manufacturers.push((manufacturer, id.clone()));
                id
            }
        };
        let model = json!({"name": name, "manufacturer_id": manufacturer_id, "asset_type_id": types[type_index]});
        models.push(api.create("catalog/models", &model).await?);
    }
    Ok(models)
}

/// Returns the index of an asset's model in [`MODELS`].
fn model_of(n: usize) -> usize {
    let mut slot = n * 7 % CYCLE;
    MODELS
        .iter()
        .position(|(.., count)| {
            if slot < *count {
                true
            } else {
                slot -= count;
                false
            }
        })
        .unwrap_or_default()
}

fn code_of(n: usize) -> &'static str {
    TYPES[MODELS[model_of(n)].2].1
}

fn status_of(n: usize) -> &'static str {
    STATUSES[n % STATUSES.len()]
}

fn is_prepared_laptop(n: usize) -> bool {
    status_of(n) == "preparing" && code_of(n) == "LAP"
}

/// Returns the index of an asset's owner in [`USERS`].
fn owner_of(n: usize) -> Option<usize> {
    let is_owned = status_of(n) == "in_use" && n % OWNERLESS.1 != OWNERLESS.0;
    is_owned.then_some(if n == OVERDUE { STAFF } else { n % STAFF })
}

fn new_asset(n: usize, models: &[String], users: &[String], today: NaiveDate) -> Value {
    let days = i64::try_from(n).unwrap_or_default();
    let day = |days: i64| (today + TimeDelta::days(days)).to_string();
    let age = if n < FIRST { DAYS + 20 * days } else { days_ago_of((n - FIRST) / MONTHLY) };
    let (_, name, type_index, price, _) = MODELS[model_of(n)];
    let (_, code, kind) = TYPES[type_index];
    let is_logical = kind == "logical";
    let warranty = if is_logical { 5 + days * 11 % 300 } else { 3 * DAYS - age };
    let place = match (status_of(n), code) {
        _ if is_logical => None,
        (_, "SRV") => Some(SERVER_ROOM),
        ("in_use", _) => Some(ROOMS[n % ROOMS.len()]),
        _ => Some(STORE),
    };
    let mut custom_fields = json!({"cost_center": COST_CENTERS[n % COST_CENTERS.len()]});
    if code == "LAP" {
        custom_fields["ram_gb"] = (16 << (n % 3)).into();
    }
    let row = json!({
        "name": format!("{name} #{:03}", n + 1), "model_id": models[model_of(n)], "status": status_of(n),
        "serial_number": format!("{code}{:06}", 104_729 * (n + 1) % 1_000_000), "location": place,
        "purchase_date": day(-age), "purchase_price": price, "warranty_until": day(warranty),
        "assigned_to": owner_of(n).map(|owner| &users[owner]), "custom_fields": custom_fields,
    });
    let is_set = |(_, value): &(&String, &Value)| !value.is_null();
    row.as_object().into_iter().flatten().filter(is_set).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the assets that change hands in a month, with their changes.
fn moves_in(month: usize, users: &[String]) -> [(usize, Value); 2] {
    [8 * month + 1, 8 * month + 3].map(|n| {
        let (owner, room) = (&users[(n + month + 1) % STAFF], ROOMS[(n + 1) % ROOMS.len()]);
        let change = match code_of(n) {
            _ if n == OVERDUE => json!({"notes": "Not returned yet."}),
            "SRV" | "LIC" | "SAAS" => json!({"assigned_to": owner}),
            _ => json!({"assigned_to": owner, "location": room}),
        };
        (n, change)
    })
}

async fn start(api: &DemoClient, slug: &str, asset: &str) -> Result<String> {
    let processes = api.send("GET", &format!("processes?slug={slug}"), "").await?;
    let process = processes["data"][0]["id"].as_str();
    let process = process.with_context(|| format!("can't create demo data: the process {slug:?} doesn't exist"))?;
    api.create(&format!("processes/{process}/start"), &json!({"asset_id": asset})).await
}

/// Starts a handover, and submits the steps before the signature.
async fn begin_handover(api: &DemoClient, asset: &str, user: &str) -> Result<Handover> {
    let instance_id = start(api, "employee-onboarding", asset).await?;
    let items = ["Device", "Power supply", "Usage policy explained"];
    let submitted = json!({"step_data": {"employee": user, "handover": items}, "through": "handover"}).to_string();
    api.send("POST", &format!("processes/instances/{instance_id}/advance"), &submitted).await?;
    Ok(Handover { instance_id, user_id: user.to_owned() })
}
