//! The body of every response that is not a success (RFC 9457).

use crate::domain::values::field_error::{ErrorLocation, FieldError};
use serde::Serialize;
use serde_json::{Map, Value};

/// A problem document (RFC 9457). `error` repeats the title for older clients.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// Kind of problem, as a URN.
    #[serde(rename = "type")]
    #[schema(examples("urn:problem:validation-error"))]
    pub(in crate::http) kind: String,
    /// Kind of problem, in words.
    pub(in crate::http) title: &'static str,
    /// HTTP status.
    pub(in crate::http) status: u16,
    /// What went wrong, and what to do about it.
    pub(in crate::http) detail: String,
    /// Kind of problem, for programs.
    #[schema(examples("VALIDATION_ERROR"))]
    pub(in crate::http) code: &'static str,
    /// Same as `title`, for older clients.
    pub(in crate::http) error: &'static str,
    /// Request ID, to quote when you report a problem. The log has it too.
    pub(in crate::http) request_id: String,
    /// Every error of the request (422 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<ProblemFieldError>, required = false)]
    pub(in crate::http) errors: Option<Vec<ProblemFieldError>>,
    /// Further members, such as the missing scope or the ID of what is in the way.
    #[serde(flatten)]
    #[schema(additional_properties, value_type = Object)]
    pub(in crate::http) extra: Map<String, Value>,
}

/// One error of a request. `pointer`, `parameter`, `header` or `column` says where it is.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ProblemFieldError {
    /// JSON Pointer (RFC 6901) into the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pointer: Option<String>,
    /// Name of a query parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    parameter: Option<String>,
    /// Name of a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    header: Option<&'static str>,
    /// Name of a column of an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    column: Option<String>,
    /// What is wrong.
    detail: String,
}

impl From<&FieldError> for ProblemFieldError {
    fn from(field_error: &FieldError) -> Self {
        let mut problem = Self { pointer: None, parameter: None, header: None, column: None, detail: field_error.detail.clone() };
        match &field_error.location {
            ErrorLocation::Pointer(pointer) => problem.pointer = Some(pointer.clone()),
            ErrorLocation::Parameter(name) => problem.parameter = Some(name.clone()),
            ErrorLocation::Header(name) => problem.header = Some(name),
            ErrorLocation::Column(name) => problem.column = Some(name.clone()),
            ErrorLocation::Whole => {}
        }
        problem
    }
}
