//! Moves repeated parts of the document to its components, and refers to them.

use serde_json::{Map, Value, json};
use shared::http::openapi::RESPONSE_NAME;
use std::collections::{BTreeMap, BTreeSet};

/// Names responses, parameters and schemas, and removes components that nothing refers to.
pub(super) fn add_to(document: &mut Value) {
    name_schemas(document);
    name_responses(document);
    share(document, "responses", response_name);
    share(document, "parameters", parameter_name);
    remove_unused(document);
}

/// A section of the components, such as `schemas`.
fn components<'a>(document: &'a mut Value, kind: &str) -> Option<&'a mut Map<String, Value>> {
    let components = document.get_mut("components")?.as_object_mut()?;
    components.entry(kind).or_insert_with(|| json!({})).as_object_mut()
}

pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

pub(super) fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    let members = paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    members.filter(|member| member.get("responses").is_some())
}

/// Replaces schemas that are equal to a named one by references to it.
fn name_schemas(document: &mut Value) {
    let Some(schemas) = components(document, "schemas").cloned() else { return };
    let names: BTreeMap<String, &String> = schemas.iter().map(|(name, schema)| (schema.to_string(), name)).collect();
    let named = |value: &Value| {
        // Only the schema of a type of this API has a description of its own.
        let name = value.get("description").and_then(|_| names.get(&value.to_string()))?;
        Some(reference("schemas", name))
    };
    document.get_mut("paths").into_iter().for_each(|paths| replace_within(paths, &named));
    let definitions = components(document, "schemas").into_iter().flat_map(Map::values_mut);
    let parts = definitions.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    parts.for_each(|part| replace_within(part, &named));
}

/// Replaces references to the types of IDs and times by what they are to clients, which is the same for all. Their names have
/// served to name parameters, and to find descriptions that say nothing else.
pub(super) fn write_formats_out(document: &mut Value) {
    let schemas = components(document, "schemas").into_iter().flatten();
    let format =
        |schema: &Value| schema["format"].as_str().filter(|format| ["uuid", "date-time"].contains(format)).map(str::to_owned);
    let formats: BTreeMap<String, String> = schemas.filter_map(|(name, schema)| Some((name.clone(), format(schema)?))).collect();
    let written_out = |value: &Value| {
        let (only, kind) = match value["oneOf"].as_array().or(value["anyOf"].as_array()).map(Vec::as_slice) {
            Some([only, null]) if *null == json!({"type": "null"}) => (only, json!(["string", "null"])),
            Some(_) => return None,
            None => (value, json!("string")),
        };
        let format = formats.get(only["$ref"].as_str()?.strip_prefix("#/components/schemas/")?)?;
        let mut written = json!({"type": kind, "format": format});
        if let Some(description) = value.get("description") {
            written["description"] = description.clone();
        }
        Some(written)
    };
    replace_within(document, &written_out);
    remove_unused(document);
    write_single_uses_out(document);
}

/// Puts texts, numbers and lists that only one field or parameter has into its place. Generators of clients need no name for them,
/// as they do for objects and enumerations.
fn write_single_uses_out(document: &mut Value) {
    let text = document.to_string();
    let is_used_once = |name: &str| text.matches(&format!("\"#/components/schemas/{name}\"")).count() == 1;
    let needs_name = |schema: &Value| schema["type"] == "object" || schema["type"].is_null() || schema.get("enum").is_some();
    let schemas = components(document, "schemas").into_iter().flatten();
    let single: BTreeMap<String, Value> = schemas
        .filter(|(name, schema)| is_used_once(name) && !needs_name(schema))
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect();
    let written_out = |value: &Value| {
        let mut written = single.get(value["$ref"].as_str()?.strip_prefix("#/components/schemas/")?)?.clone();
        if let Some(description) = value.get("description") {
            written["description"] = description.clone();
        }
        Some(written)
    };
    replace_within(document, &written_out);
    remove_unused(document);
}

