//! The flat JSON Schemas of asset types: the keywords that a schema can have, and the check of custom fields against them.
//!
//! Every property is a scalar or a list of scalars, so that a form can show it, and checking takes linear time: there are no
//! references, combinations or nested objects, and patterns are matched without backtracking.

use super::{CustomFields, CustomFieldsPatch, MAX_ERRORS, field_name};
use crate::user::Email;
use crate::values::field_error::{ErrorCode, FieldError, ValueError, pointer_token, unknown_name};
use crate::values::json;
use crate::values::time::{Date, Timestamp};
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use serde_json::{Map, Number, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const MAX_PROPERTIES: usize = 100;
const MAX_PATTERN_CHARS: usize = 200;
/// Maximum size of the compiled patterns of a schema together. Unicode classes are large: `\w` takes 18 KB, and each repetition
/// copies it.
const MAX_COMPILED_BYTES: usize = 2 * 1024 * 1024;
/// Maximum memory for the states of a pattern. A pattern that fills it twice within a request is given up.
const MAX_MATCHING_BYTES: usize = 256 * 1024;
/// Maximum number of compiled patterns that a request keeps.
const MAX_PATTERNS: usize = 200;
/// The maximum length of the values quoted in an error's text, in characters. Further ones are truncated.
const MAX_QUOTED_CHARS: usize = 300;

const KEYWORDS: &[&str] = &["type", "properties", "required", "additionalProperties", "title", "description", "$schema"];
const OF_PROPERTY: &[&str] = &["type", "title", "description", "enum", "const", "default"];
const OF_NUMBER: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const OF_STRING: &[&str] = &["minLength", "maxLength", "pattern", "format"];
const OF_ARRAY: &[&str] = &["items", "minItems", "maxItems", "uniqueItems"];
const SCALARS: [&str; 4] = ["string", "number", "integer", "boolean"];
const TYPES: [&str; 5] = ["string", "number", "integer", "boolean", "array"];
const FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

const SMALLER: &str = r"use fewer repetitions, and [0-9] or [A-Za-z0-9_] instead of \d or \w";

type Errors = Vec<(String, ValueError)>;

/// The compiled patterns of a request, which the rows of an import share.
#[derive(Debug, Clone, Default)]
pub struct Patterns(Arc<Mutex<HashMap<String, (DFA, Cache)>>>);

impl Patterns {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the error of a text that doesn't match, or that can't be compared with the pattern.
    pub(super) fn broken(&self, pattern: &str, text: &str) -> Option<ValueError> {
        let mut compiled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !compiled.contains_key(pattern) {
            if compiled.len() >= MAX_PATTERNS {
                compiled.clear();
            }
            match compile(pattern) {
                Ok(dfa) => {
                    let cache = dfa.create_cache();
                    compiled.insert(pattern.to_owned(), (dfa, cache));
                }
                Err(error) => return Some(ValueError::new(format!("can't be checked: the pattern of its asset type {error}"))),
            }
        }
        let (dfa, cache) = compiled.get_mut(pattern)?;
        match dfa.try_search_fwd(cache, &Input::new(text).earliest(true)) {
            Ok(Some(_)) => None,
            Ok(None) => Some(must_be(&format!("a text that matches {pattern}"))),
            Err(_) => {
                let text = "can't be checked: the asset type's pattern has too many states";
                Some(ValueError::coded(ErrorCode::TooMuch, text))
            }
        }
    }
}

/// Compiles a pattern to an automaton whose states are built as texts need them. It takes linear time, and gives up where other
/// engines would become slow.
fn compile(pattern: &str) -> Result<DFA, ValueError> {
    let states = DFA::config().cache_capacity(MAX_MATCHING_BYTES).skip_cache_capacity_check(true);
    let states = states.minimum_cache_clear_count(Some(1)).minimum_bytes_per_state(Some(10));
    let size = thompson::Config::new().nfa_size_limit(Some(MAX_COMPILED_BYTES));
    let Ok(parsed) = syntax::parse(pattern) else {
        return Err(ValueError::form("must be a regular expression without look-around or back-references"));
    };
    // Such an engine knows words of ASCII only.
    if parsed.properties().look_set().contains_word_unicode() {
        return Err(ValueError::form(r"must have (?-u:\b) instead of \b"));
    }
    let built = DFA::builder().configure(states).thompson(size).build(pattern);
    built.map_err(|_| ValueError::coded(ErrorCode::TooMuch, format!("is too large; {SMALLER}")))
}

/// Returns the errors in a schema, each with its JSON Pointer. Doesn't compile its patterns.
pub(super) fn errors_of_schema(schema: &Value) -> Errors {
    let Value::Object(members) = schema else { return vec![at("", ValueError::form("must be a JSON Schema, an object"))] };
    let mut errors = Vec::new();
    for (keyword, rule) in members {
        let pointer = format!("/{}", pointer_token(keyword));
        match keyword.as_str() {
            "$schema" if *rule == DIALECT => {}
            "$schema" => errors.push(at(&pointer, ValueError::form(format!("must be {DIALECT}")))),
            "type" if *rule == "object" => {}
            "type" => errors.push(at(&pointer, ValueError::not_one_of(["object"]))),
            "properties" => errors.extend(errors_of_properties(rule)),
            "required" => errors.extend(errors_of_required(rule)),
            "additionalProperties" => errors.extend((!rule.is_boolean()).then(|| at(&pointer, must_be("true or false")))),
            "title" | "description" => errors.extend((!rule.is_string()).then(|| at(&pointer, must_be("a string")))),
            unknown => errors.push(at(&pointer, unknown_keyword(unknown, KEYWORDS, errors.len()))),
        }
    }
    errors.truncate(MAX_ERRORS);
    errors
}

/// Returns the errors of the patterns that can't be compiled, or that are too large together.
pub(super) fn errors_of_patterns(schema: &Value) -> Errors {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let rules = properties.flat_map(|(name, property)| {
        let pointer = format!("/properties/{}", pointer_token(name));
        [
            (format!("{pointer}/pattern"), &property["pattern"]),
            (format!("{pointer}/items/pattern"), &property["items"]["pattern"]),
        ]
    });
    let mut bytes = 0;
    let mut error = |pattern: &str| match compile(pattern) {
        Ok(dfa) => {
            bytes += dfa.get_nfa().memory_usage();
            let text = format!("is too large together with the patterns before it; {SMALLER}");
            (bytes > MAX_COMPILED_BYTES).then(|| ValueError::coded(ErrorCode::TooMuch, text))
        }
        Err(error) => Some(error),
    };
    rules.filter_map(|(pointer, pattern)| Some((pointer, error(pattern.as_str()?)?))).collect()
}

fn errors_of_properties(properties: &Value) -> Errors {
    let Value::Object(properties) = properties else { return vec![at("/properties", must_be("an object"))] };
    let mut errors = Vec::new();
    if properties.len() > MAX_PROPERTIES {
        let text = format!("must have at most {MAX_PROPERTIES} properties; this has {}", properties.len());
        errors.push(at("/properties", ValueError::limited(ErrorCode::TooMuch, MAX_PROPERTIES, text)));
    }
    for (name, property) in properties.iter().take(MAX_PROPERTIES) {
        let pointer = format!("/properties/{}", pointer_token(name));
        errors.extend(error_of_name(name).map(|error| at(&pointer, error)));
        errors_of_property(property, &pointer, &TYPES, &mut errors);
    }
    errors
}

fn errors_of_required(required: &Value) -> Errors {
    let Value::Array(names) = required else { return vec![at("/required", must_be("a list of names"))] };
    let mut seen = HashSet::new();
    let error = |(index, name): (usize, &Value)| {
        let error = match name.as_str() {
            None => Some(must_be("a string")),
            Some(name) if !seen.insert(name.to_owned()) => Some(ValueError::coded(ErrorCode::RepeatedItem, "must not repeat")),
            Some(name) => error_of_name(name),
        };
        Some(at(&format!("/required/{index}"), error?))
    };
    names.iter().enumerate().filter_map(error).collect()
}

/// Returns the error of a name that no asset's field can have: assets store names as normalized by [`field_name`].
fn error_of_name(name: &str) -> Option<ValueError> {
    let error = match field_name(name) {
        Ok(stored) if stored == name => return None,
        Ok(_) => "must have single spaces and no surrounding whitespace".to_owned(),
        Err(error) => error.text,
    };
    Some(ValueError::new(format!("must not name a field that no asset can have: its name {error}")))
}

/// Checks a property, or the items of a list, whose type must be one of `types`.
fn errors_of_property(property: &Value, pointer: &str, types: &[&str], errors: &mut Errors) {
    let Value::Object(rules) = property else { return errors.push(at(pointer, must_be("an object"))) };
    let rule = rules.get("type");
    let kind = rule.and_then(type_of).filter(|name| types.contains(name));
    let has_values = rules.contains_key("enum") || rules.contains_key("const");
    let all = [OF_STRING, OF_NUMBER, OF_ARRAY].concat();
    let of_type = match (kind, rule) {
        (Some("string"), _) => OF_STRING,
        (Some("number" | "integer"), _) => OF_NUMBER,
        (Some("array"), _) => OF_ARRAY,
        (Some(_), _) => &[],
        (None, None) if has_values => &[],
        (None, None) => {
            errors.push(at(&format!("{pointer}/type"), ValueError::required()));
            &all
        }
        (None, Some(_)) => {
            let text = format!("must be one of {}, or a list of one of these and null", types.join(", "));
            errors.push(at(&format!("{pointer}/type"), ValueError::coded(ErrorCode::UnknownValue, text)));
            &all
        }
    };
    for (keyword, rule) in rules {
        let pointer = format!("{pointer}/{}", pointer_token(keyword));
        if keyword == "items" && of_type.contains(&"items") {
            errors_of_property(rule, &pointer, &SCALARS, errors);
        } else if matches!(keyword.as_str(), "const" | "default") && rule.is_array() && !types.contains(&"array") {
            errors.push(at(&pointer, must_be("a string, number, boolean or null")));
        } else if OF_PROPERTY.contains(&keyword.as_str()) || of_type.contains(&keyword.as_str()) {
            errors.extend(error_of_rule(keyword, rule).map(|error| at(&pointer, error)));
        } else {
            let known = [OF_PROPERTY, of_type].concat();
            errors.push(at(&pointer, unknown_keyword(keyword, &known, errors.len())));
        }
    }
}

/// Returns the error in a keyword's value. The type is already checked.
fn error_of_rule(keyword: &str, rule: &Value) -> Option<ValueError> {
    match keyword {
        "title" | "description" => (!rule.is_string()).then(|| must_be("a string")),
        "enum" => match rule {
            Value::Array(values) if !values.is_empty() && is_flat(rule) => None,
            _ => Some(must_be("a list of strings, numbers, booleans or null")),
        },
        "const" | "default" => (!is_flat(rule)).then(|| must_be("a string, number, boolean, null, or a list of these")),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => (!rule.is_number()).then(|| must_be("a number")),
        "multipleOf" => (!rule.as_f64().is_some_and(|step| step > 0.0)).then(|| must_be("a number above 0")),
        "minLength" | "maxLength" | "minItems" | "maxItems" => (!rule.is_u64()).then(|| must_be("a whole number, 0 or more")),
        "uniqueItems" => (!rule.is_boolean()).then(|| must_be("true or false")),
        "format" => (!rule.as_str().is_some_and(|name| FORMATS.contains(&name))).then(|| ValueError::not_one_of(FORMATS)),
        "pattern" => match rule.as_str() {
            None => Some(must_be("a string")),
            Some(pattern) if pattern.chars().nth(MAX_PATTERN_CHARS).is_some() => {
                let text = format!("must have at most {MAX_PATTERN_CHARS} characters");
                Some(ValueError::limited(ErrorCode::TooLong, MAX_PATTERN_CHARS, text))
            }
            Some(_) => None,
        },
        _ => None,
    }
}

fn is_flat(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.iter().any(|item| item.is_array() || item.is_object()),
        value => !value.is_object(),
    }
}

