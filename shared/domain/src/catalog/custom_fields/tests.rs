//! Tests of custom fields and their schemas.

use super::*;
use crate::values::field_error::{ErrorLocation, FieldError};
use serde_json::json;

fn schema(schema: &Value) -> FieldsSchema {
    FieldsSchema::from_json(&schema.to_string()).expect("a schema")
}

/// Returns the pointers and texts of a schema's errors.
fn refused(schema: &Value) -> Vec<(String, String)> {
    let errors = FieldsSchema::from_json(&schema.to_string()).expect_err("errors");
    errors.into_iter().map(|(pointer, error)| (pointer, error.text)).collect()
}

/// Returns the faults of a field `a` with this schema: pointer, code, limit and text.
fn faults(property: &Value, value: &Value) -> Vec<(String, Option<ErrorCode>, Option<String>, String)> {
    let fields = CustomFields::from_json(&json!({"a": value}).to_string()).expect("fields");
    let faults = schema(&json!({"properties": {"a": property}})).faults(&fields, &Patterns::default());
    let parts = |fault: &SchemaFault| {
        let FieldError { location, reason } = fault.located(None, true);
        let ErrorLocation::Pointer(pointer) = location else { unreachable!("{location:?}") };
        let pointer = pointer.strip_prefix("/custom_fields").expect("a pointer in the fields").to_owned();
        (pointer, reason.code, reason.limit.map(|limit| limit.to_string()), reason.text)
    };
    faults.iter().map(parts).collect()
}

#[test]
fn every_broken_keyword_has_its_code_and_limit() {
    use ErrorCode as Code;
    for (property, value, code, limit, text) in [
        (json!({"type": "string"}), json!(1), Code::InvalidFormat, None, "must be a string"),
        (json!({"type": ["integer", "null"]}), json!("1"), Code::InvalidFormat, None, "must be an integer or null"),
        (json!({"type": "integer"}), json!(1.5), Code::InvalidFormat, None, "must be an integer"),
        (json!({"enum": ["8", 16, null]}), json!("16"), Code::UnknownValue, None, "must be one of 8, 16, null"),
        (json!({"const": true}), json!(false), Code::UnknownValue, None, "must be true"),
        (json!({"type": "number", "minimum": 1.5}), json!(1), Code::TooSmall, Some("1.5"), "must be at least 1.5"),
        (json!({"type": "number", "exclusiveMinimum": 0}), json!(0), Code::TooSmall, Some("0"), "must be more than 0"),
        (json!({"type": "integer", "maximum": 64}), json!(65), Code::TooLarge, Some("64"), "must be at most 64"),
        (json!({"type": "integer", "exclusiveMaximum": 64}), json!(64), Code::TooLarge, Some("64"), "must be less than 64"),
        (json!({"type": "number", "multipleOf": 0.1}), json!(0.25), Code::NotMultiple, Some("0.1"), "must be a multiple of 0.1"),
        (json!({"type": "integer", "multipleOf": 8}), json!(12), Code::NotMultiple, Some("8"), "must be a multiple of 8"),
        (
            json!({"type": "string", "minLength": 2}),
            json!("é"),
            Code::TooShort,
            Some("2"),
            "must have at least 2 characters; this has 1",
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("abc"),
            Code::TooLong,
            Some("2"),
            "must have at most 2 characters; this has 3",
        ),
        (
            json!({"type": "string", "pattern": "^[0-9]{2}$"}),
            json!("1"),
            Code::InvalidFormat,
            None,
            "must be a text that matches ^[0-9]{2}$",
        ),
        (json!({"type": "string", "format": "date"}), json!("31.12.2026"), Code::InvalidDate, None, "must be a date, YYYY-MM-DD"),
        (json!({"type": "string", "format": "email"}), json!("ada"), Code::InvalidFormat, None, "must be an e-mail address"),
        (
            json!({"type": "string", "format": "uri"}),
            json!("/x"),
            Code::InvalidFormat,
            None,
            "must be an absolute URI, such as https://example.com",
        ),
        (
            json!({"type": "string", "format": "uri"}),
            json!("https://example.com/ "),
            Code::InvalidFormat,
            None,
            "must be an absolute URI, such as https://example.com",
        ),
        (
            json!({"type": "string", "format": "email"}),
            json!(format!("{}@example.com", "a".repeat(300))),
            Code::InvalidFormat,
            None,
            "must be an e-mail address",
        ),
        (
            json!({"type": "array", "minItems": 2}),
            json!([1]),
            Code::TooFewItems,
            Some("2"),
            "must have at least 2 items; this has 1",
        ),
        (
            json!({"type": "array", "maxItems": 0}),
            json!([1]),
            Code::TooManyItems,
            Some("0"),
            "must have at most 0 items; this has 1",
        ),
        (
            json!({"type": "array", "uniqueItems": true}),
            json!([1, "1", 1.0]),
            Code::RepeatedItem,
            None,
            "must not contain an item twice",
        ),
    ] {
        let expected = vec![("/a".to_owned(), Some(code), limit.map(str::to_owned), text.to_owned())];
        assert_eq!(faults(&property, &value), expected, "{property} {value}");
    }
    let time = faults(&json!({"type": "string", "format": "date-time"}), &json!("2026-11-28"));
    assert_eq!(time[0].1, Some(Code::InvalidDate));
}

