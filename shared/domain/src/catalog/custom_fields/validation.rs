//! Limits on schemas, and the validation of custom fields within a request's budget, with a cache of compiled schemas. References
//! must stay within the schema, without cycles or excessive expansion.
//!
//! A tenant's schema is a program that runs in the service: tenants choose the schema and the value, and even a small schema can
//! be expensive, for example if it checks every item of a long list against many patterns. So the cost of compiling a pattern and
//! of validating a value is estimated first. The estimate for a validation visits the same rules and values as a validator in the
//! worst case. It stops as soon as the cost is excessive, so it is cheaper than the validation.

use super::{CustomFields, CustomFieldsPatch, FieldsSchema, MAX_ERRORS};
use crate::values::field_error::{ErrorCode, FieldError, ValueError, pointer_token};
use crate::values::hex;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The maximum length of an error's text, in characters. A longer text is truncated.
const MAX_ERROR_CHARS: usize = 300;
/// The maximum cost of all validations in a request, in units of [`estimate`], which take at most 0.4 s. A validation that
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
        let errors = match estimate(schema.as_value(), &value, MAX_UNITS, left) {
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

/// A schema accepted by [`check_limits`], ready to validate.
pub(super) struct Compiled {
    validator: Validator,
    /// Maximum size in memory, including the caches for matching.
    bytes: usize,
    /// Cost of compiling, in units.
    units: u64,
}

impl Compiled {
    /// Checks and compiles a schema. Stored schemas are checked like new ones: they might have been accepted under other rules,
    /// and only [`check_limits`] prevents their references from overflowing the stack.
    pub(super) fn new(schema: &Value) -> Result<Self, ValueError> {
        let PatternCost { patterns, bytes } = check_limits(schema)?;
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

/// Truncates a string to [`MAX_ERROR_CHARS`]: the validator quotes the whole value.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_ERROR_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Maximum nesting of a schema, with references followed.
const MAX_LEVELS: usize = 64;
/// Maximum number of values in a schema, with references followed. Each value takes up to 500 bytes when compiled.
const MAX_NODES: usize = 8_000;
/// Maximum total size of a schema's distinct compiled patterns. Compiling them takes less than 35 ms in a release build.
const MAX_PATTERN_BYTES: u64 = 2 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PatternCost {
    patterns: usize,
    bytes: u64,
}

/// Checks that all references in a schema stay within the schema, don't form a cycle and don't expand excessively, and that its
/// patterns are cheap to compile. The error says what the schema must not contain.
fn check_limits(schema: &Value) -> Result<PatternCost, ValueError> {
    let mut expansion = Expansion { root: schema, follows: true, nodes: 0, patterns: BTreeSet::new(), bytes: 0 };
    expansion.visit(schema, &Place { level: 0, is_root: true, pointer: String::new() })?;
    // Definitions count where they are referenced. Unused definitions cost nothing, but must not have external references either.
    expansion.follows = false;
    for name in ["$defs", "definitions"] {
        let definitions = schema.get(name).and_then(Value::as_object).into_iter().flatten();
        for (member, definition) in definitions {
            let pointer = format!("/{name}/{}", pointer_token(member));
            expansion.visit(definition, &Place { level: 2, is_root: false, pointer })?;
        }
    }
    Ok(PatternCost { patterns: expansion.patterns.len(), bytes: expansion.bytes })
}

/// Resolves a reference within the schema `root`.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&target_pointer(reference)?)
}

fn target_pointer(reference: &str) -> Option<String> {
    Some(percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?.into_owned())
}

struct Place {
    /// Nesting of this part of the schema, with references followed.
    level: usize,
    is_root: bool,
    /// JSON Pointer to this part of the schema.
    pointer: String,
}

impl Place {
    fn member(&self, name: &str) -> Self {
        Self { level: self.level + 1, is_root: false, pointer: format!("{}/{}", self.pointer, pointer_token(name)) }
    }
}

/// Visits a schema and follows its references, as a validator does in the worst case.
struct Expansion<'a> {
    root: &'a Value,
    /// Whether to follow references and count patterns.
    follows: bool,
    nodes: usize,
    patterns: BTreeSet<&'a str>,
    bytes: u64,
}

impl<'a> Expansion<'a> {
    fn count(&mut self, level: usize) -> Result<(), ValueError> {
        self.nodes += 1;
        // In a new schema, only references can reach this depth: the schema's text has fewer levels.
        if level > MAX_LEVELS {
            return Err(ValueError::new(format!("must not have references that form a cycle or exceed {MAX_LEVELS} levels")));
        }
        if self.nodes > MAX_NODES {
            return Err(ValueError::new(format!(
                "must have at most {MAX_NODES} values, with references followed; this has more"
            )));
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &'a str, place: &Place) -> Result<(), ValueError> {
        if let Some(feature) = unsupported(pattern) {
            return Err(ValueError::new(format!(
                "must not have a pattern with {feature}; patterns don't support look-around or back-references (at {})",
                place.pointer
            )));
        }
        // Equal patterns are compiled only once.
        if self.follows && self.patterns.insert(pattern) {
            self.bytes = self.bytes.saturating_add(compile_bytes(pattern));
        }
        if self.bytes > MAX_PATTERN_BYTES {
            return Err(ValueError::new(format!(
                "must not have patterns that compile to more than {MAX_PATTERN_BYTES} bytes; use fewer or shorter ones, with \
                 fewer repetitions and Unicode classes such as \\p{{L}} (at {})",
                place.pointer
            )));
        }
        Ok(())
    }

    fn visit(&mut self, node: &'a Value, place: &Place) -> Result<(), ValueError> {
        self.count(place.level)?;
        match node {
            Value::Object(members) => {
                members.iter().try_for_each(|(name, value)| self.keyword(name, value, place.is_root, &place.member(name)))
            }
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(index, item)| self.visit(item, &place.member(&index.to_string())))
            }
            _ => Ok(()),
        }
    }

    /// Visits a keyword. `is_top`: whether `name` is a keyword at the root of the schema.
    fn keyword(&mut self, name: &str, value: &'a Value, is_top: bool, place: &Place) -> Result<(), ValueError> {
        match (name, value) {
            ("$ref", Value::String(reference)) => self.reference(reference, place),
            ("$id", Value::String(_)) if is_top => Ok(()),
            ("$id", Value::String(_)) => Err(ValueError::new("must not use $id below its root")),
            ("$dynamicRef" | "$dynamicAnchor" | "$anchor" | "$recursiveRef", Value::String(_)) => {
                Err(ValueError::new(format!("must not use {name}; use $ref with #/… instead")))
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern, place),
            ("$defs" | "definitions", _) if is_top => Ok(()),
            // These keywords contain data, whose members can look like keywords.
            ("enum" | "const" | "default" | "examples", _) => self.data(value, place.level),
            ("properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions", Value::Object(rules)) => {
                self.count(place.level)?;
                for (member, rule) in rules {
                    let place = place.member(member);
                    if name == "patternProperties" {
                        self.pattern(member, &place)?;
                    }
                    self.visit(rule, &place)?;
                }
                Ok(())
            }
            _ => self.visit(value, place),
        }
    }

    fn reference(&mut self, reference: &str, place: &Place) -> Result<(), ValueError> {
        let outside = || {
            ValueError::new(format!(
                "must only use references within the schema: each $ref must start with # (at {})",
                place.pointer
            ))
        };
        let schema = target(self.root, reference).ok_or_else(outside)?;
        if !self.follows {
            return Ok(());
        }
        let pointer = target_pointer(reference).ok_or_else(outside)?;
        self.visit(schema, &Place { level: place.level, is_root: false, pointer })
    }

    fn data(&mut self, value: &Value, level: usize) -> Result<(), ValueError> {
        self.count(level)?;
        match value {
            Value::Object(members) => members.values().try_for_each(|member| self.data(member, level + 1)),
            Value::Array(items) => items.iter().try_for_each(|item| self.data(item, level + 1)),
            _ => Ok(()),
        }
    }
}

