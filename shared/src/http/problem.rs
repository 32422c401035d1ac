//! Errors and their problem documents (RFC 9457).

use crate::domain::assets::asset::{MAX_CELL_CHARS, MAX_LISTED_FIELDS};
use crate::domain::keys::api_key::Scope;
use crate::domain::keys::grant::GrantError;
use crate::domain::processes::instance::ProcessError;
use crate::domain::record::{ChangedSince, Mismatch};
use crate::domain::signing::LinkStatus;
use crate::domain::values::field_error::{ErrorCode, ErrorLocation, FieldError, ValueError};
use crate::domain::values::id::AssetId;
use crate::key_encryption::KeyEncryptionError;
use crate::queue::QueueError;
use crate::store::{CommitFailure, KeyError, Reader, StoreError, UnreadableRecord, WriteError};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Number, Value};

use std::sync::Arc;
/// Maximum number of field errors in a response, which omits any others. A body of 1 MiB can have more errors than fit in a
/// response.
pub(in crate::http) const MAX_FIELD_ERRORS: usize = 1000;

/// Number of seconds after which a client should retry. Lists can use custom fields again only after the index is reloaded, which
/// happens within an hour.
const FIELD_MEMORY_RETRY: i64 = 600;
const LIST_MEMORY: &str = "The organization has more records than this deployment's lists can hold. The operator must give the \
    function more memory.";

const FIELD_MEMORY: &str = "The organization has more custom fields than this deployment's lists can hold, so lists can't filter or sort by them. Other lists work. The operator must give the function more memory.";

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A 409: the request conflicts with the current data.
#[derive(Debug, Clone)]
pub struct Conflict {
    pub code: ConflictCode,
    pub detail: String,
    /// Additional members of the problem document, such as the ID of the conflicting record.
    pub context: Map<String, Value>,
}