/// Replaces each value that has a replacement, from the outside in.
fn replace_within(value: &mut Value, replacement: &impl Fn(&Value) -> Option<Value>) {
    if let Some(replaced) = replacement(value) {
        *value = replaced;
        return;
    }
    match value {
        Value::Object(object) => object.values_mut().for_each(|value| replace_within(value, replacement)),
        Value::Array(items) => items.iter_mut().for_each(|value| replace_within(value, replacement)),
        _ => {}
    }
}

/// Moves responses that have a name to the components.
///
/// # Panics
///
/// Panics if two different responses have the same name.
fn name_responses(document: &mut Value) {
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    for operation in operations(document) {
        let responses = operation["responses"].as_object_mut().into_iter().flat_map(Map::values_mut);
        for response in responses {
            let Some(Value::String(name)) = response.as_object_mut().and_then(|response| response.remove(RESPONSE_NAME)) else {
                continue;
            };
            let response = std::mem::replace(response, reference("responses", &name));
            let first = named.entry(name).or_insert_with(|| response.clone());
            assert_eq!(*first, response, "two different responses have this name");
        }
    }
    if let Some(responses) = components(document, "responses") {
        responses.extend(named);
    }
}

/// Among the components: `AssetId` for the `id` of an asset, else `DryRun` for `dry_run`.
fn parameter_name(parameter: &Value) -> Option<String> {
    let schema = parameter["schema"]["$ref"].as_str().and_then(|target| target.rsplit('/').next());
    if let (Some("path"), Some(schema)) = (parameter["in"].as_str(), schema) {
        return Some(schema.to_owned());
    }
    let words = parameter["name"].as_str()?.split(['_', '-']);
    let capitalized = words.map(|word| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect());
    Some(capitalized.collect::<Vec<String>>().concat())
}

/// The name of the schema of its body.
fn response_name(response: &Value) -> Option<String> {
    let schema = response["content"]["application/json"]["schema"]["$ref"].as_str()?;
    schema.rsplit('/').next().map(str::to_owned)
}

fn parts<'a>(operation: &'a mut Value, kind: &str) -> Vec<&'a mut Value> {
    match operation.get_mut(kind) {
        Some(Value::Array(parts)) => parts.iter_mut().collect(),
        Some(Value::Object(parts)) => parts.values_mut().collect(),
        _ => Vec::new(),
    }
}

/// Moves what several operations have to the components, if `name` knows a name for it.
fn share(document: &mut Value, kind: &str, name: fn(&Value) -> Option<String>) {
    let mut uses: BTreeMap<String, (usize, Value)> = BTreeMap::new();
    for operation in operations(document) {
        for part in parts(operation, kind).into_iter().filter(|part| part["$ref"].is_null()) {
            uses.entry(part.to_string()).or_insert_with(|| (0, part.clone())).0 += 1;
        }
    }
    let mut shared: Vec<(usize, Value)> = uses.into_values().filter(|(count, _)| *count > 1).collect();
    shared.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    for (_, part) in shared {
        // Of two that would have the same name, the one with more uses has it.
        if let Some(name) = name(&part) {
            named.entry(name).or_insert(part);
        }
    }
    let names: BTreeMap<String, &String> = named.iter().map(|(name, part)| (part.to_string(), name)).collect();
    for operation in operations(document) {
        for part in parts(operation, kind) {
            if let Some(name) = names.get(&part.to_string()) {
                *part = reference(kind, name);
            }
        }
    }
    if let Some(components) = components(document, kind) {
        components.extend(named);
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// Removes components that nothing refers to, and then those that only they referred to.
fn remove_unused(document: &mut Value) {
    loop {
        let mut used = BTreeSet::new();
        references(document, &mut used);
        let mut is_complete = true;
        for kind in ["schemas", "responses", "parameters", "headers"] {
            if let Some(known) = components(document, kind) {
                let before = known.len();
                known.retain(|name, _| used.contains(&format!("#/components/{kind}/{name}")));
                is_complete &= known.len() == before;
            }
        }
        if is_complete {
            return;
        }
    }
}
