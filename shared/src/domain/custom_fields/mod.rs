//! Fields that a tenant adds to its assets, and the JSON Schema of an asset type that checks them (contract 5).

mod cost;
mod policy;

use super::field_error::{ErrorLocation, FieldError, ValueError};
use super::json::parse_strict;
use cost::Effort;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// The largest custom fields and schemas, in bytes of compact JSON.
const LARGEST: usize = 32 * 1024;
/// How deep custom fields may be nested (contract 1).
const FIELD_LEVELS: usize = 8;
/// How deep a schema may be nested: about four levels of schema for one of data.
const SCHEMA_LEVELS: usize = 32;
/// What a compiled pattern, and the cache of its search, may take of memory.
const PATTERN_BYTES: (usize, usize) = (1024 * 1024, 256 * 1024);
/// How many of the errors that a schema finds are named.
const FAULTS: usize = 100;
/// How long the text of one may be, in characters.
const LONGEST_FAULT: usize = 300;
/// How many compiled schemas an instance of a function keeps.
const KEPT: usize = 64;

/// Any JSON object of at most 32 KiB and 8 levels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
pub struct CustomFields(Map<String, Value>);

impl CustomFields {
    /// Reads the JSON text of an object.
    ///
    /// # Errors
    ///
    /// Says which limit is broken.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        match parse_limited(text, FIELD_LEVELS)? {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(ValueError::new("must be an object")),
        }
    }

    /// The object.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<CustomFields> for String {
    fn from(fields: CustomFields) -> Self {
        Value::Object(fields.0).to_string()
    }
}

impl TryFrom<String> for CustomFields {
    type Error = ValueError;
    fn try_from(text: String) -> Result<Self, ValueError> {
        Self::from_json(&text)
    }
}

fn parse_limited(text: &str, levels: usize) -> Result<Value, ValueError> {
    let value = parse_strict(text, levels)?;
    let size = value.to_string().len();
    if size > LARGEST {
        return Err(ValueError::new(format!("must have at most {LARGEST} bytes as JSON; this has {size}")));
    }
    Ok(value)
}

/// A JSON Schema (draft 2020-12) that is known to compile and to be cheap to check by.
///
/// References stay within the schema, don't run in circles and don't multiply: a schema is a tenant's own
/// program in our process. Patterns are matched in linear time for the same reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
pub struct FieldsSchema(Value);

impl FieldsSchema {
    /// Reads and compiles a schema.
    ///
    /// # Errors
    ///
    /// Says what makes the schema invalid.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        let schema = parse_limited(text, SCHEMA_LEVELS)?;
        if !schema.is_object() {
            return Err(ValueError::new("must be a JSON Schema, an object"));
        }
        let dialect = schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#'));
        if dialect.is_some_and(|uri| uri != "https://json-schema.org/draft/2020-12/schema") {
            return Err(ValueError::new("must be a JSON Schema of draft 2020-12"));
        }
        policy::check(&schema)?;
        compile(&schema)?;
        Ok(Self(schema))
    }

    /// The schema.
    #[must_use]
    pub fn as_value(&self) -> &Value {
        &self.0
    }
}

impl From<FieldsSchema> for String {
    fn from(schema: FieldsSchema) -> Self {
        schema.0.to_string()
    }
}

impl TryFrom<String> for FieldsSchema {
    type Error = ValueError;
    /// From the table, where only checked schemas are.
    fn try_from(text: String) -> Result<Self, ValueError> {
        serde_json::from_str(&text).map(Self).map_err(|_| ValueError::new("must be JSON"))
    }
}

fn compile(schema: &Value) -> Result<Validator, ValueError> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES.0).dfa_size_limit(PATTERN_BYTES.1))
        .build(schema)
        .map_err(|error| {
            ValueError::new(format!(
                "is not a valid JSON Schema: {} (at {})",
                shortened(error.to_string()),
                error.instance_path()
            ))
        })
}

/// A field_error's text; the validator's own quotes the value, however large, and one field_error for each of many.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_FAULT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Compiled schemas by asset type and its version, so that each is compiled once on an instance.
#[derive(Default)]
pub struct Schemas(Mutex<BTreeMap<(Uuid, u64), Arc<Validator>>>);

