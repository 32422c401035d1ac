//! The response of a GET can be sent back with PATCH: it changes nothing, unless a read-only field differs.

use crate::support::document::at;
use crate::support::operations::{Operation, by_method, operations};
use crate::support::processes::create_process;
use crate::support::samples::{SIGNATURE, Samples};
use crate::support::{Api, over_http};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn writable(document: &Value, operation: &Operation) -> BTreeSet<String> {
    let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
    at(document, schema)["properties"].as_object().unwrap().keys().cloned().collect()
}

/// Of the same type.
fn another(value: &Value) -> Value {
    match value {
        Value::Null => json!("x"),
        Value::Bool(flag) => json!(!flag),
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(_) => json!(-1),
        Value::Array(_) => json!([1]),
        Value::Object(_) => json!({"x": 1}),
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_read_can_be_sent_back_and_changes_nothing() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let asset = samples.path("/v1/assets/{id}");
    // An asset with everything: its owner has become inactive, and its custom fields don't fit the type any more.
    let asset_type = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &asset_type).await;
    let user = client.user("Ada").await;
    let all = json!({"model_id": model, "assigned_to": user, "custom_fields": {"a": 1.5}, "purchase_price": 10.50, "notes": "n"});
    client.patch(&asset, all).await.data();
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    let schema = json!({"type": "object", "required": ["b"]});
    client.patch(&format!("/catalog/asset-types/{asset_type}"), json!({"custom_fields_schema": schema})).await.data();

    let (document, operations) = operations(&client).await;
    let mut read_only_fields = 0;
    for operation in by_method(&operations, &["PATCH"]) {
        let path = samples.path(&operation.path);
        let read = client.get(&path).await;
        let before = api.dump().await;
        let sent = client.send("PATCH", &path, Some("application/json"), read.data().to_string()).await;
        assert_eq!(sent.status.as_u16(), 200, "{operation}: {}", sent.text());
        assert_eq!((sent.data(), sent.header("etag")), (read.data(), read.header("etag")), "{operation}");
        let after = api.dump().await;
        let new: Vec<_> = after.0.iter().filter(|item| !before.0.contains(item)).collect();
        assert!(after == before, "{operation} has written {new:?}");
        let writable = writable(&document, operation);
        for (field, value) in read.data().as_object().unwrap().iter().filter(|(field, _)| !writable.contains(*field)) {
            let mut changed = read.data();
            changed[field] = another(value);
            assert_eq!(client.patch(&path, changed).await.field_errors(), [format!("/{field}")], "{operation}");
            read_only_fields += 1;
        }
        assert_eq!(client.patch(&path, json!({"id": null, "nothing": 1})).await.field_errors().len(), 2, "{operation}");
        assert_eq!(api.dump().await, before, "{operation} has written");
    }
    assert!(read_only_fields > 20, "{read_only_fields}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_the_system_can_be_sent_back() {
    let client = over_http().await;
    let definitions = client.get("/processes").await.data();
    for definition in definitions.as_array().unwrap() {
        let path = format!("/processes/{}", definition["id"].as_str().unwrap());
        assert_eq!(client.patch(&path, definition.clone()).await.data(), *definition);
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_can_be_sent_back_before_and_after_its_end() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "signature", "key": "sign", "label": "Sign"}, {"type": "text", "key": "a", "label": "A"}]);
    let process = create_process(&client, steps).await;
    let start = json!({"asset_id": client.assets(1).await[0], "step_data": {"sign": SIGNATURE}, "through": "sign"});
    let instance = client.post(&format!("/processes/{process}/start"), start).await.id();
    let (get, patch) = (format!("/processes/instances/{instance}"), format!("/processes/{instance}"));
    let is_sent_back = async |status: &str| {
        for shown in ["", "?omit=signatures"] {
            let read = client.get(&format!("{get}{shown}")).await.data();
            assert_eq!(read["status"], status);
            let before = api.dump().await;
            let sent = client.patch(&patch, read.clone()).await;
            let etag = client.get(&get).await;
            assert_eq!((sent.data(), sent.header("etag")), (etag.data(), etag.header("etag")), "{shown}");
            for field in read.as_object().unwrap().keys() {
                let mut changed = read.clone();
                changed[field] = another(&read[field]);
                assert_eq!(client.patch(&patch, changed).await.field_errors(), [format!("/{field}")]);
            }
            assert!(api.dump().await == before, "something was written");
        }
    };
    is_sent_back("in_progress").await;
    let mut cancelled = client.get(&get).await.data();
    cancelled["status"] = json!("cancelled");
    assert_eq!(client.patch(&patch, cancelled).await.data()["status"], "cancelled");
    is_sent_back("cancelled").await;
    let stale = client.send_json("PATCH", &patch, "{}", ("if-match", "\"999-0\"")).await;
    stale.problem(412, "PRECONDITION_FAILED");
}
