//! The tenant's own fields of assets, and the JSON Schema of an asset type that validates them.

mod cost;
mod names;
mod policy;
#[cfg(test)]
mod tests;
mod validate;

use crate::values::field_error::ValueError;
use crate::values::hex;
use crate::values::json::{self, parse_strict};
pub use names::{CustomFieldsPatch, composed_value, field_name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use validate::Compiled;
pub use validate::{BudgetSpent, CompiledSchemas, Validations};

/// The maximum size of custom fields and of schemas, in bytes of compact JSON.
const MAX_BYTES: usize = 32 * 1024;
const MAX_FIELD_LEVELS: usize = 8;
/// The maximum nesting of a schema, which needs about four levels for each level of data.
const MAX_SCHEMA_LEVELS: usize = 32;
/// The maximum length of the text of an error, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// Any JSON object of at most 32 KiB and 8 levels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
pub struct CustomFields(Map<String, Value>);

impl CustomFields {
    /// # Errors
    ///
    /// Names the limit that the object exceeds.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        match parse_limited(text, MAX_FIELD_LEVELS)? {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(ValueError::new("must be an object")),
        }
    }

    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Values that are equal to the `present` ones keep the present form: `1` stays `1` if `1.0` is set.
    #[must_use]
    pub fn in_form_of(mut self, present: &Self) -> Self {
        for (name, value) in &mut self.0 {
            if let Some(present) = present.0.get(name).filter(|present| json::equal(present, value)) {
                *value = present.clone();
            }
        }
        self
    }
}

impl From<CustomFields> for String {
    fn from(fields: CustomFields) -> Self {
        Value::Object(fields.0).to_string()
    }
}

impl TryFrom<String> for CustomFields {
    type Error = ValueError;
    /// Reads fields from the table, which may be older than today's rules.
    fn try_from(text: String) -> Result<Self, ValueError> {
        json::parse_object(&text).map(Self).map_err(|_| ValueError::new("must be an object"))
    }
}

fn parse_limited(text: &str, levels: usize) -> Result<Value, ValueError> {
    let value = parse_strict(text, levels)?;
    check_size(value.to_string().len())?;
    Ok(value)
}

fn check_size(size: usize) -> Result<(), ValueError> {
    match size {
        ..=MAX_BYTES => Ok(()),
        size => Err(ValueError::new(format!("must have at most {MAX_BYTES} bytes as JSON; this has {size}"))),
    }
}

// A tenant's schema is a program that runs in the service.
/// A JSON Schema (draft 2020-12) that compiles and is cheap to validate against: its references stay within the schema, form no
/// cycle and don't expand excessively, and its patterns are matched in linear time.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
#[schema(as = CustomFieldsSchema)]
pub struct FieldsSchema(Value);

impl PartialEq for FieldsSchema {
    /// Neither the order of members nor the form of numbers makes a difference.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || canonical(&self.0) == canonical(&other.0)
    }
}

/// Schemas that are equal have the same hash.
#[must_use]
pub fn schema_hash(text: &str) -> String {
    hex::sha256(json::parse(text).map_or_else(|_| text.to_owned(), |schema| canonical(&schema)))
}

fn canonical(schema: &Value) -> String {
    serde_json_canonicalizer::to_string(schema).unwrap_or_else(|_| schema.to_string())
}

impl FieldsSchema {
    /// # Errors
    ///
    /// Says why the schema is invalid.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        let schema = parse_limited(text, MAX_SCHEMA_LEVELS)?;
        if !schema.is_object() {
            return Err(ValueError::new("must be a JSON Schema, an object"));
        }
        let dialect = schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#'));
        if dialect.is_some_and(|uri| uri != "https://json-schema.org/draft/2020-12/schema") {
            return Err(ValueError::new("must be a JSON Schema of draft 2020-12"));
        }
        names::check_schema(&schema)?;
        // The texts of fields are composed, too, so that an enum finds them.
        let schema = composed_value(schema).map_err(|(pointer, error)| ValueError::new(format!("{error} (at {pointer})")))?;
        check_size(schema.to_string().len())?;
        Compiled::new(&schema)?;
        Ok(Self(schema))
    }

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
    /// Reads a schema from the table, which may be older than today's rules. It is checked before it validates anything.
    fn try_from(text: String) -> Result<Self, ValueError> {
        json::parse(&text).map(Self).map_err(|_| ValueError::new("must be JSON"))
    }
}

/// The text, cut to [`MAX_ERROR_CHARS`]: the validator quotes the whole value.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_ERROR_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}
