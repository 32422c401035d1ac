//! The parts of the OpenAPI document that several operations share: the security schemes and the error responses.

pub mod describe;
pub(super) mod headers;

use crate::http::error::ConflictCode;
use crate::http::error::problem::Problem;
use std::collections::BTreeMap;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

/// An API key as a bearer token.
pub const API_KEY: &str = "api_key";

/// The secret of a signing link as a bearer token.
pub const SIGNING_LINK: &str = "signing_link";

#[must_use]
pub fn schemes() -> [(&'static str, SecurityScheme); 2] {
    let key = "An API key of the tenant, `apl_…`. Each operation names the scope that the key needs.";
    let link = "The secret of a signing link, `sgn_…`: the fragment of the link's address.";
    let bearer = |description: &'static str| {
        SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build())
    };
    [(API_KEY, bearer(key)), (SIGNING_LINK, bearer(link))]
}

/// The codes of 409s with their meanings, as a list. The document has it once; the responses name their codes only.
#[must_use]
pub fn conflicts() -> String {
    ConflictCode::ALL.map(|code| format!("- `{}`: {}", code.as_str(), code.meaning())).join("\n")
}

/// The document has the response once, under this name.
pub(super) fn named(name: &str, response: ResponseBuilder) -> RefOr<Response> {
    RefOr::T(response.extensions(Some(ExtensionsBuilder::new().add(RESPONSE_NAME, name).build())).build())
}

fn name_of(response: &RefOr<Response>) -> Option<&str> {
    let RefOr::T(response) = response else { return None };
    response.extensions.as_ref()?.get(RESPONSE_NAME)?.as_str()
}

fn problem(status: &str, name: &str, description: &str) -> RefOr<Response> {
    let headers: &[&str] = match status {
        ANY_STATUS => &[
            "Retry-After",
            "WWW-Authenticate",
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
            "X-Request-Id",
        ],
        // When a request with the same idempotency key is still in progress.
        "409" if description.contains(ConflictCode::RequestInProgress.as_str()) => &["Retry-After"],
        _ => &[],
    };
    let content = Content::new(Some(RefOr::Ref(utoipa::openapi::Ref::from_schema_name(Problem::name()))));
    let response = ResponseBuilder::new().description(description).content("application/problem+json", content);
    named(name, describe::headers(headers).fold(response, |response, (name, header)| response.header_ref(name, header)))
}

/// The schemas of problem documents, which the error responses refer to.
#[must_use]
pub fn schemas() -> Vec<(String, RefOr<utoipa::openapi::schema::Schema>)> {
    let mut schemas = vec![(Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut schemas);
    schemas
}

/// The extension of a response with its name among the document's components. The document doesn't show the extension.
pub const RESPONSE_NAME: &str = "x-name";

/// The status that stands for all errors without one of their own.
pub(super) const ANY_STATUS: &str = "default";
/// The name of the response to an `If-Match` that names another version.
const CHANGED: &str = "PreconditionFailed";
/// The name of the response to an `If-None-Match` that names the present version.
const NOT_MODIFIED: &str = "NotModified";

/// Error responses that several operations share: status, name and description.
type Part = &'static [(&'static str, &'static str, &'static str)];

/// Errors of every operation. The other errors depend on the operation, and are listed by status.
const ANY: Part = &[(
    ANY_STATUS,
    "Error",
    "Any other error:\n\
     - 400 `MALFORMED_REQUEST`: the URL has bad percent-encoding, or the body is missing or not JSON.\n\
     - 401 `UNAUTHORIZED`: the API key or signing link is missing or invalid. Of a link that is over, `link_status` says why: \
     `used`, `revoked`, `expired` or `ended`.\n\
     - 403 `FORBIDDEN`: the API key lacks the scope, or can't grant what it doesn't have.\n\
     - 412 `PRECONDITION_FAILED`: `If-Match` names another version of the resource, or the resource has none.\n\
     - 413 `PAYLOAD_TOO_LARGE`: the body exceeds 1 MiB.\n\
     - 415 `UNSUPPORTED_MEDIA_TYPE`: the body has another media type.\n\
     - 429 `RATE_LIMITED`: the API key, the signing link or the organization has used up its requests for this minute.\n\
     - 500 `INTERNAL_ERROR`: an error of the service. Its log has the cause.\n\
     - 503 `UNAVAILABLE`: temporarily unavailable. Send the request again.",
)];
const INPUT: Part = &[("422", "Invalid", "`VALIDATION_ERROR`: invalid fields or parameters. The response lists all of them.")];
const OPERATIONS: Part = &[(
    "422",
    "InvalidOperations",
    "- `VALIDATION_ERROR`: invalid fields or parameters. The response lists all of them.\n\
     - `SCHEMA_BUDGET_SPENT`: all custom fields together cost too much to validate.",
)];
const ROWS: Part = &[("422", "InvalidRows", "`VALIDATION_ERROR`: unknown columns, more than 200 rows, or invalid parameters.")];
const RESOURCE: Part = &[("404", "NotFound", "`NOT_FOUND`: the tenant has no such resource.")];
const VERSION: Part = &[("412", CHANGED, "`PRECONDITION_FAILED`: the resource has another version than `If-Match` names.")];
const VERSIONS: Part = &[(
    "412",
    "OperationPreconditionFailed",
    "`PRECONDITION_FAILED`: a record has another version than the `if_match` of its operation names.",
)];

