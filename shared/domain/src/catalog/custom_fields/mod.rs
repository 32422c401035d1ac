//! Custom fields of assets, patches of single fields, and the JSON Schema of an asset type that validates them. Names are single
//! lines, and texts are composed (NFC), so texts that look the same are equal.

#[cfg(test)]
mod tests;
mod validation;

use crate::values::field_error::{ErrorCode, ValueError, pointer_token};
use crate::values::hex;
use crate::values::json::{self, parse_strict};
use crate::values::text::{NUL, Name, composed};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use validation::Compiled;
pub use validation::{BudgetSpent, CompiledSchemas, SchemaFault, Validations};

/// The maximum size of custom fields and of schemas, in bytes of compact JSON.
const MAX_BYTES: usize = 32 * 1024;
const MAX_FIELD_LEVELS: usize = 8;
/// The maximum nesting of a schema, which needs about four levels for each level of data.
const MAX_SCHEMA_LEVELS: usize = 32;

/// Any JSON object of at most 32 KiB, nested at most 8 levels deep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
pub struct CustomFields(Map<String, Value>);

impl CustomFields {
    /// Parses custom fields.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the text is not an object, or exceeds a limit.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        match parse_limited(text, MAX_FIELD_LEVELS)? {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(ValueError::form("must be an object")),
        }
    }

    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Keeps the form that equal values have in `current`: `1` stays `1` if it is set to `1.0`.
    #[must_use]
    pub fn in_form_of(mut self, current: &Self) -> Self {
        for (name, value) in &mut self.0 {
            if let Some(current) = current.0.get(name).filter(|current| json::equal(current, value)) {
                *value = current.clone();
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
    /// Reads stored fields, which don't have to satisfy the current limits.
    fn try_from(text: String) -> Result<Self, ValueError> {
        json::parse_object(&text).map(Self).map_err(|_| ValueError::form("must be an object"))
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
        size => {
            let text = format!("must have at most {MAX_BYTES} bytes as JSON; this has {size}");
            Err(ValueError::coded(ErrorCode::TooMuch, text))
        }
    }
}

/// JSON Schema (draft 2020-12) that is cheap to validate against: its references stay within the schema, without cycles or
/// excessive expansion, and its patterns are matched in linear time.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Object)]
#[schema(as = CustomFieldsSchema)]
pub struct FieldsSchema(Value);

impl PartialEq for FieldsSchema {
    /// Compares schemas, ignoring the order of members and the form of numbers.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || canonical(&self.0) == canonical(&other.0)
    }
}

/// Hashes a schema. Equal schemas have the same hash.
pub fn schema_hash(text: &str) -> String {
    hex::sha256(json::parse(text).map_or_else(|_| text.to_owned(), |schema| canonical(&schema)))
}

fn canonical(schema: &Value) -> String {
    serde_json_canonicalizer::to_string(schema).unwrap_or_else(|_| schema.to_string())
}

impl FieldsSchema {
    /// Parses and checks a schema.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the schema is invalid or too expensive.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        let schema = parse_limited(text, MAX_SCHEMA_LEVELS)?;
        if !schema.is_object() {
            return Err(ValueError::form("must be a JSON Schema, an object"));
        }
        let dialect = schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#'));
        if dialect.is_some_and(|uri| uri != "https://json-schema.org/draft/2020-12/schema") {
            return Err(ValueError::form("must be a JSON Schema of draft 2020-12"));
        }
        check_schema(&schema)?;
        // The texts of custom fields are composed, too, so that an `enum` matches them.
        let schema = composed_value(schema).map_err(|(pointer, error)| ValueError::new(format!("{error} (at {pointer})")))?;
        check_size(schema.to_string().len())?;
        Compiled::new(&schema)?;
        Ok(Self(schema))
    }

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
    /// Reads a stored schema, which doesn't have to satisfy the current rules. It is checked before it validates anything.
    fn try_from(text: String) -> Result<Self, ValueError> {
        json::parse(&text).map(Self).map_err(|_| ValueError::form("must be JSON"))
    }
}

/// Maximum number of errors listed for a body or for one validation.
const MAX_ERRORS: usize = 100;
const SENT_TWICE: &str = "must be sent only once; another name looks the same";

/// Normalizes a name: composes it (NFC), and removes surrounding whitespace.
///
/// # Errors
///
/// Returns the [`ValueError`] of an invalid [`Name`].
pub fn field_name(text: &str) -> Result<String, ValueError> {
    text.parse::<Name>().map(String::from)
}