#[test]
fn all_broken_keywords_of_all_items_are_reported_at_their_place() {
    let both = faults(&json!({"type": "string", "minLength": 3, "pattern": "^[0-9]+$"}), &json!("a"));
    assert_eq!(both.iter().map(|fault| fault.1).collect::<Vec<_>>(), [Some(ErrorCode::TooShort), Some(ErrorCode::InvalidFormat)]);
    let items = faults(&json!({"type": "array", "items": {"type": "integer", "minimum": 2}}), &json!([1, 2, "x", 0]));
    assert_eq!(items.iter().map(|fault| fault.0.as_str()).collect::<Vec<_>>(), ["/a/0", "/a/2", "/a/3"]);
    let many = faults(&json!({"type": "array", "items": {"type": "integer", "minimum": 2}}), &json!(vec![1; 5_000]));
    assert_eq!(many.len(), 100);
}

#[test]
fn values_that_satisfy_the_keywords_have_no_faults() {
    for (property, value) in [
        (json!({"type": "integer"}), json!(16.0)),
        (json!({"type": ["null", "string"], "minLength": 3}), json!(null)),
        (json!({"type": "number", "multipleOf": 0.1}), json!(0.3)),
        (json!({"type": "number", "multipleOf": 0.01}), json!(1_234_567.89)),
        (json!({"type": "integer", "multipleOf": 2}), json!(9_007_199_254_740_990_i64)),
        (json!({"enum": [1, "a"]}), json!(1.0)),
        (json!({"type": "string", "format": "date"}), json!("2028-02-29")),
        (json!({"type": "string", "format": "date-time"}), json!("2026-11-28T08:30:00+01:00")),
        (json!({"type": "string", "format": "uri"}), json!("https://example.com/a%20b")),
        (json!({"type": "string", "pattern": "b"}), json!("abc")),
        (json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}), json!(["a", "A"])),
        (json!({"type": "boolean", "title": "T", "description": "D", "default": "not applied"}), json!(true)),
    ] {
        assert_eq!(faults(&property, &value), [], "{property} {value}");
    }
}

