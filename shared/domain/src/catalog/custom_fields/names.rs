//! Names of custom fields, and changes of single fields. Names are single lines, and texts are composed, so two that look the
//! same are the same.

use super::{CustomFields, MAX_BYTES, MAX_FIELD_LEVELS, check_size, parse_limited};
use crate::values::field_error::{ValueError, pointer_token};
use crate::values::json::parse_strict;
use crate::values::text::{NUL, Name, composed};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The errors of a body that are listed.
const MAX_ERRORS: usize = 100;
const SENT_TWICE: &str = "must be sent once; another name looks the same";

/// Composed, and without the white space around it.
///
/// # Errors
///
/// As for a [`Name`].
pub fn field_name(text: &str) -> Result<String, ValueError> {
    text.parse::<Name>().map(String::from)
}

/// The value with its texts and the names in it composed, as other texts are: a schema finds them however they are typed.
///
/// # Errors
///
/// The first text with U+0000, or name that occurs twice, with its JSON Pointer from the value on. Only the first, since the
/// pointers of many to places below a long name would be long together.
pub fn composed_value(value: Value) -> Result<Value, (String, String)> {
    let within = |token: &str, (pointer, error): (String, String)| (format!("/{}{pointer}", pointer_token(token)), error);
    match value {
        Value::String(text) if text.contains('\0') => Err((String::new(), NUL.to_owned())),
        Value::String(text) => Ok(Value::String(composed(&text).into_owned())),
        Value::Array(items) => {
            let items = items.into_iter().enumerate();
            let items = items.map(|(index, item)| composed_value(item).map_err(|error| within(&index.to_string(), error)));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        Value::Object(members) => {
            let mut named = Map::new();
            for (sent, member) in members {
                let name = composed(&sent).into_owned();
                if name.contains('\0') {
                    return Err(within(&sent, (String::new(), format!("has a name that {NUL}"))));
                }
                if named.contains_key(&name) {
                    return Err(within(&sent, (String::new(), SENT_TWICE.to_owned())));
                }
                named.insert(name, composed_value(member).map_err(|error| within(&sent, error))?);
            }
            Ok(Value::Object(named))
        }
        value => Ok(value),
    }
}

/// The fields with their names as [`field_name`] gives them, and their values as [`composed_value`] does.
///
/// # Errors
///
/// Each field with an invalid or repeated name, and the first error of each value, with its JSON Pointer; or that the composed
/// fields are too large.
fn with_names(fields: Map<String, Value>) -> Result<Map<String, Value>, Vec<(String, String)>> {
    let (mut named, mut errors) = (Map::new(), Vec::new());
    for (sent, value) in fields {
        let (pointer, error) = match field_name(&sent) {
            Ok(name) if named.contains_key(&name) => (String::new(), SENT_TWICE.to_owned()),
            Ok(name) => match composed_value(value) {
                Ok(value) => {
                    named.insert(name, value);
                    continue;
                }
                Err(error) => error,
            },
            Err(error) => (String::new(), format!("has a name that {error}")),
        };
        errors.push((format!("/{}{pointer}", pointer_token(&sent)), error));
    }
    errors.truncate(MAX_ERRORS);
    // Some characters are longer when they are composed.
    let size = serde_json::to_string(&named).map_or(usize::MAX, |text| text.len());
    if let Err(error) = check_size(size) {
        errors.push((String::new(), error.to_string()));
    }
    if errors.is_empty() { Ok(named) } else { Err(errors) }
}

/// Checks the names of fields that a schema has or requires: assets have them as [`field_name`] gives them, so no asset would ever
/// match another name.
///
/// # Errors
///
/// Says which name no field can have.
pub(super) fn check_schema(schema: &Value) -> Result<(), ValueError> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let properties = properties.map(|name| (format!("/properties/{}", pointer_token(name)), name.as_str()));
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().enumerate();
    let required = required.filter_map(|(index, name)| Some((format!("/required/{index}"), name.as_str()?)));
    for (pointer, name) in properties.chain(required) {
        let fault = match field_name(name) {
            Ok(stored) if stored == name => continue,
            Ok(_) => "must be in Unicode's composed form (NFC), without white space around it".to_owned(),
            Err(error) => error.to_string(),
        };
        return Err(ValueError::new(format!("must not name a field that no asset can have: its name {fault} (at {pointer})")));
    }
    Ok(())
}

