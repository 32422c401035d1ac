//! Every kind of problem, as the company meets it.

use super::catalog::Catalog;
use super::people::{People, id};
use super::recorder::Story;
use crate::support::processes::{create_process, start, system_process};
use crate::support::{Api, Client, UNKNOWN_ID};
use local::weak::Weaknesses;
use serde_json::{Value, json};
use shared::app::App;
use shared::store::Store;
use shared::store::keys::Keys;
use std::sync::Arc;

const JSON: Option<&str> = Some("application/json");

/// Meets all of them.
pub async fn meet(story: &Story, people: &People, catalog: &Catalog, laptop: &str) {
    story.at("18:00");
    requests(story, laptop).await;
    keys(story).await;
    conflicts(story, people, catalog).await;
    processes(story).await;
    concurrent_request(story).await;
    failures(story, laptop).await;
}

/// What is wrong with the request itself.
async fn requests(story: &Story, laptop: &str) {
    let client = &story.client;
    let path = format!("/assets/{laptop}");
    story.problem(&client.post_text("/assets", r#"{"name": "MacBook"#).await, 400, "MALFORMED_REQUEST");
    story.problem(&client.get(&format!("/assets/{UNKNOWN_ID}")).await, 404, "NOT_FOUND");
    story.problem(&client.send("PUT", "/assets", JSON, "{}").await, 405, "METHOD_NOT_ALLOWED");
    let stale = client.send_json("PATCH", &path, r#"{"notes":"Cracked"}"#, ("if-match", "\"1-5f5a0c7551d6bee1\"")).await;
    story.problem(&stale, 412, "PRECONDITION_FAILED");
    story.problem(&client.post_text("/assets", &" ".repeat(1024 * 1024 + 1)).await, 413, "PAYLOAD_TOO_LARGE");
    let xml = client.send("POST", "/assets", Some("application/xml"), "<asset/>").await;
    story.problem(&xml, 415, "UNSUPPORTED_MEDIA_TYPE");
    story.problem(&client.post("/assets", json!({"name": "", "status": "lost"})).await, 422, "VALIDATION_ERROR");
}

/// What is wrong with the key.
async fn keys(story: &Story) {
    let client = &story.client;
    story.problem(&client.with_key("").get("/assets").await, 401, "UNAUTHORIZED");
    let reader = json!({"name": "Reader", "scopes": ["assets:read"], "rate_limit_per_minute": 1});
    let reader = client.with_key_of(&story.prepare("/keys", reader).await);
    story.problem(&reader.post("/assets", json!({"name": "MacBook Pro 14"})).await, 403, "FORBIDDEN");
    story.problem(&reader.get("/assets").await, 429, "RATE_LIMITED");
}

/// Conflicts with the state of the data.
async fn conflicts(story: &Story, people: &People, catalog: &Catalog) {
    let client = &story.client;
    let returned = id(&story.prepare("/assets", json!({"name": "iPhone 15", "status": "returned"})).await);
    let reused = client.patch(&format!("/assets/{returned}"), json!({"status": "in_use"})).await;
    story.problem(&reused, 409, "TRANSITION_NOT_ALLOWED");
    let email = client.get(&format!("/users/{}", people.ada)).await.data()["email"].clone();
    let again = client.post("/users", json!({"email": email, "display_name": "Ada"})).await;
    story.problem(&again, 409, "DUPLICATE");
    story.problem(&client.delete(&format!("/catalog/manufacturers/{}", catalog.apple)).await, 409, "IN_USE");
}

/// Conflicts of processes.
async fn processes(story: &Story) {
    let client = &story.client;
    let steps = json!([
        {"type": "text", "key": "room", "label": "Room"}, {"type": "text", "key": "desk", "label": "Desk"}
    ]);
    let process = create_process(client, steps).await;
    let begin = async |asset: &str| client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    let asset = id(&story.prepare("/assets", json!({"name": "Screen"})).await);
    let instance = format!("/processes/instances/{}", start(client, &process, &asset).await);
    let advance = async |body: Value| client.post(&format!("{instance}/advance"), body).await;
    story.problem(&begin(&asset).await, 409, "PROCESS_RUNNING");
    advance(json!({"step_data": {"room": "2.14"}})).await.data();
    let late = advance(json!({"current_step": 0, "step_data": {"room": "2.14"}})).await;
    story.problem(&late, 409, "STEP_MOVED");
    story.problem(&advance(json!({"step_data": {"room": "2.15"}})).await, 409, "STEP_SUBMITTED");
    story.problem(&client.get(&format!("{instance}/receipt")).await, 409, "CONFLICT");
    advance(json!({"step_data": {"desk": "3"}})).await.data();
    story.problem(&advance(json!({"step_data": {}})).await, 409, "INSTANCE_CLOSED");

    let new = id(&story.prepare("/assets", json!({"name": "Keyboard"})).await);
    let returning = system_process(client, "device-return").await;
    let wrong = client.post(&format!("/processes/{returning}/start"), json!({"asset_id": new})).await;
    story.problem(&wrong, 409, "WRONG_ASSET_STATUS");
    client.patch(&format!("/processes/{process}"), json!({"status": "inactive"})).await.data();
    story.problem(&begin(&new).await, 409, "PROCESS_INACTIVE");
}

/// The same request a second time, while the first is still in progress.
async fn concurrent_request(story: &Story) {
    // The service tries again for five seconds. They pass at once where no call to the table takes time.
    tokio::time::pause();
    let weak = Api::on_weak_table(1, Weaknesses::default()).await;
    weak.stop_clock();
    weak.advance_clock_millis(story.api.now().millis() - weak.now().millis());
    let client = weak.tenant().await;
    let conflict = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "cancelled",
        "CancellationReasons": vec![json!({"Code": "TransactionConflict"}); 6]
    });
    weak.faults.plan("TransactWriteItems", 100, 400, &conflict, false);
    let same = client.send_json("POST", "/assets", r#"{"name":"Mouse"}"#, ("idempotency-key", "order-4711")).await;
    tokio::time::resume();
    story.problem(&same, 409, "REQUEST_IN_PROGRESS");
}

/// What is no fault of the company's.
async fn failures(story: &Story, laptop: &str) {
    let (api, client) = (&story.api, &story.client);
    api.faults.throttle_writes_to(&[Keys::of(client.tenant).partition().as_s().unwrap().clone()]);
    let busy = client.patch(&format!("/assets/{laptop}"), json!({"notes": "Cracked screen"})).await;
    api.faults.throttle_writes_to(&[]);
    story.problem(&busy, 503, "UNAVAILABLE");

    let now = api.now();
    let without_table = Store::new(api.dynamo.clone(), "no-such-table", Arc::new(move || now));
    let broken = Client { router: local::server::router(App::new(without_table)), ..client.clone() };
    story.problem(&broken.get("/assets").await, 500, "INTERNAL_ERROR");
}
