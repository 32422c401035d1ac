//! One resource of each type, for tests that iterate over all routes.

use super::client::Client;
use super::webhooks::PUBLIC_URL;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

pub const OPEN_PATHS: [&str; 6] = [INVENTORY_PAGE, "/v1/docs", "/v1/health", "/v1/openapi.json", RECEIPT_KEYS, SIGNING_PAGE];
pub const INVENTORY_PAGE: &str = "/v1/app";
pub const SIGNING_PAGE: &str = "/v1/sign";
const RECEIPT_KEYS: &str = "/v1/.well-known/receipt-keys";
const LABELS: &str = "/v1/assets/labels";

/// A black and a white pixel, as a data URL. A blank signature would be rejected.
pub const SIGNATURE: &str =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII=";

/// A serial number that no asset has.
const NEW_SERIAL: &str = "SN%2F1";
/// The tag of the first asset.
const OLD_TAG: &str = "AST-000001";

const SIGNATURE_STEP: &str = "sign";

/// No sample refers to another sample, so each can be deleted.
#[derive(Clone)]
pub struct Samples {
    /// IDs by path, or by the prefix of paths in a collection.
    ids: Vec<(&'static str, String)>,
    idle_asset: String,
    manufacturer: String,
    asset_type: String,
    tenant: String,
    instance_link: String,
    movement_link: String,
    /// Links of processes that have ended.
    ended_instance_link: String,
    ended_movement_link: String,
    delivery: String,
}

/// Returns a process definition whose steps are all optional.
fn process_definition(name: &str) -> Value {
    json!({
        "name": name, "trigger_status": "in_stock", "target_status": "in_use",
        "steps": [
            {"type": "signature", "key": SIGNATURE_STEP, "label": "Sign"}, {"type": "text", "key": "a", "label": "A"},
            {"type": "text", "key": "b", "label": "B"}
        ]
    })
}

impl Samples {
    pub async fn create(client: &Client) -> Self {
        let asset_type = client.asset_type("Sample type", "SMP", "physical").await;
        let manufacturer = client.post("/catalog/manufacturers", json!({"name": "Sample manufacturer"})).await.id();
        let model = json!({"name": "Sample model", "manufacturer_id": manufacturer, "asset_type_id": asset_type});
        let model = client.post("/catalog/models", model).await.id();
        let unused_type = client.asset_type("Unused type", "UNU", "logical").await;
        let unused_manufacturer = client.post("/catalog/manufacturers", json!({"name": "Unused manufacturer"})).await.id();
        let key = client.post("/keys", json!({"name": "sample", "scopes": ["assets:read"]})).await.id();
        let unused_process = client.post("/processes", process_definition("Sample process")).await.id();
        let process = client.post("/processes", process_definition("Sample process with instances")).await.id();
        let start = format!("/processes/{process}/start");
        let asset = client.asset(json!({"name": "Sample asset with a running process"})).await;
        let running = client.post(&start, json!({"asset_id": asset})).await.id();
        let signed = json!({"step_data": {SIGNATURE_STEP: SIGNATURE}});
        client.post(&format!("/processes/instances/{running}/advance"), signed).await.data();
        let mut assets = Vec::new();
        for _ in 0..2 {
            assets.push(client.asset(json!({"name": "Sample asset of a movement"})).await);
        }
        let movement = client.post(&start, json!({"asset_ids": assets})).await.id();
        let asset = client.asset(json!({"name": "Sample asset of a completed process"})).await;
        let completed = client.post(&start, json!({"asset_id": asset})).await.id();
        // With the same address, the erasure of one signer would change both links.
        let signer = |email: &str| json!({"signer": {"name": "Sample signer", "email": email}});
        let of_instance = signer("signer@example.com");
        let ended_instance_link = client.post(&format!("/processes/instances/{completed}/links"), of_instance).await.id();
        for data in [json!({SIGNATURE_STEP: SIGNATURE}), json!({"a": "x"}), json!({})] {
            client.post(&format!("/processes/instances/{completed}/advance"), json!({"step_data": data})).await.data();
        }
        let mut assets = Vec::new();
        for _ in 0..2 {
            assets.push(client.asset(json!({"name": "Sample asset of a completed movement"})).await);
        }
        let whole = json!({"asset_ids": assets, "step_data": {SIGNATURE_STEP: SIGNATURE}, "through": "b"});
        let completed_movement = client.post(&start, whole).await.id();
        let mut assets = Vec::new();
        for _ in 0..2 {
            assets.push(client.asset(json!({"name": "Sample asset of a cancelled movement"})).await);
        }
        let cancelled_movement = client.post(&start, json!({"asset_ids": assets})).await.id();
        let of_movement = signer("other@example.com");
        let ended_movement_link = client.post(&format!("/movements/{cancelled_movement}/links"), of_movement).await.id();
        client.post(&format!("/movements/{cancelled_movement}/cancel"), json!({})).await.data();
        let signer = json!({"signer": {"name": "Sample signer"}});
        let instance_link = client.post(&format!("/processes/instances/{running}/links"), signer.clone()).await.id();
        let movement_link = client.post(&format!("/movements/{movement}/links"), signer).await.id();
        let asset = client.asset(json!({"name": "Sample asset to sign for"})).await;
        let signed_for = client.post(&start, json!({"asset_id": asset})).await.id();
        let mut assets = Vec::new();
        for _ in 0..2 {
            assets.push(client.asset(json!({"name": "Sample asset to sign for with another"})).await);
        }
        let signed_for_together = client.post(&start, json!({"asset_ids": assets})).await.id();
        let webhook = client.webhook(json!(["*"])).await["id"].as_str().unwrap().to_owned();
        let delivery = client.send("POST", &format!("/webhooks/{webhook}/test"), None, "").await.id();
        // A deleted user: an asset's notes are about this user, and nothing blocks the user's erasure.
        let deleted_user = client.user("Deleted User").await;
        let asset = json!({"name": "Sample asset of a deleted user", "assigned_to": deleted_user, "notes": "n"});
        let asset = client.asset(asset).await;
        client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
        client.delete(&format!("/users/{deleted_user}")).await.data();
        client.clock.fetch_add(60_000, Ordering::Relaxed);
        let ids = vec![
            ("/v1/processes/instances/{id}/links", signed_for),
            ("/v1/movements/{id}/links", signed_for_together),
            ("/v1/processes/instances/{id}/links/{link_id}/erase", completed.clone()),
            ("/v1/movements/{id}/links/{link_id}/erase", cancelled_movement),
            ("/v1/processes/instances/{id}/receipt", completed),
            ("/v1/movements/{id}/receipt", completed_movement),
            ("/v1/movements", movement),
            ("/v1/assets", client.asset(json!({"name": "Sample asset"})).await),
            ("/v1/users", client.user("Sample User").await),
            ("/v1/users/{id}/erase", deleted_user),
            ("/v1/catalog/asset-types", unused_type),
            ("/v1/catalog/manufacturers", unused_manufacturer),
            ("/v1/catalog/models", model),
            ("/v1/keys", key),
            ("/v1/processes", unused_process),
            ("/v1/processes/{id}/start", process),
            ("/v1/processes/instances", running),
            ("/v1/webhooks", webhook),
        ];
        let idle_asset = client.asset(json!({"name": "Sample asset to start a process for"})).await;
        Self {
            ids,
            idle_asset,
            manufacturer,
            asset_type,
            tenant: client.tenant.to_string(),
            instance_link,
            movement_link,
            ended_instance_link,
            ended_movement_link,
            delivery,
        }
    }

