//! Demo data: about 60 varied assets with users and a catalog, and a handover that waits for its signature, created through
//! the API.

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::HOST;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::ServiceExt;

/// Users: display name, role, is active.
const USERS: [(&str, &str, bool); 10] = [
    ("Ada Lovelace", "admin", true),
    ("Grace Hopper", "technician", true),
    ("Alan Turing", "helpdesk", true),
    ("Katherine Johnson", "viewer", true),
    ("Edsger Dijkstra", "viewer", true),
    ("Barbara Liskov", "viewer", true),
    ("Jürgen Müller", "viewer", true),
    ("Radia Perlman", "viewer", true),
    ("Tony Hoare", "viewer", true),
    ("Former Colleague", "viewer", false),
];

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

/// Models: manufacturer, name, index of the asset type, price, number of assets.
const MODELS: [(&str, &str, usize, &str, usize); 12] = [
    ("Dell", "Latitude 7450", 0, "1849.00", 9),
    ("Lenovo", "ThinkPad X1 Carbon", 0, "2199.50", 7),
    ("Apple", "MacBook Pro 14", 0, "2499.00", 6),
    ("Dell", "UltraSharp U2723QE", 1, "579.90", 8),
    ("LG", "UltraFine 32", 1, "899.00", 4),
    ("Apple", "iPhone 17", 2, "949.00", 6),
    ("Samsung", "Galaxy S26", 2, "799.00", 3),
    ("Dell", "WD22TB4", 3, "289.99", 5),
    ("HPE", "ProLiant DL380", 4, "11250.00", 3),
    ("JetBrains", "All Products Pack", 5, "779.00", 4),
    ("Adobe", "Creative Cloud", 6, "719.88", 3),
    ("Atlassian", "Jira Cloud", 6, "94.5", 1),
];

const STATUSES: [&str; 8] = ["in_use", "in_use", "in_stock", "in_use", "preparing", "in_service", "returned", "in_use"];

/// The number of the asset that is handed over: the first one that is in preparation.
const HANDED_OVER: usize = 4;

/// A handover of the demo data that waits for its signature.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handover {
    instance_id: String,
    user_id: String,
}

struct ApiClient {
    router: Router,
    api_key: String,
    host: String,
}

impl ApiClient {
    async fn send(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/v1/{path}"))
            .header("authorization", format!("Bearer {}", self.api_key))
            .header("content-type", "application/json")
            .header(HOST, &self.host)
            .body(Body::from(body.to_owned()))?;
        let response = self.router.clone().oneshot(request).await?;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await?;
        if !status.is_success() {
            bail!("can't create demo data: {method} {path} returned {status}: {}", String::from_utf8_lossy(&bytes));
        }
        Ok(serde_json::from_slice(&bytes)?)
    }

    async fn create(&self, path: &str, body: &Value) -> Result<String> {
        let response = self.send("POST", path, &body.to_string()).await?;
        Ok(response["data"]["id"].as_str().context("can't create demo data: a response has no id")?.to_owned())
    }
}

/// Makes a new signing link for a handover, since the secret of the last one isn't stored. Returns its URL, which begins with
/// this host; `None` if the handover has ended, or somebody has changed its records.
pub async fn signing_url(router: Router, api_key: &str, host: &str, handover: &Handover) -> Option<String> {
    let Handover { instance_id, user_id } = handover;
    let api = ApiClient { router, api_key: api_key.to_owned(), host: host.to_owned() };
    let body = json!({"signer": {"user_id": user_id}, "until": "complete"}).to_string();
    let link = api.send("POST", &format!("processes/instances/{instance_id}/links"), &body).await.ok()?;
    Some(link["data"]["url"].as_str()?.to_owned())
}

