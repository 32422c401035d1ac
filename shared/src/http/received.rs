//! A request as it was received, once for all extractors: the body up to a limit, path parameters and query.

use super::check::{Checked, respond};
use super::openapi::QueryParameters;
use super::requests::params::{Params, decode};
use super::responses::ApiError;
use super::routes::DRY_RUN_PARAMETER;
use crate::domain::keys::api_key::{BearerToken, Credential};
use crate::domain::values::field_error::{ErrorLocation, FieldError};
use crate::domain::values::id::{ApiKeyId, LinkId};
use crate::store::DryRun;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::future::{BoxFuture, Shared};
use http_body_util::BodyExt;
use std::sync::{Arc, OnceLock};
use tokio::task::AbortHandle;

pub(crate) enum ReceivedBody {
    Whole(Bytes),
    /// The body is larger than [`MAX_BODY_BYTES`].
    TooLarge,
    /// The connection ended before the body did.
    Incomplete,
    /// The body was not read, because the request has no credential. Every attempt to use it fails.
    Unread,
}

/// A request before its arguments are parsed.
pub(crate) struct ReceivedRequest {
    /// Path parameters by their name in the route; `None` for bad percent-encoding.
    pub(crate) path: Option<Vec<(String, String)>>,
    /// The text after `?`.
    pub(super) query: String,
    /// Returns the names of the query parameters that the handler reads; `None` for a handler without a query.
    pub(super) parameters: Option<QueryParameters>,
    pub(super) method: Method,
    pub(super) check: OnceLock<(AbortHandle, Shared<BoxFuture<'static, Checked<()>>>)>,
    pub(crate) content_type: Option<String>,
    /// The body is compressed or has another content coding.
    pub(crate) is_encoded: bool,
    pub(crate) body: ReceivedBody,
}

impl ReceivedRequest {
    /// Returns the query parameters, for a handler that reads them and reports unknown ones. Omits the `dry_run` of a write,
    /// which is already parsed.
    pub(crate) fn params(&self) -> Result<Params, ApiError> {
        Ok(self.read_params()?.0)
    }

    /// Rejects the query of a handler that reads none, and the body of a method without one.
    pub(crate) fn refuse_unread(&self) -> Result<(), ApiError> {
        if self.parameters.is_none() {
            self.read_params()?.0.finish()?;
        }
        self.refuse_body()
    }

    /// Rejects the body of a GET, HEAD or DELETE, whatever its content type. A client that sends one expects an effect, such as a
    /// dry run.
    pub(super) fn refuse_body(&self) -> Result<(), ApiError> {
        let is_empty = match &self.body {
            _ if !has_no_body(&self.method) => true,
            ReceivedBody::Whole(bytes) => is_empty_object(bytes),
            ReceivedBody::TooLarge | ReceivedBody::Incomplete => false,
            ReceivedBody::Unread => true,
        };
        if is_empty {
            return Ok(());
        }
        let known = match self.parameters {
            Some(parameters) => parameters().join(", "),
            None if self.is_write() => DRY_RUN_PARAMETER.to_owned(),
            None => String::new(),
        };
        let parameters = if known.is_empty() { known } else { format!("; parameters go in the query: {known}") };
        let reason = format!("must be empty: a {} has no body{parameters}", self.method).into();
        Err(ApiError::Invalid(vec![FieldError { location: ErrorLocation::Pointer(String::new()), reason }]))
    }

    fn is_write(&self) -> bool {
        !self.method.is_safe()
    }

    /// Returns a new dry run if the request is one. Invalid parameters are reported later, all together.
    pub(crate) fn dry_run(&self) -> Option<DryRun> {
        self.read_params().is_ok_and(|(_, is_dry_run)| is_dry_run).then(DryRun::default)
    }

    fn read_params(&self) -> Result<(Params, bool), ApiError> {
        let mut params = Params::parse(&self.query)?;
        let is_dry_run = self.is_write() && params.take::<bool>(DRY_RUN_PARAMETER) == Some(true);
        Ok((params, is_dry_run))
    }

    /// Returns a path parameter by its name in the route.
    pub(crate) fn path_parameter(&self, name: &str) -> Result<&str, ApiError> {
        let params = self.path.as_ref().ok_or_else(|| ApiError::Malformed("The URL has bad percent-encoding.".into()))?;
        let found = params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or(ApiError::NotFound)
    }

