//! Errors in a value or a field of a request, as shown to clients, and similar names for error texts.

use crate::values::string_enum::string_enum;
use crate::values::text::check_visible;
use serde_json::Number;

string_enum! {
    /// Kind of an error in a field.
    #[schema(as = FieldErrorCode)]
    ErrorCode {
        /// Missing or empty.
        Required = "required",
        /// Fewer characters than the limit.
        TooShort = "too_short",
        /// More characters than the limit.
        TooLong = "too_long",
        /// A number below the limit.
        TooSmall = "too_small",
        /// A number above the limit.
        TooLarge = "too_large",
        /// A number that is not a multiple of the limit.
        NotMultiple = "not_multiple",
        /// Fewer items than the limit.
        TooFewItems = "too_few_items",
        /// More items than the limit.
        TooManyItems = "too_many_items",
        /// An item that occurs twice in a list.
        RepeatedItem = "repeated_item",
        /// A time more days ago than the limit.
        TooOld = "too_old",
        /// More than fits into the record, or into one transaction.
        TooMuch = "too_much",
        /// Contains a control character or an invisible character.
        InvalidCharacter = "invalid_character",
        /// Not a date or time between 1900 and 2199.
        InvalidDate = "invalid_date",
        /// Not a decimal number, or with too many decimal places.
        InvalidDecimal = "invalid_decimal",
        /// A location with an empty level.
        EmptyLevel = "empty_level",
        /// A location with more levels than the limit.
        TooManyLevels = "too_many_levels",
        /// A type or form that the field doesn't accept.
        InvalidFormat = "invalid_format",
        /// Not one of the field's values.
        UnknownValue = "unknown_value",
        /// No such field or parameter.
        UnknownField = "unknown_field",
        /// Not the ID of a record that the field can refer to.
        UnknownReference = "unknown_reference",
        /// Set by the asset's model.
        FixedByModel = "fixed_by_model",
        /// A custom field that lists can't filter or sort by.
        NotFilterable = "not_filterable",
    }
}

/// The error in a value. Describes valid values, and never discloses internals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ValueError {
    /// The error's text, which continues a sentence that starts with the field's name: "must be …".
    pub text: String,
    pub code: Option<ErrorCode>,
    /// The exceeded bound, if the code's description names a limit.
    pub limit: Option<Number>,
}

impl ValueError {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: None, limit: None }
    }

    pub fn coded(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code: Some(code), ..Self::new(text) }
    }

    pub fn limited(code: ErrorCode, limit: impl Into<Number>, text: impl Into<String>) -> Self {
        Self { limit: Some(limit.into()), ..Self::coded(code, text) }
    }

    /// Creates the error for a value of the wrong type or form.
    pub fn form(text: impl Into<String>) -> Self {
        Self::coded(ErrorCode::InvalidFormat, text)
    }

    pub fn required() -> Self {
        Self::coded(ErrorCode::Required, "is required")
    }

    pub fn unknown_reference() -> Self {
        Self::coded(ErrorCode::UnknownReference, "does not exist in this tenant")
    }

    pub fn not_one_of<const N: usize>(values: [&str; N]) -> Self {
        let several = if N > 1 { "one of " } else { "" };
        Self::coded(ErrorCode::UnknownValue, format!("must be {several}{}", values.join(", ")))
    }
}

