//! The response of a GET can be sent back with PATCH: it changes nothing, unless a read-only field differs.

use crate::support::document::at;
use crate::support::operations::{Operation, by_method, operations};
use crate::support::samples::Samples;
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

#[tokio::test]
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

#[tokio::test]
async fn a_definition_of_the_system_can_be_sent_back_and_an_instance_with_its_id() {
    let client = over_http().await;
    let samples = Samples::create(&client).await;
    let definitions = client.get("/processes").await.data();
    for definition in definitions.as_array().unwrap() {
        let path = format!("/processes/{}", definition["id"].as_str().unwrap());
        assert_eq!(client.patch(&path, definition.clone()).await.data(), *definition);
    }
    let instance = samples.path("/v1/processes/instances/{id}");
    let id = instance.rsplit('/').next().unwrap();
    let path = format!("/processes/{id}");
    let other = definitions[0]["id"].clone();
    assert_eq!(client.patch(&path, json!({"id": other, "status": "cancelled"})).await.field_errors(), ["/id"]);
    assert_eq!(client.patch(&path, json!({"id": id, "status": "cancelled"})).await.data()["status"], "cancelled");
}
