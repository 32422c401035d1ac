//! Errors in a value or a field of a request, as shown to clients.

/// Describes valid values, and never discloses internals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl ValueError {
    /// `reason` continues a sentence that starts with the field's name: "must be …".
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    #[must_use]
    pub fn not_one_of<const N: usize>(values: [&str; N]) -> Self {
        Self(format!("must be one of {}", values.join(", ")))
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

/// The part of a request that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLocation {
    /// A JSON Pointer (RFC 6901) into the body.
    Pointer(String),
    /// Name of a query parameter.
    Parameter(String),
    /// Name of a header.
    Header(&'static str),
    /// Name of a column of an import.
    Column(String),
    /// The body, or the row of an import, as a whole.
    Whole,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub location: ErrorLocation,
    pub detail: String,
}

impl FieldError {
    pub fn field(field: &str, detail: impl Into<String>) -> Self {
        Self::within(field, "", detail)
    }

    /// Whether the error is in the body's top-level member `field`.
    #[must_use]
    pub fn is_at(&self, field: &str) -> bool {
        let ErrorLocation::Pointer(pointer) = &self.location else { return false };
        pointer.split('/').nth(1) == Some(field)
    }

    /// Whether the error is in the member or the column `name`.
    #[must_use]
    pub fn is_about(&self, name: &str) -> bool {
        self.is_at(name) || matches!(&self.location, ErrorLocation::Column(column) if column == name)
    }

    /// An error inside the body's top-level member `field`. `pointer` is the JSON Pointer within that member, such as `/2/key`.
    pub fn within(field: &str, pointer: &str, detail: impl Into<String>) -> Self {
        let pointer = format!("/{}{pointer}", pointer_token(field));
        Self { location: ErrorLocation::Pointer(pointer), detail: detail.into() }
    }

    /// Whether the error is about the body's top-level member `field` as a whole.
    #[must_use]
    pub fn is_of(&self, field: &str) -> bool {
        self.location == Self::field(field, "").location
    }

    pub fn column(column: &str, detail: impl Into<String>) -> Self {
        Self { location: ErrorLocation::Column(column.to_owned()), detail: detail.into() }
    }

    /// An error about the body, or the row of an import, as a whole.
    pub fn whole(detail: impl Into<String>) -> Self {
        Self { location: ErrorLocation::Whole, detail: detail.into() }
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

    /// Prefixes the pointer with the path of the operation at `index`.
    #[must_use]
    pub fn in_operation(self, index: usize) -> Self {
        let pointer = match &self.location {
            ErrorLocation::Pointer(pointer) => format!("/operations/{index}/body{pointer}"),
            _ => format!("/operations/{index}"),
        };
        Self { location: ErrorLocation::Pointer(pointer), ..self }
    }

    pub fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self { location: ErrorLocation::Parameter(name.to_owned()), detail: detail.into() }
    }
}

/// Escapes a name for a JSON Pointer (RFC 6901 §3): `a/b` becomes `a~1b`.
#[must_use]
pub fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
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
}
