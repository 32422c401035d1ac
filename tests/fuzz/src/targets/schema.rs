//! JSON Validations of tenants. The first line is a schema, the rest are custom fields to validate.

use super::{assert_round_trip, lines, text};
use shared::domain::catalog::custom_fields::{CustomFields, FieldsSchema, Validations};
use shared::domain::values::field_error::ErrorLocation;
use shared::domain::values::json::{parse, parse_strict, private_name};
use uuid::Uuid;

/// An accepted schema can validate any custom fields and returns at most 100 errors, all of them within the fields.
/// libFuzzer's `-timeout` catches slow ones.
pub fn run(bytes: &[u8]) {
    let [schema, fields] = lines(text(bytes));
    if let Ok(value) = parse_strict(fields, 8) {
        assert_eq!(parse_strict(&value.to_string(), 8), Ok(value));
    }
    assert_stored(schema, fields);
    let fields = CustomFields::from_json(fields);
    if let Ok(fields) = &fields {
        assert_round_trip(fields);
    }
    let Ok(schema) = FieldsSchema::from_json(schema) else { return };
    let again = FieldsSchema::from_json(&String::from(schema.clone()));
    assert_eq!(again.as_ref(), Ok(&schema));
    assert_round_trip(&schema);
    let errors = Validations::default().errors(Uuid::nil(), 1, &schema, &fields.unwrap_or_default());
    let errors = errors.expect("an accepted schema compiles");
    assert!(errors.len() <= 100, "{} errors", errors.len());
    for fault in errors {
        let field_error = fault.located(None, true);
        let is_within_fields =
            matches!(&field_error.location, ErrorLocation::Pointer(pointer) if pointer.starts_with("/custom_fields"));
        assert!(is_within_fields && field_error.detail.chars().count() <= 301, "{field_error:?}");
    }
}

/// Whatever is stored is read as data, and a schema that would be refused today validates nothing.
fn assert_stored(schema: &str, fields: &str) {
    for text in [schema, fields] {
        if let Ok(value) = parse(text) {
            let written = value.to_string();
            assert_eq!(parse(&written).ok(), Some(value), "{written}");
            assert!(private_name(text).is_none() || parse_strict(text, 200).is_err(), "{text}");
        }
    }
    let (Ok(schema), Ok(fields)) = (FieldsSchema::try_from(schema.to_owned()), CustomFields::try_from(fields.to_owned())) else {
        return;
    };
    let errors = Validations::default().errors(Uuid::nil(), 1, &schema, &fields).unwrap_or_default();
    assert!(errors.len() <= 100, "{} errors", errors.len());
}
