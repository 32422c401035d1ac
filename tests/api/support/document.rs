//! The served OpenAPI document, and a check of all responses in all tests against it: the document must list each status, and
//! the code of each 409.

use super::client::Reply;
use serde_json::Value;
pub use shared::http::routes::BASE;
use std::sync::LazyLock;

pub fn served_document() -> Value {
    serde_json::from_str(meta::DOCUMENT).unwrap()
}

/// Returns the response for this status, or for its range or `default`.
pub fn response<'a>(operation: &'a Value, status: &str) -> Option<&'a Value> {
    let responses = &operation["responses"];
    let any = responses.get(format!("{}XX", &status[..1])).or(responses.get("default"));
    let any = any.filter(|any| any["description"].as_str().unwrap().contains(&format!("\n- {status} `")));
    responses.get(status).or(any)
}

/// Whether this is the response to a dry run of a creation. The document describes such a response only in the text of the
/// parameter `dry_run`; `dry_run.rs` compares it with the real response.
pub fn is_dry_run_of_creation(operation: &Value, reply: &Reply) -> bool {
    reply.header("dry-run") == "true" && reply.status == 200 && operation["responses"].get("201").is_some()
}

/// Resolves the operation's references to parameters and responses.
pub fn with_components(document: &Value, operation: &Value) -> Value {
    let mut operation = operation.clone();
    let parameters = operation["parameters"].as_array_mut().into_iter().flatten();
    for parameter in parameters {
        *parameter = at(document, parameter).clone();
    }
    for response in operation["responses"].as_object_mut().unwrap().values_mut() {
        *response = at(document, response).clone();
    }
    operation
}

/// Resolves a `$ref` within the document.
pub fn at<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(target) => document.pointer(&target[1..]).unwrap_or_else(|| panic!("{target} leads nowhere")),
        None => value,
    }
}

struct Described {
    method: String,
    path: Vec<String>,
    operation: Value,
}

static OPERATIONS: LazyLock<Vec<Described>> = LazyLock::new(|| {
    let document = served_document();
    let mut described = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let path = format!("{BASE}{path}").split('/').map(str::to_owned).collect();
            described.push(Described { method: method.to_uppercase(), path, operation: with_components(&document, operation) });
        }
    }
    // Literal segments take precedence over parameters.
    described.sort_by_key(|operation| operation.path.iter().filter(|part| part.starts_with('{')).count());
    described
});

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = if method == "HEAD" { "GET" } else { method };
    let parts: Vec<&str> = path.split('/').collect();
    let matches = |template: &[String]| {
        template.len() == parts.len()
            && template
                .iter()
                .zip(&parts)
                .all(|(template, part)| template == part || template.starts_with('{') && !part.is_empty())
    };
    // The first matching path decides, regardless of its methods.
    let template = &OPERATIONS.iter().find(|operation| matches(&operation.path))?.path;
    let found = OPERATIONS.iter().find(|operation| operation.method == method && operation.path == *template)?;
    Some(&found.operation)
}

/// Checks a response, unless the request has no route.
#[track_caller]
pub fn check_described(method: &str, path: &str, reply: &Reply) {
    let Some(operation) = operation(method, path) else { return };
    if is_dry_run_of_creation(operation, reply) {
        return;
    }
    // Some tests send requests to a single function, which lacks the other functions' routes.
    if reply.status == 404 && reply.text().contains("This path doesn't exist.") {
        return;
    }
    let described = response(operation, reply.status.as_str());
    let described = described
        .unwrap_or_else(|| panic!("{method} {path} responds with {}, which is not listed: {}", reply.status, reply.text()));
    if reply.status == 409 && method != "HEAD" {
        let body: Value = serde_json::from_slice(&reply.bytes).unwrap();
        let code = body["code"].as_str().unwrap();
        let codes = described["description"].as_str().unwrap();
        assert!(codes.contains(&format!("`{code}`")), "{method} {path} responds with {code}, which is not listed in: {codes}");
    }
}
