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
#[serde(default)]
struct Examples {
    operations: BTreeMap<String, OperationExamples>,
    problems: BTreeMap<String, Value>,
    webhooks: BTreeMap<String, Value>,
}

/// Empty for a file that is missing or damaged: the tests notice that.
fn read() -> Examples {
    std::fs::read(FILE).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Adds the examples of all operations: what a schema has a name for, to that schema, and other bodies to the operation. Error
/// responses get an example for each code that they name.
pub(super) fn add_to(document: &mut Value) {
    let Examples { operations: examples, problems, webhooks } = read();
    add_problems(document, problems);
    if let Some(content) = document.pointer_mut("/webhooks/event/post/requestBody/content/application~1json") {
        content["examples"] = webhooks.into_iter().map(|(kind, value)| (kind, json!({"value": value}))).collect();
    }
    let mut components = document.get_mut("components").map(Value::take).unwrap_or_default();
    for operation in operations(document) {
        let id = operation.get("operationId").and_then(Value::as_str);
        if let Some(examples) = id.and_then(|id| examples.get(id)) {
            examples.add_to(operation, &mut components);
        }
    }
    document["components"] = components;
}

/// Adds the problem documents to the components. Each is shown by the first response that names its code, and each response shows
/// one.
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
            // A response that several operations have: its examples are those of its schema.
            let name = response.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            let mut shared = name.map(|name| components["responses"][name].clone());
            let examples: ByMediaType = self.responses.get(status).into_iter().flatten().map(abbreviated).collect();
            add(&examples, shared.as_mut().unwrap_or(response), Some(&mut components["schemas"]));
        }
    }
}

/// The example of a response with one element of each list of objects, or one row.
fn abbreviated((media_type, example): (&String, &Value)) -> (String, Value) {
    fn shorten(value: &mut Value) {
        match value {
            Value::Array(items) => {
                if items.iter().all(Value::is_object) {
                    items.truncate(1);
                }
                items.iter_mut().for_each(shorten);
            }
            Value::Object(members) => members.values_mut().for_each(shorten),
            _ => {}
        }
    }
    let mut example = example.clone();
    shorten(&mut example);
    // CSV has a header row.
    let lines = if media_type == "text/csv" { 2 } else { 1 };
    if let Value::String(rows) = &mut example {
        *rows = rows.split_inclusive('\n').take(lines).collect();
    }
    (media_type.clone(), example)
}

/// Adds examples where there are none: those of JSON to the schemas if there are any, the others to the body.
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

/// Adds an example to the schema that it is of, unless it has one: one record serves all operations on it. The parts of
/// `{"data": …}` get theirs, from which viewers build that of the whole.
fn add_to_schema(schema: &Value, example: &Value, schemas: &mut Value) {
    if let Some(choice) = ["anyOf", "oneOf"].iter().find_map(|choices| schema.pointer(&format!("/{choices}/0"))) {
        return add_to_schema(choice, example, schemas);
    }
    if let Some((items, first)) = schema.get("items").zip(example.get(0)) {
        return add_to_schema(items, first, schemas);
    }
    let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else { return };
    let named = schemas[name].clone();
    if named["anyOf"].is_array() || named["oneOf"].is_array() {
        add_to_schema(&named, example, schemas);
    } else if named["required"].as_array().is_some_and(|names| names.contains(&json!("data")) && !names.contains(&json!("index")))
    {
        for (member, schema) in named["properties"].as_object().into_iter().flatten() {
            if let Some(example) = example.get(member) {
                add_to_schema(schema, example, schemas);
            }
        }
    } else if let Some(parts) = named["allOf"].as_array() {
        for (index, part) in parts.iter().enumerate() {
            match part["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
                Some(base) => add_to_schema(part, &known_members(&schemas[base], example), schemas),
                None => schemas[name]["allOf"][index]["examples"] = json!([known_members(part, example)]),
            }
        }
    } else if named["examples"].is_null() {
        schemas[name]["examples"] = json!([example]);
    }
}

/// The members of an example that the schema names.
fn known_members(schema: &Value, example: &Value) -> Value {
    let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
    names.filter_map(|name| Some((name.clone(), example.get(name)?.clone()))).collect()
}

fn members<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = (&'a String, &'a mut Value)> {
    object.get_mut(name).and_then(Value::as_object_mut).into_iter().flatten()
}