impl CustomFields {
    /// As a client sends them.
    ///
    /// # Errors
    ///
    /// As [`CustomFields::from_json`], and for each invalid or repeated name, and each value with U+0000 or such a name, with its
    /// JSON Pointer.
    pub fn from_body(text: &str) -> Result<Self, Vec<(String, String)>> {
        let fields = Self::from_json(text).map_err(|error| vec![(String::new(), error.to_string())])?;
        with_names(fields.0).map(Self)
    }
}

/// Custom fields to set, by name. Null removes the field; the others stay.
#[derive(Debug, Clone, PartialEq, Default, utoipa::ToSchema)]
#[schema(value_type = Object)]
pub struct CustomFieldsPatch(Map<String, Value>);

impl CustomFieldsPatch {
    /// # Errors
    ///
    /// Each error with the JSON Pointer of the custom field that causes it, relative to the object; empty for the whole.
    pub fn from_json(text: &str) -> Result<Self, Vec<(String, String)>> {
        match parse_limited(text, MAX_FIELD_LEVELS) {
            Ok(Value::Object(fields)) => with_names(fields).map(Self),
            Ok(_) => Err(vec![(String::new(), "must be an object".to_owned())]),
            Err(error) => Err(located(text, &error)),
        }
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// # Errors
    ///
    /// The custom fields become larger than 32 KiB.
    pub fn applied_to(&self, fields: &CustomFields) -> Result<CustomFields, ValueError> {
        let mut next = fields.0.clone();
        for (name, value) in &self.0 {
            match value {
                Value::Null => drop(next.shift_remove(name)),
                value => drop(next.insert(name.clone(), value.clone())),
            }
        }
        let next = Value::Object(next);
        match (next.to_string().len(), next) {
            (..=MAX_BYTES, Value::Object(next)) => Ok(CustomFields(next)),
            (size, _) => Err(ValueError::new(format!(
                "must leave custom fields of at most {MAX_BYTES} bytes as JSON; together they would have {size}"
            ))),
        }
    }
}

/// The error of each field that can't be read on its own; the error of the whole if all can.
fn located(text: &str, whole: &ValueError) -> Vec<(String, String)> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
    let read = fields.iter().map(|(name, raw)| (name, parse_strict(raw.get(), MAX_FIELD_LEVELS - 1)));
    let errors = read.filter_map(|(name, read)| Some((format!("/{}", pointer_token(name)), read.err()?.to_string())));
    let errors: Vec<(String, String)> = errors.collect();
    if errors.is_empty() { vec![(String::new(), whole.to_string())] } else { errors }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::custom_fields::FieldsSchema;