#[test]
fn required_and_unknown_fields_are_named() {
    let schema = schema(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "title": "Laptop", "description": "D",
        "properties": {"ram_gb": {"type": "integer"}}, "required": ["ram_gb"], "additionalProperties": false,
    }));
    let fields = CustomFields::from_json(r#"{"ram": 16}"#).expect("fields");
    let located: Vec<FieldError> =
        schema.faults(&fields, &Patterns::default()).iter().map(|fault| fault.located(None, true)).collect();
    assert_eq!(located[0].location, ErrorLocation::Pointer("/custom_fields".into()));
    assert_eq!(located[0].reason.text, r#"must have the field "ram_gb", which the asset type requires"#);
    assert_eq!(located[1].location, ErrorLocation::Pointer("/custom_fields/ram".into()));
    assert_eq!(located[1].reason.text, "unknown field of the asset type; known: ram_gb");
    assert_eq!(located.len(), 2);
}

#[test]
fn other_keywords_and_keywords_at_other_places_are_refused_with_the_known_ones() {
    let property = |rules: Value| json!({"properties": {"a/b": rules}});
    for (wrong, pointer, text) in [
        (json!([]), "", "must be a JSON Schema, an object"),
        (json!({"$ref": "#"}), "/$ref", "unknown keyword here; known: type, "),
        (json!({"$defs": {}}), "/$defs", "unknown keyword here"),
        (json!({"propertyNames": {}}), "/propertyNames", "unknown keyword here; known: properties"),
        (json!({"minLength": 1}), "/minLength", "unknown keyword here"),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            "/$schema",
            "must be https://json-schema.org/draft/2020-12/schema",
        ),
        (json!({"type": "array"}), "/type", "must be object"),
        (json!({"required": ["a", 1]}), "/required/1", "must be a string"),
        (json!({"required": ["a", "a"]}), "/required/1", "must not repeat"),
        (json!({"additionalProperties": {"type": "string"}}), "/additionalProperties", "must be true or false"),
        (json!({"title": 1}), "/title", "must be a string"),
        (json!({"properties": []}), "/properties", "must be an object"),
        (json!({"properties": {"a": true}}), "/properties/a", "must be an object"),
        (json!({"properties": {" a": {"type": "string"}}}), "/properties/ a", "must not name a field that no asset can have"),
        (property(json!({})), "/properties/a~1b/type", "is required"),
        (
            property(json!({"type": "object"})),
            "/properties/a~1b/type",
            "must be one of string, number, integer, boolean, array, or",
        ),
        (property(json!({"type": ["string", "number"]})), "/properties/a~1b/type", "must be one of string, number"),
        (property(json!({"type": "string", "anyOf": []})), "/properties/a~1b/anyOf", "unknown keyword here; known: "),
        (property(json!({"type": "string", "minimum": 1})), "/properties/a~1b/minimum", "unknown keyword here"),
        (property(json!({"type": "integer", "minimum": "1"})), "/properties/a~1b/minimum", "must be a number"),
        (property(json!({"type": "integer", "multipleOf": 0})), "/properties/a~1b/multipleOf", "must be a number above 0"),
        (property(json!({"type": "string", "maxLength": -1})), "/properties/a~1b/maxLength", "must be a whole number, 0 or more"),
        (
            property(json!({"type": "string", "format": "ipv4"})),
            "/properties/a~1b/format",
            "must be one of date, date-time, email, uri",
        ),
        (property(json!({"type": "string", "pattern": "("})), "/properties/a~1b/pattern", "must be a regular expression"),
        (property(json!({"type": "string", "pattern": "(?=x)"})), "/properties/a~1b/pattern", "must be a regular expression"),
        (property(json!({"type": "string", "pattern": r"\bx"})), "/properties/a~1b/pattern", r"must have (?-u:\b) instead of \b"),
        (property(json!({"type": "string", "pattern": "(x{1000}){1000}"})), "/properties/a~1b/pattern", "is too large"),
        (
            property(json!({"type": "string", "pattern": "x".repeat(201)})),
            "/properties/a~1b/pattern",
            "must have at most 200 characters",
        ),
        (property(json!({"enum": []})), "/properties/a~1b/enum", "must be a list of"),
        (property(json!({"enum": [{}]})), "/properties/a~1b/enum", "must be a list of"),
        (property(json!({"enum": [["a"]]})), "/properties/a~1b/enum", "must be a list of"),
        (
            property(json!({"type": "array", "items": {"const": ["a"]}})),
            "/properties/a~1b/items/const",
            "must be a string, number, boolean or null",
        ),
        (
            property(json!({"type": "array", "items": {"type": "array"}})),
            "/properties/a~1b/items/type",
            "must be one of string, number, integer, boolean, or",
        ),
        (property(json!({"type": "array", "items": [{"type": "string"}]})), "/properties/a~1b/items", "must be an object"),
        (
            property(json!({"type": "array", "items": {"type": "string", "pattern": "["}})),
            "/properties/a~1b/items/pattern",
            "must be a regular",
        ),
    ] {
        let errors = refused(&wrong);
        assert!(errors.len() == 1 && errors[0].0 == pointer && errors[0].1.starts_with(text), "{wrong}: {errors:?}");
    }
    let wrong =
        json!({"oneOf": [], "properties": {"a": {"type": "string", "minLenght": 1}, "b": {"type": "text"}}, "required": "a"});
    let pointers: Vec<String> = refused(&wrong).into_iter().map(|(pointer, _)| pointer).collect();
    assert_eq!(pointers, ["/oneOf", "/properties/a/minLenght", "/properties/b/type", "/required"]);
    assert!(refused(&wrong)[1].1.starts_with("unknown keyword here; known: minLength, "));
    // The other keywords of a property without a type are checked, too.
    let pointers: Vec<String> =
        refused(&property(json!({"$ref": "#", "minimum": "1"}))).into_iter().map(|(pointer, _)| pointer).collect();
    assert_eq!(pointers, ["/properties/a~1b/type", "/properties/a~1b/$ref", "/properties/a~1b/minimum"]);
}

