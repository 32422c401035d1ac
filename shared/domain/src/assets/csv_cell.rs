//! Cells of CSV files, written so that spreadsheets don't run them as formulas, and texts survive the round trip.

use crate::catalog::custom_fields::{FieldsSchema, type_of};
use crate::values::json::parse_strict;
use serde_json::Value;
use std::borrow::Cow;

/// The cell that clears a field. An empty cell leaves it unchanged.
pub const CLEAR: &str = "\\N";

/// Maximum nesting of a value in a cell, as for custom fields.
const MAX_LEVELS: usize = 8;

/// Characters that start a formula (OWASP, "CSV Injection"), and their full-width forms.
const TRIGGERS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// Separators that a spreadsheet can expect instead of commas. Such a spreadsheet doesn't respect the file's quotes either.
const SEPARATORS: [char; 4] = [';', '\t', '\n', '\r'];
/// Characters that a spreadsheet can drop at the start of a cell.
const QUOTES: [char; 2] = ['\'', '"'];

/// Adds an apostrophe before each formula, wherever a spreadsheet could see the start of a cell, and before a string that would
/// otherwise clear the field. Numbers stay unchanged.
pub fn from_text(text: &str) -> Cow<'_, str> {
    let is_plain = parts(text).all(|(_, is_special)| !is_special);
    if is_plain || text.parse::<serde_json::Number>().is_ok() {
        return text.into();
    }
    parts(text).flat_map(|(part, is_special)| [if is_special { "'" } else { "" }, part]).collect()
}

/// Removes the apostrophes added by [`from_text`].
pub fn to_text(cell: &str) -> Cow<'_, str> {
    if !cell.contains('\'') {
        return cell.into();
    }
    parts(cell).map(|(part, is_special)| part.strip_prefix('\'').filter(|_| is_special).unwrap_or(part)).collect()
}

/// Splits a string into the cells that a spreadsheet could see, each with its trailing separator. The second value says whether
/// the cell needs an apostrophe.
fn parts(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split_inclusive(SEPARATORS).enumerate().map(|(index, part)| {
        let bare = part.trim_start_matches(QUOTES);
        let is_special_cell = index == 0 && (bare == CLEAR || bare.starts_with(['\t', '\r']));
        (part, is_special_cell || bare.starts_with(TRIGGERS))
    })
}

/// Whether a string must be quoted: an empty string, which would otherwise leave the field unchanged, and strings that look
/// quoted already.
fn needs_quotes(text: &str) -> bool {
    text.is_empty() || unquoted(text).is_some()
}

fn unquoted(text: &str) -> Option<String> {
    let Ok(Value::String(inner)) = parse_strict(text, MAX_LEVELS) else { return None };
    needs_quotes(&inner).then_some(inner)
}

/// Formats a number as in RFC 8785 §3.2.2.3: 1.0 is `1`.
pub fn number_text(number: f64) -> String {
    // Adding zero turns -0 into 0, as in the history.
    serde_json_canonicalizer::to_string(&(number + 0.0)).unwrap_or_else(|_| number.to_string())
}

/// Writes strings unchanged, unless they need quotes, numbers in their shortest form, and everything else as JSON.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) if !needs_quotes(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), number_text),
        value => value.to_string(),
    }
}

/// Whether a cell is the export of a value. Numbers are compared by value.
pub fn is_cell_of(cell: &str, value: &Value) -> bool {
    let number = |value: &Value| value.as_f64().filter(|_| value.is_number());
    let is_same_number = || number(value).is_some() && parse_strict(cell, 1).is_ok_and(|cell| number(&cell) == number(value));
    cell == value_text(value) || is_same_number()
}

/// Reads a cell as the value of the schema's `enum` or `const` whose export it is. Otherwise reads it as JSON if the schema permits
/// types other than string and the cell is valid JSON, and else as a string. Booleans are case-insensitive.
pub fn to_value(text: &str, name: &str, schema: Option<&FieldsSchema>) -> Value {
    let string = || Value::String(unquoted(text).unwrap_or_else(|| text.to_owned()));
    let Some(property) = property(name, schema) else { return string() };
    let mut values = property["enum"].as_array().into_iter().flatten().chain(property.get("const"));
    if let Some(value) = values.find(|value| value_text(value) == text) {
        return value.clone();
    }
    let json = match type_of(&property["type"]) {
        Some("string") => None,
        Some("boolean") => parse_strict(&text.to_lowercase(), MAX_LEVELS).ok(),
        _ => parse_strict(text, MAX_LEVELS).ok(),
    };
    json.unwrap_or_else(string)
}

/// Whether the schema permits only integers, with or without null.
pub fn is_integer(name: &str, schema: Option<&FieldsSchema>) -> bool {
    property(name, schema).and_then(|property| type_of(&property["type"])) == Some("integer")
}

