//! Examples of requests, responses and problem documents in the OpenAPI document. A test records them from real ones in
//! docs/openapi-examples.json.

use super::names::{operations, reference};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Read whenever the document is made, so that one run of the tests can record it and use it.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi-examples.json");

type ByMediaType = BTreeMap<String, Value>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct OperationExamples {
    request: ByMediaType,
    responses: BTreeMap<String, ByMediaType>,
}

#[derive(Default, Deserialize)]
struct Examples {
    operations: BTreeMap<String, OperationExamples>,
    problems: BTreeMap<String, Value>,
}

/// Empty for a file that is missing or damaged: the tests notice that.
fn read() -> Examples {
    std::fs::read(FILE).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Adds its examples to every operation of the document: to the request body and to successful responses. Error responses get
/// an example for each code that they name.
pub(super) fn add_to(document: &mut Value) {
    let Examples { operations: examples, problems } = read();
    add_problems(document, problems);
    // Operations can share responses.
    let mut shared = document.pointer_mut("/components/responses").map(Value::take);
    for operation in operations(document) {
        let id = operation.get("operationId").and_then(Value::as_str);
        if let Some(examples) = id.and_then(|id| examples.get(id)) {
            examples.add_to(operation, shared.as_mut());
        }
    }
    if let Some((place, shared)) = document.pointer_mut("/components/responses").zip(shared) {
        *place = shared;
    }
}

/// Adds the problem documents to the components, and refers to them.
fn add_problems(document: &mut Value, problems: BTreeMap<String, Value>) {
    let mut used = Map::new();
    for (_, response) in document.pointer_mut("/components").into_iter().flat_map(|components| members(components, "responses")) {
        let description = response["description"].as_str().unwrap_or_default();
        // The codes that a description explains: `CODE`: …
        let explained = description.split("`:").filter_map(|before| before.rsplit('`').next());
        let codes: Vec<(String, &Value)> = explained.filter_map(|code| Some((code.to_owned(), problems.get(code)?))).collect();
        for (_, content) in members(response, "content").filter(|(media_type, _)| *media_type == "application/problem+json") {
            let examples: Map<String, Value> =
                codes.iter().map(|(code, _)| (code.clone(), reference("examples", code))).collect();
            if !examples.is_empty() {
                content["examples"] = examples.into();
            }
        }
        used.extend(codes.into_iter().map(|(code, problem)| (code, json!({"value": problem}))));
    }
    if let Some(components) = document.get_mut("components") {
        components["examples"] = used.into();
    }
}

impl OperationExamples {
    fn add_to(&self, operation: &mut Value, mut shared: Option<&mut Value>) {
        if let Some(body) = operation.get_mut("requestBody") {
            add(&self.request, body);
        }
        for (status, response) in members(operation, "responses") {
            let name = response.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            let response = match name {
                Some(name) => shared.as_mut().and_then(|shared| shared.get_mut(name)),
                None => Some(response),
            };
            if let Some((examples, response)) = self.responses.get(status).zip(response) {
                add(examples, response);
            }
        }
    }
}

/// Adds examples to a request body or a response, where there are none.
fn add(examples: &ByMediaType, body: &mut Value) {
    for (media_type, content) in members(body, "content") {
        if let Some((content, example)) = content.as_object_mut().zip(examples.get(media_type)) {
            content.entry("example").or_insert_with(|| example.clone());
        }
    }
}

fn members<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = (&'a String, &'a mut Value)> {
    object.get_mut(name).and_then(Value::as_object_mut).into_iter().flatten()
}