impl Schemas {
    /// Checks custom fields by version `version` of the schema of the type `id`; gives every field_error, or the first where
    /// all of them would be much work.
    ///
    /// # Errors
    ///
    /// The schema doesn't compile, which a stored one always did.
    pub fn errors(
        &self,
        id: Uuid,
        version: u64,
        schema: &FieldsSchema,
        fields: &CustomFields,
    ) -> Result<Vec<FieldError>, ValueError> {
        let validator = self.compiled(id, version, schema)?;
        let instance = Value::Object(fields.0.clone());
        let field_error = |error: ValidationError<'_>| FieldError {
            place: ErrorLocation::Pointer(format!("/custom_fields{}", error.instance_path())),
            detail: shortened(error.to_string()),
        };
        Ok(match cost::effort(&schema.0, &instance) {
            Effort::Little => validator.iter_errors(&instance).map(field_error).take(FAULTS).collect(),
            Effort::Much => validator.validate(&instance).err().map(field_error).into_iter().collect(),
            Effort::TooMuch => vec![FieldError::field("custom_fields", "are too much work to check by the schema of the type")],
        })
    }

    fn compiled(&self, id: Uuid, version: u64, schema: &FieldsSchema) -> Result<Arc<Validator>, ValueError> {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(validator) = kept.get(&(id, version)) {
            return Ok(Arc::clone(validator));
        }
        let validator = Arc::new(compile(&schema.0)?);
        if kept.len() >= KEPT {
            kept.pop_first();
        }
        kept.insert((id, version), Arc::clone(&validator));
        Ok(validator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_fields_are_an_object_within_limits() {
        assert!(CustomFields::from_json(r#"{"a":{"b":{"c":{"d":{"e":{"f":{"g":1}}}}}}}"#).is_ok());
        for wrong in ["[]", "null", "1", r#"{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{}}}}}}}}}"#] {
            assert!(CustomFields::from_json(wrong).is_err(), "{wrong}");
        }
        let large = |n: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(n - 8));
        assert!(CustomFields::from_json(&large(LARGEST)).is_ok());
        assert!(CustomFields::from_json(&large(LARGEST + 1)).is_err());
    }

    #[test]
    fn a_schema_names_each_fault() {
        let schema = FieldsSchema::from_json(
            r##"{"type":"object","required":["ram"],"properties":{"ram":{"type":"integer"},"os":{"$ref":"#/$defs/os"}},"$defs":{"os":{"enum":["linux","mac"]}}}"##,
        )
        .expect("a schema");
        let schemas = Schemas::default();
        let errors = |fields: &str| {
            let fields = CustomFields::from_json(fields).expect("fields");
            schemas.errors(Uuid::nil(), 1, &schema, &fields).expect("compiled").into_iter().map(|f| f.place).collect::<Vec<_>>()
        };
        assert_eq!(errors(r#"{"ram":16,"os":"mac"}"#), []);
        assert_eq!(errors(r#"{"os":"dos"}"#).len(), 2);
        assert_eq!(errors(r#"{"ram":"16"}"#), [ErrorLocation::Pointer("/custom_fields/ram".into())]);
    }

    #[test]
    fn what_is_no_cheap_schema_is_refused() {
        let doubling = (1..40)
            .map(|n| format!(r##""a{n}":{{"allOf":[{{"$ref":"#/$defs/a{0}"}},{{"$ref":"#/$defs/a{0}"}}]}}"##, n - 1))
            .collect::<Vec<_>>()
            .join(",");
        let doubling = format!(r##"{{"$ref":"#/$defs/a39","$defs":{{"a0":true,{doubling}}}}}"##);
        for wrong in [
            "[]",
            r#"{"type":"text"}"#,
            r#"{"properties":[]}"#,
            r##"{"$ref":"#"}"##,
            r##"{"allOf":[{"$ref":"#/allOf/0"}]}"##,
            r#"{"$ref":"https://example.com/x.json"}"#,
            r#"{"$ref":"file:///etc/passwd"}"#,
            r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#,
            r#"{"pattern":"("}"#,
            r#"{"pattern":"(x{1000}){1000}"}"#,
            &doubling,
        ] {
            assert!(FieldsSchema::from_json(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn data_in_a_schema_may_look_like_rules() {
        for right in [
            r##"{"properties":{"a":{"const":{"$ref":"#/nowhere","$id":"x"}}}}"##,
            r##"{"properties":{"a":{"enum":[{"$anchor":"x"}],"default":{"$dynamicRef":"#x"}},"$id":{"type":"string"}}}"##,
            r##"{"properties":{"enum":{"type":"string"},"a":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{"type":"integer"}}}"##,
        ] {
            let read = FieldsSchema::from_json(right);
            assert!(read.is_ok(), "{right}: {read:?}");
        }
        // What is named like data in a list of rules is a rule.
        for wrong in [
            r##"{"properties":{"enum":{"$ref":"#/properties/enum"}}}"##,
            r##"{"$defs":{"default":{"$ref":"#/$defs/default"}},"$ref":"#/$defs/default"}"##,
            r#"{"properties":{"const":{"$id":"https://example.com/x"}}}"#,
        ] {
            assert!(FieldsSchema::from_json(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_schema_makes_much_work_of_any_fields() {
        let rules: Vec<Value> = (0..900).map(|n| serde_json::json!({"type": "string", "minLength": n})).collect();
        let schema = serde_json::json!({"properties": {"a": {"items": {"anyOf": rules}}}});
        let schema = FieldsSchema::from_json(&schema.to_string()).expect("a schema");
        let check = |count: usize| {
            let fields = serde_json::json!({"a": vec![1; count]}).to_string();
            let fields = CustomFields::from_json(&fields).expect("fields");
            Schemas::default().errors(Uuid::nil(), 1, &schema, &fields).expect("compiled")
        };
        assert_eq!((check(20).len(), check(1_000).len(), check(16_000).len()), (20, 1, 1));
        assert_eq!(check(16_000)[0].place, ErrorLocation::Pointer("/custom_fields".into()));
        let greedy: Vec<Value> = (0..40).map(|n| serde_json::json!({"pattern": format!("x{{{}}}", 900 + n)})).collect();
        assert!(FieldsSchema::from_json(&serde_json::json!({ "allOf": greedy }).to_string()).is_err());
    }

    #[test]
    fn a_pattern_that_backtracks_is_matched_in_linear_time() {
        let schema = FieldsSchema::from_json(r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#).expect("a schema");
        let fields = CustomFields::from_json(&format!(r#"{{"a":"{}!"}}"#, "a".repeat(20_000))).expect("fields");
        assert_eq!(Schemas::default().errors(Uuid::nil(), 1, &schema, &fields).expect("compiled").len(), 1);
    }
}
