//! Every kind of problem, as the company meets it.

use super::inventory::Catalog;
use super::inventory::People;
use super::recorder::{Scenario, id};
use crate::support::bulk::{costly, creations};
use crate::support::processes::{create_process, start, system_process};
use crate::support::{Api, Client, UNKNOWN_ID};
use dev_server::faulty_table::Weaknesses;
use serde_json::{Value, json};
use shared::app::App;
use shared::store::Store;
use shared::store::keys::Keys;
use std::sync::Arc;

const JSON: Option<&str> = Some("application/json");

pub async fn record(scenario: &Scenario, people: &People, catalog: &Catalog, laptop: &str) {
    scenario.at("18:00");
    requests(scenario, laptop).await;
    keys(scenario).await;
    conflicts(scenario, people, catalog).await;
    processes(scenario).await;
    concurrent_requests(scenario).await;
    failures(scenario, laptop).await;
}

async fn requests(scenario: &Scenario, laptop: &str) {
    let client = &scenario.client;
    let path = format!("/assets/{laptop}");
    scenario.problem(&client.post_text("/assets", r#"{"name": "MacBook"#).await, 400, "MALFORMED_REQUEST");
    scenario.problem(&client.get(&format!("/assets/{UNKNOWN_ID}")).await, 404, "NOT_FOUND");
    scenario.problem(&client.send("PUT", "/assets", JSON, "{}").await, 405, "METHOD_NOT_ALLOWED");
    let stale = client.send_json("PATCH", &path, r#"{"notes":"Cracked"}"#, ("if-match", "\"1-5f5a0c7551d6bee1\"")).await;
    scenario.problem(&stale, 412, "PRECONDITION_FAILED");
    scenario.problem(&client.post_text("/assets", &" ".repeat(1024 * 1024 + 1)).await, 413, "PAYLOAD_TOO_LARGE");
    let xml = client.send("POST", "/assets", Some("application/xml"), "<asset/>").await;
    scenario.problem(&xml, 415, "UNSUPPORTED_MEDIA_TYPE");
    scenario.problem(&client.post("/assets", json!({"name": "", "status": "lost"})).await, 422, "VALIDATION_ERROR");
    let other = scenario.api.tenant().await;
    let (asset_type, values) = costly(&other, 20).await;
    let spent = other.batch("/assets/batch", &creations(&asset_type, &values)).await;
    scenario.problem(&spent, 422, "SCHEMA_BUDGET_SPENT");
}

async fn keys(scenario: &Scenario) {
    let client = &scenario.client;
    scenario.problem(&client.with_key("").get("/assets").await, 401, "UNAUTHORIZED");
    let reader = json!({"name": "Reader", "scopes": ["assets:read"], "rate_limit_per_minute": 1});
    let reader = client.with_key_of(&scenario.prepare("/keys", reader).await);
    scenario.problem(&reader.post("/assets", json!({"name": "MacBook Pro 14"})).await, 403, "FORBIDDEN");
    scenario.problem(&reader.get("/assets").await, 429, "RATE_LIMITED");
}

/// Conflicts with the state of the data.
async fn conflicts(scenario: &Scenario, people: &People, catalog: &Catalog) {
    let client = &scenario.client;
    let returned = id(&scenario.prepare("/assets", json!({"name": "iPhone 15", "status": "returned"})).await);
    let reused = client.patch(&format!("/assets/{returned}"), json!({"status": "in_use"})).await;
    scenario.problem(&reused, 409, "TRANSITION_NOT_ALLOWED");
    let email = client.get(&format!("/users/{}", people.ada)).await.data()["email"].clone();
    let again = client.post("/users", json!({"email": email, "display_name": "Ada"})).await;
    scenario.problem(&again, 409, "DUPLICATE");
    scenario.problem(&client.delete(&format!("/catalog/manufacturers/{}", catalog.apple)).await, 409, "IN_USE");
}

async fn processes(scenario: &Scenario) {
    let client = &scenario.client;
    let steps = json!([
        {"type": "text", "key": "room", "label": "Room"}, {"type": "text", "key": "desk", "label": "Desk"}
    ]);
    let process = create_process(client, steps).await;
    let begin = async |asset: &str| client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    let asset = id(&scenario.prepare("/assets", json!({"name": "Screen"})).await);
    let instance = format!("/processes/instances/{}", start(client, &process, &asset).await);
    let advance = async |body: Value| client.post(&format!("{instance}/advance"), body).await;
    scenario.problem(&begin(&asset).await, 409, "PROCESS_RUNNING");
    advance(json!({"step_data": {"room": "2.14"}})).await.data();
    let late = advance(json!({"current_step": 0, "step_data": {"room": "2.14"}})).await;
    scenario.problem(&late, 409, "STEP_MOVED");
    scenario.problem(&advance(json!({"step_data": {"room": "2.15"}})).await, 409, "STEP_SUBMITTED");
    advance(json!({"step_data": {"desk": "3"}})).await.data();
    scenario.problem(&advance(json!({"step_data": {}})).await, 409, "INSTANCE_CLOSED");

    let new = id(&scenario.prepare("/assets", json!({"name": "Keyboard"})).await);
    let returning = system_process(client, "device-return").await;
    let wrong = client.post(&format!("/processes/{returning}/start"), json!({"asset_id": new})).await;
    scenario.problem(&wrong, 409, "WRONG_ASSET_STATUS");
    client.patch(&format!("/processes/{process}"), json!({"status": "inactive"})).await.data();
    scenario.problem(&begin(&new).await, 409, "PROCESS_INACTIVE");
}

/// Requests that meet others: one that others are always faster than, and one whose idempotency key is in use.
async fn concurrent_requests(scenario: &Scenario) {
    let (api, client) = contended(scenario, 1).await;
    let mouse = client.asset(json!({"name": "Mouse"})).await;
    api.faults.plan("TransactWriteItems", 100, 400, &cancelled("ConditionalCheckFailed"), false);
    let lost = client.patch(&format!("/assets/{mouse}"), json!({"notes": "Spare"})).await;
    let (api, client) = contended(scenario, 2).await;
    api.faults.plan("TransactWriteItems", 100, 400, &cancelled("TransactionConflict"), false);
    let same = client.send_json("POST", "/assets", r#"{"name":"Mouse"}"#, ("idempotency-key", "order-4711")).await;
    scenario.problem(&lost, 409, "CONFLICT");
    scenario.problem(&same, 409, "REQUEST_IN_PROGRESS");
}

/// Calls to the table take no time.
async fn contended(scenario: &Scenario, seed: u64) -> (Api, Client) {
    let api = Api::on_faulty_table(seed, Weaknesses::default()).await;
    api.stop_clock();
    api.advance_clock_millis(scenario.api.now().millis() - api.now().millis());
    let client = api.tenant().await;
    (api, client)
}

/// The response to a transaction that is cancelled for this reason.
fn cancelled(code: &str) -> Value {
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "cancelled",
        "CancellationReasons": vec![json!({"Code": code}); 6]
    })
}

async fn failures(scenario: &Scenario, laptop: &str) {
    let (api, client) = (&scenario.api, &scenario.client);
    api.faults.throttle_writes_to(&[Keys::of(client.tenant).partition().as_s().unwrap().clone()]);
    let busy = client.patch(&format!("/assets/{laptop}"), json!({"notes": "Cracked screen"})).await;
    api.faults.throttle_writes_to(&[]);
    scenario.problem(&busy, 503, "UNAVAILABLE");

    let now = api.now();
    let without_table = Store::new(api.dynamo.clone(), "no-such-table", Arc::new(move || now));
    let broken = Client { router: dev_server::server::router(App::new(without_table)), ..client.clone() };
    scenario.problem(&broken.get("/assets").await, 500, "INTERNAL_ERROR");
}