/// Why a request failed temporarily.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    Table,
    /// A list index is loading, probably for this many more seconds.
    ListIndex(u64),
    /// Too little memory for a list index, which is loaded again after this many seconds.
    ListMemory(u64),
    /// Too little memory for custom fields in a list index.
    FieldMemory,
    /// The index of a history lacks entries, perhaps for this many more seconds.
    History(u64),
    /// AWS KMS, or the key file.
    KeyEncryption,
    Queue,
    /// The request approached its deadline.
    Service,
    /// A change is not fully visible yet.
    Change,
    /// No free asset tag: every candidate was taken.
    AssetTags,
}

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// 400: not JSON, not UTF-8, or bad percent-encoding.
    #[error("malformed request: {0}")]
    Malformed(String),
    /// 401: the same for every problem with a key.
    #[error("no valid API key")]
    Unauthorized,
    /// 401: no valid signing link. With the status of an existing link that has ended.
    #[error("no valid signing link")]
    BadLink(Option<LinkStatus>),
    /// 403: the key lacks this scope.
    #[error("the API key lacks the scope {0}")]
    Forbidden(Scope),
    /// 403: the key can't grant a key or a role, for a reason other than a scope.
    #[error(transparent)]
    NotGrantable(GrantError),
    #[error("not found")]
    NotFound,
    /// 404: no such path, with a hint about existing paths.
    #[error("no such path")]
    UnknownPath(String),
    /// 405, with the path's methods.
    #[error("method not allowed")]
    MethodNotAllowed(String),
    /// 409: the request conflicts with the current data.
    #[error("{}", .0.detail)]
    Conflict(Conflict),
    /// 412: the resource is not as the request expects.
    #[error("precondition failed")]
    PreconditionFailed(Mismatch),
    /// 413: the body is too large.
    #[error("body too large")]
    TooLarge,
    /// 415, with the expected media type.
    #[error("unsupported media type")]
    UnsupportedMediaType(&'static str),
    /// 415: compressed.
    #[error("unsupported content coding")]
    UnsupportedContentCoding,
    /// 422, with all errors.
    #[error("{} field errors", .0.len())]
    Invalid(Vec<FieldError>),
    /// 422: lists can't use a custom field, because of its value in this asset.
    #[error("a custom field of an asset doesn't fit into lists")]
    UnlistedField(Box<FieldError>, Option<AssetId>),
    /// Errors of a batch's operations: the first one, and all of them with their locations.
    #[error("operations of a batch: {0}")]
    InOperations(Box<Self>, Vec<FieldError>),
    /// 429, with the number of seconds to wait.
    #[error("too many requests")]
    RateLimited(i64),
    /// 429: the operator's limit for the tenant, with the number of seconds to wait.
    #[error("too many requests of the tenant")]
    TenantRateLimited(i64),
    /// 500. The cause is logged and not shown.
    #[error("internal error")]
    Internal(#[source] Cause),
    /// 500: a record is damaged.
    #[error("unreadable record")]
    Unreadable(#[source] UnreadableRecord),
    /// 503. The cause is logged and not shown.
    #[error("unavailable: {0:?}")]
    Unavailable(Dependency, #[source] Cause),
}

impl ApiError {
    /// Builds a 409. `context` contains additional members for the problem document: an object or null.
    pub fn conflict(code: ConflictCode, detail: impl Into<String>, context: Value) -> Self {
        let context = if let Value::Object(map) = context { map } else { Map::new() };
        Self::Conflict(Conflict { code, detail: detail.into(), context })
    }

    /// Builds a 422 for the header `Idempotency-Key`.
    pub fn idempotency_key(reason: impl Into<ValueError>) -> Self {
        Self::Invalid(vec![FieldError { location: ErrorLocation::Header("Idempotency-Key"), reason: reason.into() }])
    }

    /// Builds a 503 for a request that approached its deadline.
    pub fn timed_out(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(Dependency::Service, cause.into())
    }

    /// Returns the status, the code and the title. No wildcard arm, so that the compiler requires them for a new variant.
    pub(in crate::http) fn status_code_title(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::InOperations(error, _) => error.status_code_title(),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "MALFORMED_REQUEST", "Malformed request"),
            Self::Unauthorized | Self::BadLink(_) => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "Unauthorized"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "FORBIDDEN", "Forbidden"),
            Self::NotGrantable(_) => (StatusCode::FORBIDDEN, "FORBIDDEN", "Forbidden"),
            Self::NotFound | Self::UnknownPath(_) => (StatusCode::NOT_FOUND, "NOT_FOUND", "Not found"),
            Self::MethodNotAllowed(_) => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "Method not allowed"),
            Self::Conflict(conflict) => (StatusCode::CONFLICT, conflict.code.as_str(), "Conflict"),
            Self::PreconditionFailed(_) => (StatusCode::PRECONDITION_FAILED, "PRECONDITION_FAILED", "Precondition failed"),
            Self::RateLimited(_) | Self::TenantRateLimited(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", "Too many requests")
            }
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", "Payload too large"),
            Self::UnsupportedMediaType(_) | Self::UnsupportedContentCoding => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type")
            }
            Self::Invalid(_) | Self::UnlistedField(..) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_ERROR", "Validation failed")
            }
            Self::Internal(_) | Self::Unreadable(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", "Internal error"),
            Self::Unavailable(..) => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "Unavailable"),
        }
    }

    pub(crate) fn detail(&self) -> String {
        match self {
            Self::InOperations(error, _) => error.detail(),
            Self::Malformed(detail) => detail.clone(),
            Self::Unauthorized => "Send a valid API key as 'Authorization: Bearer <API_KEY>'.".into(),
            Self::BadLink(status) => link_detail(*status).into(),
            Self::Forbidden(scope) => format!("The API key lacks the scope {scope}."),
            Self::NotGrantable(error) => error.to_string(),
            Self::NotFound => "The path exists, but this tenant has no such resource. Check the ID.".into(),
            Self::UnknownPath(hint) => format!("This path doesn't exist. {hint}"),
            Self::MethodNotAllowed(hint) => hint.clone(),
            Self::Conflict(conflict) => conflict.detail.clone(),
            Self::PreconditionFailed(mismatch) => mismatch_detail(mismatch),
            Self::TenantRateLimited(wait) => {
                format!("The organization's rate limit, shared by all its keys and signing links, is reached. Wait {wait} s.")
            }
            Self::RateLimited(wait) => {
                format!("The API key's or signing link's rate limit is reached. Wait {wait} s.")
            }
            Self::TooLarge => "The body must not exceed 1 MiB.".into(),
            Self::UnsupportedMediaType(expected) => format!("Send the body as 'Content-Type: {expected}'."),
            Self::UnsupportedContentCoding => {
                "Send the body without compression: the only supported Content-Encoding is identity.".into()
            }
            Self::UnlistedField(..) => "1 field is invalid.".into(),
            Self::Invalid(errors) if errors.len() == 1 => "1 field is invalid.".into(),
            Self::Invalid(errors) => format!("{} fields are invalid.", errors.len()),
            Self::Internal(_) => "Something went wrong on our side. Quote the request ID when you report it.".into(),
            Self::Unreadable(UnreadableRecord { kind, id, .. }) => {
                let id = id.map(|id| format!(" {id}")).unwrap_or_default();
                format!("The stored {}{id} is damaged and can't be read. The operator can restore or remove it.", kind.as_str())
            }
            Self::Unavailable(dependency, _) => {
                let reason = match dependency {
                    Dependency::Table => "The database is busy.",
                    Dependency::ListIndex(_) => return "The list is still loading. Try again.".into(),
                    Dependency::ListMemory(_) => return LIST_MEMORY.into(),
                    Dependency::FieldMemory => return FIELD_MEMORY.into(),
                    Dependency::History(_) => return "The latest history entries can't be read yet. Try again.".into(),
                    Dependency::KeyEncryption => "The key service did not respond.",
                    Dependency::Queue => "The delivery queue did not respond.",
                    Dependency::Service => "The service took too long.",
                    Dependency::Change => "A recent change is not fully visible yet.",
                    Dependency::AssetTags => "The next candidate tags were all assigned by an older template.",
                };
                format!("{reason} Try again; send a POST with the same Idempotency-Key.")
            }
        }
    }

    fn extra(&self) -> Map<String, Value> {
        match self {
            Self::InOperations(error, _) => error.extra(),
            Self::BadLink(Some(status)) => Map::from_iter([("link_status".to_owned(), serde_json::json!(status))]),
            Self::Forbidden(scope) => Map::from_iter([("scope".to_owned(), serde_json::json!(scope))]),
            Self::NotGrantable(error) => Map::from_iter([("field".to_owned(), serde_json::json!(error.field()))]),
            Self::Unreadable(record) => Map::from_iter([("unreadable".to_owned(), serde_json::json!(record.id))]),
            Self::Conflict(conflict) => conflict.context.clone(),
            Self::UnlistedField(_, Some(asset)) => Map::from_iter([("asset_id".to_owned(), serde_json::json!(asset))]),
            Self::PreconditionFailed(Mismatch::Changed(ChangedSince { at, by, .. })) => Map::from_iter([
                ("field".to_owned(), serde_json::json!("updated_at")),
                ("updated_at".to_owned(), serde_json::json!(at)),
                ("updated_by".to_owned(), serde_json::json!(by)),
            ]),
            _ => Map::new(),
        }
    }

    #[must_use]
    pub fn problem(&self, request_id: &str) -> Problem {
        let (status, code, title) = self.status_code_title();
        let errors = match self {
            Self::UnlistedField(error, _) => Some(vec![ProblemFieldError::from(&**error)]),
            Self::Invalid(errors) | Self::InOperations(_, errors) => {
                Some(errors.iter().take(MAX_FIELD_ERRORS).map(ProblemFieldError::from).collect())
            }
            _ => None,
        };
        let extra = self.extra();
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

    /// Whether the same request can succeed later: a dependency was unavailable, the write conflicted with others, the rate limit
    /// was reached, or the service had an error.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self.status_code_title().1,
            "UNAVAILABLE" | "CONFLICT" | "REQUEST_IN_PROGRESS" | "INTERNAL_ERROR" | "RATE_LIMITED"
        )
    }

    /// Returns the number of seconds to wait before a retry; `None` if waiting doesn't help.
    pub(in crate::http) fn retry_after(&self) -> Option<i64> {
        match self {
            Self::Unavailable(
                Dependency::ListIndex(seconds) | Dependency::ListMemory(seconds) | Dependency::History(seconds),
                _,
            ) => i64::try_from(*seconds).ok(),
            Self::Unavailable(Dependency::FieldMemory, _) => Some(FIELD_MEMORY_RETRY),
            Self::Unavailable(..) => Some(1),
            Self::Conflict(conflict) if conflict.code == ConflictCode::RequestInProgress => Some(1),
            Self::RateLimited(wait) | Self::TenantRateLimited(wait) => Some(*wait),
            _ => None,
        }
    }
}

