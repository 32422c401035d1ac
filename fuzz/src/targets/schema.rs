//! A tenant's JSON Schema in the first line, and custom fields to check by it behind.

use super::{is_kept, lines, text};
use shared::domain::custom_fields::{CustomFields, FieldsSchema, Schemas};
use shared::domain::json::parse_strict;
use shared::domain::refusal::Place;
use uuid::Uuid;

/// A schema that is accepted checks any fields, naming at most 100 faults within them. How long that takes is what
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
    let faults = Schemas::default().faults(Uuid::nil(), 1, &schema, &fields.unwrap_or_default());
    let faults = faults.expect("a schema that was accepted compiles");
    assert!(faults.len() <= 100, "{} faults", faults.len());
    for fault in faults {
        let within = matches!(&fault.place, Place::Pointer(pointer) if pointer.starts_with("/custom_fields"));
        assert!(within && fault.detail.chars().count() <= 301, "{fault:?}");
    }
}