fn responses(parts: &[Part]) -> BTreeMap<String, RefOr<Response>> {
    let responses = parts.iter().copied().flatten();
    responses.map(|(status, name, text)| ((*status).to_owned(), problem(status, name, text))).collect()
}

macro_rules! error_responses {
    ($($(#[$doc:meta])* $name:ident: $($part:ident)+;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                responses(&[$($part),+])
            }
        }
    )*};
}

error_responses! {
    /// Errors of an operation that takes nothing.
    OpenErrors: ANY;
    /// Errors of a list, or of a creation but for its conflicts.
    InputErrors: INPUT ANY;
    /// Errors of a read of one resource, or of an action on one that has no version, but for its conflicts.
    ResourceErrors: INPUT RESOURCE ANY;
    /// Errors of a change of the settings, but for its conflicts.
    SettingsErrors: INPUT VERSION ANY;
    /// Errors of a change or deletion of one resource, but for its conflicts.
    ChangeErrors: INPUT RESOURCE VERSION ANY;
    /// Errors of a batch of users, but for its conflicts.
    UserBatchErrors: INPUT RESOURCE VERSIONS ANY;
    /// Errors of a batch of assets, but for its conflicts.
    AssetBatchErrors: OPERATIONS RESOURCE VERSIONS ANY;
    /// Errors of an import, but for its conflicts.
    ImportErrors: ROWS ANY;
}

macro_rules! conflicts {
    ($($(#[$doc:meta])* $name:ident: $($code:ident)+;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let codes = [$(ConflictCode::$code),+].map(|code| format!("`{}`", code.as_str()));
                let text = format!("Conflict: {}", codes.join(", "));
                BTreeMap::from([("409".to_owned(), problem("409", stringify!($name), &text))])
            }
        }
    )*};
}

conflicts! {
    /// 409 of a request with an idempotency key that nothing else can be in the way of.
    RequestConflict: Conflict RequestInProgress;
    /// 409 of a creation with a value that must be unique.
    DuplicateConflict: Conflict Duplicate RequestInProgress;
    /// 409 of a change with a value that must be unique.
    UniqueConflict: Conflict Duplicate;
    /// 409 of a change of a model.
    ModelConflict: Conflict Duplicate InUse;
    /// 409 of a change of a process definition, or of the cancellation of an instance by its ID.
    DefinitionConflict: Conflict Duplicate InstanceClosed;
    /// 409 of a change.
    ChangeConflict: Conflict;
    /// 409 of a deletion of what others can refer to.
    InUseConflict: Conflict InUse;
    /// 409 of a change of an asset.
    AssetConflict: Conflict ProcessRunning TransitionNotAllowed;
    /// 409 of a creation or change of the asset with a serial number.
    SerialNumberConflict: Conflict Duplicate ProcessRunning TransitionNotAllowed;
    /// 409 of a deletion of an asset.
    AssetDeletionConflict: Conflict ProcessRunning;
    /// 409 of a batch of assets.
    AssetBatchConflict: Conflict Duplicate ProcessRunning TransitionNotAllowed RequestInProgress;
    /// 409 of a batch of users.
    UserBatchConflict: Conflict Duplicate InUse RequestInProgress;
    /// 409 of a start of a process.
    StartConflict: Conflict ProcessRunning WrongAssetStatus ProcessInactive RequestInProgress;
    /// 409 of a submission of steps.
    SubmissionConflict: Conflict InstanceClosed StepMoved StepSubmitted RequestInProgress;
    /// 409 of a cancellation.
    CancellationConflict: Conflict InstanceClosed RequestInProgress;
    /// 409 of an offboarding.
    OffboardingConflict: Conflict ProcessInactive RequestInProgress;
    /// 409 of the erasure of a person.
    ErasureConflict: Conflict InUse RequestInProgress;
    /// 409 of an import.
    ImportConflict: RequestInProgress;
}

pub struct ReceiptConflict;

impl IntoResponses for ReceiptConflict {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let text = "`CONFLICT` if the instance is not completed, which `instance_status` says, or if its history is damaged.";
        BTreeMap::from([("409".to_owned(), problem("409", "ReceiptConflict", text))])
    }
}