impl From<&str> for ValueError {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for ValueError {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// Makes serde store a type as text: `$write` turns it into a `String`, and its `FromStr` reads it back.
macro_rules! text_form {
    ($type:ty, |$value:ident| $write:expr) => {
        impl From<$type> for String {
            fn from($value: $type) -> Self {
                $write
            }
        }

        impl TryFrom<String> for $type {
            type Error = $crate::values::field_error::ValueError;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    };
}
pub(crate) use text_form;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLocation {
    /// A JSON Pointer (RFC 6901) into the body.
    Pointer(String),
    Parameter(String),
    Header(&'static str),
    /// Name of a column in an import.
    Column(String),
    /// The body, or the row of an import, as a whole.
    Whole,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub location: ErrorLocation,
    pub reason: ValueError,
}

impl FieldError {
    pub fn field(field: &str, reason: impl Into<ValueError>) -> Self {
        Self::within(field, "", reason)
    }

    /// Whether the error is in the body's top-level member `field`.
    pub fn is_at(&self, field: &str) -> bool {
        let ErrorLocation::Pointer(pointer) = &self.location else { return false };
        pointer.split('/').nth(1) == Some(field)
    }

    /// Whether the error is in the member or the column `name`.
    pub fn is_about(&self, name: &str) -> bool {
        self.is_at(name) || matches!(&self.location, ErrorLocation::Column(column) if column == name)
    }

    /// Creates an error inside the body's top-level member `field`. `pointer` is the JSON Pointer within that member, such as
    /// `/2/key`.
    pub fn within(field: &str, pointer: &str, reason: impl Into<ValueError>) -> Self {
        let pointer = format!("/{}{pointer}", pointer_token(field));
        Self { location: ErrorLocation::Pointer(pointer), reason: reason.into() }
    }

    /// Whether the error concerns the body's top-level member `field` as a whole.
    pub fn is_of(&self, field: &str) -> bool {
        self.location == Self::field(field, "").location
    }

    pub fn column(column: &str, reason: impl Into<ValueError>) -> Self {
        Self { location: ErrorLocation::Column(column.to_owned()), reason: reason.into() }
    }

    pub fn whole(reason: impl Into<ValueError>) -> Self {
        Self { location: ErrorLocation::Whole, reason: reason.into() }
    }

    /// Replaces the pointer with the column, for a body built from a row.
    #[must_use]
    pub fn in_column(self) -> Self {
        let ErrorLocation::Pointer(pointer) = &self.location else { return self };
        let mut tokens = pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"));
        let location = match (tokens.next(), tokens.next()) {
            (None, _) => ErrorLocation::Whole,
            (Some(column), Some(field)) if column == "custom_fields" => ErrorLocation::Column(format!("{column}.{field}")),
            (Some(column), _) => ErrorLocation::Column(column),
        };
        Self { location, ..self }
    }

    /// Prefixes the pointer into a body with the path of the operation at `index`.
    #[must_use]
    pub fn in_operation(self, index: usize) -> Self {
        match &self.location {
            ErrorLocation::Pointer(pointer) => Self { location: ErrorLocation::Pointer(format!("/body{pointer}")), ..self },
            _ => self,
        }
        .at_operation(index)
    }

    /// Prefixes the pointer into an operation with the path of the operation at `index`.
    #[must_use]
    pub fn at_operation(self, index: usize) -> Self {
        let pointer = if let ErrorLocation::Pointer(pointer) = &self.location { pointer.as_str() } else { "" };
        Self { location: ErrorLocation::Pointer(format!("/operations/{index}{pointer}")), ..self }
    }

    pub fn parameter(name: &str, reason: impl Into<ValueError>) -> Self {
        Self { location: ErrorLocation::Parameter(name.to_owned()), reason: reason.into() }
    }
}

/// Escapes a name for a JSON Pointer (RFC 6901 §3): `a/b` becomes `a~1b`.
pub fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Maximum length, in characters, of a name that is compared with the known names. A longer name leaves the known names unsorted.
const MAX_CHARS: usize = 64;
/// Minimum length in bytes of a name that counts as similar because it is part of a known name, such as `serial` in
/// `serial_number`.
const MIN_PART: usize = 3;
/// Maximum distance, in characters, between a name and a known name that contains it.
const DISTANCE_OF_PART: usize = 2;
/// Maximum number of errors in a response that list the known names. A body of 1 MiB can cause 100,000 errors.
const MAX_NAMED_UNKNOWN: usize = 20;

/// Returns the error text for an unknown name, with its invisible character, if any, and the known names, nearest first. `earlier` is the number of earlier errors:
/// after many, the known names are omitted.
pub fn unknown_name(name: &str, known: &[&str], kind: &str, earlier: usize) -> String {
    if earlier >= MAX_NAMED_UNKNOWN {
        return format!("unknown {kind}");
    }
    let hidden = check_visible(name).err().map(|error| format!("{error}; ")).unwrap_or_default();
    match nearest_first(name, known.iter().copied()).join(", ") {
        none if none.is_empty() => format!("{hidden}unknown {kind}"),
        known => format!("{hidden}unknown {kind}; known: {known}"),
    }
}

/// Sorts the known names by similarity to `name`, the most similar first.
pub fn nearest_first<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.into_iter().collect();
    if name.chars().nth(MAX_CHARS).is_none() {
        // A stable sort: equally similar names keep their order.
        known.sort_by_cached_key(|known| distance(name, known));
    }
    known
}

/// Returns how much a known name differs from `name`, ignoring case: the number of changed characters. A known name that contains
/// the name is near.
pub fn distance(name: &str, known: &str) -> usize {
    let (name, known) = (name.to_lowercase(), known.to_lowercase());
    let distance = strsim::osa_distance(&name, &known);
    if name.len() >= MIN_PART && known.contains(&name) { distance.min(DISTANCE_OF_PART) } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_the_names_of_members() {
        let error = FieldError::within("a/b~c", "/0", "must be a string");
        assert_eq!(error.location, ErrorLocation::Pointer("/a~1b~0c/0".to_owned()));
        assert!(FieldError::field("a/b", "").is_of("a/b") && !error.is_of("a/b~c"));
    }

    #[test]
    fn an_unknown_name_shows_its_invisible_character() {
        assert_eq!(unknown_name("nmae", &["name"], "field", 0), "unknown field; known: name");
        let text = "must not contain the invisible character U+200B, at position 3; unknown field; known: name";
        assert_eq!(unknown_name("na\u{200b}me", &["name"], "field", 0), text);
    }

    #[test]
    fn the_likeliest_name_comes_first_and_others_keep_their_order() {
        let fields = ["name", "status", "model_id", "model", "notes"];
        assert_eq!(nearest_first("modell", fields)[..2], ["model", "model_id"]);
        assert_eq!(nearest_first("nmae", fields)[0], "name");
        assert_eq!(nearest_first("abcd", ["abxy", "abdc"])[0], "abdc", "two swapped characters are one change");
        assert_eq!(nearest_first("stat", ["id", "notes", "initial_status"])[0], "initial_status");
        assert_eq!(nearest_first("Notes", fields)[0], "notes");
        assert_eq!(nearest_first(&"x".repeat(1_000_000), fields), fields);
        assert_eq!(nearest_first("x", []), [""; 0]);
    }
}