/// The cost of a validation and the work of estimating it, both in units. Measured: validating takes 1 to 2 ns per unit, or 80 ns
/// with the worst patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    Units {
        units: u64,
        work: u64,
    },
    Excessive {
        work: u64,
    },
    /// The estimate was abandoned.
    Unknown {
        work: u64,
    },
}

/// Estimates the cost of validating `value` against `schema`, up to `limit`. The estimate itself takes no more work than the
/// validation, and is abandoned when this work exceeds `most_work`.
fn estimate(schema: &Value, value: &Value, limit: u64, most_work: u64) -> Cost {
    let mut estimate = Estimate { root: schema, left: limit, work: 0, most_work };
    match estimate.check(schema, value, 1) {
        Ok(()) => Cost::Units { units: limit - estimate.left, work: estimate.work },
        Err(Exceeded::Limit) => Cost::Excessive { work: estimate.work },
        Err(Exceeded::Work) => Cost::Unknown { work: estimate.work },
    }
}

enum Exceeded {
    Limit,
    Work,
}

struct Estimate<'a> {
    root: &'a Value,
    left: u64,
    work: u64,
    most_work: u64,
}

impl Estimate<'_> {
    /// Adds `units`, `times` times. Estimating them took `work`.
    fn spend(&mut self, units: u64, times: u64, work: u64) -> Result<(), Exceeded> {
        self.work = self.work.saturating_add(work);
        self.left = self.left.checked_sub(units.saturating_mul(times)).ok_or(Exceeded::Limit)?;
        if self.work > self.most_work { Err(Exceeded::Work) } else { Ok(()) }
    }

    /// Adds units that take as much work to estimate as to validate.
    fn add(&mut self, units: u64, times: u64) -> Result<(), Exceeded> {
        self.spend(units, times, units)
    }

    fn search(&mut self, pattern: &str, text: &str, times: u64) -> Result<(), Exceeded> {
        let reading = 1 + pattern.len() as u64 / 4;
        // The text is read once. In the worst case, all states of the pattern are active.
        let matching = (text.len() as u64).saturating_mul(states(pattern)) / 16;
        self.spend(reading.saturating_add(matching), times, reading)
    }

    fn check(&mut self, schema: &Value, value: &Value, times: u64) -> Result<(), Exceeded> {
        self.add(1, times)?;
        let Value::Object(rules) = schema else { return Ok(()) };
        // To find unevaluated children, a validator evaluates all rules again for each child.
        let evaluates_again = rules.contains_key("unevaluatedProperties") || rules.contains_key("unevaluatedItems");
        let times = if evaluates_again { times.saturating_mul(1 + children(value).count() as u64) } else { times };
        for (name, rule) in rules {
            self.add(1, times)?;
            self.rule(name, rule, value, times)?;
        }
        Ok(())
    }

    fn rule(&mut self, name: &str, rule: &Value, value: &Value, times: u64) -> Result<(), Exceeded> {
        match (name, rule, value) {
            ("$ref", Value::String(pointer), _) => match target(self.root, pointer) {
                Some(schema) => self.check(schema, value, times),
                None => Ok(()),
            },
            ("properties", Value::Object(rules), Value::Object(members)) => {
                self.add(rules.len() as u64, times)?;
                rules
                    .iter()
                    .try_for_each(|(name, rule)| members.get(name).map_or(Ok(()), |member| self.check(rule, member, times)))
            }
            ("patternProperties", Value::Object(rules), Value::Object(members)) => self.pattern_properties(rules, members, times),
            ("propertyNames", _, Value::Object(members)) => {
                members.keys().try_for_each(|name| self.check(rule, &Value::String(name.clone()), times))
            }
            ("prefixItems", Value::Array(rules), Value::Array(items)) => {
                rules.iter().zip(items).try_for_each(|(rule, item)| self.check(rule, item, times))
            }
            (
                "additionalProperties" | "unevaluatedProperties" | "items" | "unevaluatedItems" | "contains",
                Value::Object(_) | Value::Bool(_),
                _,
            ) => children(value).try_for_each(|child| self.check(rule, child, times)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(rules), _) => {
                rules.iter().try_for_each(|rule| self.check(rule, value, times))
            }
            ("not" | "if" | "then" | "else", _, _) => self.check(rule, value, times),
            ("dependentSchemas", Value::Object(rules), _) => rules.values().try_for_each(|rule| self.check(rule, value, times)),
            ("enum" | "const", _, _) => self.add(size(rule), times),
            ("pattern", Value::String(pattern), Value::String(text)) => self.search(pattern, text, times),
            // These keywords count the characters.
            ("minLength" | "maxLength", _, Value::String(text)) => self.spend(text.len() as u64 / 16, times, 1),
            // The validator sorts the items, then compares them.
            ("uniqueItems", _, Value::Array(_)) => self.add(8 * size(value), times),
            ("required" | "dependentRequired", _, Value::Object(_)) => self.add(size(rule), times),
            _ => Ok(()),
        }
    }

    fn pattern_properties(
        &mut self,
        rules: &Map<String, Value>,
        members: &Map<String, Value>,
        times: u64,
    ) -> Result<(), Exceeded> {
        for (pattern, rule) in rules {
            for (name, member) in members {
                self.search(pattern, name, times)?;
                self.check(rule, member, times)?;
            }
        }
        Ok(())
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Counts one unit per nested value, and per 64 bytes of text.
fn size(value: &Value) -> u64 {
    let text = if let Value::String(text) = value { text.len() as u64 / 64 } else { 0 };
    1 + text + children(value).map(size).sum::<u64>()
}

/// Returns the maximum number of active states of a pattern: one per character, multiplied by its repetitions.
fn states(pattern: &str) -> u64 {
    let mut groups: Vec<u64> = Vec::new();
    let (mut sum, mut last) = (0u64, 0u64);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '(' => {
                groups.push(sum);
                (sum, last) = (0, 0);
                continue;
            }
            ')' => {
                last = sum;
                sum = sum.saturating_add(groups.pop().unwrap_or_default());
                continue;
            }
            '{' => {
                let inner = rest.as_str().split('}').next().unwrap_or_default();
                let max = inner.split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max();
                if let Some(max) = max {
                    sum = sum.saturating_add(last.saturating_mul(max.saturating_sub(1)));
                    last = last.saturating_mul(max);
                    rest = rest.as_str()[inner.len()..].chars();
                    rest.next();
                }
                continue;
            }
            '\\' => drop(rest.next()),
            _ => {}
        }
        last = 1;
        sum = sum.saturating_add(1);
    }
    groups.into_iter().fold(sum, u64::saturating_add)
}

