//! Dry runs: every write of the OpenAPI document decides as the real request does and writes nothing.

use crate::support::bulk::outcomes;
use crate::support::operations::{Operation, dry_run, operations};
use crate::support::processes::create_process;
use crate::support::samples::{SIGNATURE, Samples};
use crate::support::{Api, Client, Reply, over_http};
use serde_json::{Value, json};
use shared::domain::values::time::Timestamp;

/// The writes in an order in which each still finds the sample resources: deletions come last.
fn writes(operations: &[Operation]) -> Vec<&Operation> {
    let (deletions, others): (Vec<&Operation>, Vec<&Operation>) =
        operations.iter().filter(|operation| operation.is_write()).partition(|operation| operation.method == "DELETE");
    let (changes, creations): (Vec<_>, Vec<_>) = others.into_iter().partition(|operation| operation.method != "POST");
    [changes, creations, deletions].concat()
}

/// Compares the body of a dry run with the real one. They may differ in times, and the dry run has null where the real request
/// assigns a value. Returns the paths of these.
fn assigned(place: &str, dry: &Value, earnest: &Value) -> Vec<String> {
    match (dry, earnest) {
        (Value::Object(dry), Value::Object(earnest)) => {
            // Operations of a batch show the entity tag that the header `ETag` would have.
            let names = earnest.keys().filter(|name| name.as_str() != "etag" || dry.contains_key(*name));
            assert!(dry.keys().eq(names), "{place}: {dry:?}, but {earnest:?}");
            dry.iter().flat_map(|(name, value)| assigned(&format!("{place}/{name}"), value, &earnest[name])).collect()
        }
        (Value::Array(dry), Value::Array(earnest)) => {
            assert_eq!(dry.len(), earnest.len(), "{place}");
            let members = dry.iter().zip(earnest).enumerate();
            members.flat_map(|(n, (dry, earnest))| assigned(&format!("{place}/{n}"), dry, earnest)).collect()
        }
        (Value::Null, Value::String(_)) => vec![place.to_owned()],
        (Value::String(dry), Value::String(earnest)) if dry != earnest => {
            let is_time = |text: &str| text.parse::<Timestamp>().is_ok();
            assert!(is_time(dry) && is_time(earnest), "{place}: {dry}, but {earnest}");
            Vec::new()
        }
        _ => {
            assert_eq!(dry, earnest, "{place}");
            Vec::new()
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_can_be_tried_without_a_trace_and_says_what_it_would_do() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let (_, operations) = operations(&client).await;
    let mut tried = 0;
    for operation in writes(&operations) {
        let before = api.dump().await;
        let dry = operation.send_dry_run(&client, &samples).await;
        assert_eq!(dry.status, 200, "{operation}: {}", dry.text());
        assert_eq!((dry.header("dry-run"), dry.header("etag"), dry.header("location")), ("true", "", ""), "{operation}");
        assert_eq!(api.dump().await, before, "a dry run of {operation} changed the table");

        let earnest = operation.send(&client, &samples).await;
        assert!(earnest.status.is_success(), "{operation}: {}", earnest.text());
        assert_eq!(earnest.header("dry-run"), "", "{operation}");
        let left = |reply: &Reply| reply.header("x-ratelimit-remaining").parse::<u64>().unwrap();
        assert_eq!(left(&earnest) + 1, left(&dry), "{operation} was not counted");
        let nulls = assigned("", &dry.json(), &earnest.json());
        // A test of a webhook makes an event that is no resource.
        let is_creation = earnest.status == 201 || operation.path.ends_with("/test");
        assert_eq!(is_creation, nulls.contains(&"/data/id".to_owned()), "{operation}: {nulls:?}");
        tried += 1;
    }
    assert!(tried >= 27, "only {tried} writes");
}

/// Checks that a dry run has null at these paths of its `data`, and no null that the real request has as well.
async fn check_nulls(client: &Client, path: &str, body: &Value, expected: &[&str]) -> (Value, Value) {
    let dry = client.post(&dry_run(path), body.clone()).await;
    let earnest = client.post(path, body.clone()).await;
    assert!(earnest.status.is_success(), "{path}: {}", earnest.text());
    let mut nulls = assigned("", &dry.json(), &earnest.json());
    nulls.sort();
    assert_eq!(nulls, expected.iter().map(|place| format!("/data/{place}")).collect::<Vec<_>>(), "{path}");
    (dry.data(), earnest.data())
}

#[tokio::test(start_paused = true)]
async fn what_only_the_request_in_earnest_assigns_is_null_and_nothing_else() {
    let client = over_http().await;
    let template = json!({"asset_tag_template": "{PREFIX}-{YYYY}-NNN-X"});
    client.patch("/settings", template).await.data();
    let asset = json!({"name": "AST-2026-001-X", "purchase_price": 1, "notes": "\"quoted\" \\"});
    check_nulls(&client, "/assets", &asset, &["asset_tag", "id"]).await;
    let text = r#"{"name":"a","purchase_price":1249.9000}"#;
    let dry = client.post_text(&dry_run("/assets"), text).await;
    assert!(dry.text().contains(r#""purchase_price":1249.9000"#), "{}", dry.text());

    let key = json!({"name": "k", "scopes": ["assets:read"]});
    let (_, key) = check_nulls(&client, "/keys", &key, &["api_key", "id", "prefix"]).await;
    let rotate = format!("/keys/{}/rotate", key["id"].as_str().unwrap());
    check_nulls(&client, &rotate, &json!({}), &["api_key"]).await;

    let webhook = json!({"url": "https://hooks.example.com/", "events": ["*"]});
    let (_, webhook) = check_nulls(&client, "/webhooks", &webhook, &["id", "secret"]).await;
    let webhook = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    check_nulls(&client, &format!("{webhook}/rotate"), &json!({}), &["secret"]).await;
    check_nulls(&client, &format!("{webhook}/test"), &json!({}), &["id"]).await;

    let steps = json!([{"type": "signature", "key": "sign", "label": "Sign"}, {"type": "text", "key": "a", "label": "A"}]);
    let process = create_process(&client, steps).await;
    let start = format!("/processes/{process}/start");
    let assets = client.assets(2).await;
    let instances = ["id", "instances/0/id", "instances/0/movement_id", "instances/1/id", "instances/1/movement_id", "number"];
    let (_, movement) = check_nulls(&client, &start, &json!({"asset_ids": assets}), &instances).await;
    assert!(movement["number"].as_str().unwrap().ends_with("000001"), "a dry run took a number: {movement}");
    let advance = format!("/movements/{}/advance", movement["id"].as_str().unwrap());
    let (dry, _) = check_nulls(&client, &advance, &json!({"step_data": {"sign": SIGNATURE}}), &[]).await;
    assert_eq!(dry["instances"][1]["step_data"]["sign"], SIGNATURE, "an image that is not stored");
}

/// Checks that all calls to the table since the last time have read: only the request itself is counted.
pub fn check_only_reads(api: &Api, name: &str) {
    let mut counted = 0.0;
    for (call, request) in api.faults.take_requests() {
        match call.as_str() {
            "GetItem" | "BatchGetItem" | "Query" => {}
            "UpdateItem" if request["Key"]["PK"]["S"].as_str().unwrap().contains("#RATE#") => counted += 1.0,
            other => panic!("{name}: {other} {request}"),
        }
    }
    let cost = api.meter.take();
    assert!(cost.read_units > 0.0 && cost.write_units <= counted, "{name}: {cost:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_only_reads_and_takes_no_write_units() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    client.use_key_once().await;
    let (_, operations) = operations(&client).await;
    let rows: String = (0..100).map(|n| format!("n{n},s{n},SMP\n")).collect();
    let rows = format!("name,serial_number,asset_type_code\n{rows}");
    for query in ["", "&on_error=abort", "&match=serial_number"] {
        api.faults.take_requests();
        api.meter.take();
        let reply = client.import("/assets", &format!("?dry_run=true{query}"), &rows).await;
        assert_eq!(outcomes(&reply), ["created"; 100], "{query}");
        check_only_reads(&api, &format!("an import with {query}"));
    }
    for operation in writes(&operations) {
        api.faults.take_requests();
        api.meter.take();
        let dry = operation.send_dry_run(&client, &samples).await;
        assert_eq!(dry.status, 200, "{operation}: {}", dry.text());
        check_only_reads(&api, &operation.to_string());
        operation.send(&client, &samples).await.json();
    }
}

#[tokio::test(start_paused = true)]
async fn content_that_a_dry_run_would_write_is_not_taken_for_written() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let definition = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let types = json!({"name": "Own", "code": "OWN", "kind": "physical", "custom_fields_schema": {"maxProperties": 3}});
    for (path, body) in [("/processes", definition), ("/catalog/asset-types", types)] {
        for _ in 0..2 {
            client.post(&dry_run(path), body.clone()).await.data();
        }
        let made = client.post(path, body).await.id();
        // Another function instance has nothing in memory.
        let cold = api.replica(0, usize::MAX).client(&client);
        let shown = cold.get(&format!("{path}/{made}")).await.data();
        assert!(shown["steps"][0]["key"] == "a" || shown["custom_fields_schema"]["maxProperties"] == 3, "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_parameter_is_true_or_false_and_known_to_writes_only() {
    let (api, client) = Api::with_tenant().await;
    let body = json!({"name": "x"});
    let before = api.dump().await;
    for query in ["dry_run", "dry_run=", "dry_run=yes", "dry_run=1", "dry_run=TRUE", "dry_run=true&dry_run=true"] {
        assert_eq!(client.post(&format!("/assets?{query}"), body.clone()).await.field_errors(), ["dry_run"], "{query}");
    }
    let both = client.post("/assets?dryrun=true&dry_run=2", body.clone()).await;
    assert_eq!(both.field_errors(), ["dry_run", "dryrun"]);
    assert!(both.text().contains("unknown parameter; known: dry_run"), "{}", both.text());
    assert_eq!(client.get("/assets?dry_run=true").await.field_errors(), ["dry_run"]);
    assert_eq!(client.get("/settings?dry_run=false").await.field_errors(), ["dry_run"]);
    assert_eq!(api.dump().await, before);
    let made = client.post("/assets?dry_run=false", body).await;
    assert_eq!((made.status.as_u16(), made.header("dry-run")), (201, ""));
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_is_refused_and_nothing_is_replayed() {
    let (api, client) = Api::with_tenant().await;
    let body = r#"{"name":"x"}"#;
    let send = async |path: &str, key: &str| client.send_json("POST", path, body, ("idempotency-key", key)).await;
    send("/assets", "k").await.data();
    let before = api.dump().await;
    for key in ["k", "another", "\u{e4}"] {
        assert_eq!(send("/assets?dry_run=true", key).await.field_errors(), ["Idempotency-Key"]);
    }
    assert_eq!(api.dump().await, before);
    // The rest of the query is a part of the request; this parameter changes nothing.
    assert_eq!(send("/assets?dry_run=false", "k").await.header("idempotent-replayed"), "true");
}
