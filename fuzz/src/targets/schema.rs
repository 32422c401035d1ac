//! A tenant's JSON Schema in the first line, and custom fields to check by it behind.

use super::{is_kept, lines, text};
use shared::domain::custom_fields::{CustomFields, FieldsSchema, Schemas};
use shared::domain::field_error::ErrorLocation;
use shared::domain::json::parse_strict;
use uuid::Uuid;

/// A schema that is accepted checks any fields, naming at most 100 errors within them. How long that takes is what
/// libFuzzer's `-timeout` watches.
pub fn run(bytes: &[u8]) {
    let [schema, fields] = lines(text(bytes));
    if let Ok(value) = parse_strict(fields, 8) {
        assert_eq!(parse_strict(&value.to_string(), 8), Ok(value));
    }
    let fields = CustomFields::from_json(fields);
    if let Ok(fields) = &fields {
        is_kept(fields);
    }
    let Ok(schema) = FieldsSchema::from_json(schema) else { return };
    let again = FieldsSchema::from_json(&String::from(schema.clone()));
    assert_eq!(again.as_ref(), Ok(&schema));
    is_kept(&schema);
    let errors = Schemas::default().errors(Uuid::nil(), 1, &schema, &fields.unwrap_or_default());
    let errors = errors.expect("a schema that was accepted compiles");
    assert!(errors.len() <= 100, "{} faults", errors.len());
    for field_error in errors {
        let within = matches!(&field_error.location, ErrorLocation::Pointer(pointer) if pointer.starts_with("/custom_fields"));
        assert!(within && field_error.detail.chars().count() <= 301, "{field_error:?}");
    }
}
