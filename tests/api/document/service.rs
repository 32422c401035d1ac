//! The OpenAPI document, against the requests and responses of the routes.

use crate::support::document::{at, is_dry_run_of_creation, response};
use crate::support::operations::{METHODS, by_method, operations};
use crate::support::over_http;
use crate::support::samples::Samples;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

#[tokio::test(start_paused = true)]
async fn the_document_is_openapi_3_1_without_dangling_references() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let client = over_http().await;
    let (document, operations) = operations(&client.with_key("")).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut found = Vec::new();
    references(&document, &mut found);
    for target in found {
        assert!(document.pointer(&target[1..]).is_some(), "{target} leads nowhere");
    }
    let mut ids: Vec<&str> = operations.iter().map(|o| o.description["operationId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), operations.len(), "two operations have the same id");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_read_as_the_document_describes_them() {
    let client = over_http().await;
    let (document, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    let mut seen = 0;
    for operation in &operations {
        let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let schema = match schema["oneOf"].as_array() {
            Some(choices) => choices.iter().find(|choice| choice["$ref"].is_string()).unwrap(),
            None => schema,
        };
        let schema = at(&document, schema);
        let fields = schema["properties"].as_object().unwrap_or_else(|| panic!("{operation} has no fields"));
        // No field takes an empty array in an array, so each must be refused by its own name, and nothing else.
        let invalid: Map<String, Value> = fields.keys().map(|name| (name.clone(), json!([[]]))).collect();
        let path = samples.path(&operation.path);
        let send = async |body: String| client.send(&operation.method, &path, Some("application/json"), body).await;
        let reply = send(Value::Object(invalid).to_string()).await;
        let mut expected: Vec<String> = fields.keys().map(|name| format!("/{name}")).collect();
        expected.sort();
        // An error within an array has the element's index behind the field's name.
        let field = |location: &String| location.split('/').take(2).collect::<Vec<_>>().join("/");
        let found: Vec<String> = reply.field_errors().iter().map(field).collect();
        assert_eq!(found, expected, "{operation}");

        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut expected: Vec<String> = required.iter().map(|name| format!("/{}", name.as_str().unwrap())).collect();
        expected.push("/colour".into());
        // The document can't say that one of two fields is required.
        expected.extend(operation.path.ends_with("/start").then(|| "/asset_id".to_owned()));
        expected.sort();
        assert_eq!(send(r#"{"colour":"red"}"#.to_owned()).await.field_errors(), expected, "{operation}");
        seen += 1;
    }
    assert!(seen >= 12, "only {seen} bodies");
}

/// Every response, whether success or error, has a status that the document lists and a body that fits its schema.
#[tokio::test(start_paused = true)]
async fn responses_are_as_the_document_describes_them() {
    let client = over_http().await;
    let (document, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    let without_key = client.with_key("");
    let lacking = client.scoped(&["settings:read"]).await;
    let mut validators = HashMap::new();
    let mut bodies = 0;
    for operation in by_method(&operations, &METHODS) {
        let mut replies = vec![operation.send(&without_key, &samples).await, operation.send(&lacking, &samples).await];
        if ["PATCH", "PUT", "POST"].contains(&operation.method.as_str()) {
            let path = samples.path(&operation.path);
            replies.push(client.send(&operation.method, &path, Some("application/json"), r#"{"colour":1}"#).await);
        }
        if operation.is_write() {
            replies.push(operation.send_dry_run(&client, &samples).await);
        }
        replies.push(operation.send(&client, &samples).await);
        for reply in replies.into_iter().filter(|reply| !is_dry_run_of_creation(&operation.description, reply)) {
            let status = reply.status.as_str();
            let described = response(&operation.description, status);
            let described =
                described.unwrap_or_else(|| panic!("{operation} responds with {status}, which is not listed: {}", reply.text()));
            let media_type = reply.header("content-type").split(';').next().unwrap();
            let schema = &described["content"][media_type]["schema"];
            assert!(!schema.is_null(), "{operation} {status} has a body of {media_type}, which is not listed");
            if ["image/png", "image/svg+xml", "text/csv", "text/html"].contains(&media_type) {
                continue;
            }
            // Compiling is slow in a debug build, and most operations share their schemas.
            let validator = validators.entry(schema.to_string()).or_insert_with(|| {
                let schema = json!({"allOf": [schema], "components": document["components"]});
                jsonschema::validator_for(&schema).unwrap()
            });
            let errors: Vec<String> = validator.iter_errors(&reply.json()).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{operation} {status}: {errors:?} in {}", reply.text());
            bodies += 1;
        }
    }
    assert!(bodies > 120, "only {bodies} bodies");
}
