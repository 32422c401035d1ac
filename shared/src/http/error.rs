//! Every answer that is not a success: status, code and problem document (contract 2, RFC 9457).

use super::problem::{Problem, ProblemError};
use crate::domain::field_error::{ErrorLocation, FieldError};
use crate::domain::scope::Scope;
use crate::key_encryption::KeyEncryptionError;
use crate::store::{KeyError, StoreError, WriteError};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How many errors an answer names: a body of 1 MiB has room for more than an answer has.
const LARGEST_LIST: usize = 1000;

/// A state of the data that forbids what was asked.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// The machine's word for it.
    pub code: ConflictCode,
    /// The human's.
    pub detail: String,
    /// What else a client needs to know, such as the id that stands in the way.
    pub context: Map<String, Value>,
}

/// The codes of a 409 that this part of the service gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictCode {
    /// Others changed the same thing at the same time, time and again.
    Conflict,
    /// The tenant does not permit this move of status.
    TransitionNotAllowed,
    /// Another has the value that must be unique.
    Duplicate,
    /// Others point to it.
    InUse,
    /// A process runs on the asset.
    ProcessRunning,
    /// The asset has another status than the process begins with.
    WrongAssetStatus,
    /// The process can't be started.
    ProcessInactive,
    /// The run has ended.
    InstanceClosed,
    /// Another step is open.
    StepMoved,
    /// The step was submitted already.
    StepSubmitted,
    /// The same request is being answered.
    RequestInProgress,
}

impl ConflictCode {
    /// The code as the answer has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "CONFLICT",
            Self::TransitionNotAllowed => "TRANSITION_NOT_ALLOWED",
            Self::Duplicate => "DUPLICATE",
            Self::InUse => "IN_USE",
            Self::ProcessRunning => "PROCESS_RUNNING",
            Self::WrongAssetStatus => "WRONG_ASSET_STATUS",
            Self::ProcessInactive => "PROCESS_INACTIVE",
            Self::InstanceClosed => "INSTANCE_CLOSED",
            Self::StepMoved => "STEP_MOVED",
            Self::StepSubmitted => "STEP_SUBMITTED",
            Self::RequestInProgress => "REQUEST_IN_PROGRESS",
        }
    }
}

/// Why a request is not answered with a success.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 400: not JSON, not UTF-8, bad percent-encoding.
    #[error("malformed request: {0}")]
    Malformed(String),
    /// 401: one answer for all that can be wrong with a key.
    #[error("no valid key")]
    Unauthorized,
    /// 403: the key lacks this scope.
    #[error("the key lacks the scope {0}")]
    Forbidden(Scope),
    /// 404: no such path, or no such thing in this tenant.
    #[error("not found")]
    NotFound,
    /// 405.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// 409.
    #[error("{}", .0.detail)]
    Conflict(Conflict),
    /// 412.
    #[error("precondition failed")]
    PreconditionFailed,
    /// 413.
    #[error("body too large")]
    TooLarge,
    /// 415.
    #[error("unsupported media type")]
    UnsupportedMediaType,
    /// 422, with every field_error.
    #[error("{} faults", .0.len())]
    Invalid(Vec<FieldError>),
    /// 429, with the number of seconds to wait.
    #[error("too many requests")]
    RateLimited(i64),
    /// 500: the log has the cause, the answer has not.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// 503: later.
    #[error("unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ApiError {
    /// A 409.
    pub fn conflict(code: ConflictCode, detail: impl Into<String>, context: Value) -> Self {
        let context = if let Value::Object(map) = context { map } else { Map::new() };
        Self::Conflict(Conflict { code, detail: detail.into(), context })
    }

    /// A 422 for the header `Idempotency-Key`.
    pub fn idempotency(detail: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError { place: ErrorLocation::Header("Idempotency-Key"), detail: detail.into() }])
    }

    /// No wildcard arm: a new variant does not compile until it has a status.
    fn status_code_title(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "MALFORMED_REQUEST", "Malformed request"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "Unauthorized"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "FORBIDDEN", "Forbidden"),
            Self::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND", "Not found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "Method not allowed"),
            Self::Conflict(conflict) => (StatusCode::CONFLICT, conflict.code.as_str(), "Conflict"),
            Self::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, "PRECONDITION_FAILED", "Precondition failed"),
            Self::RateLimited(_) => (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", "Too many requests"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", "Payload too large"),
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type")
            }
            Self::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_ERROR", "Validation failed"),
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", "Internal error"),
            Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "Unavailable"),
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Malformed(detail) => detail.clone(),
            Self::Unauthorized => "Send a valid API key as 'Authorization: Bearer <API_KEY>'.".into(),
            Self::Forbidden(scope) => format!("The API key lacks the scope {scope}."),
            Self::NotFound => "There is nothing here; see /v1/openapi.json for what there is.".into(),
            Self::MethodNotAllowed => "The header Allow lists the methods of this path.".into(),
            Self::Conflict(conflict) => conflict.detail.clone(),
            Self::PreconditionFailed => {
                "It is not in the state that If-Match names. Read it again, and send its ETag of now.".into()
            }
            Self::RateLimited(wait) => format!("The API key has sent its requests for this minute; wait {wait} s."),
            Self::TooLarge => "The body may have at most 1 MiB.".into(),
            Self::UnsupportedMediaType => "Send the body as 'Content-Type: application/json'.".into(),
            Self::Invalid(errors) if errors.len() == 1 => "1 field was refused.".into(),
            Self::Invalid(errors) => format!("{} fields were refused.", errors.len()),
            Self::Internal(_) => "Something went wrong on our side; the log has it under the request id.".into(),
            Self::Unavailable(_) => "The database is busy. Nothing is known to have changed; try again.".into(),
        }
    }

    /// The problem document for the request `request_id`.
    #[must_use]
    pub fn problem(&self, request_id: &str) -> Problem {
        let (status, code, title) = self.status_code_title();
        let mut extra = Map::new();
        match self {
            Self::Forbidden(scope) => {
                extra.insert("scope".into(), json!(scope));
            }
            Self::Conflict(conflict) => extra.clone_from(&conflict.context),
            _ => {}
        }
        let errors = match self {
            Self::Invalid(errors) => Some(errors.iter().take(LARGEST_LIST).map(ProblemError::from).collect()),
            _ => None,
        };
        Problem {
            kind: format!("urn:problem:{}", code.to_lowercase().replace('_', "-")),
            title,
            status: status.as_u16(),
            detail: self.detail(),
            code,
            error: title,
            request_id: request_id.to_owned(),
            errors,
            extra,
        }
    }

    /// The answer, once it is known which request it is for.
    #[must_use]
    pub fn render(&self, request_id: &str) -> Response {
        let (status, ..) = self.status_code_title();
        let body = serde_json::to_vec(&self.problem(request_id)).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self {
            Self::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Unavailable(_) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Conflict(conflict) if conflict.code == ConflictCode::RequestInProgress => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::RateLimited(wait) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*wait));
            }
            _ => {}
        }
        response
    }
}

