//! The tenant's own fields of assets, and the JSON Schema of an asset type that validates them.

mod cost;
mod policy;
#[cfg(test)]
mod tests;

use super::field_error::{ErrorLocation, FieldError, ValueError};
use super::json::parse_strict;
use cost::Cost;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// The maximum size of custom fields and of schemas, in bytes of compact JSON.
const MAX_BYTES: usize = 32 * 1024;
/// The maximum nesting of custom fields.
const MAX_FIELD_LEVELS: usize = 8;
/// The maximum nesting of a schema, which needs about four levels for each level of data.
const MAX_SCHEMA_LEVELS: usize = 32;
/// The maximum memory of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;
/// The maximum memory of the cache that matching a pattern uses.
const MAX_PATTERN_CACHE_BYTES: usize = 256 * 1024;
/// The maximum number of errors that are reported for custom fields.
const MAX_ERRORS: usize = 100;
/// The maximum length of the text of an error, in characters.
const MAX_ERROR_CHARS: usize = 300;
/// The maximum number of compiled schemas in memory.
const MAX_COMPILED_SCHEMAS: usize = 64;

/// Any JSON object of at most 32 KiB and 8 levels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
pub struct CustomFields(Map<String, Value>);

impl CustomFields {
    /// Parses the JSON text of an object.
    ///
    /// # Errors
    ///
    /// Returns an error that names the limit the object exceeds.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        match parse_limited(text, MAX_FIELD_LEVELS)? {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(ValueError::new("must be an object")),
        }
    }

    /// Returns the object.
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
    if size > MAX_BYTES {
        return Err(ValueError::new(format!("must have at most {MAX_BYTES} bytes as JSON; this has {size}")));
    }
    Ok(value)
}

/// A JSON Schema (draft 2020-12) that compiles and is cheap to validate against.
///
/// A tenant's schema is a program that runs in the service. Hence its references stay within the schema, form no cycle and
/// don't expand excessively, and its patterns are matched in linear time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
pub struct FieldsSchema(Value);

impl FieldsSchema {
    /// Parses a schema and checks that it compiles.
    ///
    /// # Errors
    ///
    /// Returns an error that says what makes the schema invalid.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        let schema = parse_limited(text, MAX_SCHEMA_LEVELS)?;
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

    /// Returns the schema.
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
    /// Reads a schema from the table, which contains only checked schemas.
    fn try_from(text: String) -> Result<Self, ValueError> {
        serde_json::from_str(&text).map(Self).map_err(|_| ValueError::new("must be JSON"))
    }
}

fn compile(schema: &Value) -> Result<Validator, ValueError> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_CACHE_BYTES))
        .build(schema)
        .map_err(|error| {
            ValueError::new(format!(
                "is not a valid JSON Schema: {} (at {})",
                shortened(error.to_string()),
                error.instance_path()
            ))
        })
}

/// Returns the text of an error, cut to [`MAX_ERROR_CHARS`]: the validator quotes the whole value.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_ERROR_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Caches compiled schemas by asset type and version, so that a running function compiles each only once.
#[derive(Default)]
pub struct Schemas(Mutex<BTreeMap<(Uuid, u64), Arc<Validator>>>);

impl Schemas {
    /// Validates custom fields against `schema`, the schema of version `version` of the asset type `id`. Returns all errors,
    /// or only the first if finding all of them would cost too much.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema does not compile, which stored schemas do.
    pub fn errors(
        &self,
        id: Uuid,
        version: u64,
        schema: &FieldsSchema,
        fields: &CustomFields,
    ) -> Result<Vec<FieldError>, ValueError> {
        let validator = self.compiled(id, version, schema)?;
        let value = Value::Object(fields.0.clone());
        let field_error = |error: ValidationError<'_>| FieldError {
            location: ErrorLocation::Pointer(format!("/custom_fields{}", error.instance_path())),
            detail: shortened(error.to_string()),
        };
        Ok(match cost::estimate(&schema.0, &value) {
            Cost::Low => validator.iter_errors(&value).map(field_error).take(MAX_ERRORS).collect(),
            Cost::High => validator.validate(&value).err().map(field_error).into_iter().collect(),
            Cost::Excessive => vec![FieldError::field("custom_fields", "cost too much to validate against the type's schema")],
        })
    }

    fn compiled(&self, id: Uuid, version: u64, schema: &FieldsSchema) -> Result<Arc<Validator>, ValueError> {
        let mut compiled = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(validator) = compiled.get(&(id, version)) {
            return Ok(Arc::clone(validator));
        }
        let validator = Arc::new(compile(&schema.0)?);
        if compiled.len() >= MAX_COMPILED_SCHEMAS {
            compiled.pop_first();
        }
        compiled.insert((id, version), Arc::clone(&validator));
        Ok(validator)
    }
}
