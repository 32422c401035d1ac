//! The event that every change writes, and the sample events in `events/`.

use crate::support::functions::Function;
use crate::support::operations::{by_method, operations};
use crate::support::samples::{Samples, event_count};
use crate::support::table::history::event_chain;
use crate::support::{Api, call, gateway};
use serde_json::{Value, json};
use std::path::Path;

#[tokio::test(start_paused = true)]
async fn every_change_writes_an_event() {
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
    let events = event_chain(&api, &client, &id).await;
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["asset.created", "asset.updated", "asset.updated", "asset.deleted"]);
    let actor = json!({"key_id": made["id"], "key_name": "ada's", "user_id": user, "user_name": "Ada"});
    assert_eq!(events[0]["actor"], actor);
    assert_eq!(events[2]["actor"]["user_id"], Value::Null);
    assert_eq!(events[0]["changes"]["asset_tag"], json!({"old": null, "new": "AST-000001"}));
    assert_eq!(events[1]["changes"], json!({"name": {"old": "x", "new": "y"}, "purchase_price": {"old": "2499", "new": null}}));
    assert_eq!(events[2]["changes"], json!({"status": {"old": "in_stock", "new": "scrapped"}}));
    assert_eq!(events[3]["changes"]["name"], json!({"old": "y", "new": null}));
    assert_eq!(event_chain(&api, &client, &user).await.len(), 2);
    assert_eq!(event_chain(&api, &client, made["id"].as_str().unwrap()).await.len(), 1);
}

/// For refused requests, `coverage` compares the whole table; this test counts the events of successful ones.
#[tokio::test(start_paused = true)]
async fn every_successful_write_adds_one_event_for_each_changed_record() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let (_, operations) = operations(&client).await;
    let count = async || api.dump().await.0.iter().filter(|item| item.contains(r#"type: S("event")"#)).count();
    let mut before = count().await;
    for operation in by_method(&operations, &["POST", "PATCH", "PUT", "DELETE"]) {
        let reply = operation.send(&client, &samples).await;
        assert!(reply.status.is_success(), "{operation}: {}", reply.text());
        let after = count().await;
        assert_eq!(after, before + event_count(&operation.method, &operation.path), "{operation}");
        before = after;
    }
}

#[tokio::test(start_paused = true)]
async fn each_sample_event_gets_the_status_in_its_name() {
    let (api, client) = Api::with_tenant().await;
    let routes = gateway::routes();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../events");
    let mut seen = 0;
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // The events in `background` are no requests.
    let functions = entries(&folder).filter(|function| !function.ends_with("background"));
    let mut files: Vec<_> = functions.flat_map(|function| entries(&function)).collect();
    files.sort();
    for file in files {
        let name = file.strip_prefix(&folder).unwrap().with_extension("").to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        // A new one for each, because one of them is deleted.
        let asset = client.asset(json!({"name": "Laptop"})).await;
        let text = text.replace("apl_REPLACE_WITH_YOUR_KEY", &client.key).replace("REPLACE_WITH_AN_ASSET_ID", &asset);
        let request = lambda_http::request::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let event: Value = serde_json::from_str(&text).unwrap();
        let route = gateway::select(&routes, request.method().as_str(), request.uri().path());
        assert_eq!((&event["routeKey"], &event["requestContext"]["routeKey"]), (&json!(route.key), &json!(route.key)), "{name}");
        assert_eq!(route.function.package, Function::named(name.split('/').next().unwrap()).package, "{name}");
        let router = route.function.router(api.store.clone());
        let reply = call(&router, request.map(axum::body::Body::new)).await;
        let expected: u16 =
            name.rsplit('-').next().unwrap().parse().unwrap_or_else(|_| panic!("{name} does not end in a status"));
        assert_eq!(reply.status.as_u16(), expected, "{name}: {}", reply.text());
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} events");
}