/// Returns the type that a `type` keyword names, alone or together with null.
pub(crate) fn type_of(rule: &Value) -> Option<&str> {
    match rule {
        Value::String(name) => Some(name),
        Value::Array(names) => match names.as_slice() {
            [Value::String(name)] => Some(name),
            [Value::String(name), null] | [null, Value::String(name)] if null == "null" => Some(name),
            _ => None,
        },
        _ => None,
    }
}

fn at(pointer: &str, error: ValueError) -> (String, ValueError) {
    (pointer.to_owned(), error)
}

fn must_be(what: &str) -> ValueError {
    ValueError::form(format!("must be {what}"))
}

fn unknown_keyword(name: &str, known: &[&str], earlier: usize) -> ValueError {
    ValueError::coded(ErrorCode::UnknownField, unknown_name(name, known, "keyword here", earlier))
}

/// A rule of the type's schema that custom fields break.
#[derive(Debug, Clone)]
pub struct SchemaFault {
    /// The custom field; `None` if the stored schema itself is refused.
    field: Option<String>,
    /// JSON Pointer of a list's item within the field.
    item: String,
    /// Whether the schema requires the field.
    is_missing: bool,
    reason: ValueError,
}

impl SchemaFault {
    fn new(field: &str, reason: ValueError) -> Self {
        Self { field: Some(field.to_owned()), item: String::new(), is_missing: false, reason }
    }

