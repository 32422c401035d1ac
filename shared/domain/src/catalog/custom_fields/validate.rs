//! Validates custom fields within a request's budget, with a cache of compiled schemas.

use super::cost::{self, Cost};
use super::policy::{self, PatternCost};
use super::{CustomFields, CustomFieldsPatch, FieldsSchema, shortened};
use crate::values::field_error::{ErrorCode, FieldError, ValueError, pointer_token};
use crate::values::hex;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::{Number, Value};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The maximum cost of all validations of a request, in units of [`cost::estimate`]: at most 0.4 s.
pub(super) const MAX_UNITS: u64 = 5_000_000;
/// The maximum cost of a validation that reports all errors, in units.
const MAX_UNITS_FOR_ALL_ERRORS: u64 = 100_000;
/// Cost of reporting errors, relative to finding them. Measured: 300 ns per unit, and memory.
const REPORTING: u64 = 4;
const MAX_ERRORS: usize = 100;
/// Cost of rejecting a stored schema, in units.
const CHECKING: u64 = 8_000;
/// Maximum memory of one pattern's automaton. Schemas with larger patterns are rejected earlier.
const MAX_AUTOMATON_BYTES: usize = 1024 * 1024;
/// Maximum memory of the caches for matching all patterns of a schema.
const MAX_MATCHING_BYTES: usize = 2 * 1024 * 1024;
/// Maximum share of one pattern in [`MAX_MATCHING_BYTES`].
const MAX_CACHE_BYTES_OF_PATTERN: usize = 256 * 1024;
/// Bytes of a compiled schema per byte of its text, without patterns. Measured.
const BYTES_OF_TEXT_BYTE: usize = 64;
/// Bytes compiled in the time that one unit takes with the worst patterns. Measured.
const BYTES_COMPILED_A_UNIT: u64 = 8;
/// The maximum size of all compiled schemas in memory.
const MAX_CACHED_BYTES: usize = 32 * 1024 * 1024;

/// An asset type and its version.
type SchemaKey = (Uuid, u64);

/// The request has too few units left.
#[derive(Debug, thiserror::Error)]
#[error("the request's validation budget is spent")]
pub struct BudgetSpent;

/// The validations of a request, with the process's cache of compiled schemas. Clones share the request's budget and results.
#[derive(Clone, Default)]
pub struct Validations {
    compiled: Arc<CompiledSchemas>,
    done: Arc<Mutex<Done>>,
}

/// The units spent by a request, and the errors found, by schema and hash of the fields. If a request checks the same fields
/// again, for example in a retry, they are not validated twice.
#[derive(Default)]
struct Done {
    spent: u64,
    errors: HashMap<(SchemaKey, String), Vec<SchemaFault>>,
    /// Stored schemas that are rejected regardless of the fields.
    refused: HashMap<SchemaKey, SchemaFault>,
}

/// A violation of a schema.
#[derive(Debug, Clone)]
pub struct SchemaFault {
    /// JSON Pointer within the custom fields.
    pointer: String,
    /// The custom fields with the error; empty if it is about the whole object.
    fields: Vec<String>,
    /// Whether the schema requires these fields.
    are_missing: bool,
    reason: ValueError,
}

impl SchemaFault {
    fn whole(text: impl Into<String>) -> Self {
        Self { pointer: String::new(), fields: Vec::new(), are_missing: false, reason: ValueError::new(text) }
    }