/// Base size of a compiled pattern, in bytes like all sizes below.
const PATTERN: u64 = 8 * 1024;
/// Additional size of a pattern with non-ASCII characters, even in a class such as `.` or `[^a]`. Mostly accounts for time.
const BEYOND_ASCII: u64 = 32 * 1024;
/// Size of a character, an assertion or an operator.
const CHARACTER: u64 = 128;
/// Size of a class with nearly all characters, such as `.` or `[^a]`.
const WIDE_CLASS: u64 = 1024;
/// Size of a Unicode class such as `\pL`, which has hundreds of ranges of characters.
const UNICODE_CLASS: u64 = 80 * 1024;
/// Length in characters of the class that replaces `\s`.
const WHITE_SPACE_CHARS: u64 = 160;
/// Factor for case-insensitive characters and classes.
const IGNORED_CASE: u64 = 6;
/// Size for each character that is parsed again: each `\d`, `\s` or `\w` outside brackets causes the whole pattern to be parsed
/// again.
const REPARSED_CHARACTER: u64 = 24;
/// Additional factor for a pattern with captures or `\b`, which is compiled for one more engine.
const CAPTURE: u64 = 8;
/// Maximum number of bytes that [`CAPTURE`] adds.
const MAX_CAPTURE: u64 = 1024 * 1024;

