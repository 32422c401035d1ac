//! Fields that a tenant adds to its assets, and the JSON Schema of an asset type that checks them (contract 5).

use super::json::parse_strict;
use super::refusal::{Fault, Place, Refusal};
use jsonschema::{Draft, PatternOptions, Validator};
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
/// How deep a schema may be once its references are followed.
const EXPANDED_LEVELS: usize = 64;
/// How many nodes a schema may have once its references are followed.
const EXPANDED_NODES: usize = 20_000;
/// How many of the faults that a schema finds are named.
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
    pub fn from_json(text: &str) -> Result<Self, Refusal> {
        match parse_limited(text, FIELD_LEVELS)? {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Refusal::new("must be an object")),
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
    type Error = Refusal;
    fn try_from(text: String) -> Result<Self, Refusal> {
        Self::from_json(&text)
    }
}

fn parse_limited(text: &str, levels: usize) -> Result<Value, Refusal> {
    let value = parse_strict(text, levels)?;
    let size = value.to_string().len();
    if size > LARGEST {
        return Err(Refusal::new(format!("must have at most {LARGEST} bytes as JSON; this has {size}")));
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
    pub fn from_json(text: &str) -> Result<Self, Refusal> {
        let schema = parse_limited(text, SCHEMA_LEVELS)?;
        if !schema.is_object() {
            return Err(Refusal::new("must be a JSON Schema, an object"));
        }
        let dialect = schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#'));
        if dialect.is_some_and(|uri| uri != "https://json-schema.org/draft/2020-12/schema") {
            return Err(Refusal::new("must be a JSON Schema of draft 2020-12"));
        }
        Expansion { root: &schema, nodes: 0 }.visit(&schema, 0, true)?;
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
    type Error = Refusal;
    /// From the table, where only checked schemas are.
    fn try_from(text: String) -> Result<Self, Refusal> {
        serde_json::from_str(&text).map(Self).map_err(|_| Refusal::new("must be JSON"))
    }
}

fn compile(schema: &Value) -> Result<Validator, Refusal> {
    jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(PatternOptions::regex()).build(schema).map_err(
        |error| {
            Refusal::new(format!("is not a valid JSON Schema: {} (at {})", shortened(error.to_string()), error.instance_path()))
        },
    )
}

/// A fault's text; the validator's own quotes the value, however large, and one fault for each of many.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_FAULT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A walk through a schema with its references followed, as a validator would go at worst.
struct Expansion<'a> {
    root: &'a Value,
    nodes: usize,
}

impl Expansion<'_> {
    fn visit(&mut self, node: &Value, level: usize, is_root: bool) -> Result<(), Refusal> {
        self.nodes += 1;
        if level > EXPANDED_LEVELS || self.nodes > EXPANDED_NODES {
            return Err(Refusal::new("must not have references in a circle, nor so many that it grows out of hand"));
        }
        match node {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("$ref", Value::String(target)) => self.follow(target, level)?,
                        ("$id", Value::String(_)) if is_root => {}
                        ("$id", Value::String(_)) => return Err(Refusal::new("must not use $id below its root")),
                        ("$dynamicRef" | "$dynamicAnchor" | "$anchor" | "$recursiveRef", Value::String(_)) => {
                            return Err(Refusal::new(format!("must not use {name}; refer with $ref and #/…")));
                        }
                        // Only what a reference leads to counts; definitions nobody uses cost nothing.
                        ("$defs" | "definitions", _) if is_root => {}
                        _ => self.visit(value, level + 1, false)?,
                    }
                }
                Ok(())
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, level + 1, false)),
            _ => Ok(()),
        }
    }

    fn follow(&mut self, target: &str, level: usize) -> Result<(), Refusal> {
        let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let node = found.ok_or_else(|| Refusal::new("must have no reference that leads out of it (only #/… within it)"))?;
        self.visit(node, level + 1, false)
    }
}

/// Compiled schemas by asset type and its version, so that each is compiled once on an instance.
#[derive(Default)]
pub struct Schemas(Mutex<BTreeMap<(Uuid, u64), Arc<Validator>>>);

impl Schemas {
    /// Checks custom fields by version `version` of the schema of the type `id`; gives every fault.
    ///
    /// # Errors
    ///
    /// The schema doesn't compile, which a stored one always did.
    pub fn faults(&self, id: Uuid, version: u64, schema: &FieldsSchema, fields: &CustomFields) -> Result<Vec<Fault>, Refusal> {
        let validator = self.compiled(id, version, schema)?;
        let instance = Value::Object(fields.0.clone());
        let faults = validator.iter_errors(&instance).map(|error| Fault {
            place: Place::Pointer(format!("/custom_fields{}", error.instance_path())),
            detail: shortened(error.to_string()),
        });
        Ok(faults.take(FAULTS).collect())
    }

    fn compiled(&self, id: Uuid, version: u64, schema: &FieldsSchema) -> Result<Arc<Validator>, Refusal> {
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
        let faults = |fields: &str| {
            let fields = CustomFields::from_json(fields).expect("fields");
            schemas.faults(Uuid::nil(), 1, &schema, &fields).expect("compiled").into_iter().map(|f| f.place).collect::<Vec<_>>()
        };
        assert_eq!(faults(r#"{"ram":16,"os":"mac"}"#), []);
        assert_eq!(faults(r#"{"os":"dos"}"#).len(), 2);
        assert_eq!(faults(r#"{"ram":"16"}"#), [Place::Pointer("/custom_fields/ram".into())]);
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
    fn a_pattern_that_backtracks_is_matched_in_linear_time() {
        let schema = FieldsSchema::from_json(r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#).expect("a schema");
        let fields = CustomFields::from_json(&format!(r#"{{"a":"{}!"}}"#, "a".repeat(20_000))).expect("fields");
        assert_eq!(Schemas::default().faults(Uuid::nil(), 1, &schema, &fields).expect("compiled").len(), 1);
    }
}
