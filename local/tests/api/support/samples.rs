//! One of each thing of a tenant, for tests that walk every route.

use crate::support::Client;
use serde_json::{Value, json};

/// Ids of one of each thing, none of which another points to.
pub struct Samples {
    ids: Vec<(&'static str, String)>,
    /// An asset that no process runs on.
    asset: String,
    /// A manufacturer and a type.
    product: (String, String),
    /// Whose they are.
    tenant: String,
}

/// A definition that needs no answers.
fn definition(name: &str) -> Value {
    json!({
        "name": name, "trigger_status": "in_stock", "target_status": "in_use",
        "steps": [
            {"type": "signature", "key": "sign", "label": "Sign"}, {"type": "text", "key": "a", "label": "A"},
            {"type": "text", "key": "b", "label": "B"}
        ]
    })
}

/// What answers without a key.
pub const OPEN: [&str; 3] = ["/v1/health", "/v1/openapi.json", RECEIPT_KEYS];
const RECEIPT_KEYS: &str = "/v1/.well-known/receipt-keys";

/// The smallest PNG there is, as a data URL.
pub const SIGNATURE: &str =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

impl Samples {
    /// Makes them.
    pub async fn of(client: &Client) -> Self {
        let asset_type = client.asset_type("Sample type", "SMP", "physical").await;
        let maker = client.post("/catalog/manufacturers", json!({"name": "Sample maker"})).await.id();
        let model = json!({"name": "Sample model", "manufacturer_id": maker, "asset_type_id": asset_type});
        let model = client.post("/catalog/models", model).await.id();
        let free_type = client.asset_type("Unused type", "UNU", "logical").await;
        let free_maker = client.post("/catalog/manufacturers", json!({"name": "Unused maker"})).await.id();
        let key = client.post("/keys", json!({"name": "sample", "scopes": ["assets:read"]})).await.id();
        let free_process = client.post("/processes", definition("Sample process")).await.id();
        let process = client.post("/processes", definition("Sample process that runs")).await.id();
        let asset = client.asset(json!({"name": "Sample asset that a process runs on"})).await;
        let run = client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await.id();
        let signed = json!({"step_data": {"sign": SIGNATURE}});
        client.post(&format!("/processes/instances/{run}/advance"), signed).await.data();
        let mut assets = Vec::new();
        for _ in 0..2 {
            assets.push(client.asset(json!({"name": "Sample asset of a movement"})).await);
        }
        let movement = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": assets})).await.id();
        let done = client.asset(json!({"name": "Sample asset of a completed run"})).await;
        let done = client.post(&format!("/processes/{process}/start"), json!({"asset_id": done})).await.id();
        for data in [json!({"sign": SIGNATURE}), json!({"a": "x"}), json!({})] {
            client.post(&format!("/processes/instances/{done}/advance"), json!({"step_data": data})).await.data();
        }
        let ids = vec![
            ("/v1/processes/instances/{id}/receipt", done),
            ("/v1/movements", movement),
            ("/v1/assets", client.asset(json!({"name": "Sample asset"})).await),
            ("/v1/users", client.user("Sample User").await),
            ("/v1/catalog/asset-types", free_type),
            ("/v1/catalog/manufacturers", free_maker),
            ("/v1/catalog/models", model),
            ("/v1/keys", key),
            ("/v1/processes", free_process),
            ("/v1/processes/{id}/start", process),
            ("/v1/processes/instances", run),
        ];
        let asset = client.asset(json!({"name": "Sample asset to start on"})).await;
        Self { ids, asset, product: (maker, asset_type), tenant: client.tenant.to_string() }
    }

    /// The path with a sample's id in it. A route to a new kind of thing must get a sample here.
    pub fn fill(&self, path: &str) -> String {
        if path == RECEIPT_KEYS {
            return format!("{path}?tenant={}", self.tenant);
        }
        if !path.contains("{id}") {
            return path.to_owned();
        }
        let collection = path.split("/{id}").next().unwrap();
        let sample = |wanted: &str| self.ids.iter().find(|(known, _)| *known == wanted);
        let (_, id) =
            sample(path).or_else(|| sample(collection)).unwrap_or_else(|| panic!("no sample for {path}: add one to Samples"));
        path.replace("{id}", id).replace("{key}", "sign")
    }

    /// A body that the operation accepts.
    pub fn body(&self, method: &str, path: &str) -> Value {
        match (method, path) {
            ("POST", "/v1/assets") => json!({"name": "n"}),
            ("POST", "/v1/users") => json!({"email": "new@example.com", "display_name": "New"}),
            ("POST", "/v1/catalog/asset-types") => json!({"name": "n", "code": "NEW", "kind": "physical"}),
            ("POST", "/v1/catalog/manufacturers") => json!({"name": "n"}),
            ("POST", "/v1/catalog/models") => {
                json!({"name": "n", "manufacturer_id": self.product.0, "asset_type_id": self.product.1})
            }
            ("POST", "/v1/keys") => json!({"name": "n", "scopes": ["assets:read"]}),
            ("POST", "/v1/keys/{id}/rotate" | "/v1/processes/instances/{id}/cancel" | "/v1/movements/{id}/cancel") => json!({}),
            ("POST", "/v1/processes") => definition("n"),
            ("POST", "/v1/processes/{id}/start") => json!({"asset_id": self.asset}),
            ("POST", "/v1/processes/instances/{id}/advance" | "/v1/movements/{id}/advance") => json!({"step_data": {}}),
            ("PATCH", "/v1/users/{id}") => json!({"display_name": "renamed"}),
            ("PATCH", _) => json!({"name": "renamed"}),
            ("GET" | "DELETE", _) => Value::Null,
            other => panic!("no body for {other:?}: add one to samples::body"),
        }
    }
}

/// How many events an accepted write adds: one for each thing that it changes.
pub fn events(method: &str, path: &str) -> usize {
    match (method, path) {
        ("post", "/v1/movements/{id}/cancel") => 4,
        ("post", "/v1/movements/{id}/advance" | "/v1/processes/{id}/start" | "/v1/processes/instances/{id}/cancel") => 2,
        _ => 1,
    }
}
