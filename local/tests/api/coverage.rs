//! What must hold for every route, found by walking the OpenAPI document: a new route is covered at once.

use crate::support::samples::{OPEN, Samples};
use crate::support::{Api, Client, Reply};
use serde_json::Value;
use shared::domain::scope::Scope;

/// An operation of the document.
pub struct Operation {
    pub method: String,
    pub path: String,
    pub scope: Option<String>,
    pub description: Value,
}

pub async fn operations(client: &Client) -> (Value, Vec<Operation>) {
    let document = client.get("/openapi.json").await.json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, value)| value.get("responses").is_some()) {
            let scope = operation["security"][0]["api_key"][0].as_str().map(str::to_owned);
            let open = OPEN.contains(&path.as_str());
            assert_eq!(scope.is_none(), open, "{method} {path} needs a scope");
            operations.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                scope,
                description: operation.clone(),
            });
        }
    }
    assert!(operations.len() >= 30, "only {} operations", operations.len());
    (document, operations)
}

async fn call(client: &Client, operation: &Operation, samples: &Samples) -> Reply {
    let path = samples.fill(&operation.path);
    let body = samples.body(&operation.method, &operation.path);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.send(&operation.method, path.strip_prefix("/v1").unwrap(), Some("application/json"), body).await
}

#[tokio::test]
async fn without_a_valid_key_every_route_answers_the_same_401() {
    let (api, client) = Api::with_tenant().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::of(&client).await;
    let other = api.tenant().await;
    let (revoked, expired) = (client.scoped(&["assets:read"]).await, client.clone());
    let id = client.get("/keys?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    client.delete(&format!("/keys/{id}")).await.data();
    let mut mistyped = client.key.clone();
    mistyped.replace_range(40..41, if &mistyped[40..41] == "0" { "1" } else { "0" });
    let before = api.dump().await;
    let foreign = shared::domain::token::Token::parse(&client.key).unwrap();
    let stolen = shared::domain::token::Token::new(other.tenant, foreign.key, foreign.secret).expose();
    for operation in operations.iter().filter(|operation| operation.scope.is_some()) {
        for key in ["", "x", "apl_", &mistyped, &revoked.key, &stolen] {
            let reply = call(&expired.with_key(key), operation, &samples).await;
            let problem = reply.problem(401, "UNAUTHORIZED");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
            assert_eq!(problem["detail"], "Send a valid API key as 'Authorization: Bearer <API_KEY>'.");
        }
    }
    assert_eq!(api.dump().await, before, "a refused request changed something");
}

#[tokio::test]
async fn every_route_needs_the_scope_that_its_description_names_and_no_other() {
    let (api, client) = Api::with_tenant().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::of(&client).await;
    for operation in &operations {
        let Some(scope) = operation.scope.as_deref() else { continue };
        let others: Vec<&str> = Scope::ALL.iter().map(|s| s.as_str()).filter(|s| *s != scope).collect();
        let lacking = client.scoped(&others).await;
        let before = api.dump().await;
        let reply = call(&lacking, operation, &samples).await;
        let problem = reply.problem(403, "FORBIDDEN");
        assert_eq!(problem["scope"], scope, "{} {}", operation.method, operation.path);
        assert_eq!(api.dump().await, before, "{} {} changed something", operation.method, operation.path);
    }
    // Readers first, so that what a deletion takes is still there for them.
    for method in ["GET", "PATCH", "POST", "DELETE"] {
        for operation in operations.iter().filter(|operation| operation.method == method) {
            let Some(scope) = operation.scope.as_deref() else { continue };
            let reply = call(&client.scoped(&[scope]).await, operation, &samples).await;
            let granting = operation.path.starts_with("/v1/keys") && method == "POST";
            let step = operation.path.ends_with("/advance") || operation.path.ends_with("/cancel");
            let expected = if step {
                200
            } else if granting {
                403
            } else if method == "POST" {
                201
            } else {
                200
            };
            assert_eq!(reply.status.as_u16(), expected, "{method} {}: {}", operation.path, reply.text());
        }
    }
}

#[tokio::test]
async fn another_tenants_things_look_as_if_they_were_not_there() {
    let (api, owner) = Api::with_tenant().await;
    let stranger = api.tenant().await;
    let (_, operations) = operations(&owner).await;
    let samples = Samples::of(&owner).await;
    let nobodys = "01890a5d-ac96-774b-bcce-b302099a8057";
    let before = api.dump().await;
    for operation in operations.iter().filter(|operation| operation.path.contains("{id}")) {
        let theirs = call(&stranger, operation, &samples).await.problem(404, "NOT_FOUND");
        let path = operation.path.replace("{id}", nobodys);
        let body = samples.body(&operation.method, &operation.path);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let none = stranger.send(&operation.method, path.strip_prefix("/v1").unwrap(), Some("application/json"), body).await;
        let none = none.problem(404, "NOT_FOUND");
        assert_eq!(theirs["detail"], none["detail"], "the two answers differ");
    }
    assert_eq!(api.dump().await, before);
    for operation in operations.iter().filter(|operation| operation.method == "GET" && !operation.path.contains("{id}")) {
        let reply = call(&stranger, operation, &samples).await;
        let samples = ["Sample", "Unused", "sample"];
        assert!(
            !samples.iter().any(|text| reply.text().contains(&format!("\"{text}"))) || operation.path == "/v1/openapi.json",
            "{}",
            reply.text()
        );
        if let Some(total) = reply.json()["meta"]["total"].as_u64() {
            let own = match operation.path.as_str() {
                "/v1/keys" => 1,
                "/v1/processes" => 7,
                _ => 0,
            };
            assert_eq!(total, own, "{}", operation.path);
        }
    }
}

#[tokio::test]
async fn every_answer_has_an_id_and_is_not_stored() {
    let (_api, client) = Api::with_tenant().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::of(&client).await;
    let mut ids = std::collections::BTreeSet::new();
    for operation in &operations {
        for key in ["", client.key.as_str()] {
            let reply = call(&client.with_key(key), operation, &samples).await;
            assert_eq!(reply.header("cache-control"), "no-store");
            assert!(ids.insert(reply.header("x-request-id").to_owned()), "an id came twice");
        }
    }
}

#[tokio::test]
async fn get_works_as_head_and_other_methods_are_405_with_allow() {
    let (_api, client) = Api::with_tenant().await;
    let (document, operations) = operations(&client).await;
    let samples = Samples::of(&client).await;
    for operation in operations.iter().filter(|operation| operation.method == "GET") {
        let path = samples.fill(&operation.path);
        let path = path.strip_prefix("/v1").unwrap();
        for key in [client.key.as_str(), ""] {
            let client = client.with_key(key);
            let (head, get) = (client.send("HEAD", path, None, "").await, client.get(path).await);
            assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
            assert_eq!(head.header("content-length"), get.bytes.len().to_string(), "{path}");
        }
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        let filled = samples.fill(path);
        let reply = client.with_key("").send("PUT", filled.strip_prefix("/v1").unwrap(), None, "").await;
        reply.problem(405, "METHOD_NOT_ALLOWED");
        let allowed: Vec<&str> = reply.header("allow").split(',').collect();
        for method in ["get", "post", "patch", "delete"] {
            assert_eq!(allowed.contains(&method.to_uppercase().as_str()), item.get(method).is_some(), "{path} {method}");
        }
    }
}

#[tokio::test]
async fn unknown_query_parameters_are_refused_by_name_everywhere() {
    let (_api, client) = Api::with_tenant().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::of(&client).await;
    for operation in operations.iter().filter(|operation| operation.scope.is_some()) {
        let path = format!("{}?colour=red", samples.fill(&operation.path));
        let body = samples.body(&operation.method, &operation.path).to_string();
        let reply = client.send(&operation.method, path.strip_prefix("/v1").unwrap(), Some("application/json"), body).await;
        assert_eq!(reply.field_errors(), ["colour"], "{} {}", operation.method, operation.path);
    }
}

/// Follows a `$ref` within the document.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(target) => document.pointer(&target[1..]).unwrap_or_else(|| panic!("{target} leads nowhere")),
        None => schema,
    }
}

