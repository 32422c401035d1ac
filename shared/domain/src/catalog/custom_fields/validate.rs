//! Validates custom fields, within the units of a request.

use super::compiled::{Compiled, CompiledSchemas, SchemaKey};
use super::cost::{self, Cost};
use super::{CustomFields, CustomFieldsPatch, FieldsSchema, shortened};
use crate::values::field_error::{FieldError, pointer_token};
use crate::values::hex;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// The maximum cost of all validations of a request, in units of [`cost::estimate`]: at most 0.4 s.
pub(super) const MAX_UNITS: u64 = 5_000_000;
/// The maximum cost of a validation that reports all errors, in units.
const MAX_UNITS_FOR_ALL_ERRORS: u64 = 100_000;
/// The factor of reporting the errors beside finding them, as measured: it takes 300 ns a unit, and memory.
const REPORTING: u64 = 4;
const MAX_ERRORS: usize = 100;
/// The cost of finding out that a stored schema is refused, in units.
const CHECKING: u64 = 8_000;

/// Too few of the request's units are left.
#[derive(Debug, thiserror::Error)]
#[error("the request's budget for validations is spent")]
pub struct BudgetSpent;

/// The validations of a request, with the compiled schemas that a running function has used lately. Clones share the request's
/// units and findings.
#[derive(Clone, Default)]
pub struct Validations {
    compiled: Arc<CompiledSchemas>,
    done: Arc<Mutex<Done>>,
}

/// The units that a request has spent, and the errors found, by the schema and the hash of the fields: fields that were only
/// checked first, or are tried again, are not validated twice.
#[derive(Default)]
struct Done {
    spent: u64,
    errors: HashMap<(SchemaKey, String), Vec<SchemaFault>>,
    /// Stored schemas that are refused, whatever the fields are.
    refused: HashMap<SchemaKey, SchemaFault>,
}

/// What a schema refuses.
#[derive(Debug, Clone)]
pub struct SchemaFault {
    /// JSON Pointer from the custom fields on.
    pointer: String,
    /// The custom fields that it is about. Without any, it is about all together.
    fields: Vec<String>,
    detail: String,
}

impl SchemaFault {
    fn whole(detail: impl Into<String>) -> Self {
        Self { pointer: String::new(), fields: Vec::new(), detail: detail.into() }
    }

    fn new(error: &ValidationError<'_>) -> Self {
        let pointer = error.instance_path().to_string();
        let (fields, detail) = match error.kind() {
            // The library speaks of a "False schema".
            ValidationErrorKind::FalseSchema => (Vec::new(), "is not permitted by the type's schema".to_owned()),
            ValidationErrorKind::Required { property } => {
                (vec![property.as_str().unwrap_or_default().to_owned()], error.to_string())
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => (unexpected.clone(), error.to_string()),
            _ => (Vec::new(), error.to_string()),
        };
        let fields = match pointer.split('/').nth(1) {
            Some(field) => vec![field.replace("~1", "/").replace("~0", "~")],
            None => fields,
        };
        Self { pointer, fields, detail: shortened(detail) }
    }

    /// Points to where the request sets the custom field: in `patch`, if that has it.
    #[must_use]
    pub fn located(&self, patch: Option<&CustomFieldsPatch>) -> FieldError {
        let member = if patch.is_some() { "custom_fields_patch" } else { "custom_fields" };
        let set_singly = self.fields.iter().find(|field| patch.is_some_and(|patch| patch.has(field)));
        match set_singly {
            Some(field) if self.pointer.is_empty() => {
                FieldError::within(member, &format!("/{}", pointer_token(field)), &self.detail)
            }
            Some(_) => FieldError::within(member, &self.pointer, &self.detail),
            None if self.pointer.is_empty() => FieldError::field(member, &self.detail),
            None => FieldError::within("custom_fields", &self.pointer, &self.detail),
        }
    }
}

impl Validations {
    #[must_use]
    pub fn new(compiled: Arc<CompiledSchemas>) -> Self {
        Self { compiled, done: Arc::default() }
    }

    /// `schema` is that of version `version` of the asset type `id`. Returns all errors, or only the first if finding all of them
    /// would cost too much. No fields are valid by a stored schema that today's rules refuse.
    ///
    /// # Errors
    ///
    /// [`BudgetSpent`] if the request has too little left.
    pub fn errors(
        &self,
        id: Uuid,
        version: u64,
        schema: &FieldsSchema,
        fields: &CustomFields,
    ) -> Result<Vec<SchemaFault>, BudgetSpent> {
        let (schema_key, value) = ((id, version), Value::Object(fields.as_map().clone()));
        let key = (schema_key, hex::sha256(value.to_string()));
        // Only this request waits for it.
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(errors) = done.errors.get(&key) {
            return Ok(errors.clone());
        }
        if let Some(fault) = done.refused.get(&schema_key) {
            return Ok(vec![fault.clone()]);
        }
        let left = MAX_UNITS.saturating_sub(done.spent);
        if left == 0 {
            return Err(BudgetSpent);
        }
        // First of all, since estimating follows references, too.
        let compiled = match self.compiled.get(schema_key, || Compiled::new(schema.as_value())) {
            Ok((compiled, compiling)) => {
                done.spent += compiling;
                compiled
            }
            Err(error) => {
                done.spent += CHECKING;
                let detail = format!("can't be validated until the type's custom_fields_schema is corrected: it {error}");
                let fault = SchemaFault::whole(detail);
                done.refused.insert(schema_key, fault.clone());
                return Ok(vec![fault]);
            }
        };
        let errors = match cost::estimate(schema.as_value(), &value, MAX_UNITS, left) {
            Cost::Units { units, .. } if units <= left => {
                let reports_all = units <= MAX_UNITS_FOR_ALL_ERRORS;
                let errors = compiled.errors(&value, reports_all);
                let reporting = if reports_all && !errors.is_empty() { units * REPORTING } else { 0 };
                done.spent += units + reporting;
                errors
            }
            Cost::Excessive { work } => {
                done.spent += work;
                vec![SchemaFault::whole("cost too much to validate against the type's schema")]
            }
            Cost::Units { work, .. } | Cost::Unknown { work } => {
                done.spent += work;
                return Err(BudgetSpent);
            }
        };
        done.errors.insert(key, errors.clone());
        Ok(errors)
    }
}

impl Compiled {
    fn errors(&self, value: &Value, all: bool) -> Vec<SchemaFault> {
        match all {
            true => self.validator.iter_errors(value).map(|error| SchemaFault::new(&error)).take(MAX_ERRORS).collect(),
            false => self.validator.validate(value).err().map(|error| SchemaFault::new(&error)).into_iter().collect(),
        }
    }
}
