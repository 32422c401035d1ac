//! Validates custom fields, within what a request may cost.

use super::compiled::{Compiled, CompiledSchemas, SchemaKey};
use super::{CustomFields, FieldsSchema, cost, shortened};
use crate::domain::field_error::{ErrorLocation, FieldError, ValueError};
use crate::domain::hex;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// The most that all validations of a request may cost, in units of [`cost::estimate`]: at most 0.4 s.
pub(super) const MAX_UNITS: u64 = 5_000_000;
/// The most that a validation may cost that reports all errors.
const MAX_UNITS_FOR_ALL_ERRORS: u64 = 100_000;
/// What reporting the errors costs beside finding them, as measured: it takes 300 ns a unit, and memory.
const REPORTING: u64 = 4;
/// The maximum number of errors that are reported for custom fields.
const MAX_ERRORS: usize = 100;

/// Why custom fields can't be validated.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// What the request validated before left too little of what it may cost.
    #[error("the request's budget for validations is spent")]
    BudgetSpent,
    /// The schema does not compile, which stored schemas do.
    #[error(transparent)]
    Invalid(#[from] ValueError),
}

/// Validates custom fields, with the compiled schemas that a running function has used lately. Clones share what their request
/// may cost, and what it has found.
#[derive(Clone, Default)]
pub struct Schemas {
    compiled: Arc<CompiledSchemas>,
    request: Arc<Mutex<RequestValidations>>,
}

/// What a request has spent, and the errors of what it has validated, by the schema and the hash of the fields: what was only
/// checked first, or is tried again, is not validated twice.
#[derive(Default)]
struct RequestValidations {
    spent: u64,
    found: HashMap<(SchemaKey, String), Vec<FieldError>>,
}

impl Schemas {
    /// Returns the same for another request.
    #[must_use]
    pub fn for_request(&self) -> Self {
        Self { compiled: Arc::clone(&self.compiled), request: Arc::default() }
    }

    /// Validates custom fields against `schema`, the schema of version `version` of the asset type `id`. Returns all errors,
    /// or only the first if finding all of them would cost too much.
    ///
    /// # Errors
    ///
    /// Returns [`SchemaError::BudgetSpent`] if the request has too little left, and [`SchemaError::Invalid`] for a schema that
    /// does not compile.
    pub fn errors(
        &self,
        id: Uuid,
        version: u64,
        schema: &FieldsSchema,
        fields: &CustomFields,
    ) -> Result<Vec<FieldError>, SchemaError> {
        let (schema_key, value) = ((id, version), Value::Object(fields.as_map().clone()));
        let key = (schema_key, hex::sha256(value.to_string()));
        let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(errors) = request.found.get(&key) {
            return Ok(errors.clone());
        }
        let errors = match cost::estimate(schema.as_value(), &value, MAX_UNITS.saturating_sub(request.spent)) {
            Ok(units) => {
                let (compiled, compiling) = self.compiled.get(schema_key, || Compiled::stored(schema.as_value()))?;
                let reports_all = units <= MAX_UNITS_FOR_ALL_ERRORS;
                let errors = compiled.errors(&value, reports_all);
                let reporting = if reports_all && !errors.is_empty() { units * REPORTING } else { 0 };
                request.spent += units + compiling + reporting;
                errors
            }
            // Alone it costs too much.
            Err(estimating) if request.spent == 0 => {
                request.spent += estimating;
                vec![FieldError::field("custom_fields", "cost too much to validate against the type's schema")]
            }
            Err(estimating) => {
                request.spent += estimating;
                return Err(SchemaError::BudgetSpent);
            }
        };
        request.found.insert(key, errors.clone());
        Ok(errors)
    }
}

impl Compiled {
    fn errors(&self, value: &Value, all: bool) -> Vec<FieldError> {
        match all {
            true => self.validator.iter_errors(value).map(|error| field_error(&error)).take(MAX_ERRORS).collect(),
            false => self.validator.validate(value).err().map(|error| field_error(&error)).into_iter().collect(),
        }
    }
}

fn field_error(error: &ValidationError<'_>) -> FieldError {
    let detail = match error.kind() {
        // The library speaks of a "False schema".
        ValidationErrorKind::FalseSchema => "is not permitted by the type's schema".to_owned(),
        _ => shortened(error.to_string()),
    };
    FieldError { location: ErrorLocation::Pointer(format!("/custom_fields{}", error.instance_path())), detail }
}