    #[test]
    fn names_that_look_the_same_are_the_same() {
        let fields = CustomFields::from_body(r#"{" Fa\u0308rg ": 1, "a b": {" x ": 2}}"#).expect("fields");
        assert_eq!(String::from(fields), r#"{"Färg":1,"a b":{" x ":2}}"#);
        for (text, pointers) in [
            (r#"{"a": 1, "a ": 2}"#, &["/a "][..]),
            (r#"{"F\u00e4rg": 1, "Fa\u0308rg": 2}"#, &["/Fa\u{308}rg"]),
            (r#"{"\u200bname": 1, "": 2, " ": 3, "a\u0000/": 4}"#, &["/\u{200b}name", "/", "/ ", "/a\0~1"]),
        ] {
            let errors = CustomFields::from_body(text).expect_err("an error");
            assert_eq!(errors.iter().map(|(pointer, _)| pointer.as_str()).collect::<Vec<_>>(), pointers, "{errors:?}");
        }
    }

    #[test]
    fn texts_in_values_are_composed_at_any_depth() {
        let text = r#"{"a": "Bu\u0308ro", "b": ["u\u0308", {"o\u0308 ": {"x": " e\u0301\n"}}, 1.50, null, true]}"#;
        let composed = r#"{"a":"Büro","b":["ü",{"ö ":{"x":" é\n"}},1.5,null,true]}"#;
        assert_eq!(CustomFields::from_body(text).map(String::from).as_deref(), Ok(composed));
        let patch = CustomFieldsPatch::from_json(text).expect("a patch");
        let patched = patch.applied_to(&CustomFields::default()).expect("small fields");
        assert_eq!(String::from(patched), composed);
        for (text, pointers) in [
            (r#"{"a": "\u0000", "b": ["x", {"c/d": "y\u0000"}], "e": {"\u0000": 1}}"#, &["/a", "/b/1/c~1d", "/e/\0"][..]),
            (r#"{"a": {"u\u0308": 1, "\u00fc": 2}, "b": [{"\u00fc": 1, "u\u0308": 2}]}"#, &["/a/ü", "/b/0/u\u{308}"]),
        ] {
            for errors in [CustomFields::from_body(text).err(), CustomFieldsPatch::from_json(text).err()] {
                let errors = errors.unwrap_or_default();
                assert_eq!(errors.iter().map(|(pointer, _)| pointer.as_str()).collect::<Vec<_>>(), pointers, "{errors:?}");
            }
        }
    }

    #[test]
    fn a_schema_names_only_fields_that_an_asset_can_have() {
        for (schema, pointer) in [
            (r#"{"required": ["a", "u\u0308"]}"#, "/required/1"),
            (r#"{"properties": {"a": {}, " a ": {}}}"#, "/properties/ a "),
            (r#"{"properties": {"": true}}"#, "/properties/"),
            (r#"{"properties": {"\u200ba/b": {}}, "required": ["\u200ba/b"]}"#, "/properties/\u{200b}a~1b"),
        ] {
            let error = FieldsSchema::from_json(schema).expect_err(schema).to_string();
            assert!(error.contains("no asset can have") && error.ends_with(&format!("(at {pointer})")), "{error}");
            assert!(FieldsSchema::try_from(schema.to_owned()).is_ok(), "{schema} may be stored");
        }
        assert!(FieldsSchema::from_json(r#"{"required": ["\u00fc b"], "properties": {"a": {"properties": {" ": {}}}}}"#).is_ok());
    }

    #[test]
    fn the_texts_of_a_schema_are_composed() {
        let schema = r#"{"properties": {"a": {"enum": ["Bu\u0308ro"], "properties": {"u\u0308": {}}}}}"#;
        let composed = r#"{"properties":{"a":{"enum":["Büro"],"properties":{"ü":{}}}}}"#;
        assert_eq!(FieldsSchema::from_json(schema).map(String::from).as_deref(), Ok(composed));
        let error = FieldsSchema::from_json(r#"{"const": {"a": "\u0000"}}"#).expect_err("an error").to_string();
        assert!(error.ends_with("(at /const/a)"), "{error}");
    }

    #[test]
    fn fields_that_are_too_large_when_they_are_composed_are_refused() {
        // Composed, this letter has two characters, and twice the bytes.
        let fields = |count: usize| format!(r#"{{"a":"{}"}}"#, "\u{958}".repeat(count));
        assert!(CustomFields::from_body(&fields(5_000)).is_ok() && CustomFields::from_json(&fields(6_000)).is_ok());
        for errors in [CustomFields::from_body(&fields(6_000)).err(), CustomFieldsPatch::from_json(&fields(6_000)).err()] {
            assert_eq!(errors.unwrap_or_default().first().map(|(pointer, _)| pointer.as_str()), Some(""));
        }
    }

    #[test]
    fn a_single_field_is_found_by_a_name_that_looks_the_same() {
        let fields = CustomFields::from_body(r#"{"F\u00e4rg": 1, "ram_gb": 16}"#).expect("fields");
        let patch = CustomFieldsPatch::from_json(r#"{"Fa\u0308rg": 2, "ram_gb ": null}"#).expect("a patch");
        assert_eq!(String::from(patch.applied_to(&fields).expect("small fields")), r#"{"Färg":2}"#);
        let errors = CustomFieldsPatch::from_json(r#"{"a": 1, "a ": 2}"#).expect_err("an error");
        assert_eq!(errors[0].0, "/a ");
    }
}