/// Estimates the maximum size of a compiled pattern from its text alone, before compiling it. The estimate can be wrong for
/// patterns that don't compile.
///
/// The figures are bytes of memory in the regex crate. Compiling takes about 15 ms per megabyte in a release build; slower
/// constructs count as more bytes. Repetition multiplies: the compiler copies the repeated part.
fn compile_bytes(pattern: &str) -> u64 {
    let mut estimate = PatternEstimate { ignores_case: ignores_case(pattern), ..PatternEstimate::default() };
    let body = estimate.body(pattern);
    let body = if estimate.ignores_case { body.saturating_mul(IGNORED_CASE) } else { body };
    let beyond_ascii = if estimate.is_beyond_ascii { BEYOND_ASCII } else { 0 };
    let capture = if estimate.captures { body.saturating_mul(CAPTURE).min(MAX_CAPTURE) } else { 0 };
    let parsed = pattern.len() as u64 + estimate.added_chars / 2;
    let reparsed = estimate.rewrites.saturating_mul(parsed).saturating_mul(REPARSED_CHARACTER);
    [PATTERN, body, beyond_ascii, capture, reparsed].into_iter().fold(0, u64::saturating_add)
}

/// Describes the first unsupported construct in a pattern.
fn unsupported(pattern: &str) -> Option<&'static str> {
    let mut rest = pattern;
    while let Some(index) = rest.find(['\\', '(']) {
        let (opening, after) = rest[index..].split_at(1);
        if opening == "(" && ["?=", "?!", "?<=", "?<!"].iter().any(|start| after.starts_with(start)) {
            return Some("look-around, such as (?=…)");
        }
        if opening == "\\" && after.starts_with(|c: char| c == 'k' || ('1'..='9').contains(&c)) {
            return Some("back-references, such as \\1");
        }
        if opening == "(" && flags(after).is_some_and(|flags| flags.contains('x')) {
            return Some("the flag x");
        }
        let skipped = if opening == "\\" { after.chars().next().map_or(0, char::len_utf8) } else { 0 };
        rest = &after[skipped..];
    }
    None
}