    /// Returns a path for [`Client`], and a body, which can be empty.
    pub fn request(&self, method: &str, path: &str) -> (String, String) {
        let body = match self.body(method, path) {
            Value::Null => String::new(),
            Value::String(text) => text,
            body => body.to_string(),
        };
        (self.path(path), body)
    }

    /// Inserts a sample's ID into a path, and removes `/v1`.
    pub fn path(&self, path: &str) -> String {
        let below = path.strip_prefix("/v1").unwrap();
        if path == RECEIPT_KEYS {
            return format!("{below}?tenant={}", self.tenant);
        }
        if path == LABELS {
            return format!("{below}?ids={}", self.idle_asset);
        }
        if !path.contains("{id}") {
            return below.replace("{serial}", NEW_SERIAL).replace("{tag}", OLD_TAG);
        }
        let collection = path.split("/{id}").next().unwrap();
        let sample = |wanted: &str| self.ids.iter().find(|(known, _)| *known == wanted);
        let (_, id) = sample(path)
            .or_else(|| sample(collection))
            .unwrap_or_else(|| panic!("no sample for {path}: add one to Samples::create"));
        let link = match (path.starts_with("/v1/movements"), path.ends_with("/erase")) {
            (true, false) => &self.movement_link,
            (false, false) => &self.instance_link,
            (true, true) => &self.ended_movement_link,
            (false, true) => &self.ended_instance_link,
        };
        below
            .replace("{id}", id)
            .replace("{link_id}", link)
            .replace("{delivery_id}", &self.delivery)
            .replace("{key}", SIGNATURE_STEP)
    }