    /// Returns the body and its media type, without parameters such as `charset`. `missing` is the error's detail if there is no
    /// body.
    pub(in crate::http) fn whole_body(&self, missing: &str) -> Result<(&[u8], &str), ApiError> {
        let bytes = match &self.body {
            ReceivedBody::Whole(bytes) => bytes,
            ReceivedBody::TooLarge => return Err(ApiError::TooLarge),
            ReceivedBody::Incomplete => return Err(ApiError::Malformed("The body ended early.".into())),
            ReceivedBody::Unread => return Err(ApiError::Unauthorized),
        };
        if bytes.is_empty() {
            return Err(ApiError::Malformed(missing.into()));
        }
        if self.is_encoded {
            return Err(ApiError::UnsupportedContentCoding);
        }
        let content_type = self.content_type.as_deref().unwrap_or_default();
        Ok((bytes, media_type(content_type)))
    }
}

/// Stores a [`ReceivedRequest`] in the request's extensions, for the extractors, and runs the handler. Sends the handler's
/// response, or its panic, once the check of the request's credential has passed, and otherwise the error from the check.
pub(super) async fn receive(State(parameters): State<Option<QueryParameters>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = params.ok().filter(|_| decode(parts.uri.path()).is_ok());
    let is_read = has_credential(&parts.headers) || has_no_body(&parts.method);
    let body = if is_read { receive_body(body).await } else { ReceivedBody::Unread };
    let received = Arc::new(ReceivedRequest {
        path: path.map(|params| params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        parameters,
        method: parts.method.clone(),
        check: OnceLock::new(),
        content_type: parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned),
        is_encoded: list_header(&parts.headers, &header::CONTENT_ENCODING).is_some_and(|codings| !is_identity(&codings)),
        body,
    });
    parts.extensions.insert(Arc::clone(&received));
    respond(next.run(Request::from_parts(parts, Body::empty())), &received).await
}

/// Joins the lines of a header whose value is a list (RFC 9110 §5.3).
pub(crate) fn list_header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(HeaderValue::to_str).collect::<Result<_, _>>().ok()?;
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Removes parameters such as `charset` from a content type.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Returns the credential in the only `Authorization: Bearer …` header (RFC 6750 §2.1; the scheme is case-insensitive), if
/// well-formed.
pub(crate) fn bearer_token<C: Credential>(headers: &HeaderMap) -> Option<BearerToken<C>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (scheme, token) = values.next()?.to_str().ok()?.split_once(' ')?;
    let is_only = values.next().is_none() && scheme.eq_ignore_ascii_case("bearer");
    BearerToken::parse(token.trim()).filter(|_| is_only)
}

/// Whether there is a credential of any kind, valid or not.
fn has_credential(headers: &HeaderMap) -> bool {
    bearer_token::<ApiKeyId>(headers).is_some() || bearer_token::<LinkId>(headers).is_some()
}

/// Whether requests with this method have no body.
pub(super) fn has_no_body(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::DELETE)
}

/// Whether a body has only white space, or an object without members.
fn is_empty_object(body: &[u8]) -> bool {
    match body.trim_ascii() {
        [] => true,
        [b'{', inside @ .., b'}'] => inside.trim_ascii().is_empty(),
        _ => false,
    }
}

/// Whether a list of content codings leaves the body unencoded.
fn is_identity(codings: &str) -> bool {
    codings.split(',').map(str::trim).all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"))
}

/// A larger request body gets a 413.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// A body larger than [`MAX_BODY_BYTES`] is read up to this size and dropped, so that the client gets the 413 instead of a broken
/// connection. API Gateway accepts no larger bodies.
const MAX_BYTES_READ: usize = 10 * 1024 * 1024;

async fn receive_body(mut body: Body) -> ReceivedBody {
    let mut bytes = Vec::new();
    let mut received = 0usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return ReceivedBody::Incomplete };
        let Some(data) = frame.data_ref() else { continue };
        received = received.saturating_add(data.len());
        if received > MAX_BYTES_READ {
            return ReceivedBody::TooLarge;
        }
        if received <= MAX_BODY_BYTES {
            bytes.extend_from_slice(data);
        } else {
            bytes = Vec::new();
        }
    }
    if received > MAX_BODY_BYTES { ReceivedBody::TooLarge } else { ReceivedBody::Whole(bytes.into()) }
}

pub(crate) fn received(parts: &Parts) -> Result<Arc<ReceivedRequest>, ApiError> {
    let received = parts.extensions.get::<Arc<ReceivedRequest>>().cloned();
    received.ok_or_else(|| ApiError::Internal("a route outside http::service".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_an_empty_object_count_as_an_empty_body() {
        for body in ["", " \r\n", "{}", " { \n} "] {
            assert!(is_empty_object(body.as_bytes()), "{body:?}");
        }
        for body in ["x", "[]", "{", "}", "null", "{\"dry_run\":true}", "{}{}", "\u{a0}"] {
            assert!(!is_empty_object(body.as_bytes()), "{body:?}");
        }
    }
}