/// Returns the flags of a group, given the text after its parenthesis: `i` for `?i:`.
fn flags(group: &str) -> Option<&str> {
    let flags = group.strip_prefix('?')?;
    let end = flags.find(|c: char| !c.is_ascii_alphabetic() && c != '-')?;
    matches!(flags.as_bytes()[end], b':' | b')').then(|| &flags[..end])
}

fn ignores_case(pattern: &str) -> bool {
    pattern.split('(').skip(1).any(|group| flags(group).is_some_and(|flags| flags.contains('i')))
}

#[derive(Default)]
struct PatternEstimate {
    ignores_case: bool,
    is_beyond_ascii: bool,
    captures: bool,
    /// Number of times that the whole pattern is parsed again.
    rewrites: u64,
    /// Number of characters that rewriting adds to the pattern.
    added_chars: u64,
}

impl PatternEstimate {
    fn body(&mut self, pattern: &str) -> u64 {
        // The sums outside the open groups, the sum of the current group, and the size of the part that a repetition would
        // repeat.
        let mut groups: Vec<u64> = Vec::new();
        let (mut sum, mut last) = (0u64, 0u64);
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '(' => {
                    groups.push(sum);
                    (sum, last) = (CHARACTER, 0);
                    let flags = flags(rest);
                    self.captures |= flags.is_none();
                    rest = &rest[flags.map_or(0, |flags| flags.len() + 1)..];
                    continue;
                }
                ')' => {
                    last = sum;
                    sum = sum.saturating_add(groups.pop().unwrap_or_default());
                    continue;
                }
                // A repetition after this operator also repeats the operator.
                '*' | '+' | '?' => {
                    sum = sum.saturating_add(CHARACTER);
                    last = last.saturating_add(CHARACTER);
                    continue;
                }
                '{' => {
                    let inner = rest.split('}').next().unwrap_or_default();
                    let max = inner.split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max();
                    if let Some(max) = max {
                        let repeated = last.saturating_add(CHARACTER).saturating_mul(max);
                        (sum, last) = (sum.saturating_add(repeated), repeated.saturating_add(last));
                        rest = rest[inner.len()..].strip_prefix('}').unwrap_or_default();
                        continue;
                    }
                    last = CHARACTER;
                }
                '[' => (last, rest) = self.class(rest),
                '\\' => (last, rest) = self.escape(rest, false),
                '.' => last = self.wide_class(),
                c => last = self.character(c),
            }
            sum = sum.saturating_add(last);
        }
        groups.into_iter().fold(sum, u64::saturating_add)
    }

    fn character(&mut self, c: char) -> u64 {
        self.is_beyond_ascii |= !c.is_ascii();
        CHARACTER
    }

    fn wide_class(&mut self) -> u64 {
        self.is_beyond_ascii = true;
        WIDE_CLASS
    }

    /// Returns the size of a class and the text after it, given the text after its opening bracket.
    fn class<'p>(&mut self, class: &'p str) -> (u64, &'p str) {
        let mut rest = class;
        let mut size = CHARACTER;
        if let Some(negated) = rest.strip_prefix('^') {
            size += self.wide_class();
            rest = negated;
        }
        let mut is_first = true;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                ']' if !is_first => break,
                '\\' => {
                    let (escaped, after) = self.escape(rest, true);
                    (size, rest) = (size.saturating_add(escaped), after);
                }
                // All ASCII characters share one state.
                c if c.is_ascii() => size += 8,
                c => size += self.character(c),
            }
            is_first = false;
        }
        (size, rest)
    }

    /// Returns the size of an escape and the text after it, given the text after its backslash.
    fn escape<'p>(&mut self, escape: &'p str, is_in_class: bool) -> (u64, &'p str) {
        let Some(c) = escape.chars().next() else { return (CHARACTER, escape) };
        let rest = &escape[c.len_utf8()..];
        let in_braces = || rest.strip_prefix('{').and_then(|name| name.split_once('}')).map(|(_, after)| after);
        let size = match c {
            'p' | 'P' => {
                self.is_beyond_ascii = true;
                let one = rest.chars().next().map_or(0, char::len_utf8);
                return (UNICODE_CLASS, in_braces().unwrap_or(&rest[one..]));
            }
            // A character by its code point.
            'x' | 'u' | 'U' => {
                self.is_beyond_ascii = true;
                return (CHARACTER, in_braces().unwrap_or(rest));
            }
            'd' | 'w' => {
                self.rewrite(is_in_class, 12);
                CHARACTER
            }
            'D' | 'W' => {
                self.rewrite(is_in_class, 12);
                self.wide_class()
            }
            's' | 'S' => {
                self.rewrite(is_in_class, WHITE_SPACE_CHARS);
                self.wide_class()
            }
            'c' => {
                self.rewrite(false, 0);
                CHARACTER
            }
            'b' | 'B' => {
                self.captures = true;
                CHARACTER
            }
            c => self.character(c),
        };
        (size, rest)
    }

    /// Counts a rewrite. Classes within brackets are rewritten all at once, others one by one.
    fn rewrite(&mut self, is_in_class: bool, added_chars: u64) {
        self.rewrites += u64::from(!is_in_class);
        self.added_chars += added_chars;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex_automata::nfa::thompson::{Config, NFA, WhichCaptures};
    use serde_json::json;

    #[test]
    fn repetition_multiplies_the_states_of_a_pattern() {
        for (pattern, count) in
            [("", 0), ("^[A-Z]{2}$", 8), ("x{1000}", 1000), ("(ab{3}){2,4}", 16), ("a{,5}b{2,}", 7), (r"\p{L}\{3", 5), ("((", 0)]
        {
            assert_eq!(states(pattern), count, "{pattern}");
        }
        assert_eq!(states(&"(x{1000})".repeat(3).replace(')', "){99999999999}{99999999999}")), u64::MAX);
    }

    #[test]
    fn the_cost_is_that_of_every_rule_for_every_value() {
        let list = |values: u32| json!({"a": (0..values).collect::<Vec<_>>()});
        let rules = |rules: u32| {
            let rules: Vec<Value> = (0..rules).map(|n| json!({"maximum": n})).collect();
            json!({"properties": {"a": {"items": {"anyOf": rules}}}, "$defs": {"far": {"$ref": "#/$defs/away"}}})
        };
        let cost = |schema: &Value, value: &Value| estimate(schema, value, 5_000_000, u64::MAX);
        assert!(matches!(cost(&rules(20), &list(100)), Cost::Units { units: 2_000..10_000, .. }));
        assert!(matches!(cost(&rules(400), &list(1000)), Cost::Units { units: 400_000..2_000_000, .. }));
        assert!(matches!(cost(&rules(800), &list(10_000)), Cost::Excessive { work: 1_000_000..5_100_000 }));
        let mut nested = json!({"unevaluatedProperties": true});
        for _ in 0..8 {
            nested = json!({"anyOf": [nested], "unevaluatedProperties": {"type": "integer"}});
        }
        let excessive = cost(&nested, &json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}));
        assert!(matches!(excessive, Cost::Excessive { work: ..1_000 }), "{excessive:?}");
        assert!(matches!(cost(&nested, &json!({})), Cost::Units { units: ..1_000, .. }));
        let lengths = json!({"properties": {"a": {"allOf": vec![json!({"maxLength": 100_000}); 3_600]}}});
        assert!(matches!(cost(&lengths, &json!({"a": "é".repeat(16_000)})), Cost::Excessive { .. }));
    }

    #[test]
    fn an_estimate_is_given_up_when_it_is_too_much_work_itself() {
        let list = json!(vec!["y"; 10_000]);
        let names: Value = (0..3_000).map(|n| (format!("{n}"), json!(true))).collect::<Map<_, _>>().into();
        for schema in [
            json!({"items": {"enum": (0..3_000).collect::<Vec<_>>()}}),
            json!({"items": {"pattern": "x".repeat(20_000)}}),
            json!({"items": {"not": {"items": {"properties": names}}}, "prefixItems": [], "uniqueItems": true}),
            json!({"items": {"anyOf": vec![json!({"type": "string"}); 1_000]}}),
        ] {
            let cost = estimate(&schema, &list, u64::MAX, 20_000);
            assert!(matches!(cost, Cost::Unknown { work: 20_000..150_000 }), "{cost:?}");
        }
    }

    /// Returns the memory of the two automata; `None` if the pattern does not compile.
    fn automata_bytes(pattern: &str) -> Option<u64> {
        let limited = |reverse| Config::new().nfa_size_limit(Some(1 << 24)).reverse(reverse);
        let size = |config: Config| NFA::compiler().configure(config).build(pattern).ok().map(|nfa| nfa.memory_usage() as u64);
        let captures = limited(true).which_captures(WhichCaptures::None);
        Some(size(limited(false))? + size(captures)?)
    }

    #[test]
    fn a_class_of_unicode_costs_what_its_compilation_takes() {
        let class = compile_bytes(r"\pL");
        assert!((100_000..130_000).contains(&class), "{class}");
        assert!(compile_bytes(r"\pL{20}") > 1_000_000);
        assert!(compile_bytes(r"(?i)\pL") > 2 * UNICODE_CLASS);
        assert!(compile_bytes(r"\pL+{20}") > 1_000_000 && compile_bytes(r"(?:\pL|a){20}") > 1_000_000);
        assert!(compile_bytes(r"[\pL-]{20}") > 1_000_000);
        assert!(compile_bytes("^[A-Z]{2}-[0-9]{4}$") < 12_000);
        assert!(compile_bytes("x{1000}{1000}") > 100_000_000);
        assert_eq!(compile_bytes(&format!("x{}", "{99999999999}".repeat(4))), u64::MAX);
    }

    #[test]
    fn classes_that_are_rewritten_cost_the_square_of_their_number() {
        assert!(compile_bytes(&r"\s".repeat(300)) > 100_000_000);
        assert!(compile_bytes(&r"\d".repeat(10)) < 100_000);
        assert!(compile_bytes(&r"\ca".repeat(1_000)) > 10_000_000);
    }

    #[test]
    fn what_patterns_can_not_use_is_named() {
        for (pattern, what) in [
            ("^(?=a)b", "look-around"),
            ("a(?!b)", "look-around"),
            ("(?<=a)b", "look-around"),
            ("(?<!a)b", "look-around"),
            (r"(a)\1", "back-references"),
            (r"(?<n>a)\k<n>", "back-references"),
            ("(?x) a", "flag x"),
            ("(?i-sx:a)", "flag x"),
        ] {
            assert!(unsupported(pattern).is_some_and(|found| found.contains(what)), "{pattern}");
        }
        for pattern in [r"\\1", r"\(?=", "(?:a)", "(?<name>a)", "(?i)a", "a{1}", r"\0", "é\\", "(?"] {
            assert_eq!(unsupported(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_estimate_is_not_less_than_the_automata_take(
            atoms in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "é", "日", ".", r"\pL", r"\p{Greek}", r"\PN", "[^a]", "[a-z0-9]", r"[\pL\d_-]", "[àéî]", "(?:", "(", ")",
                    "|", "*", "+?", "?", "{3}", "{2,5}", "{,4}", "{2,}", "{10}", r"\x41", r"\u{e9}", r"\b", "^", "$", r"\.", "(?i)",
                    "[]a]", "(?i:", "(?<n>", "-", "{", "}", r"[^\PL]",
                ]),
                1..12,
            )
        ) {
            let pattern = atoms.concat();
            if let Some(bytes) = automata_bytes(&pattern) {
                prop_assert!(bytes <= compile_bytes(&pattern), "{}: {} > {}", pattern, bytes, compile_bytes(&pattern));
            }
        }
    }

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