    /// Returns a valid body for the operation: null if it takes none, or a string if the body isn't JSON.
    pub fn body(&self, method: &str, path: &str) -> Value {
        match (method, path) {
            ("POST", "/v1/assets") => json!({"name": "n"}),
            ("POST", "/v1/assets/batch") => json!({"operations": [
                {"op": "create", "body": {"name": "n"}}, {"op": "update", "id": self.idle_asset, "body": {"notes": "n"}}]}),
            ("POST", "/v1/users/batch") => json!({"operations": [
                {"op": "create", "body": {"email": "batch@example.com", "display_name": "New"}}]}),
            ("POST", "/v1/assets/seen") => json!({"items": [{"tag": OLD_TAG}]}),
            ("POST", "/v1/assets/import") => "name,notes\nn,\"two\nlines\"\n".into(),
            ("POST", "/v1/assets/import/suggest") => "Serial No,Status\nS-1,Lager\n".into(),
            ("POST", "/v1/users/import/suggest") => "Mail,First name,Last name\nada@example.com,Ada,Lovelace\n".into(),
            ("POST", "/v1/users/import") => "email,display_name\nimport@example.com,New\n".into(),
            ("PUT", "/v1/assets/by-serial/{serial}") => json!({"name": "n"}),
            ("POST", "/v1/users") => json!({"email": "new@example.com", "display_name": "New"}),
            ("POST", "/v1/catalog/asset-types") => json!({"name": "n", "code": "NEW", "kind": "physical"}),
            ("POST", "/v1/catalog/manufacturers") => json!({"name": "n"}),
            ("POST", "/v1/catalog/models") => {
                json!({"name": "n", "manufacturer_id": self.manufacturer, "asset_type_id": self.asset_type})
            }
            ("POST", "/v1/keys") => json!({"name": "n", "scopes": ["assets:read"]}),
            (
                "POST",
                "/v1/keys/{id}/rotate"
                | "/v1/webhooks/{id}/rotate"
                | "/v1/processes/instances/{id}/cancel"
                | "/v1/movements/{id}/cancel"
                | "/v1/users/{id}/offboard"
                | "/v1/users/{id}/erase"
                | "/v1/processes/instances/{id}/links/{link_id}/erase"
                | "/v1/movements/{id}/links/{link_id}/erase",
            ) => json!({}),
            ("POST", "/v1/webhooks") => json!({"url": PUBLIC_URL, "events": ["asset.created"]}),
            ("POST", "/v1/webhooks/{id}/replay") => json!({"since": "2026-03-01T00:00:00Z"}),
            ("POST", "/v1/webhooks/{id}/test" | "/v1/webhooks/{id}/deliveries/{delivery_id}/retry") => Value::Null,
            ("POST", "/v1/processes") => process_definition("n"),
            ("POST", "/v1/processes/{id}/start") => json!({"asset_id": self.idle_asset}),
            ("POST", "/v1/processes/instances/{id}/links" | "/v1/movements/{id}/links") => {
                json!({"signer": {"name": "n"}})
            }
            ("POST", "/v1/processes/instances/{id}/advance" | "/v1/movements/{id}/advance") => json!({"step_data": {}}),
            ("PATCH", "/v1/users/{id}") => json!({"display_name": "renamed"}),
            ("PATCH", "/v1/webhooks/{id}") => json!({"description": "renamed"}),
            ("PATCH", _) => json!({"name": "renamed"}),
            ("GET" | "DELETE", _) => Value::Null,
            other => panic!("no body for {other:?}: add one to Samples::body"),
        }
    }
}

pub fn content_type(path: &str) -> &'static str {
    if path.contains("/import") { "text/csv" } else { "application/json" }
}

/// Whether a `POST` only reads, so that it has no event and its response isn't stored.
pub fn only_reads(path: &str) -> bool {
    path.ends_with("/suggest")
}

/// Returns the number of events that a successful write causes: one for each changed record.
pub fn event_count(method: &str, path: &str) -> usize {
    match (method, path) {
        // These requests only send a message.
        ("POST", "/v1/webhooks/{id}/test" | "/v1/webhooks/{id}/replay" | "/v1/webhooks/{id}/deliveries/{delivery_id}/retry") => 0,
        ("POST", "/v1/assets/batch") => 2,
        ("POST", "/v1/movements/{id}/cancel") => 4,
        ("POST", "/v1/movements/{id}/advance" | "/v1/processes/{id}/start" | "/v1/processes/instances/{id}/cancel") => 2,
        _ => 1,
    }
}