    fn new(error: &ValidationError<'_>) -> Self {
        let pointer = error.instance_path().to_string();
        let (fields, text) = match error.kind() {
            // The library's text would be about a "False schema".
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
        let are_missing = pointer.is_empty() && matches!(error.kind(), ValidationErrorKind::Required { .. });
        let (code, limit) = code_and_limit(error.kind());
        Self { pointer, fields, are_missing, reason: ValueError { text: shortened(text), code, limit } }
    }

    /// Points to where the request sets the custom field: in `patch` if it contains the field. `sets_all`: whether the request
    /// has `custom_fields`, with or without a patch.
    #[must_use]
    pub fn located(&self, patch: Option<&CustomFieldsPatch>, sets_all: bool) -> FieldError {
        let set_singly = self.fields.iter().find(|field| patch.is_some_and(|patch| patch.has(field)));
        let of_all = || self.fields.first().filter(|_| sets_all && !self.are_missing);
        let (member, field) = match set_singly {
            Some(field) => ("custom_fields_patch", Some(field)),
            None if patch.is_some() && !sets_all && self.pointer.is_empty() => ("custom_fields_patch", None),
            None => ("custom_fields", of_all()),
        };
        match field {
            Some(field) if self.pointer.is_empty() => {
                FieldError::within(member, &format!("/{}", pointer_token(field)), self.reason.clone())
            }
            _ => FieldError::within(member, &self.pointer, self.reason.clone()),
        }
    }
}

/// Combined schemas, such as `anyOf`, have no code; neither have exclusive bounds, which are no limit but refused themselves.
fn code_and_limit(kind: &ValidationErrorKind) -> (Option<ErrorCode>, Option<Number>) {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Required { .. } => (Some(ErrorCode::Required), None),
        Kind::MinLength { limit } => (Some(ErrorCode::TooShort), Some((*limit).into())),
        Kind::MaxLength { limit } => (Some(ErrorCode::TooLong), Some((*limit).into())),
        Kind::Minimum { limit: Value::Number(limit) } => (Some(ErrorCode::TooSmall), Some(limit.clone())),
        Kind::Maximum { limit: Value::Number(limit) } => (Some(ErrorCode::TooLarge), Some(limit.clone())),
        Kind::Type { .. } | Kind::Pattern { .. } | Kind::Format { .. } => (Some(ErrorCode::InvalidFormat), None),
        Kind::Enum { .. } | Kind::Constant { .. } => (Some(ErrorCode::UnknownValue), None),
        Kind::FalseSchema | Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            (Some(ErrorCode::UnknownField), None)
        }
        _ => (None, None),
    }
}

impl Validations {
    #[must_use]
    pub fn new(compiled: Arc<CompiledSchemas>) -> Self {
        Self { compiled, done: Arc::default() }
    }

    /// Validates `fields` against the schema of version `version` of the asset type `id`. Returns all errors, or only the first
    /// if finding all of them would cost too much. If the current rules reject a stored schema, no fields are valid.
    ///
    /// # Errors
    ///
    /// Returns [`BudgetSpent`] when the request has too few units left.
    pub fn errors(
        &self,
        id: Uuid,
        version: u64,
        schema: &FieldsSchema,
        fields: &CustomFields,
    ) -> Result<Vec<SchemaFault>, BudgetSpent> {
        let (schema_key, value) = ((id, version), Value::Object(fields.as_map().clone()));
        let key = (schema_key, hex::sha256(value.to_string()));
        // Only this request uses the lock.
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
        // Before the estimate, which follows references, too.
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

/// A schema accepted by [`policy::check`], ready to validate.
pub(super) struct Compiled {
    validator: Validator,
    /// Maximum size in memory, including the caches for matching.
    bytes: usize,
    /// Cost of compiling, in units.
    units: u64,
}

impl Compiled {
    /// Checks and compiles a schema. Stored schemas are checked like new ones: they might have been accepted by other rules, and
    /// only [`policy::check`] prevents their references from overflowing the stack.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the schema is invalid or too expensive.
    pub(super) fn new(schema: &Value) -> Result<Self, ValueError> {
        let PatternCost { patterns, bytes } = policy::check(schema)?;
        let cache_bytes = (MAX_MATCHING_BYTES / patterns.max(1)).min(MAX_CACHE_BYTES_OF_PATTERN);
        let options = PatternOptions::regex().size_limit(MAX_AUTOMATON_BYTES).dfa_size_limit(cache_bytes);
        let validator = jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(options).build(schema);
        let bytes = bytes.saturating_add((schema.to_string().len() * BYTES_OF_TEXT_BYTE) as u64);
        Ok(Self {
            validator: validator.map_err(|error| invalid(&error))?,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(2 * cache_bytes * patterns),
            units: bytes / BYTES_COMPILED_A_UNIT,
        })
    }

    fn errors(&self, value: &Value, all: bool) -> Vec<SchemaFault> {
        match all {
            true => self.validator.iter_errors(value).map(|error| SchemaFault::new(&error)).take(MAX_ERRORS).collect(),
            false => self.validator.validate(value).err().map(|error| SchemaFault::new(&error)).into_iter().collect(),
        }
    }
}

/// Replaces the library's error texts where they don't help.
fn invalid(error: &ValidationError<'_>) -> ValueError {
    // For rules rejected during compilation, only the schema path is set.
    let pointer = match error.instance_path().as_str() {
        "" => error.schema_path().as_str(),
        pointer => pointer,
    };
    ValueError::new(match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            format!(
                "must only have patterns that are regular expressions, without look-around, back-references or excessive repetition (at {pointer})"
            )
        }
        ValidationErrorKind::Referencing(_) => "must only have references to its own parts, $ref with #/…".to_owned(),
        _ => format!("is not a valid JSON Schema: {} (at {pointer})", shortened(error.to_string())),
    })
}

