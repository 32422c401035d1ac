//! Custom fields of assets, patches of single fields, and the JSON Schema of an asset type that validates them. Names are single
//! lines, and texts are composed (NFC), so texts that look the same are equal.
//!
//! Custom fields are validated within a request's budget, with a cache of compiled schemas.

mod limits;
#[cfg(test)]
mod tests;

use crate::values::field_error::{ErrorCode, FieldError, ValueError, pointer_token};
use crate::values::hex;
use crate::values::json::{self, parse_strict};
use crate::values::text::{NUL, Name, composed};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use limits::{Cost, PatternCost};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The maximum size of custom fields and of schemas, in bytes of compact JSON.
const MAX_BYTES: usize = 32 * 1024;
const MAX_FIELD_LEVELS: usize = 8;
/// The maximum nesting of a schema, which needs about four levels for each level of data.
const MAX_SCHEMA_LEVELS: usize = 32;
/// The maximum length of an error's text, in characters. A longer text is truncated.
const MAX_ERROR_CHARS: usize = 300;

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

    /// Keeps the form that equal values have in `present`: `1` stays `1` if it is set to `1.0`.
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

/// Truncates a string to [`MAX_ERROR_CHARS`]: the validator quotes the whole value.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_ERROR_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
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
            Ok(_) => "must be in Unicode's composed form (NFC), without surrounding whitespace".to_owned(),
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

/// The maximum cost of all validations in a request, in units of [`limits::estimate`], which take at most 0.4 s. A validation that
/// would exceed it is not run.
const MAX_UNITS: u64 = 5_000_000;
/// The maximum cost of a validation that reports all errors, in units. A more expensive validation reports only the first error.
const MAX_UNITS_FOR_ALL_ERRORS: u64 = 100_000;
/// Cost of reporting errors, relative to finding them. Measured: reporting takes 300 ns per unit, and memory.
const REPORTING: u64 = 4;
/// Cost of rejecting a stored schema, in units.
const CHECKING: u64 = 8_000;
/// Maximum memory of one pattern's automaton. Schemas with larger patterns are rejected earlier.
const MAX_AUTOMATON_BYTES: usize = 1024 * 1024;
/// Maximum memory for matching the patterns of a schema, shared equally between their caches.
const MAX_MATCHING_BYTES: usize = 2 * 1024 * 1024;
/// Maximum memory for the cache of one pattern.
const MAX_CACHE_BYTES_OF_PATTERN: usize = 256 * 1024;
/// Bytes of a compiled schema per byte of its text, without patterns. Measured.
const BYTES_OF_TEXT_BYTE: usize = 64;
/// Bytes compiled in the time that one unit takes with the worst patterns. Measured.
const BYTES_COMPILED_A_UNIT: u64 = 8;
/// The maximum size of all compiled schemas in memory. To stay below it, the oldest are dropped.
const MAX_CACHED_BYTES: usize = 32 * 1024 * 1024;

/// An asset type and its version.
type SchemaKey = (Uuid, u64);

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

#[derive(Debug, Clone)]
pub struct SchemaFault {
    /// JSON Pointer within the custom fields.
    pointer: String,
    /// The invalid custom fields; empty if the error concerns the whole object.
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
            // The library's own text would mention a "False schema".
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

    /// Locates the fault where the request sets the custom field: in `patch` if it contains the field. `sets_all`: whether the
    /// request has `custom_fields`, with or without a patch.
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

/// Returns the code of an error and the exceeded limit. Combined schemas, such as `anyOf`, have no code; neither do exclusive
/// bounds, because the bound itself is not permitted.
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
    pub fn new(compiled: Arc<CompiledSchemas>) -> Self {
        Self { compiled, done: Arc::default() }
    }

    /// Validates `fields` against the schema of version `version` of the asset type `id`. Returns up to 100 errors, or only the
    /// first if finding more would cost too much. If the current rules reject a stored schema, no fields are valid.
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
        // Only this request uses the lock, so no other request waits.
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
        // Compile before estimating, because the estimate follows references, too.
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
        let errors = match limits::estimate(schema.as_value(), &value, MAX_UNITS, left) {
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

/// A schema accepted by [`limits::check`], ready to validate.
struct Compiled {
    validator: Validator,
    /// Maximum size in memory, including the caches for matching.
    bytes: usize,
    /// Cost of compiling, in units.
    units: u64,
}

impl Compiled {
    /// Checks and compiles a schema. Stored schemas are checked like new ones: they might have been accepted under other rules,
    /// and only [`limits::check`] prevents their references from overflowing the stack.
    fn new(schema: &Value) -> Result<Self, ValueError> {
        let PatternCost { patterns, bytes } = limits::check(schema)?;
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
    // An error in a rule that is rejected during compilation has only a schema path.
    let pointer = match error.instance_path().as_str() {
        "" => error.schema_path().as_str(),
        pointer => pointer,
    };
    ValueError::new(match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            format!(
                "must only use valid regular expressions as patterns, without look-around, back-references or excessive repetition (at {pointer})"
            )
        }
        ValidationErrorKind::Referencing(_) => {
            "must only use references within the schema: each $ref must start with #".to_owned()
        }
        _ => format!("is not a valid JSON Schema: {} (at {pointer})", shortened(error.to_string())),
    })
}

/// A cache of compiled schemas, shared by the requests of a process.
#[derive(Default)]
pub struct CompiledSchemas(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    schemas: HashMap<SchemaKey, Arc<Compiled>>,
    /// Cached schemas, oldest first.
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
