//! One of each thing of a tenant, for tests that walk every route.

use crate::support::Client;
use serde_json::{Value, json};

/// Ids of one of each thing, none of which another points to.
pub struct Samples(Vec<(&'static str, String)>);

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
        Self(vec![
            ("/v1/assets", client.asset(json!({"name": "Sample asset"})).await),
            ("/v1/users", client.user("Sample User").await),
            ("/v1/catalog/asset-types", free_type),
            ("/v1/catalog/manufacturers", free_maker),
            ("/v1/catalog/models", model),
            ("/v1/keys", key),
        ])
    }

    /// The path with a sample's id in it. A route to a new kind of thing must get a sample here.
    pub fn fill(&self, path: &str) -> String {
        if !path.contains("{id}") {
            return path.to_owned();
        }
        let collection = path.split("/{id}").next().unwrap();
        let sample = self.0.iter().find(|(known, _)| *known == collection);
        let (_, id) = sample.unwrap_or_else(|| panic!("no sample for {path}: add one to Samples"));
        path.replace("{id}", id)
    }
}

/// A body that the operation accepts.
pub fn body(method: &str, path: &str) -> Value {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    match (method, path) {
        ("POST", "/v1/assets") => json!({"name": "n"}),
        ("POST", "/v1/users") => json!({"email": "new@example.com", "display_name": "New"}),
        ("POST", "/v1/catalog/asset-types") => json!({"name": "n", "code": "NEW", "kind": "physical"}),
        ("POST", "/v1/catalog/manufacturers") => json!({"name": "n"}),
        ("POST", "/v1/catalog/models") => json!({"name": "n", "manufacturer_id": id, "asset_type_id": id}),
        ("POST", "/v1/keys") => json!({"name": "n", "scopes": ["assets:read"]}),
        ("POST", "/v1/keys/{id}/rotate") => json!({}),
        ("PATCH", "/v1/users/{id}") => json!({"display_name": "renamed"}),
        ("PATCH", _) => json!({"name": "renamed"}),
        ("GET" | "DELETE", _) => Value::Null,
        other => panic!("no body for {other:?}: add one to samples::body"),
    }
}