/// Composes the texts and names in a value, so that a schema matches every encoding of the same text.
///
/// # Errors
///
/// Returns the first error (a string with U+0000, or a repeated name) with its JSON Pointer within the value. Further errors are
/// omitted, because their pointers could take too much space below a long name.
pub fn composed_value(value: Value) -> Result<Value, (String, ValueError)> {
    let within = |token: &str, (pointer, error): (String, ValueError)| (format!("/{}{pointer}", pointer_token(token)), error);
    match value {
        Value::String(text) if text.contains('\0') => Err((String::new(), ValueError::coded(ErrorCode::InvalidCharacter, NUL))),
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
                    return Err(within(&sent, (String::new(), format!("has a name that {NUL}").into())));
                }
                if named.contains_key(&name) {
                    return Err(within(&sent, (String::new(), SENT_TWICE.into())));
                }
                named.insert(name, composed_value(member).map_err(|error| within(&sent, error))?);
            }
            Ok(Value::Object(named))
        }
        value => Ok(value),
    }
}

/// Normalizes names with [`field_name`] and values with [`composed_value`]. Returns an error with a JSON Pointer for each invalid
/// or repeated name and for the first fault in each value, and an error for the whole object if the composed fields are too
/// large.
fn with_names(fields: Map<String, Value>) -> Result<Map<String, Value>, Vec<(String, ValueError)>> {
    let (mut named, mut errors) = (Map::new(), Vec::new());
    for (sent, value) in fields {
        let (pointer, error) = match field_name(&sent) {
            Ok(name) if named.contains_key(&name) => (String::new(), SENT_TWICE.into()),
            Ok(name) => match composed_value(value) {
                Ok(value) => {
                    named.insert(name, value);
                    continue;
                }
                Err(error) => error,
            },
            Err(error) => (String::new(), format!("has a name that {error}").into()),
        };
        errors.push((format!("/{}{pointer}", pointer_token(&sent)), error));
    }
    errors.truncate(MAX_ERRORS);
    // Some characters take more bytes when composed.
    let size = serde_json::to_string(&named).map_or(usize::MAX, |text| text.len());
    if let Err(error) = check_size(size) {
        errors.push((String::new(), error));
    }
    if errors.is_empty() { Ok(named) } else { Err(errors) }
}

/// Checks the field names in a schema's `properties` and `required`. Assets store names as normalized by [`field_name`], so no
/// asset would ever match another form. The error is about the first name that no field can have.
fn check_schema(schema: &Value) -> Result<(), ValueError> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let properties = properties.map(|name| (format!("/properties/{}", pointer_token(name)), name.as_str()));
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().enumerate();
    let required = required.filter_map(|(index, name)| Some((format!("/required/{index}"), name.as_str()?)));
    for (pointer, name) in properties.chain(required) {
        let fault = match field_name(name) {
            Ok(stored) if stored == name => continue,
            Ok(_) => "must be in Unicode's composed form (NFC), with single spaces and without surrounding whitespace".to_owned(),
            Err(error) => error.to_string(),
        };
        return Err(ValueError::new(format!("must not name a field that no asset can have: its name {fault} (at {pointer})")));
    }
    Ok(())
}

impl CustomFields {
    /// Parses the custom fields of a request.
    ///
    /// # Errors
    ///
    /// Returns the error of [`CustomFields::from_json`], or each invalid or repeated name and the first error of each value, with
    /// JSON Pointers.
    pub fn from_body(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let fields = Self::from_json(text).map_err(|error| vec![(String::new(), error)])?;
        with_names(fields.0).map(Self)
    }
}

/// Custom fields to set, by name. Null removes a field; other fields stay unchanged.
#[derive(Debug, Clone, PartialEq, Default, utoipa::ToSchema)]
#[schema(value_type = Object)]
pub struct CustomFieldsPatch(Map<String, Value>);

impl CustomFieldsPatch {
    /// Parses a patch.
    ///
    /// # Errors
    ///
    /// Returns each error with the JSON Pointer of the custom field within the object; the pointer is empty for the whole object.
    pub fn from_json(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        match parse_limited(text, MAX_FIELD_LEVELS) {
            Ok(Value::Object(fields)) => with_names(fields).map(Self),
            Ok(_) => Err(vec![(String::new(), ValueError::form("must be an object"))]),
            Err(error) => Err(located(text, error)),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Applies the patch to an asset's custom fields.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the result is larger than 32 KiB.
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
            (size, _) => {
                let text = format!("must keep all custom fields within {MAX_BYTES} bytes as JSON; they would have {size}");
                Err(ValueError::coded(ErrorCode::TooMuch, text))
            }
        }
    }
}

/// Returns the error of each field that is invalid on its own, or the error of the whole object if none is.
fn located(text: &str, whole: ValueError) -> Vec<(String, ValueError)> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
    let read = fields.iter().map(|(name, raw)| (name, parse_strict(raw.get(), MAX_FIELD_LEVELS - 1)));
    let errors = read.filter_map(|(name, read)| Some((format!("/{}", pointer_token(name)), read.err()?)));
    let errors: Vec<(String, ValueError)> = errors.collect();
    if errors.is_empty() { vec![(String::new(), whole)] } else { errors }
}