fn mismatch_detail(mismatch: &Mismatch) -> String {
    match mismatch {
        Mismatch::Version => {
            "The resource's version doesn't match If-Match. Read the resource again and send its current ETag.".into()
        }
        Mismatch::OtherRecord => {
            "The ETag in If-Match is of another resource. Send the ETag of the resource that you change.".into()
        }
        Mismatch::WeakTag => {
            "The ETag in If-Match is weak: a proxy changed it. Weak ETags match no version, so configure the proxy \
            to keep ETags, or remove the leading W/."
                .into()
        }
        Mismatch::Changed(ChangedSince { at, by, .. }) => {
            let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("The resource was changed{by} at {at}, after the updated_at that you sent. Read it again and reconsider.")
        }
    }
}

/// Explains to the holder of a signing link why it doesn't work.
const fn link_detail(status: Option<LinkStatus>) -> &'static str {
    match status {
        None | Some(LinkStatus::Open) => "Send the secret of a signing link as 'Authorization: Bearer <SECRET>'.",
        Some(LinkStatus::Used) => "The link has been used.",
        Some(LinkStatus::Revoked) => "The link was revoked.",
        Some(LinkStatus::Expired) => "The link has expired.",
        Some(LinkStatus::Ended) => {
            "There is nothing left to sign: the process has ended, someone else submitted the steps, or the signer was deleted."
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictCode {
    /// The write kept conflicting with others, or a rule that has no specific code forbids the change.
    Conflict,
    TransitionNotAllowed,
    Duplicate,
    InUse,
    ProcessRunning,
    WrongAssetStatus,
    ProcessInactive,
    InstanceClosed,
    StepMoved,
    StepSubmitted,
    RequestInProgress,
}

impl ConflictCode {
    pub const ALL: [Self; 11] = [
        Self::Conflict,
        Self::TransitionNotAllowed,
        Self::Duplicate,
        Self::InUse,
        Self::ProcessRunning,
        Self::WrongAssetStatus,
        Self::ProcessInactive,
        Self::InstanceClosed,
        Self::StepMoved,
        Self::StepSubmitted,
        Self::RequestInProgress,
    ];

    /// Returns the description for the OpenAPI document.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Conflict => {
                "another request changed the resource at the same time, or a rule forbids the request: see `detail`."
            }
            Self::TransitionNotAllowed => "the settings don't allow this status change.",
            Self::Duplicate => "another resource already has this unique value.",
            Self::InUse => "other resources refer to the resource.",
            Self::ProcessRunning => "a process instance is in progress on the asset.",
            Self::WrongAssetStatus => "the asset doesn't have the status that the process starts from.",
            Self::ProcessInactive => "the process definition is inactive.",
            Self::InstanceClosed => "the process instance is completed or cancelled.",
            Self::StepMoved => "`current_step` isn't the open step.",
            Self::StepSubmitted => "the step was already submitted with a different value.",
            Self::RequestInProgress => "a request with the same `Idempotency-Key` is in progress.",
        }
    }

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

