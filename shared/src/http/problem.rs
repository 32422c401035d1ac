//! The body of every answer that is not a success (contract 2, RFC 9457).

use crate::domain::field_error::{ErrorLocation, FieldError};
use serde::Serialize;
use serde_json::{Map, Value};

/// What an error's body looks like (RFC 9457, with the members that contract 2 adds).
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// Names the kind of problem.
    #[serde(rename = "type")]
    #[schema(examples("urn:problem:validation-error"))]
    pub(super) kind: String,
    /// The kind in words.
    pub(super) title: &'static str,
    /// The HTTP status.
    pub(super) status: u16,
    /// What went wrong this time, and what to do.
    pub(super) detail: String,
    /// The kind, for programs.
    #[schema(examples("VALIDATION_ERROR"))]
    pub(super) code: &'static str,
    /// The title, for older clients.
    pub(super) error: &'static str,
    /// The id to name when asking for help; the log has it too.
    pub(super) request_id: String,
    /// Every field_error of the request (422 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) errors: Option<Vec<ProblemError>>,
    /// What else there is to know, such as the scope that is lacking or the id that stands in the way.
    #[serde(flatten)]
    #[schema(additional_properties, value_type = Object)]
    pub(super) extra: Map<String, Value>,
}

/// One field_error of a request: `pointer`, `parameter` or `header` says where.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ProblemError {
    /// A JSON Pointer (RFC 6901) into the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    /// The name of a query parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    /// The name of a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<&'static str>,
    /// What is wrong with it.
    detail: String,
}

impl From<&FieldError> for ProblemError {
    fn from(field_error: &FieldError) -> Self {
        let mut problem = Self { pointer: None, parameter: None, header: None, detail: field_error.detail.clone() };
        match &field_error.location {
            ErrorLocation::Pointer(pointer) => problem.pointer = Some(pointer.clone()),
            ErrorLocation::Parameter(name) => problem.parameter = Some(name.clone()),
            ErrorLocation::Header(name) => problem.header = Some(name),
        }
        problem
    }
}
