//! Read-only fields in a PATCH.

use crate::domain::values::field_error::FieldError;
use crate::domain::values::json;
use crate::domain::values::time::Timestamp;
use crate::http::error::ApiError;
use serde::Serialize;
use serde_json::Value;

/// The read-only fields of a PATCH. They are accepted with the values that the resource has, so that a client can send a resource
/// back as it was read.
#[derive(Debug, Default)]
pub struct ReadOnlyFields(Vec<ReadOnlyField>);

#[derive(Debug)]
struct ReadOnlyField {
    name: String,
    value: Option<Value>,
    /// The field of the resource to compare with.
    compared: String,
}

impl ReadOnlyField {
    /// A scan changes `last_seen_at`, and must not spoil what a client read before: any earlier value is ignored.
    fn is_outdated_scan(&self, value: &Value, present: &Value) -> bool {
        let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        self.name == "last_seen_at" && (value.is_null() || time(value).is_some_and(|sent| time(present) >= Some(sent)))
    }
}

impl ReadOnlyFields {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an error for each field of a new resource. Fields that could not be read have their error already.
    pub fn refuse_in_creation(&self, errors: &mut Vec<FieldError>) {
        let is_new = |field: &&ReadOnlyField| !errors.iter().any(|error| error.is_about(&field.name));
        let error = |field: &ReadOnlyField| FieldError::field(&field.name, "is read-only: the service assigns it");
        let added: Vec<FieldError> = self.0.iter().filter(is_new).map(error).collect();
        errors.extend(added);
    }

    /// Compares `expanded`, which shows another resource, by its ID with `reference`, which names that resource.
    #[must_use]
    pub fn by_reference(mut self, expanded: &str, reference: &str) -> Self {
        for field in self.0.iter_mut().filter(|field| field.name == expanded) {
            field.compared = reference.to_owned();
            if let Some(Value::Object(shown)) = &mut field.value {
                field.value = shown.remove("id");
            }
        }
        self
    }

    /// An error for each field that differs from that of `present`, the resource as a GET shows it. A field that it lacks counts
    /// as null.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] if `present` can't be serialized.
    pub fn errors(&self, present: &impl Serialize) -> Result<Vec<FieldError>, ApiError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        // As text, since a number must be compared as a client reads it.
        let text = serde_json::to_string(present).map_err(|error| ApiError::Internal(error.into()))?;
        let present = json::parse(&text).map_err(|error| ApiError::Internal(error.into()))?;
        let differs = |field: &&ReadOnlyField| {
            let present = &present[field.compared.as_str()];
            field.value.as_ref().is_none_or(|value| !json::equal(value, present) && !field.is_outdated_scan(value, present))
        };
        let error = |field: &ReadOnlyField| FieldError::field(&field.name, "is read-only and can't change");
        Ok(self.0.iter().filter(differs).map(error).collect())
    }

    /// Checks that every field is that of `present`, and that there are no other `errors`.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with all of them.
    pub fn check(&self, present: &impl Serialize, mut errors: Vec<FieldError>) -> Result<(), ApiError> {
        errors.extend(self.errors(present)?);
        if errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(errors)) }
    }
}

impl From<Vec<(String, Option<Value>)>> for ReadOnlyFields {
    fn from(fields: Vec<(String, Option<Value>)>) -> Self {
        Self(fields.into_iter().map(|(name, value)| ReadOnlyField { compared: name.clone(), name, value }).collect())
    }
}
