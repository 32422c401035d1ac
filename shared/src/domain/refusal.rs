//! Why a value is not accepted, in words for whoever sent it.

/// One reason; says what would be right, never what the inside looks like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    /// A reason that reads after the field's name: "must be …".
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Where in a request a fault is (RFC 9457 §3.1 leaves the extension's form to us; contract 2 fixes it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A JSON Pointer (RFC 6901) into the body.
    Pointer(String),
    /// The name of a query parameter.
    Parameter(String),
}

/// A refused part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which part.
    pub place: Place,
    /// Why.
    pub detail: String,
}

impl Fault {
    /// A fault of the body's top-level member `field`.
    pub fn field(field: &str, detail: impl Into<String>) -> Self {
        let pointer = format!("/{}", field.replace('~', "~0").replace('/', "~1"));
        Self { place: Place::Pointer(pointer), detail: detail.into() }
    }

    /// A fault of the query parameter `name`.
    pub fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self { place: Place::Parameter(name.to_owned()), detail: detail.into() }
    }
}
