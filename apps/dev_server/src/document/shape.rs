//! Shapes the document for linters and client generators, with shared schemas, responses and headers that have readable names.

use serde_json::{Map, Value, json};
use shared::http::openapi::RESPONSE_NAME;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr, Required};

pub(super) fn shape(document: &mut Value) {
    simplify(document);
    name_schemas(document);
    name_responses(document);
    remove_unused(document);
}

fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(simplify);
            unwrap_single(object);
            describe_nullable(object);
            permit_members(object);
            name_values(object);
            // `[{}]` means the same as `[]`, but makes generators ask for a credential.
            if object.get("security") == Some(&json!([{}])) {
                object.insert("security".into(), json!([]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// Replaces a choice of a single schema with that schema. The choice's description takes precedence.
fn unwrap_single(object: &mut Map<String, Value>) {
    for choice in ["anyOf", "oneOf", "allOf"] {
        let Some([Value::Object(only)]) = object.get(choice).and_then(Value::as_array).map(Vec::as_slice) else { continue };
        let only = only.clone();
        object.remove(choice);
        only.into_iter().for_each(|(name, value)| {
            object.entry(name).or_insert(value);
        });
    }
}

/// Moves the description of a nullable schema to the choice with null, where generators look for it.
fn describe_nullable(object: &mut Map<String, Value>) {
    if object.contains_key("description") {
        return;
    }
    let Some([Value::Object(schema), null]) = object.get_mut("oneOf").and_then(Value::as_array_mut).map(Vec::as_mut_slice) else {
        return;
    };
    let is_nullable = *null == json!({"type": "null"}) && schema.contains_key("$ref");
    if let Some(description) = is_nullable.then(|| schema.remove("description")).flatten() {
        object.insert("description".into(), description);
    }
}

/// Permits any members in an object without known members, which generators would otherwise take for an empty object.
fn permit_members(object: &mut Map<String, Value>) {
    let is_object = match object.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    if is_object && !object.contains_key("properties") && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".into(), Value::Bool(true));
    }
}

/// Names an enumeration's values for generators unless all values are words: `ASSETS_READ` for `assets:read`. Generators split
/// words at full stops.
fn name_values(object: &mut Map<String, Value>) {
    let Some(values) = object.get("enum").and_then(Value::as_array) else { return };
    let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let is_read = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c);
    if values.iter().all(|value| value.chars().all(is_read) || value.ends_with(".*")) {
        return;
    }
    let names: Vec<String> =
        values.iter().map(|value| value.replace('*', "any").replace([':', '.'], "_").to_uppercase()).collect();
    object.insert("x-enum-varnames".into(), json!(names));
}

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

/// Replaces schemas that equal a named schema with references to that schema.
fn name_schemas(document: &mut Value) {
    let Some(schemas) = components(document, "schemas").cloned() else { return };
    let names: BTreeMap<String, &String> = schemas.iter().map(|(name, schema)| (schema.to_string(), name)).collect();
    let named = |value: &Value| {
        // Only this API's own types have a description.
        let name = value.get("description").and_then(|_| names.get(&value.to_string()))?;
        Some(reference("schemas", name))
    };
    document.get_mut("paths").into_iter().for_each(|paths| replace_within(paths, &named));
    let definitions = components(document, "schemas").into_iter().flat_map(Map::values_mut);
    let parts = definitions.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    parts.for_each(|part| replace_within(part, &named));
}

/// Replaces each value that has a replacement, outermost first.
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

/// Moves named responses to the components.
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

/// Removes unreferenced components, which linters report, and then components that only they referenced.
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

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

fn matching(pattern: &str) -> ObjectBuilder {
    string().pattern(Some(pattern))
}

fn integer(minimum: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer)).minimum(Some(minimum))
}

/// The pattern of a list of entity tags, weak or strong, or `*`.
const ENTITY_TAGS: &str = r#"^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$"#;