    /// Locates the fault where the request sets the custom field: in `patch` if it contains the field. `sets_all`: whether the
    /// request has `custom_fields`, with or without a patch.
    pub fn located(&self, patch: Option<&CustomFieldsPatch>, sets_all: bool) -> FieldError {
        let pointer = |field: &str| format!("/{}{}", pointer_token(field), self.item);
        match &self.field {
            Some(field) if patch.is_some_and(|patch| patch.has(field)) => {
                FieldError::within("custom_fields_patch", &pointer(field), self.reason.clone())
            }
            Some(field) if !self.is_missing => FieldError::within("custom_fields", &pointer(field), self.reason.clone()),
            _ if patch.is_some() && !sets_all => FieldError::field("custom_fields_patch", self.reason.clone()),
            _ => FieldError::field("custom_fields", self.reason.clone()),
        }
    }
}

/// Checks custom fields against a schema. Returns up to 100 faults. A stored schema that today's rules refuse has one fault, so
/// no fields satisfy it.
pub(super) fn faults(schema: &Value, fields: &CustomFields, patterns: &Patterns) -> Vec<SchemaFault> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !fields.as_map().contains_key(*name)).map(|name| {
        let reason =
            ValueError::coded(ErrorCode::Required, format!("must have the field {name:?}, which the asset type requires"));
        SchemaFault { is_missing: true, ..SchemaFault::new(name, reason) }
    });
    let mut faults: Vec<SchemaFault> = missing.collect();
    for (name, value) in fields.as_map() {
        match properties.get(name) {
            Some(property) => {
                let errors = errors_of_value(property, value, None, patterns);
                let fault = |(item, reason)| SchemaFault { item, ..SchemaFault::new(name, reason) };
                faults.extend(errors.into_iter().map(fault));
            }
            None if schema["additionalProperties"] == false => {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                let text = unknown_name(name, &known, "field of the asset type", faults.len());
                faults.push(SchemaFault::new(name, ValueError::coded(ErrorCode::UnknownField, text)));
            }
            None => {}
        }
        if faults.len() >= MAX_ERRORS {
            break;
        }
    }
    faults.truncate(MAX_ERRORS);
    faults
}