impl IntoResponse for ApiError {
    /// An answer that carries the error; the layer around all routes renders it, since it knows the request's id.
    fn into_response(self) -> Response {
        let (status, ..) = self.status_code_title();
        let mut response = status.into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(error.into()),
            StoreError::Internal(_) => Self::Internal(error.into()),
        }
    }
}

impl From<KeyEncryptionError> for ApiError {
    fn from(error: KeyEncryptionError) -> Self {
        match error {
            KeyEncryptionError::Unavailable(_) => Self::Unavailable(error.into()),
            KeyEncryptionError::Rejected(_) => Self::Internal(error.into()),
        }
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Encryption(error) => error.into(),
            KeyError::Write(error) => error.into(),
        }
    }
}

impl From<WriteError> for ApiError {
    /// For a write that is not tried again.
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stale | WriteError::MissingReference(_) => Self::conflict(
                ConflictCode::Conflict,
                "Others changed the same thing at the same time. Read it again and decide again.",
                Value::Null,
            ),
            WriteError::Duplicate(field, owner) => {
                let mut context = Map::from_iter([("field".to_owned(), json!(field))]);
                context.extend(owner.map(|(kind, id)| (format!("{}_id", kind.noun()), json!(id))));
                let detail = format!("Another one has this {field} already.");
                Self::Conflict(Conflict { code: ConflictCode::Duplicate, detail, context })
            }
            WriteError::InUse(count) => Self::conflict(
                ConflictCode::InUse,
                format!("It is in use: {count} other {} to it.", if count == 1 { "thing points" } else { "things point" }),
                json!({ "count": count }),
            ),
            WriteError::TooLarge => Self::conflict(
                ConflictCode::Conflict,
                "More would change at once than one transaction can hold. Change less at once.",
                Value::Null,
            ),
            // The layer around all routes looks for the first one's answer before it tells this.
            WriteError::AlreadyAnswered | WriteError::InProgress => Self::conflict(
                ConflictCode::RequestInProgress,
                "The same request is being answered. Send it again in a moment for its answer.",
                Value::Null,
            ),
            WriteError::ResponseTooLong => Self::idempotency("makes this answer be kept, which is too long for that: send none"),
            WriteError::PreconditionFailed => Self::PreconditionFailed,
            WriteError::Store(error) => error.into(),
        }
    }
}