fn request_headers() -> [(&'static str, Parameter); 3] {
    let parameter = |name: &'static str, schema: ObjectBuilder, description: &str| {
        let builder = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header).required(Required::False);
        (name, builder.schema(Some(schema)).description(Some(description)).build())
    };
    [
        parameter(
            "Idempotency-Key",
            matching("^[!-~]([ -~]*[!-~])?$").max_length(Some(255)),
            "Makes the request safe to repeat. Within 24 hours, a request with the same key, path, query and body replays the \
             stored response, with `Idempotent-Replayed: true`, instead of taking effect again. An interrupted import continues \
             where it stopped.",
        ),
        parameter(
            "If-Match",
            matching(ENTITY_TAGS),
            "Makes the change only if the resource's `ETag` is in this list. Returns 412 otherwise.",
        ),
        // Has no pattern: an invalid list isn't an error, but matches nothing.
        parameter(
            "If-None-Match",
            string(),
            "Returns the resource only if its `ETag` is not in this list. Returns 304 otherwise.",
        ),
    ]
}

fn response_headers() -> [(&'static str, Header); 14] {
    let header = |name: &'static str, schema: ObjectBuilder, description: &str| {
        (name, HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build())
    };
    [
        header("Content-Disposition", matching("^(attachment|inline); filename="), "Suggests a file name."),
        header(
            "Content-Security-Policy",
            matching("^default-src 'none'"),
            "Content Security Policy. Blocks everything except the scripts, styles and images that the page itself uses.",
        ),
        header(
            "ETag",
            matching(r#"^"[0-9]+-([0-9a-f]{12}-)?[0-9a-f]{16}"$"#),
            "Identifies this representation of the resource. Send it in `If-Match` or `If-None-Match`.",
        ),
        header(
            "Link",
            matching(r#"^</v1/.+>; rel="next"$"#),
            "The path of the next part, as `rel=\"next\"`. Absent on the last part.",
        ),
        header("Location", matching("^/v1/"), "The path of the new resource."),
        header("Referrer-Policy", matching("^no-referrer$"), "Prevents browsers from disclosing the page's URL."),
        header("Retry-After", integer(0), "The number of seconds to wait before you send the request again."),
        header("WWW-Authenticate", matching("^Bearer$"), "The authentication scheme, always `Bearer`."),
        header("X-Content-Type-Options", matching("^nosniff$"), "Prevents browsers from guessing a different content type."),
        header("X-RateLimit-Limit", integer(1), "The number of requests that the API key may send per minute."),
        header(
            "X-RateLimit-Remaining",
            integer(0),
            "The number of requests left in the current minute. Absent if the request could not be counted.",
        ),
        header("X-RateLimit-Reset", integer(0), "The start of the next minute, as Unix time in seconds."),
        header("X-Request-Id", matching("^[ -~]+$"), "Identifies the request in the log."),
        header("X-Unreadable", matching("^[0-9a-f-]+(, [0-9a-f-]+)*$"), "IDs of up to 20 damaged records, which are left out."),
    ]
}

/// Adds the headers to the components, where the types of requests and responses refer to them.
pub(super) fn add_headers(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    components.parameters.extend(request_headers().map(|(name, parameter)| (name.to_owned(), RefOr::T(parameter))));
    components.headers.extend(response_headers().map(|(name, header)| (name.to_owned(), RefOr::T(header))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_take_the_form_that_generators_read() {
        let reference = json!({"$ref": "#/components/schemas/Name"});
        for (schema, expected) in [
            (json!({"anyOf": [{"type": "string"}], "description": "a"}), json!({"type": "string", "description": "a"})),
            (
                json!({"oneOf": [{"$ref": "#/components/schemas/Name", "description": "a"}, {"type": "null"}]}),
                json!({"oneOf": [reference, {"type": "null"}], "description": "a"}),
            ),
            (json!({"type": "object"}), json!({"type": "object", "additionalProperties": true})),
            (
                json!({"type": ["object", "null"], "properties": {"a": {"type": "object"}}}),
                json!({"type": ["object", "null"], "properties": {"a": {"type": "object", "additionalProperties": true}}}),
            ),
            (json!({"security": [{}]}), json!({"security": []})),
            (json!({"enum": ["in_use"]}), json!({"enum": ["in_use"]})),
            (json!({"enum": ["a.b", "a.*"]}), json!({"enum": ["a.b", "a.*"]})),
            (json!({"enum": ["a:read", "*"]}), json!({"enum": ["a:read", "*"], "x-enum-varnames": ["A_READ", "ANY"]})),
        ] {
            let mut simplified = schema.clone();
            simplify(&mut simplified);
            assert_eq!(simplified, expected, "{schema}");
        }
    }
}
