//! Upserts of assets by their serial number.

use crate::support::document::served_document;
use crate::support::{Api, over_http};
use futures_util::future::join_all;
use serde_json::{Value, json};

const PATH: &str = "/assets/by-serial/S%2F1";

#[tokio::test(start_paused = true)]
async fn an_upsert_creates_and_then_changes_the_fields_that_are_sent() {
    let client = over_http().await;
    let put = async |body: Value| client.send("PUT", PATH, Some("application/json"), body.to_string()).await;
    let made = put(json!({"name": "Laptop", "notes": "new"})).await;
    assert_eq!((made.status.as_u16(), made.data()["serial_number"].clone()), (201, json!("S/1")));
    assert_eq!(made.header("location"), format!("/v1/assets/{}", made.id()));
    let changed = put(json!({"name": "Notebook", "status": "in_use"})).await;
    assert_eq!((changed.status.as_u16(), changed.id(), changed.data()["notes"].clone()), (200, made.id(), json!("new")));
    let same = put(json!({"name": "Notebook", "serial_number": "S/1"})).await;
    assert_eq!((same.header("etag"), same.data()), (changed.header("etag"), changed.data()));
    assert_eq!(put(json!({"name": "x", "serial_number": "S/2"})).await.field_errors(), ["/serial_number"]);
    assert_eq!(put(json!({"notes": "no name"})).await.field_errors(), ["/name"]);
    let stale = client.send_json("PUT", PATH, "{\"name\": \"x\"}", ("if-match", "\"7-0123456789abcdef\"")).await;
    stale.problem(412, "PRECONDITION_FAILED");
    let current = client.send_json("PUT", PATH, "{\"name\": \"x\"}", ("if-match", changed.header("etag"))).await;
    assert_eq!(current.data()["name"], "x");
    let long = format!("/assets/by-serial/{}", "x".repeat(256));
    let refused = client.send("PUT", &long, Some("application/json"), "{\"name\": \"x\"}").await;
    assert_eq!(refused.field_errors(), ["serial"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_that_would_create_has_nulls_and_the_document_says_so() {
    let client = over_http().await;
    let put = async || client.send("PUT", &format!("{PATH}?dry_run=true"), Some("application/json"), "{\"name\": \"x\"}").await;
    let dry = put().await;
    let shown = dry.data();
    assert_eq!((dry.status.as_u16(), dry.header("dry-run"), &shown["serial_number"]), (200, "true", &json!("S/1")));
    assert_eq!((&shown["id"], &shown["asset_tag"]), (&Value::Null, &Value::Null));
    let document = served_document();
    let described = document["paths"]["/assets/by-serial/{serial}"]["put"]["responses"]["200"]["description"].as_str().unwrap();
    assert!(described.contains("dry run") && described.contains("null"), "{described}");
    let made = client.send("PUT", PATH, Some("application/json"), "{\"name\": \"x\"}").await.data();
    assert_eq!((&put().await.data()["id"], &put().await.data()["asset_tag"]), (&made["id"], &made["asset_tag"]));
}

#[tokio::test(start_paused = true)]
async fn after_its_asset_is_gone_or_has_another_serial_number_an_upsert_creates_again() {
    let client = over_http().await;
    let put = async || client.send("PUT", PATH, Some("application/json"), "{\"name\": \"x\"}").await;
    let first = put().await.id();
    client.patch(&format!("/assets/{first}"), json!({"serial_number": "other"})).await.data();
    let second = put().await;
    assert_eq!((second.status.as_u16(), second.id() == first), (201, false));
    client.delete(&format!("/assets/{}", second.id())).await;
    assert_eq!(put().await.status, 201);
    client.asset(json!({"name": "double", "serial_number": "S/1"})).await;
    let problem = put().await.problem(409, "DUPLICATE");
    assert_eq!(problem["asset_ids"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn upserts_beside_creations_of_the_same_serial_number_make_at_most_one_more() {
    let (api, client) = Api::with_tenant().await;
    let other = api.replica(0, 1 << 24).client(&client);
    let puts = (0..32).map(|_| other.send("PUT", PATH, Some("application/json"), "{\"name\": \"put\"}"));
    let posts = (0..32).map(|_| client.post("/assets", json!({"name": "post", "serial_number": "S/1"})));
    let (puts, posts) = futures_util::join!(join_all(puts), join_all(posts));
    assert!(posts.iter().all(|reply| reply.status == 201));
    let made = puts.iter().filter(|reply| reply.status == 201).count() as u64;
    assert!(made <= 1 && client.total("/assets").await == 32 + made, "{made} were made");
    other.send("PUT", PATH, Some("application/json"), "{\"name\": \"put\"}").await.problem(409, "DUPLICATE");
}

#[tokio::test(start_paused = true)]
async fn an_upsert_that_sees_the_claim_of_another_before_its_asset_makes_no_second_one() {
    let (api, client) = Api::with_tenant().await;
    let put = async || client.send("PUT", PATH, Some("application/json"), "{\"name\": \"x\"}").await;
    let id = put().await.id();
    // As a read shows it that comes between the items of the transaction: neither the asset nor its event.
    api.faults.tear_record(1, &id, None);
    let again = put().await;
    assert_eq!(client.total("/assets").await, 1, "{}", again.text());
    assert_eq!((again.status.as_u16(), again.id()), (200, id));
}
