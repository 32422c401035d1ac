//! Custom fields of assets, patches of single fields, and the JSON Schema of an asset type that validates them. Names are single
//! lines, and texts are composed (NFC), so texts that look the same are equal.

mod schema;
#[cfg(test)]
mod tests;

use crate::values::field_error::{ErrorCode, ValueError, pointer_token};
use crate::values::hex;
use crate::values::json::{self, parse_strict};
use crate::values::text::{NUL, Name, composed};
pub(crate) use schema::type_of;
pub use schema::{Patterns, SchemaFault};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The maximum size of custom fields and of schemas, in bytes of compact JSON.
const MAX_BYTES: usize = 32 * 1024;
const MAX_LEVELS: usize = 8;

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
        match parse_limited(text, MAX_LEVELS)? {
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

/// A flat JSON Schema (draft 2020-12). At the top: `type` (`object`), `properties` (at most 100), `required`,
/// `additionalProperties` (a boolean), `title`, `description`, `$schema`. A property has a `type` (string, number, integer,
/// boolean, array, or a list of one of these and null), which can be left out beside `enum` or `const`, and `title`,
/// `description`, `enum`, `const`, `default`; numbers also `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`,
/// `multipleOf`; strings `minLength`, `maxLength`, `pattern`, `format` (date, date-time, email, uri); arrays `items` (a scalar
/// property), `minItems`, `maxItems`, `uniqueItems`.
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
    /// Returns each error with its JSON Pointer within the schema: unknown keywords, values of the wrong form, and names that no
    /// custom field can have.
    pub fn from_json(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let whole = |error: ValueError| vec![(String::new(), error)];
        let schema = parse_limited(text, MAX_LEVELS).map_err(whole)?;
        // The texts of custom fields are composed, too, so that an `enum` matches them.
        let schema = Self(composed_value(schema).map_err(|error| vec![error])?);
        check_size(schema.0.to_string().len()).map_err(whole)?;
        let errors = schema.errors();
        if errors.is_empty() { Ok(schema) } else { Err(errors) }
    }

    /// Checks custom fields. Returns up to 100 faults, or one for a stored schema that [`FieldsSchema::from_json`] refuses. Only
    /// the fields of a pattern that it refuses have a fault.
    pub fn faults(&self, fields: &CustomFields, patterns: &Patterns) -> Vec<SchemaFault> {
        match schema::errors_of_schema(&self.0).first() {
            Some((pointer, error)) => vec![schema::fault_of_stored(pointer, error)],
            None => schema::faults(&self.0, fields, patterns),
        }
    }

    /// Returns the errors in the schema under today's rules, which can refuse a stored schema, each with its JSON Pointer.
    pub fn errors(&self) -> Vec<(String, ValueError)> {
        match schema::errors_of_schema(&self.0) {
            none if none.is_empty() => schema::errors_of_patterns(&self.0),
            errors => errors,
        }
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
    /// Reads a stored schema, which doesn't have to satisfy the current rules. It is checked again before it checks any fields.
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
        match parse_limited(text, MAX_LEVELS) {
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
    let read = fields.iter().map(|(name, raw)| (name, parse_strict(raw.get(), MAX_LEVELS - 1)));
    let errors = read.filter_map(|(name, read)| Some((format!("/{}", pointer_token(name)), read.err()?)));
    let errors: Vec<(String, ValueError)> = errors.collect();
    if errors.is_empty() { vec![(String::new(), whole)] } else { errors }
}
