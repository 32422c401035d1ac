//! Names of custom fields: texts of one line, as others are, so that two that look the same are the same.

use super::CustomFields;
use crate::values::field_error::{ValueError, pointer_token};
use crate::values::text::Name;
use serde_json::{Map, Value};

/// The errors of a body that are listed.
const MAX_ERRORS: usize = 100;

/// Composed, and without the white space around it.
///
/// # Errors
///
/// As for a [`Name`].
pub fn field_name(text: &str) -> Result<String, ValueError> {
    text.parse::<Name>().map(String::from)
}

/// The fields with their names as [`field_name`] gives them.
///
/// # Errors
///
/// Each name that is none or occurs twice, with its JSON Pointer.
pub(super) fn with_names(fields: Map<String, Value>) -> Result<Map<String, Value>, Vec<(String, String)>> {
    let (mut named, mut errors) = (Map::new(), Vec::new());
    for (sent, value) in fields {
        let error = match field_name(&sent) {
            Ok(name) if named.contains_key(&name) => "must be sent once; another name looks the same".to_owned(),
            Ok(name) => {
                named.insert(name, value);
                continue;
            }
            Err(error) => format!("has a name that {error}"),
        };
        errors.push((format!("/{}", pointer_token(&sent)), error));
    }
    errors.truncate(MAX_ERRORS);
    if errors.is_empty() { Ok(named) } else { Err(errors) }
}

impl CustomFields {
    /// As a client sends them.
    ///
    /// # Errors
    ///
    /// As [`CustomFields::from_json`], and for each name that is no [`field_name`] or occurs twice, with its JSON Pointer.
    pub fn from_body(text: &str) -> Result<Self, Vec<(String, String)>> {
        let fields = Self::from_json(text).map_err(|error| vec![(String::new(), error.to_string())])?;
        with_names(fields.0).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::custom_fields::CustomFieldsPatch;

    #[test]
    fn names_that_look_the_same_are_the_same() {
        let fields = CustomFields::from_body(r#"{" Fa\u0308rg ": 1, "a b": {" x ": 2}}"#).expect("fields");
        assert_eq!(String::from(fields), r#"{"Färg":1,"a b":{" x ":2}}"#);
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
    fn a_single_field_is_found_by_a_name_that_looks_the_same() {
        let fields = CustomFields::from_body(r#"{"F\u00e4rg": 1, "ram_gb": 16}"#).expect("fields");
        let patch = CustomFieldsPatch::from_json(r#"{"Fa\u0308rg": 2, "ram_gb ": null}"#).expect("a patch");
        assert_eq!(String::from(patch.applied_to(&fields).expect("small fields")), r#"{"Färg":2}"#);
        let errors = CustomFieldsPatch::from_json(r#"{"a": 1, "a ": 2}"#).expect_err("an error");
        assert_eq!(errors[0].0, "/a ");
    }
}