/// A problem document (RFC 9457). `error` repeats the title for older clients.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// Kind of problem, as a URN.
    #[serde(rename = "type")]
    #[schema(examples("urn:problem:validation-error"))]
    kind: String,
    /// Human-readable kind of problem.
    title: &'static str,
    /// HTTP status.
    pub(in crate::http) status: u16,
    /// What went wrong, and what to do about it.
    detail: String,
    /// Machine-readable kind of problem.
    #[schema(examples("VALIDATION_ERROR"))]
    code: &'static str,
    /// Same as `title`, for older clients.
    error: &'static str,
    /// Request ID. Quote it when you report a problem; it is also in the log.
    request_id: String,
    /// All errors in the request (422 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<ProblemFieldError>, required = false)]
    errors: Option<Vec<ProblemFieldError>>,
    /// Additional members, such as the missing scope or the ID of the conflicting resource.
    #[serde(flatten)]
    #[schema(additional_properties, value_type = Object)]
    extra: Map<String, Value>,
}

/// One error in a request. `pointer`, `parameter`, `header` or `column` locates it.
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
    /// Name of an import's column.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    column: Option<String>,
    /// What is wrong.
    detail: String,
    /// Machine-readable error code, for clients that handle or translate the error. Missing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ErrorCode, required = false)]
    code: Option<ErrorCode>,
    /// The exceeded bound: characters (`too_short`, `too_long`), a number (`too_small`, `too_large`), days (`too_old`) or levels
    /// (`too_many_levels`). Absent for other codes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    limit: Option<Number>,
}

