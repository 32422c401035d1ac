//! The audit trail that every change writes (contract 6), and the sample events of `events/`.

use crate::support::functions::Function;
use crate::support::{Api, Client};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use shared::domain::event::hash;

/// The events of one thing, oldest first, after checking that they form a chain that ends at the thing itself.
pub async fn chain(api: &Api, client: &Client, id: &str) -> Vec<Value> {
    let partition = shared::store::keys::Keys::of(client.tenant).partition();
    let query = api.dynamo.query().table_name(&api.table).key_condition_expression("PK = :pk");
    let mut pages = query.expression_attribute_values(":pk", partition).into_paginator().send();
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut last_hash = None;
    while let Some(page) = pages.next().await {
        for item in page.unwrap().items() {
            let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
            match item.get("type").and_then(|value| value.as_s().ok()).map(String::as_str) {
                Some("event") => entries.push((text("entry").unwrap(), text("hash").unwrap())),
                _ if text("id").as_deref() == Some(id) => last_hash = text("last_hash"),
                _ => {}
            }
        }
    }
    let mut events: Vec<Value> = Vec::new();
    let mut previous = Value::Null;
    let mut own: Vec<(Value, String, String)> = entries
        .into_iter()
        .map(|(entry, hash)| (serde_json::from_str::<Value>(&entry).unwrap(), entry, hash))
        .filter(|(event, ..)| event["entity_id"] == id)
        .collect();
    own.sort_by_key(|(event, ..)| event["version"].as_u64());
    for (place, (event, entry, stored)) in own.into_iter().enumerate() {
        assert_eq!(event["version"], place + 1, "a version is missing or doubled");
        assert_eq!(event["previous_hash"], previous, "the chain is broken");
        assert_eq!(hash(&entry), stored);
        previous = json!(stored);
        events.push(event);
    }
    if let Some(last) = last_hash {
        assert_eq!(previous, json!(last), "the thing does not carry its latest hash");
    }
    events
}

#[tokio::test]
async fn every_change_writes_its_event() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let made =
        client.post("/keys", json!({"name": "ada's", "scopes": ["assets:read", "assets:write"], "user_id": user})).await.data();
    client.patch(&format!("/users/{user}"), json!({"role": "admin"})).await.data();
    let ada = client.with_key(made["api_key"].as_str().unwrap());
    let id = ada.asset(json!({"name": "x", "purchase_price": 2499})).await;
    let path = format!("/assets/{id}");
    ada.patch(&path, json!({"name": "y", "purchase_price": null})).await.data();
    ada.patch(&path, json!({"name": "y"})).await.data();
    client.patch(&path, json!({"status": "scrapped"})).await.data();
    client.delete(&path).await;
    let events = chain(&api, &client, &id).await;
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["asset.created", "asset.updated", "asset.updated", "asset.deleted"]);
    let actor = json!({"key_id": made["id"], "key_name": "ada's", "user_id": user, "user_name": "Ada"});
    assert_eq!(events[0]["actor"], actor);
    assert_eq!(events[2]["actor"]["user_id"], Value::Null);
    assert_eq!(events[0]["changes"]["asset_tag"], json!({"old": null, "new": "AST-000001"}));
    assert_eq!(events[1]["changes"], json!({"name": {"old": "x", "new": "y"}, "purchase_price": {"old": "2499", "new": null}}));
    assert_eq!(events[2]["changes"], json!({"status": {"old": "in_stock", "new": "scrapped"}}));
    assert_eq!(events[3]["changes"]["name"], json!({"old": "y", "new": null}));
    assert_eq!(chain(&api, &client, &user).await.len(), 2);
    assert_eq!(chain(&api, &client, made["id"].as_str().unwrap()).await.len(), 1);
}

/// One change of every kind writes exactly one event: a new route is covered by `coverage`, which compares whole
/// tables for refused requests; this compares counts for accepted ones.
#[tokio::test]
async fn every_accepted_write_adds_one_event() {
    let (api, client) = Api::with_tenant().await;
    let samples = crate::support::samples::Samples::of(&client).await;
    let document = client.get("/openapi.json").await.json();
    let count = async || api.dump().await.0.iter().filter(|item| item.contains(r#"type: S("event")"#)).count();
    for method in ["post", "patch", "delete"] {
        for (path, item) in document["paths"].as_object().unwrap() {
            if item.get(method).is_none() || (method == "post" && path == "/v1/catalog/models") {
                continue;
            }
            let before = count().await;
            let body = samples.body(&method.to_uppercase(), path).to_string();
            let filled = samples.fill(path);
            let reply =
                client.send(&method.to_uppercase(), filled.strip_prefix("/v1").unwrap(), Some("application/json"), body).await;
            assert!(reply.status.is_success(), "{method} {path}: {}", reply.text());
            assert_eq!(count().await, before + crate::support::samples::events(method, path), "{method} {path}");
        }
    }
}

/// The function that an event file is for, by the beginning of its name.
fn function_of(name: &str) -> &'static Function {
    match name.split('-').next().unwrap() {
        "settings" | "keys" | "events" => Function::named("account"),
        package => Function::named(package),
    }
}

#[tokio::test]
async fn each_sample_event_is_answered_as_its_name_says() {
    let (api, client) = Api::with_tenant().await;
    let asset = prepare(&api, &client).await;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../events");
    let mut seen = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("apl_REPLACE_WITH_YOUR_KEY", &client.key).replace("REPLACE_WITH_AN_ASSET_ID", &asset);
        let request = lambda_http::request::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let router = function_of(&name).router(api.store.clone());
        let reply = crate::support::call(&router, request.map(axum::body::Body::new)).await;
        let expected: u16 =
            name.rsplit('-').next().unwrap().parse().unwrap_or_else(|_| panic!("{name} does not end in a status"));
        assert_eq!(reply.status.as_u16(), expected, "{name}: {}", reply.text());
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} events");
}

async fn prepare(api: &Api, client: &Client) -> String {
    let exists = api
        .dynamo
        .get_item()
        .table_name(&api.table)
        .key("PK", AttributeValue::S("x".into()))
        .key("SK", AttributeValue::S("x".into()));
    assert!(exists.send().await.unwrap().item.is_none());
    client.asset(json!({"name": "Laptop"})).await
}
