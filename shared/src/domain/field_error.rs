//! Why a value is not accepted, in words for whoever sent it.

/// One reason; says what would be right, never what the inside looks like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl ValueError {
    /// A reason that reads after the field's name: "must be …".
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Lets serde keep a type as text: `$write` turns it into a `String`, `FromStr` reads it back.
macro_rules! text_form {
    ($type:ty, |$value:ident| $write:expr) => {
        impl From<$type> for String {
            fn from($value: $type) -> Self {
                $write
            }
        }

        impl TryFrom<String> for $type {
            type Error = $crate::domain::field_error::ValueError;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    };
}
pub(crate) use text_form;

/// Where in a request a field_error is (RFC 9457 §3.1 leaves the extension's form to us; contract 2 fixes it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLocation {
    /// A JSON Pointer (RFC 6901) into the body.
    Pointer(String),
    /// The name of a query parameter.
    Parameter(String),
    /// The name of a header.
    Header(&'static str),
}

/// A refused part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Which part.
    pub place: ErrorLocation,
    /// Why.
    pub detail: String,
}

impl FieldError {
    /// A field_error of the body's top-level member `field`.
    pub fn field(field: &str, detail: impl Into<String>) -> Self {
        Self::within(field, "", detail)
    }

    /// A field_error at `place`, a JSON Pointer from the body's top-level member `field` on.
    pub fn within(field: &str, place: &str, detail: impl Into<String>) -> Self {
        let pointer = format!("/{}{place}", field.replace('~', "~0").replace('/', "~1"));
        Self { place: ErrorLocation::Pointer(pointer), detail: detail.into() }
    }

    /// Whether it is a field_error of the body's top-level member `field` as a whole.
    #[must_use]
    pub fn is_of(&self, field: &str) -> bool {
        self.place == Self::field(field, "").place
    }

    /// A field_error of the query parameter `name`.
    pub fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self { place: ErrorLocation::Parameter(name.to_owned()), detail: detail.into() }
    }
}