#[tokio::test]
async fn bodies_are_described_as_they_are_read() {
    let (_api, client) = Api::with_tenant().await;
    let (document, operations) = operations(&client).await;
    let samples = Samples::of(&client).await;
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
        let schema = resolved(&document, schema);
        let fields = schema["properties"].as_object().unwrap_or_else(|| panic!("{} has no fields", operation.path));
        // No field takes an empty array of arrays; each must be refused under its own name, and nothing else.
        let wrong: serde_json::Map<String, Value> = fields.keys().map(|name| (name.clone(), serde_json::json!([[]]))).collect();
        let path = samples.fill(&operation.path);
        let path = path.strip_prefix("/v1").unwrap();
        let reply = client.send(&operation.method, path, Some("application/json"), Value::Object(wrong).to_string()).await;
        let mut expected: Vec<String> = fields.keys().map(|name| format!("/{name}")).collect();
        expected.sort();
        // A fault within a list names the place in the list.
        let found: Vec<String> =
            reply.field_errors().iter().map(|place| place.split('/').take(2).collect::<Vec<_>>().join("/")).collect();
        assert_eq!(found, expected, "{} {}", operation.method, operation.path);

        let reply = client.send(&operation.method, path, Some("application/json"), r#"{"colour":"red"}"#).await;
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut expected: Vec<String> = required.iter().map(|name| format!("/{}", name.as_str().unwrap())).collect();
        expected.push("/colour".into());
        expected.sort();
        assert_eq!(reply.field_errors(), expected, "{} {}", operation.method, operation.path);
        seen += 1;
    }
    assert!(seen >= 12, "only {seen} bodies");
}