/// The only fault of fields whose type has a schema that today's rules refuse.
pub(super) fn fault_of_stored(pointer: &str, error: &ValueError) -> SchemaFault {
    let text = format!("can't be checked until the type's custom_fields_schema is corrected: {pointer} {error}");
    SchemaFault { field: None, item: String::new(), is_missing: false, reason: ValueError::new(text) }
}

/// Returns the error of each keyword that the value breaks, with the pointer of a list's item. `choices` are the keys of the
/// property's `enum`, for an item: comparing each item with each value would take quadratic time.
fn errors_of_value(property: &Value, value: &Value, choices: Option<&HashSet<String>>, patterns: &Patterns) -> Errors {
    let mut errors = Vec::new();
    for (keyword, rule) in property.as_object().into_iter().flatten() {
        match (keyword.as_str(), value) {
            ("items", Value::Array(items)) => {
                let choices = rule["enum"].as_array().map(|values| values.iter().map(json_key).collect());
                for (index, item) in items.iter().enumerate() {
                    let of_item = errors_of_value(rule, item, choices.as_ref(), patterns).into_iter();
                    errors.extend(of_item.map(|(pointer, error)| (format!("/{index}{pointer}"), error)));
                    if errors.len() >= MAX_ERRORS {
                        return errors;
                    }
                }
            }
            ("enum", value) if choices.is_some_and(|choices| choices.contains(&json_key(value))) => {}
            (keyword, value) => errors.extend(broken(keyword, rule, value, patterns).map(|error| at("", error))),
        }
    }
    errors
}

