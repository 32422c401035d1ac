//! Changes of single custom fields.

use super::names::with_names;
use super::{CustomFields, MAX_BYTES, MAX_FIELD_LEVELS, parse_limited};
use crate::values::field_error::{ValueError, pointer_token};
use crate::values::json::parse_strict;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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

/// The error of each field that can't be read alone; if all can, that of the whole.
fn located(text: &str, whole: &ValueError) -> Vec<(String, String)> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
    let read = fields.iter().map(|(name, raw)| (name, parse_strict(raw.get(), MAX_FIELD_LEVELS - 1)));
    let errors = read.filter_map(|(name, read)| Some((format!("/{}", pointer_token(name)), read.err()?.to_string())));
    let errors: Vec<(String, String)> = errors.collect();
    if errors.is_empty() { vec![(String::new(), whole.to_string())] } else { errors }
}
