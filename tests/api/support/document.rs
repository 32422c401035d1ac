//! The OpenAPI document that the service serves.

use super::response::Reply;
use serde_json::Value;
pub use shared::http::endpoints::BASE;

/// As the service serves it.
pub fn served_document() -> Value {
    serde_json::from_str(meta::DOCUMENT).unwrap()
}

/// Under this status, or under its range or `default` if that names it.
pub fn response<'a>(operation: &'a Value, status: &str) -> Option<&'a Value> {
    let responses = &operation["responses"];
    let any = responses.get(format!("{}XX", &status[..1])).or(responses.get("default"));
    let any = any.filter(|any| any["description"].as_str().unwrap().contains(&format!("\n- {status} `")));
    responses.get(status).or(any)
}

/// The reply to a dry run that would create something: the parameter describes it, and `dry_run.rs` compares it with the real one.
pub fn is_dry_run_of_creation(operation: &Value, reply: &Reply) -> bool {
    reply.header("dry-run") == "true" && reply.status == 200 && operation["responses"].get("201").is_some()
}

/// With the parameters and responses that it refers to.
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

/// Follows a `$ref` within the document.
pub fn at<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(target) => document.pointer(&target[1..]).unwrap_or_else(|| panic!("{target} leads nowhere")),
        None => value,
    }
}
