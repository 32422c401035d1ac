//! Examples of requests, responses and problem documents in the OpenAPI document, which a test records from real requests.

use super::shape::{operations, reference};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type ByMediaType = BTreeMap<String, Value>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct OperationExamples {
    request: ByMediaType,
    responses: BTreeMap<String, ByMediaType>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Examples {
    operations: BTreeMap<String, OperationExamples>,
    problems: BTreeMap<String, Value>,
    webhooks: BTreeMap<String, Value>,
}

impl Examples {
    /// Adds the examples of all operations: to the schema if it is named, otherwise to the operation. Error responses get an
    /// example for each code that they list.
    pub(super) fn add_to(self, document: &mut Value) {
        add_problems(document, self.problems);
        if let Some(content) = document.pointer_mut("/webhooks/event/post/requestBody/content/application~1json") {
            content["examples"] = self.webhooks.into_iter().map(|(kind, value)| (kind, json!({"value": value}))).collect();
        }
        let mut components = document.get_mut("components").map(Value::take).unwrap_or_default();
        for operation in operations(document) {
            let id = operation.get("operationId").and_then(Value::as_str);
            if let Some(examples) = id.and_then(|id| self.operations.get(id)) {
                examples.add_to(operation, &mut components);
            }
        }
        document["components"] = components;
    }
}

/// Adds the problem documents to the components. The first response that lists a code shows that code's problem document; a
/// response without such a code shows one that is already used.
fn add_problems(document: &mut Value, problems: BTreeMap<String, Value>) {
    let mut used = Map::new();
    for (_, response) in document.pointer_mut("/components").into_iter().flat_map(|components| members(components, "responses")) {
        let description = response["description"].as_str().unwrap_or_default();
        let quoted = description.split('`').skip(1).step_by(2);
        let codes: Vec<(String, &Value)> = quoted.filter_map(|code| Some((code.to_owned(), problems.get(code)?))).collect();
        for (_, content) in members(response, "content").filter(|(media_type, _)| *media_type == "application/problem+json") {
            let mut shown: Vec<&String> = codes.iter().map(|(code, _)| code).filter(|code| !used.contains_key(*code)).collect();
            if shown.is_empty() {
                shown.extend(codes.iter().map(|(code, _)| code).take(1));
            }
            let examples: Map<String, Value> =
                shown.into_iter().map(|code| (code.clone(), reference("examples", code))).collect();
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
    fn add_to(&self, operation: &mut Value, components: &mut Value) {
        if let Some(body) = operation.get_mut("requestBody") {
            add(&self.request, body, None);
        }
        for (status, response) in members(operation, "responses") {
            if let Some(examples) = self.responses.get(status) {
                add(examples, response, Some(&mut components["schemas"]));
            }
        }
    }
}

/// Adds missing examples: JSON to the schemas if there are any, everything else to the body.
fn add(examples: &ByMediaType, body: &mut Value, mut schemas: Option<&mut Value>) {
    for (media_type, content) in members(body, "content") {
        let Some(example) = examples.get(media_type) else { continue };
        if let Some(schemas) = schemas.as_deref_mut().filter(|_| media_type == "application/json") {
            add_to_schema(&content["schema"], example, schemas);
        } else if let Some(content) = content.as_object_mut() {
            content.entry("example").or_insert_with(|| example.clone());
        }
    }
}

/// Adds an example to its schema unless it has one, so that all operations on a record share it. For envelopes and lists, adds
/// examples to their parts: viewers build the whole from them.
fn add_to_schema(schema: &Value, example: &Value, schemas: &mut Value) {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let schema = name.map_or_else(|| schema.clone(), |name| schemas[name].clone());
    if let Some(choice) = ["anyOf", "oneOf"].iter().find_map(|choices| schema[choices].get(0)) {
        add_to_schema(choice, example, schemas);
    } else if let Some((items, first)) = schema.get("items").zip(example.get(0)) {
        add_to_schema(items, first, schemas);
    } else if let Some(parts) = schema["properties"].as_object().filter(|parts| is_envelope(parts)) {
        for (member, part) in parts {
            if let Some(example) = example.get(member) {
                add_to_schema(part, example, schemas);
            }
        }
    } else if let Some(name) = name.filter(|_| schema["examples"].is_null()) {
        schemas[name]["examples"] = json!([example]);
    }
}

/// Whether the object is an envelope: it has a response's `data`, and otherwise only members that a viewer can build.
fn is_envelope(members: &Map<String, Value>) -> bool {
    members.contains_key("data") && members.keys().all(|name| ["data", "meta", "verification"].contains(&name.as_str()))
}

fn members<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = (&'a String, &'a mut Value)> {
    object.get_mut(name).and_then(Value::as_object_mut).into_iter().flatten()
}