/// Returns the error of a value that breaks a keyword. As in JSON Schema, a keyword of another type than the value's is ignored.
fn broken(keyword: &str, rule: &Value, value: &Value, patterns: &Patterns) -> Option<ValueError> {
    match (keyword, value, rule) {
        ("type", value, rule) => {
            let permits_null = rule.as_array().is_some_and(|names| names.iter().any(|name| name == "null"));
            let kind = type_of(rule)?;
            let null = if permits_null { " or null" } else { "" };
            let article = if matches!(kind, "integer" | "array") { "an" } else { "a" };
            let fits = is_of_type(value, kind) || (permits_null && value.is_null());
            (!fits).then(|| must_be(&format!("{article} {kind}{null}")))
        }
        ("enum", value, Value::Array(values)) => {
            let text = || format!("must be one of {}", quoted(values));
            (!values.iter().any(|known| json::equal(known, value))).then(|| ValueError::coded(ErrorCode::UnknownValue, text()))
        }
        ("const", value, rule) => {
            let text = || format!("must be {}", quoted(std::slice::from_ref(rule)));
            (!json::equal(rule, value)).then(|| ValueError::coded(ErrorCode::UnknownValue, text()))
        }
        (keyword, Value::Number(number), Value::Number(limit)) => broken_bound(keyword, limit, number),
        ("minLength" | "maxLength", Value::String(text), Value::Number(limit)) => {
            broken_count(keyword, limit, text.chars().count(), "characters")
        }
        ("minItems" | "maxItems", Value::Array(items), Value::Number(limit)) => {
            broken_count(keyword, limit, items.len(), "items")
        }
        ("uniqueItems", Value::Array(items), Value::Bool(true)) => {
            let mut seen = HashSet::new();
            let is_repeated = |item: &Value| !seen.insert(json_key(item));
            let error = || ValueError::coded(ErrorCode::RepeatedItem, "must not contain an item twice");
            items.iter().any(is_repeated).then(error)
        }
        ("pattern", Value::String(text), Value::String(pattern)) => patterns.broken(pattern, text),
        ("format", Value::String(text), Value::String(format)) => broken_format(format, text),
        _ => None,
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => false,
    }
}

fn broken_bound(keyword: &str, limit: &Number, number: &Number) -> Option<ValueError> {
    let (bound, value) = (limit.as_f64()?, number.as_f64()?);
    let (code, is_broken, text) = match keyword {
        "minimum" => (ErrorCode::TooSmall, value < bound, "at least"),
        "exclusiveMinimum" => (ErrorCode::TooSmall, value <= bound, "more than"),
        "maximum" => (ErrorCode::TooLarge, value > bound, "at most"),
        "exclusiveMaximum" => (ErrorCode::TooLarge, value >= bound, "less than"),
        "multipleOf" => (ErrorCode::NotMultiple, !is_multiple(number, limit), "a multiple of"),
        _ => return None,
    };
    is_broken.then(|| ValueError::limited(code, limit.clone(), format!("must be {text} {limit}")))
}

/// Whether the quotient is whole, except for the rounding of a division of two decimal numbers, such as 0.3 and 0.1.
fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (number.as_i64(), step.as_i64()) {
        return number % step == 0;
    }
    let (Some(number), Some(step)) = (number.as_f64(), step.as_f64()) else { return false };
    let quotient = number / step;
    (quotient - quotient.round()).abs() <= 4.0 * f64::EPSILON * quotient.abs()
}

fn broken_count(keyword: &str, limit: &Number, count: usize, noun: &str) -> Option<ValueError> {
    let bound = limit.as_u64()?;
    let (is_few, is_many) = ((count as u64) < bound, count as u64 > bound);
    let (code, is_broken, word) = match keyword {
        "minLength" => (ErrorCode::TooShort, is_few, "at least"),
        "maxLength" => (ErrorCode::TooLong, is_many, "at most"),
        "minItems" => (ErrorCode::TooFewItems, is_few, "at least"),
        _ => (ErrorCode::TooManyItems, is_many, "at most"),
    };
    is_broken.then(|| ValueError::limited(code, limit.clone(), format!("must have {word} {limit} {noun}; this has {count}")))
}

fn broken_format(format: &str, text: &str) -> Option<ValueError> {
    let has_space = text.contains(|c: char| c.is_whitespace() || c.is_control());
    match format {
        "date" => text.parse::<Date>().err(),
        "date-time" => text.parse::<Timestamp>().err(),
        // The parsers ignore surrounding whitespace.
        "email" => (has_space || text.parse::<Email>().is_err()).then(|| must_be("an e-mail address")),
        "uri" => (has_space || Url::parse(text).is_err()).then(|| must_be("an absolute URI, such as https://example.com")),
        _ => None,
    }
}

/// Writes values for an error's text: strings without quotes, truncated to [`MAX_QUOTED_CHARS`].
fn quoted(values: &[Value]) -> String {
    let texts = values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let mut text = texts.collect::<Vec<_>>().join(", ");
    if let Some((end, _)) = text.char_indices().nth(MAX_QUOTED_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns the same text for values that [`json::equal`] considers equal.
fn json_key(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string())
}