#[test]
fn a_schema_has_at_most_100_properties() {
    let properties = |count: usize| {
        let property = |n: usize| (format!("f{n}"), json!({"type": "string"}));
        json!({"properties": (0..count).map(property).collect::<Map<_, _>>()})
    };
    assert!(FieldsSchema::from_json(&properties(100).to_string()).is_ok());
    assert_eq!(refused(&properties(101)), [("/properties".into(), "must have at most 100 properties; this has 101".into())]);
}

#[test]
fn refused_stored_schema_is_readable_and_refuses_all_fields() {
    let fields = CustomFields::from_json(r#"{"a":{"a":1}}"#).expect("fields");
    for stored in [json!({"$ref": "#"}), json!({"properties": {" a ": {}}}), json!({"patternProperties": {}}), json!([])] {
        let schema = FieldsSchema::try_from(stored.to_string()).expect("JSON");
        let faults = schema.faults(&fields, &Patterns::default());
        let [fault] = faults.as_slice() else { unreachable!("{stored}: {faults:?}") };
        let FieldError { location, reason } = fault.located(None, true);
        assert_eq!(location, ErrorLocation::Pointer("/custom_fields".into()));
        assert!(reason.text.contains("custom_fields_schema is corrected"), "{reason}");
        assert!(!schema.errors().is_empty());
    }
    let pattern = json!({"properties": {"a": {"type": "string", "pattern": "(?=x)"}}});
    let schema = FieldsSchema::try_from(pattern.to_string()).expect("JSON");
    assert_eq!(schema.errors()[0].0, "/properties/a/pattern");
    let fields = CustomFields::from_json(r#"{"a":"x"}"#).expect("fields");
    assert!(
        schema.faults(&fields, &Patterns::default())[0].located(None, true).reason.text.contains("pattern of its asset type")
    );
}

#[test]
fn a_pattern_that_backtracks_is_matched_in_linear_time() {
    let property = json!({"type": "string", "pattern": "^(a+)+$"});
    assert_eq!(faults(&property, &json!(format!("{}!", "a".repeat(20_000)))).len(), 1);
}

#[test]
fn a_request_keeps_its_compiled_patterns() {
    let patterns = Patterns::default();
    assert_eq!(patterns.broken("^a$", "a"), None);
    assert!(patterns.broken("^a$", "b").is_some());
    assert_eq!(patterns.len(), 1);
    for n in 0..300 {
        assert_eq!(patterns.broken(&n.to_string(), &n.to_string()), None);
        assert!(patterns.len() <= 200, "{}", patterns.len());
    }
}

#[test]
fn a_pattern_with_too_many_states_is_given_up_for_the_whole_request() {
    let (patterns, pattern) = (Patterns::default(), "^[ab]*a[ab]{900}$");
    // The numbers of a linear congruential generator: each character leads to a new state.
    let next = |x: &u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let text: String =
        std::iter::successors(Some(1_u64), next).take(4_000).map(|x| if x >> 63 == 0 { 'a' } else { 'b' }).collect();
    for _ in 0..2 {
        let error = patterns.broken(pattern, &text).expect("an error");
        assert!(error.text.contains("too many states"), "{error}");
    }
}

#[test]
fn patterns_that_are_too_large_together_are_refused() {
    let properties = |count: usize| {
        let property = |n: usize| (format!("f{n}"), json!({"type": "string", "pattern": format!(r"^\w{{3}}-\w{{4}}{n}$")}));
        json!({"properties": (0..count).map(property).collect::<Map<_, _>>()})
    };
    assert!(FieldsSchema::from_json(&properties(10).to_string()).is_ok());
    let errors = refused(&properties(100));
    assert!(!errors.is_empty() && errors.iter().all(|(_, text)| text.starts_with("is too large")), "{errors:?}");
}

#[test]
fn the_texts_of_a_schema_are_composed() {
    let schema = r#"{"properties": {"a": {"enum": ["Bu\u0308ro"]}}}"#;
    let composed = r#"{"properties":{"a":{"enum":["Büro"]}}}"#;
    assert_eq!(FieldsSchema::from_json(schema).map(String::from).as_deref(), Ok(composed));
    let error = FieldsSchema::from_json(r#"{"properties": {"a": {"const": "\u0000"}}}"#).expect_err("an error");
    assert_eq!(error[0].0, "/properties/a/const");
}

#[test]
fn custom_fields_are_an_object_within_limits() {
    assert!(CustomFields::from_json(r#"{"a":{"b":{"c":{"d":{"e":{"f":{"g":1}}}}}}}"#).is_ok());
    for wrong in ["[]", "null", "1", r#"{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{}}}}}}}}}"#] {
        assert!(CustomFields::from_json(wrong).is_err(), "{wrong}");
    }
    let large = |n: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(n - 8));
    assert!(CustomFields::from_json(&large(MAX_BYTES)).is_ok());
    assert!(CustomFields::from_json(&large(MAX_BYTES + 1)).is_err());
}

#[test]
fn names_that_look_the_same_are_the_same() {
    let fields = CustomFields::from_body(r#"{" Fa\u0308rg ": 1.50, "a b": {" x ": [" e\u0301\n"]}}"#).expect("fields");
    assert_eq!(String::from(fields), r#"{"Färg":1.5,"a b":{" x ":[" é\n"]}}"#);
    for (text, pointers) in [
        (r#"{"a": 1, "a ": 2}"#, &["/a "][..]),
        (r#"{"F\u00e4rg": 1, "Fa\u0308rg": 2}"#, &["/Fa\u{308}rg"]),
        (r#"{"\u200bname": 1, "": 2, " ": 3, "a\u0000/": 4}"#, &["/\u{200b}name", "/", "/ ", "/a\0~1"]),
    ] {
        let errors = CustomFields::from_body(text).expect_err("an error");
        assert_eq!(errors.iter().map(|(pointer, _)| pointer.as_str()).collect::<Vec<_>>(), pointers, "{errors:?}");
    }
}

#[test]
fn fields_that_are_too_large_when_they_are_composed_are_refused() {
    // In NFC, this character is two characters with twice the bytes.
    let fields = |count: usize| format!(r#"{{"a":"{}"}}"#, "\u{958}".repeat(count));
    assert!(CustomFields::from_body(&fields(5_000)).is_ok() && CustomFields::from_json(&fields(6_000)).is_ok());
    for errors in [CustomFields::from_body(&fields(6_000)).err(), CustomFieldsPatch::from_json(&fields(6_000)).err()] {
        assert_eq!(errors.unwrap_or_default().first().map(|(pointer, _)| pointer.as_str()), Some(""));
    }
}

#[test]
fn a_single_field_is_found_by_a_name_that_looks_the_same() {
    let fields = CustomFields::from_body(r#"{"F\u00e4rg": 1, "ram_gb": 16}"#).expect("fields");
    let patch = CustomFieldsPatch::from_json(r#"{"Fa\u0308rg": 2, "ram_gb ": null}"#).expect("a patch");
    assert_eq!(String::from(patch.applied_to(&fields).expect("small fields")), r#"{"Färg":2}"#);
    let errors = CustomFieldsPatch::from_json(r#"{"a": 1, "a ": 2}"#).expect_err("an error");
    assert_eq!(errors[0].0, "/a ");
}