impl From<&FieldError> for ProblemFieldError {
    fn from(field_error: &FieldError) -> Self {
        let ValueError { text: detail, code, limit } = field_error.reason.clone();
        let mut problem = Self { pointer: None, parameter: None, header: None, column: None, detail, code, limit };
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

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(Dependency::Table, error.into()),
            StoreError::NotLoaded(seconds) => Self::Unavailable(Dependency::ListIndex(seconds), error.into()),
            StoreError::ListTooLarge(seconds) => Self::Unavailable(Dependency::ListMemory(seconds), error.into()),
            StoreError::FieldsLeftOut => Self::Unavailable(Dependency::FieldMemory, error.into()),
            StoreError::UnfitField { parameter, asset } => Self::UnlistedField(Box::new(unfit_field(&parameter)), asset),
            StoreError::HistoryBehind(seconds) => Self::Unavailable(Dependency::History(seconds), error.into()),
            StoreError::TooLate => Self::timed_out(error),
            StoreError::Unsettled(_) => Self::Unavailable(Dependency::Change, error.into()),
            StoreError::Unreadable(record) => Self::Unreadable(record),
            StoreError::Internal(_) => Self::Internal(error.into()),
        }
    }
}

/// Builds the error for a filter or sort by the custom field that `parameter` names.
fn unfit_field(parameter: &str) -> FieldError {
    let detail = format!(
        "names a custom field that lists can't filter or sort by: in some asset, its value isn't a string, number or boolean of \
         at most {MAX_CELL_CHARS} characters, or the field isn't among the first {MAX_LISTED_FIELDS} custom fields by name; \
         `unlisted_field` lists these assets"
    );
    FieldError::parameter(parameter, ValueError::coded(ErrorCode::NotFilterable, detail))
}

impl From<GrantError> for ApiError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Scope(scope) => Self::Forbidden(scope),
            error => Self::NotGrantable(error),
        }
    }
}

impl From<KeyEncryptionError> for ApiError {
    fn from(error: KeyEncryptionError) -> Self {
        match error {
            KeyEncryptionError::Unavailable(_) => Self::Unavailable(Dependency::KeyEncryption, error.into()),
            KeyEncryptionError::Rejected(_) => Self::Internal(error.into()),
        }
    }
}

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> Self {
        Self::Unavailable(Dependency::Queue, error.into())
    }
}