/// A cache of compiled schemas, shared by the requests of a process.
#[derive(Default)]
pub struct CompiledSchemas(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    schemas: HashMap<SchemaKey, Arc<Compiled>>,
    /// The oldest first.
    order: VecDeque<SchemaKey>,
    bytes: usize,
}

impl CompiledSchemas {
    /// Returns the schema, cached or compiled by `compile`, and the cost of compiling in units. Other requests don't wait for
    /// `compile`.
    fn get(
        &self,
        key: SchemaKey,
        compile: impl FnOnce() -> Result<Compiled, ValueError>,
    ) -> Result<(Arc<Compiled>, u64), ValueError> {
        let known = self.cached().schemas.get(&key).cloned();
        if let Some(known) = known {
            return Ok((known, 0));
        }
        let compiled = Arc::new(compile()?);
        self.cached().insert(key, Arc::clone(&compiled));
        let units = compiled.units;
        Ok((compiled, units))
    }

    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cached {
    fn insert(&mut self, key: SchemaKey, compiled: Arc<Compiled>) {
        self.bytes += compiled.bytes;
        match self.schemas.insert(key, compiled) {
            Some(known) => self.bytes -= known.bytes,
            None => self.order.push_back(key),
        }
        while self.bytes > MAX_CACHED_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.schemas.remove(&oldest).map_or(0, |dropped| dropped.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(bytes: usize) -> Compiled {
        Compiled { bytes, ..Compiled::new(&json!({})).expect("a schema") }
    }

    #[test]
    fn nobody_waits_while_a_schema_is_compiled() {
        let cache = CompiledSchemas::default();
        let other = || cache.get((Uuid::from_u128(2), 1), || Ok(schema(1)));
        let compiled = cache.get((Uuid::from_u128(1), 1), || {
            assert!(cache.0.try_lock().is_ok(), "another request would wait");
            other().map(|_| schema(1))
        });
        assert!(compiled.is_ok() && cache.cached().schemas.len() == 2);
    }

    #[test]
    fn the_cache_drops_the_oldest_schemas() {
        let cache = CompiledSchemas::default();
        for version in [1, 2, 3, 4, 4] {
            cache.cached().insert((Uuid::nil(), version), Arc::new(schema(MAX_CACHED_BYTES / 3)));
        }
        assert!(cache.cached().bytes <= MAX_CACHED_BYTES);
        let known = |version| cache.cached().schemas.contains_key(&(Uuid::nil(), version));
        assert_eq!([1, 2, 3, 4].map(known), [false, true, true, true]);
    }
}