/// # Errors
///
/// Returns an error when a request fails.
pub async fn load(router: Router, api_key: &str) -> Result<Handover> {
    let api = ApiClient { router, api_key: api_key.to_owned(), host: "localhost".to_owned() };
    let mut users = Vec::new();
    for (name, role, is_active) in USERS {
        let email = format!("{}@example.com", name.to_lowercase().replace(' ', ".").replace('ü', "ue"));
        let id =
            api.create("users", &json!({"email": email, "display_name": name, "role": role, "is_active": is_active})).await?;
        users.extend(is_active.then_some(id));
    }
    let mut types = Vec::new();
    for (name, code, kind) in TYPES {
        let schema =
            (code == "LAP").then(|| json!({"type": "object", "properties": {"ram_gb": {"type": "integer", "minimum": 1}}}));
        types.push(
            api.create("catalog/asset-types", &json!({"name": name, "code": code, "kind": kind, "custom_fields_schema": schema}))
                .await?,
        );
    }
    let mut manufacturers: Vec<(&str, String)> = Vec::new();
    let mut assets = Vec::new();
    for (manufacturer, name, type_index, price, count) in MODELS {
        let manufacturer_id = match manufacturers.iter().find(|(name, _)| *name == manufacturer) {
            Some((_, id)) => id.clone(),
            None => {
                let id = api.create("catalog/manufacturers", &json!({"name": manufacturer})).await?;
                manufacturers.push((manufacturer, id.clone()));
                id
            }
        };
        let model = json!({"name": name, "manufacturer_id": manufacturer_id, "asset_type_id": types[type_index]});
        let model = api.create("catalog/models", &model).await?;
        for _ in 0..count {
            let number = assets.len();
            assets.push(create_asset(&api, name, &model, TYPES[type_index].1, price, &users, number).await?);
        }
    }
    for (name, notes) in [("Label printer", "In the mail room."), ("Conference phone", "Room Zürich; loose cable.")] {
        let body = json!({"name": name, "manufacturer": "Various", "model": "unknown", "notes": notes});
        api.create("assets", &body).await?;
    }
    begin_handover(&api, &assets[HANDED_OVER], &users[0]).await
}

/// Submits the steps before the signature.
async fn begin_handover(api: &ApiClient, asset: &str, user: &str) -> Result<Handover> {
    let processes = api.send("GET", "processes", "").await?;
    let process = processes["data"].as_array().into_iter().flatten().find(|process| process["slug"] == "employee-onboarding");
    let process = process.and_then(|process| process["id"].as_str()).context("can't create demo data: there is no handover")?;
    let instance_id = api.create(&format!("processes/{process}/start"), &json!({"asset_id": asset})).await?;
    let items = ["Device", "Power supply", "Usage policy explained"];
    let submitted = json!({"step_data": {"employee": user, "handover": items}, "through": "handover"}).to_string();
    api.send("POST", &format!("processes/instances/{instance_id}/advance"), &submitted).await?;
    Ok(Handover { instance_id, user_id: user.to_owned() })
}

async fn create_asset(
    api: &ApiClient,
    model: &str,
    model_id: &str,
    code: &str,
    price: &str,
    users: &[String],
    n: usize,
) -> Result<String> {
    let status = STATUSES[n % STATUSES.len()];
    let (month, day) = (1 + n % 12, 1 + n * 7 % 28);
    // Formatted as text, since a float would change the digits of the price.
    let fields = if code == "LAP" { format!(r#"{{"ram_gb":{}}}"#, 16 << (n % 3)) } else { "{}".into() };
    let body = format!(
        r#"{{"name":"{model} #{:02}","model_id":"{model_id}","status":"{status}","serial_number":"{code}{:06}","purchase_date":"2025-{month:02}-{day:02}","purchase_price":{price},"warranty_until":"2028-{month:02}-{day:02}","custom_fields":{fields}}}"#,
        n + 1,
        104_729 * (n + 1) % 1_000_000,
    );
    let created = api.send("POST", "assets", &body).await?;
    let id = created["data"]["id"].as_str().context("can't create demo data: a response has no id")?;
    if status == "in_use" {
        let user = &users[n % users.len()];
        api.send("PATCH", &format!("assets/{id}"), &json!({"assigned_to": user}).to_string()).await?;
    }
    Ok(id.to_owned())
}