#[tokio::test]
async fn the_document_is_openapi_3_1_and_refers_to_nothing_that_is_not_there() {
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
    let (_api, client) = Api::with_tenant().await;
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
    assert_eq!(ids.len(), operations.len(), "two operations share an id");
}

/// Every answer, good or bad, is as the document says: a status that it lists, and a body that fits its schema.
#[tokio::test]
async fn answers_are_as_the_document_describes_them() {
    let (_api, client) = Api::with_tenant().await;
    let (document, operations) = operations(&client).await;
    let samples = Samples::of(&client).await;
    let nobody = client.with_key("");
    let lacking = client.scoped(&["settings:read"]).await;
    let mut bodies = 0;
    for method in ["GET", "PATCH", "POST", "DELETE"] {
        for operation in operations.iter().filter(|operation| operation.method == method) {
            let path = samples.fill(&operation.path).strip_prefix("/v1").unwrap().to_owned();
            let bad_body = client.send(method, &path, Some("application/json"), r#"{"colour":1}"#);
            let mut replies = vec![call(&nobody, operation, &samples).await, call(&lacking, operation, &samples).await];
            if method == "PATCH" || method == "POST" {
                replies.push(bad_body.await);
            }
            replies.push(call(&client, operation, &samples).await);
            for reply in replies {
                let status = reply.status.as_str();
                let described = &operation.description["responses"][status];
                assert!(
                    !described.is_null(),
                    "{method} {path} answers {status}, which the document does not list: {}",
                    reply.text()
                );
                let media_type = reply.header("content-type");
                let schema = &described["content"][media_type]["schema"];
                assert!(!schema.is_null(), "{method} {path} {status} answers {media_type}");
                if media_type == "image/png" {
                    continue;
                }
                let whole = serde_json::json!({"allOf": [schema], "components": document["components"]});
                let validator = jsonschema::validator_for(&whole).unwrap();
                let faults: Vec<String> = validator.iter_errors(&reply.json()).map(|error| error.to_string()).collect();
                assert!(faults.is_empty(), "{method} {path} {status}: {faults:?} in {}", reply.text());
                bodies += 1;
            }
        }
    }
    assert!(bodies > 120, "only {bodies} bodies");
}
