//! Removes descriptions of fields that say nothing but the field's name and what its type's description says.

use serde_json::Value;
use std::collections::BTreeMap;

/// Words that add nothing to the others.
const FILLERS: &str = "a an are as at id identifier in is it its of the time to was were who whom";
/// How many letters two forms of a word have in common: `created` and `creation`.
const STEM_LETTERS: usize = 5;

pub(super) fn remove_from(document: &mut Value) {
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else { return };
    let description = |schema: &Value| schema["description"].as_str().unwrap_or_default().to_owned();
    let of_types: BTreeMap<String, String> = schemas.iter().map(|(name, schema)| (name.clone(), description(schema))).collect();
    schemas.values_mut().for_each(|schema| remove_within(schema, &of_types));
}

fn remove_within(schema: &mut Value, of_types: &BTreeMap<String, String>) {
    for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let of_type = type_name(field).and_then(|name| Some(format!("{} {}", spaced(name), of_types.get(name)?)));
        let known = format!("{name} {}", of_type.unwrap_or_default());
        if field["description"].as_str().is_some_and(|text| is_echo(text, &known)) {
            field.as_object_mut().into_iter().for_each(|field| drop(field.remove("description")));
        }
    }
}

/// The type of a field, of its elements, or of its values other than null.
fn type_name(field: &Value) -> Option<&str> {
    let targets =
        [field.get("$ref"), field.pointer("/items/$ref"), field.pointer("/oneOf/0/$ref"), field.pointer("/anyOf/0/$ref")];
    targets.into_iter().flatten().find_map(|target| target.as_str()?.rsplit('/').next())
}

/// `Asset Type Id` of `AssetTypeId`.
fn spaced(name: &str) -> String {
    name.chars().flat_map(|c| c.is_uppercase().then_some(' ').into_iter().chain([c])).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn is_echo(text: &str, known: &str) -> bool {
    let known = words(known);
    let stem = |word: &str| word.chars().take(STEM_LETTERS).collect::<String>();
    let is_filler = |word: &str| FILLERS.split(' ').any(|filler| filler == word);
    words(text).iter().all(|word| is_filler(word) || known.iter().any(|known| stem(known) == stem(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_descriptions_without_a_fact_go() {
        let reference = |name: &str| format!("#/components/schemas/{name}");
        let name = json!({"type": "string", "description": "A display name."});
        for (field, is_kept) in [
            (json!({"$ref": reference("Name"), "description": "Display name."}), false),
            (json!({"$ref": reference("Name"), "description": "Display name, such as `Laptop`."}), true),
            (json!({"oneOf": [{"$ref": reference("Name")}, {"type": "null"}], "description": "The owners' name."}), false),
            (json!({"type": "string", "description": "Owner."}), false),
            (json!({"type": "string", "description": "Owner, or null."}), true),
        ] {
            let schema = json!({"properties": {"owner": field}});
            let mut document = json!({"components": {"schemas": {"Name": name, "Asset": schema}}});
            remove_from(&mut document);
            let left = &document["components"]["schemas"]["Asset"]["properties"]["owner"]["description"];
            assert_eq!(left.is_string(), is_kept, "{field}");
            assert!(document["components"]["schemas"]["Name"]["description"].is_string());
        }
    }
}
