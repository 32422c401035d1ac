//! Tests of custom fields and their schemas.

use super::*;
use crate::values::field_error::{ErrorLocation, FieldError};
use serde_json::json;
use uuid::Uuid;

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
fn invalid_and_expensive_schemas_are_refused() {
    let doubling = (1..40)
        .map(|n| format!(r##""a{n}":{{"allOf":[{{"$ref":"#/$defs/a{0}"}},{{"$ref":"#/$defs/a{0}"}}]}}"##, n - 1))
        .collect::<Vec<_>>()
        .join(",");
    let doubling = format!(r##"{{"$ref":"#/$defs/a39","$defs":{{"a0":true,{doubling}}}}}"##);
    for wrong in [
        "[]",
        r#"{"type":"text"}"#,
        r#"{"properties":[]}"#,
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#/allOf/0"}]}"##,
        r#"{"$ref":"https://example.com/x.json"}"#,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#,
        r#"{"pattern":"("}"#,
        r#"{"pattern":"(x{1000}){1000}"}"#,
        &doubling,
    ] {
        assert!(FieldsSchema::from_json(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_schema_that_is_too_large_is_told_its_limit() {
    let enumeration =
        |count: usize| format!(r#"{{"properties":{{"x":{{"items":{{"enum":[{}]}}}}}}}}"#, vec!["[[0]]"; count].join(","));
    assert!(FieldsSchema::from_json(&enumeration(2_600)).is_ok());
    let error = |schema: &str| FieldsSchema::from_json(schema).expect_err("an error").to_string();
    assert_eq!(error(&enumeration(3_000)), "must have at most 8000 values, with references followed; this has more");
    let cycle = "must not have references that form a cycle or exceed 64 levels";
    assert_eq!([error(r##"{"$ref":"#"}"##), error(&chain(|next| json!({ "not": next }), 64))], [cycle, cycle]);
}

#[test]
fn data_in_a_schema_may_look_like_rules() {
    for right in [
        r##"{"properties":{"a":{"const":{"$ref":"#/nowhere","$id":"x"}}}}"##,
        r##"{"properties":{"a":{"enum":[{"$anchor":"x"}],"default":{"$dynamicRef":"#x"}},"$id":{"type":"string"}}}"##,
        r##"{"properties":{"enum":{"type":"string"},"a":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{"type":"integer"}}}"##,
        // Only the names of custom fields are normalized, not the names within their values.
        r#"{"required":["\u00fc b"],"properties":{"a":{"properties":{" ":{}}}}}"#,
    ] {
        let read = FieldsSchema::from_json(right);
        assert!(read.is_ok(), "{right}: {read:?}");
    }
    // Within `properties` and `$defs`, a name such as `const` is not a keyword.
    for wrong in [
        r##"{"properties":{"enum":{"$ref":"#/properties/enum"}}}"##,
        r##"{"$defs":{"default":{"$ref":"#/$defs/default"}},"$ref":"#/$defs/default"}"##,
        r#"{"properties":{"const":{"$id":"https://example.com/x"}}}"#,
    ] {
        assert!(FieldsSchema::from_json(wrong).is_err(), "{wrong}");
    }
}

/// Returns a schema that checks each item of `a` against 900 rules.
fn expensive_schema() -> FieldsSchema {
    let rules: Vec<Value> = (0..900).map(|n| json!({"type": "string", "minLength": n})).collect();
    let schema = json!({"properties": {"a": {"items": {"anyOf": rules}}}});
    FieldsSchema::from_json(&schema.to_string()).expect("a schema")
}

#[test]
fn expensive_validations_report_one_error() {
    let schema = expensive_schema();
    let check = |count: usize| {
        let fields = json!({"a": vec![1; count]}).to_string();
        let fields = CustomFields::from_json(&fields).expect("fields");
        Validations::default().errors(Uuid::nil(), 1, &schema, &fields).expect("compiled")
    };
    assert_eq!((check(20).len(), check(1_000).len(), check(16_000).len()), (20, 1, 1));
    assert_eq!(check(16_000)[0].located(None, true).location, ErrorLocation::Pointer("/custom_fields".into()));
    let greedy: Vec<Value> = (0..40).map(|n| json!({"pattern": format!("x{{{}}}", 900 + n)})).collect();
    assert!(FieldsSchema::from_json(&json!({ "allOf": greedy }).to_string()).is_err());
    let the_same = vec![json!({"pattern": r"^[\pL\pN ]+$"}); 250];
    assert!(FieldsSchema::from_json(&json!({ "allOf": the_same }).to_string()).is_ok(), "it is compiled once");
}

#[test]
fn a_pattern_that_backtracks_is_matched_in_linear_time() {
    let schema = FieldsSchema::from_json(r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#).expect("a schema");
    let fields = CustomFields::from_json(&format!(r#"{{"a":"{}!"}}"#, "a".repeat(20_000))).expect("fields");
    assert_eq!(Validations::default().errors(Uuid::nil(), 1, &schema, &fields).expect("compiled").len(), 1);
}

/// Returns a chain of `count` definitions, each with `rules` around a reference to the next one.
fn chain(rules: fn(Value) -> Value, count: usize) -> String {
    let next = |n: usize| if n < count { rules(json!({"$ref": format!("#/$defs/a{}", n + 1)})) } else { true.into() };
    let definitions: Map<String, Value> = (0..=count).map(|n| (format!("a{n}"), next(n))).collect();
    json!({"$ref": "#/$defs/a0", "$defs": definitions}).to_string()
}

#[test]
fn the_deepest_schemas_need_less_than_half_the_stack_of_a_request() {
    let kinds: [fn(Value) -> Value; 10] = [
        |next| json!({ "not": next }),
        |next| json!({"allOf": [next]}),
        |next| json!({"oneOf": [next]}),
        |next| json!({"properties": {"a": next}}),
        |next| json!({ "additionalProperties": next }),
        |next| json!({ "unevaluatedProperties": next }),
        |next| json!({ "propertyNames": next }),
        |next| json!({"dependentSchemas": {"a": next}}),
        |next| json!({"if": true, "then": next}),
        |next| json!({ "items": next }),
    ];
    let check = move || {
        let fields = CustomFields::from_json(r#"{"a":{"a":{"a":{"a":{"a":{"a":{"a":[1]}}}}}}}"#).expect("fields");
        for rules in kinds {
            // Longer chains are rejected before anything follows their references.
            let deepest = (8..=64).rev().find_map(|count| FieldsSchema::from_json(&chain(rules, count)).ok());
            let schema = deepest.expect("an accepted chain");
            Validations::default().errors(Uuid::nil(), 1, &schema, &fields).expect("units");
        }
    };
    // Request threads have a stack of 2 MiB. Half of it must suffice.
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(check).expect("a thread").join().expect("enough stack");
}

#[test]
fn a_stored_schema_is_checked_before_anything_follows_its_references() {
    // A property that no asset can have is refused in a new schema, but a stored schema with one must stay readable.
    let impossible = r#"{"properties":{" a ":{}}}"#;
    assert!(FieldsSchema::from_json(impossible).is_err() && FieldsSchema::try_from(impossible.to_owned()).is_ok());
    let fields = CustomFields::from_json(r#"{"a":{"a":1}}"#).expect("fields");
    for refused in [
        r##"{"$ref":"#"}"##.to_owned(),
        r##"{"properties":{"a":{"$ref":"#"}}}"##.to_owned(),
        chain(|next| json!({ "not": next }), 20_000),
        r#"{"pattern":"(?=x)"}"#.to_owned(),
        r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#.to_owned(),
        "[]".to_owned(),
    ] {
        let schema = FieldsSchema::try_from(refused.clone()).expect("JSON");
        let errors = Validations::default().errors(Uuid::nil(), 1, &schema, &fields).expect("units");
        let [fault] = errors.as_slice() else { unreachable!("{refused}: {errors:?}") };
        let FieldError { location, reason } = fault.located(None, true);
        assert_eq!(location, ErrorLocation::Pointer("/custom_fields".into()));
        assert!(reason.text.contains("custom_fields_schema is corrected"), "{reason}");
    }
}

#[test]
fn a_request_checks_a_refused_schema_once() {
    let schema = FieldsSchema::try_from(r#"{"pattern":"(?=x)"}"#.to_owned()).expect("JSON");
    let validations = Validations::default();
    for number in 0..1_000 {
        let fields = CustomFields::from_json(&format!(r#"{{"a":{number}}}"#)).expect("fields");
        assert_eq!(validations.errors(Uuid::nil(), 1, &schema, &fields).expect("units").len(), 1, "{number}");
    }
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
fn the_texts_of_a_schema_are_composed() {
    let schema = r#"{"properties": {"a": {"enum": ["Bu\u0308ro"], "properties": {"u\u0308": {}}}}}"#;
    let composed = r#"{"properties":{"a":{"enum":["Büro"],"properties":{"ü":{}}}}}"#;
    assert_eq!(FieldsSchema::from_json(schema).map(String::from).as_deref(), Ok(composed));
    let error = FieldsSchema::from_json(r#"{"const": {"a": "\u0000"}}"#).expect_err("an error").to_string();
    assert!(error.ends_with("(at /const/a)"), "{error}");
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