impl From<&ProcessError> for ConflictCode {
    /// Converts any error but [`ProcessError::Invalid`], which isn't a conflict.
    fn from(error: &ProcessError) -> Self {
        match error {
            ProcessError::Invalid(_) | ProcessError::InactiveUser(_) => Self::Conflict,
            ProcessError::Inactive => Self::ProcessInactive,
            ProcessError::Running(..) => Self::ProcessRunning,
            ProcessError::WrongStatus { .. } => Self::WrongAssetStatus,
            ProcessError::Closed(_) => Self::InstanceClosed,
            ProcessError::Moved(_) => Self::StepMoved,
            ProcessError::Submitted(_) => Self::StepSubmitted,
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
    /// Converts the error of a write that isn't retried.
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stale | WriteError::MissingReference(_) => Self::conflict(
                ConflictCode::Conflict,
                "Other requests changed the resource at the same time. Read it again and retry.",
                Value::Null,
            ),
            WriteError::Duplicate(field, owner) => {
                let mut context = Map::from_iter([("field".to_owned(), serde_json::json!(field))]);
                context.extend(owner.map(|(kind, id)| (format!("{}_id", kind.as_str()), serde_json::json!(id))));
                let detail = format!("Another resource already has this {field}.");
                Self::Conflict(Conflict { code: ConflictCode::Duplicate, detail, context })
            }
            WriteError::InUse(count) => Self::conflict(
                ConflictCode::InUse,
                format!("{count} other {} to it.", if count == 1 { "resource refers" } else { "resources refer" }),
                serde_json::json!({ "count": count }),
            ),
            WriteError::TooLarge => Self::conflict(
                ConflictCode::Conflict,
                "The change exceeds what one transaction can hold. Change fewer resources at once.",
                Value::Null,
            ),
            // The middleware looks for the stored response before it sends this error.
            WriteError::AlreadyAnswered | WriteError::InProgress => Self::conflict(
                ConflictCode::RequestInProgress,
                "The same request is in progress. Send it again in a moment to get its response.",
                Value::Null,
            ),
            WriteError::ResponseTooLong => Self::idempotency_key("must not be sent: the response would be too long to store"),
            WriteError::PreconditionFailed(mismatch) => Self::PreconditionFailed(mismatch),
            WriteError::Store(error) => error.into(),
        }
    }
}

impl From<ApiError> for CommitFailure<ApiError> {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for CommitFailure<ApiError> {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl ApiError {
    /// Returns a response that carries the error. The middleware, which knows the request ID, renders it.
    pub(super) fn response(error: Arc<Self>) -> Response {
        let (status, ..) = error.status_code_title();
        let mut response = status.into_response();
        response.extensions_mut().insert(error);
        response
    }

    /// Renders the problem document (RFC 9457).
    pub(super) fn render(&self, request_id: &str) -> Response {
        let (status, ..) = self.status_code_title();
        let body = serde_json::to_vec(&self.problem(request_id)).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(self, Self::Unauthorized | Self::BadLink(_)) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self, Self::UnsupportedContentCoding) {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        headers.extend(self.retry_after().map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds))));
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        Self::response(Arc::new(self))
    }
}

impl ApiError {
    /// Adds who changed a record since the client read it. Without the name if the history can't be read.
    pub(crate) async fn with_actor(self, store: &Reader) -> Self {
        match self {
            Self::InOperations(first, mut errors) => {
                let anonymous = first.detail();
                let first = Box::pin(first.with_actor(store)).await;
                errors
                    .iter_mut()
                    .filter(|error| error.reason.text == anonymous)
                    .for_each(|error| error.reason.text = first.detail());
                Self::InOperations(Box::new(first), errors)
            }
            Self::PreconditionFailed(Mismatch::Changed(since)) => {
                let actor = store.actor_of_update(since.kind, since.id, since.at).await.ok().flatten();
                let by = actor.map(|actor| actor.user_name.unwrap_or(actor.key_name));
                Self::PreconditionFailed(Mismatch::Changed(ChangedSince { by, ..since }))
            }
            error => error,
        }
    }
}
