//! Simplifies schemas and texts for readers and generators of clients.

use serde_json::{Map, Value, json};

pub(super) fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            tidy_object(object);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn tidy_object(object: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = without_line_breaks(text);
    }
    // The names of members are always text.
    if object.get("propertyNames") == Some(&json!({"type": "string"})) {
        object.remove("propertyNames");
    }
    // No text is shorter.
    if object.get("minLength") == Some(&json!(0)) {
        object.remove("minLength");
    }
    // What needs no parameter or body doesn't say so.
    if object.get("required") == Some(&Value::Bool(false)) {
        object.remove("required");
    }
    unwrap_single(object);
    // The schema that another one extends has a description of its own.
    for part in object.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut) {
        if part.contains_key("$ref") {
            part.remove("description");
        }
    }
    describe_nullable(object);
    merge_further_members(object);
    permit_members(object);
    name_values(object);
    if object.get("security") == Some(&json!([{}])) {
        object.insert("security".into(), json!([]));
    }
}

/// Joins the lines of each paragraph. Lists keep theirs.
fn without_line_breaks(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let begins_anew = line.is_empty() || line.starts_with("- ") || joined.is_empty() || joined.ends_with('\n');
        joined.push_str(if begins_anew { if joined.is_empty() { "" } else { "\n" } } else { " " });
        joined.push_str(line.trim());
    }
    joined
}

/// Replaces a choice of a single schema by that schema. The description of the choice counts.
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

/// Moves the description of a nullable schema to the choice with null.
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

/// Replaces `allOf` of an object with known members and one of any by a single object.
fn merge_further_members(object: &mut Map<String, Value>) {
    let Some(parts) = object.get("allOf").and_then(Value::as_array) else { return };
    let [Value::Object(further), Value::Object(known)] = parts.as_slice() else { return };
    if further.get("additionalProperties") != Some(&Value::Bool(true)) || further.contains_key("properties") {
        return;
    }
    let (further, known) = (further.clone(), known.clone());
    object.remove("allOf");
    known.into_iter().for_each(|(name, value)| {
        object.entry(name).or_insert(value);
    });
    let description = further.get("description").cloned().unwrap_or_default();
    object.insert("additionalProperties".into(), json!({"description": description}));
}

/// Gives the values of an enumeration names that generators can use as they are, if not all are words: `ASSETS_READ` for
/// `assets:read`. Generators read a full stop as the end of a word.
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

/// An object without known members can have any: generators of clients read it as empty otherwise.
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
            (
                json!({"allOf": [{"type": "object", "description": "more"}, {"type": "object", "properties": {"a": true}}]}),
                json!({"type": "object", "properties": {"a": true}, "additionalProperties": {"description": "more"}}),
            ),
            (json!({"security": [{}]}), json!({"security": []})),
            (json!({"name": "page", "required": false}), json!({"name": "page"})),
            (
                json!({"allOf": [{"$ref": "#/components/schemas/Name", "description": "a"}, {"minLength": 2}]}),
                json!({"allOf": [reference, {"minLength": 2}]}),
            ),
            (
                json!({"type": "object", "additionalProperties": true, "propertyNames": {"type": "string"}}),
                json!({"type": "object", "additionalProperties": true}),
            ),
            (json!({"enum": ["in_use"]}), json!({"enum": ["in_use"]})),
            (json!({"enum": ["a.b", "a.*"]}), json!({"enum": ["a.b", "a.*"]})),
            (json!({"enum": ["a:read", "*"]}), json!({"enum": ["a:read", "*"], "x-enum-varnames": ["A_READ", "ANY"]})),
            (json!({"description": "One\ntwo."}), json!({"description": "One two."})),
            (json!({"description": "One.\n\nTwo\nthree."}), json!({"description": "One.\n\nTwo three."})),
            (json!({"description": "- one\n- two\n  more"}), json!({"description": "- one\n- two more"})),
        ] {
            let mut tidied = schema.clone();
            tidy(&mut tidied);
            assert_eq!(tidied, expected, "{schema}");
        }
    }
}