fn property<'a>(name: &str, schema: Option<&'a FieldsSchema>) -> Option<&'a Value> {
    schema?.as_value().get("properties")?.get(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn cell_that_a_spreadsheet_would_execute_gets_an_apostrophe() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+49 170", "'+49 170"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("-5", "-5"),
            ("-5+cmd", "'-5+cmd"),
            ("'=1", "''=1"),
            ("'quoted", "'quoted"),
            ("\\N", "'\\N"),
            ("plain; text", "plain; text"),
            ("x;=1+cmd|' /C calc'!A1", "x;'=1+cmd|' /C calc'!A1"),
            ("x;-5", "x;'-5"),
            ("x;\"=1\"", "x;'\"=1\""),
            ("a\t@b\r\n+c\n\nd", "a\t'@b\r\n'+c\n\nd"),
            ("＝1", "'＝1"),
            ("x;＋1\t－1\n＠a", "x;'＋1\t'－1\n'＠a"),
            ("x;'=1", "x;''=1"),
            ("x;'quoted'", "x;'quoted'"),
        ] {
            assert_eq!(from_text(text), cell, "{text}");
            assert_eq!(to_text(cell), text, "{cell}");
        }
    }

    #[test]
    fn a_schema_says_what_a_cell_means() {
        let schema = FieldsSchema::from_json(
            r#"{"properties": {"imei": {"type": "string"}, "leased": {"type": ["boolean", "null"]}, "size": {"enum": ["8", "16", 32, null]},
                "floor": {"const": "3"}, "ram": {"type": "integer"}, "ports": {"type": "array"}}}"#,
        );
        let schema = schema.as_ref().ok();
        for (name, text, value) in [
            ("imei", "356938035643809", json!("356938035643809")),
            ("imei", "\"1\"", json!("\"1\"")),
            ("imei", "\"\"", json!("")),
            ("imei", r#""\"\"""#, json!("\"\"")),
            ("leased", "TRUE", json!(true)),
            ("leased", "null", json!(null)),
            ("size", "8", json!("8")),
            ("size", "32", json!(32)),
            ("size", "32.0", json!(32.0)),
            ("size", "null", json!(null)),
            ("floor", "3", json!("3")),
            ("ram", "16", json!(16)),
            ("ram", "007", json!("007")),
            ("ports", "TRUE", json!("TRUE")),
            ("ports", "[1, 2]", json!([1, 2])),
            ("cost_centre", "4711", json!("4711")),
            ("cost_centre", "0815", json!("0815")),
            ("cost_centre", "[1, 2]", json!("[1, 2]")),
        ] {
            assert_eq!(to_value(text, name, schema), value, "{name} {text}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC*".prop_map(Value::from),
            "['\"=+@\\\\N0-9 -]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::hash_map("[a-z]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["\\PC*", "['\"=+@\\\\N\t\r\n;,＝－ 0-9a-]{0,8}"]
    }

    /// Returns the cells that a spreadsheet sees. Quotes only matter at the start of a cell; text after the closing quote belongs
    /// to the cell.
    fn cells_seen(file: &str, separator: char) -> Vec<String> {
        let mut cells = Vec::new();
        let mut rest = file.chars().peekable();
        while rest.peek().is_some() {
            let mut cell = String::new();
            let mut is_quoted = rest.next_if_eq(&'"').is_some();
            while let Some(c) = rest.next() {
                match c {
                    '"' if is_quoted => is_quoted = rest.next_if_eq(&'"').inspect(|quote| cell.push(*quote)).is_some(),
                    c if !is_quoted && (c == separator || c == '\r' || c == '\n') => break,
                    c => cell.push(c),
                }
            }
            cells.push(cell);
        }
        cells
    }

    #[test]
    fn numbers_have_one_cell_and_any_notation_of_it_is_the_same_value() {
        for (sent, cell) in [("1.0", "1"), ("1e1", "10"), ("-0.0", "0"), ("0.10", "0.1"), ("1E-7", "1e-7")] {
            let value = serde_json::from_str(sent).expect(sent);
            assert_eq!(value_text(&value), cell);
            assert!(is_cell_of(cell, &value) && is_cell_of(sent, &value));
        }
        assert!(!is_cell_of("1.0", &json!("1")) && !is_cell_of("x", &json!(1)) && is_cell_of("1.0", &json!("1.0")));
    }

    proptest! {
        #[test]
        fn every_text_is_read_back(text in text()) {
            let cell = from_text(&text);
            prop_assert_eq!(to_text(&cell), text.as_str());
        }

        #[test]
        fn no_spreadsheet_sees_a_formula(texts in prop::collection::vec(text(), 1..4)) {
            let mut file = csv::Writer::from_writer(Vec::new());
            // The first column of a file has IDs instead of texts.
            let cells = std::iter::once("id".into()).chain(texts.iter().map(|text| from_text(text)));
            file.write_record(cells.map(Cow::into_owned).map(String::into_bytes)).unwrap();
            let file = String::from_utf8(file.into_inner().unwrap()).unwrap();
            for separator in [',', ';', '\t'] {
                for cell in cells_seen(&file, separator) {
                    let is_formula = cell.starts_with(TRIGGERS) && cell.parse::<serde_json::Number>().is_err();
                    prop_assert!(!is_formula, "{cell:?} in {file:?}, separated by {separator:?}");
                }
            }
        }

        #[test]
        fn every_value_has_a_cell_and_every_string_is_read_back(value in value()) {
            let text = value_text(&value);
            let cell = from_text(&text);
            prop_assert!(!cell.is_empty() && cell != CLEAR);
            prop_assert_eq!(&*to_text(&cell), text.as_str());
            if value.is_string() {
                prop_assert_eq!(to_value(&text, "x", None), value);
            }
        }
    }
}
