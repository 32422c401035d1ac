//! A handler's arguments: path parameters, query parameters and bodies. The first argument of a handler is the sender, so that
//! unauthenticated requests stay cheap. The query follows, then the path: errors are reported in this order. The handler parses
//! the body itself, and adds its own errors. A request is received once for all extractors: its body up to a limit, its path
//! parameters and its query. Text must be UTF-8, as far as API Gateway lets a function check that.

use super::body::FromBody;
use super::params::{FromQuery, Params, decode};
use crate::domain::keys::api_key::{BearerToken, Credential};
use crate::domain::values::field_error::{ErrorCode, FieldError, ValueError};
use crate::domain::values::id::{
    ApiKeyId, AssetId, AssetTypeId, EventId, InstanceId, LinkId, ManufacturerId, ModelId, MovementId, ProcessId, UserId,
    WebhookId,
};
use crate::domain::values::text::Line;
use crate::http::dry_run;
use crate::http::error::ApiError;
use crate::http::openapi::{Describe, Schemas, add_body, add_parameter, add_schema, schema_or_reference};
use crate::store::DryRun;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required};

pub type JsonBody<B> = Unread<InBody<B>>;
pub type OptionalJsonBody<B> = Unread<InOptionalBody<B>>;

pub struct InBody<B>(PhantomData<B>);
pub struct InOptionalBody<B>(PhantomData<B>);

/// The query parameters.
pub struct Query<Q>(pub Q);

impl<Q: FromQuery, S: Sync> FromRequestParts<S> for Query<Q> {
    type Rejection = ApiError;

    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and [`ApiError::Invalid`] with all invalid parameters.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Q::from_params(received(parts)?.params()?).map(Self)
    }
}

impl<B: FromBody> JsonBody<B> {
    /// Parses the body, for a verified sender.
    ///
    /// # Errors
    ///
    /// Same as [`JsonBody::parse_with_errors`], and [`ApiError::Invalid`] with all invalid fields.
    pub fn parse(&self, _: &impl VerifiedSender) -> Result<B, ApiError> {
        without_errors(read(&self.received)?)
    }

    /// Returns the body without its invalid fields, and their errors: for an endpoint that finds more errors and reports all of
    /// them together.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::TooLarge`], [`ApiError::UnsupportedMediaType`], [`ApiError::UnsupportedContentCoding`],
    /// [`ApiError::Malformed`] for a body that is missing, incomplete or not JSON, and [`ApiError::Invalid`] if a required field
    /// is missing or invalid.
    pub fn parse_with_errors(&self, _: &impl VerifiedSender) -> Result<(B, Vec<FieldError>), ApiError> {
        read(&self.received)
    }

    /// [`JsonBody::parse_with_errors`] for a body whose type depends on the resource.
    ///
    /// # Errors
    ///
    /// Same as [`JsonBody::parse_with_errors`].
    pub fn parse_as<C: FromBody>(&self, _: &impl VerifiedSender) -> Result<(C, Vec<FieldError>), ApiError> {
        read(&self.received)
    }
}

impl<B: FromBody> OptionalJsonBody<B> {
    /// Parses the body, for a verified sender. `None` without a body.
    ///
    /// # Errors
    ///
    /// Same as [`JsonBody::parse`].
    pub fn parse(&self, _: &impl VerifiedSender) -> Result<Option<B>, ApiError> {
        match &self.received.body {
            ReceivedBody::Whole(bytes) if bytes.is_empty() => Ok(None),
            _ => without_errors(read(&self.received)?).map(Some),
        }
    }
}

fn read<B: FromBody>(received: &ReceivedRequest) -> Result<(B, Vec<FieldError>), ApiError> {
    let (bytes, media_type) = received.whole_body("A body is required: a JSON object.")?;
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::UnsupportedMediaType("application/json"));
    }
    // Some editors and shells start every file with a byte order mark.
    match B::read(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))? {
        (Some(body), errors) => Ok((body, errors)),
        (None, errors) => Err(ApiError::Invalid(errors)),
    }
}

fn without_errors<B>((body, errors): (B, Vec<FieldError>)) -> Result<B, ApiError> {
    if errors.is_empty() { Ok(body) } else { Err(ApiError::Invalid(errors)) }
}

impl<Q: FromQuery> Describe for Query<Q> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Q::describe(schemas).into_iter().for_each(|parameter| add_parameter(operation, parameter));
    }
}

impl<B: ToSchema> Describe for JsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_body::<B>(operation, schemas, Required::True);
    }
}

impl<B: ToSchema> Describe for OptionalJsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_body::<B>(operation, schemas, Required::False);
    }
}

pub trait PathParameter {
    /// The name in the route.
    const NAME: &'static str;
    /// For the OpenAPI document.
    const DESCRIPTION: &'static str;
    type Value: ToSchema;

    /// `text` is decoded.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] for a malformed ID, and [`ApiError::Invalid`] for any other invalid value.
    fn read(text: &str) -> Result<Self::Value, ApiError>;
}

/// A path parameter: usually the ID of a resource. A delivery has the ID of its event.
pub struct Path<P: PathParameter>(pub P::Value);

/// Any text, even if no step has this key.
pub struct StepKey;
pub struct SerialNumber;
/// Any text, even if no asset has this tag. Scanners add white space around it.
pub struct Tag;

macro_rules! path_ids {
    ($($id:ty: $name:literal, $description:literal;)*) => {$(
        impl PathParameter for $id {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = $description;
            type Value = Self;

            fn read(text: &str) -> Result<Self, ApiError> {
                text.parse().map_err(|_| ApiError::NotFound)
            }
        }
    )*};
}

path_ids! {
    ApiKeyId: "id", "API key ID";
    AssetId: "id", "Asset ID";
    AssetTypeId: "id", "Asset type ID";
    EventId: "delivery_id", "Delivery ID";
    InstanceId: "id", "Instance ID";
    LinkId: "link_id", "Link ID";
    ManufacturerId: "id", "Manufacturer ID";
    ModelId: "id", "Model ID";
    MovementId: "id", "Movement ID";
    ProcessId: "id", "Process ID";
    UserId: "id", "User ID";
    WebhookId: "id", "Webhook ID";
}

impl PathParameter for StepKey {
    const NAME: &'static str = "key";
    const DESCRIPTION: &'static str = "Step key";
    type Value = String;

    fn read(text: &str) -> Result<String, ApiError> {
        Ok(text.to_owned())
    }
}

impl PathParameter for Tag {
    const NAME: &'static str = "tag";
    const DESCRIPTION: &'static str = "Asset tag";
    type Value = String;

    fn read(text: &str) -> Result<String, ApiError> {
        Ok(text.trim().to_owned())
    }
}

impl PathParameter for SerialNumber {
    const NAME: &'static str = "serial";
    const DESCRIPTION: &'static str = "Serial number";
    type Value = Line;

    fn read(text: &str) -> Result<Line, ApiError> {
        let invalid = |reason: ValueError| ApiError::Invalid(vec![FieldError::parameter(Self::NAME, reason)]);
        let serial: Line = text.parse().map_err(invalid)?;
        if serial.is_empty() { Err(invalid(ValueError::coded(ErrorCode::Required, "must not be empty"))) } else { Ok(serial) }
    }
}

impl<P: PathParameter, S: Sync> FromRequestParts<S> for Path<P> {
    type Rejection = ApiError;

    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and otherwise as [`PathParameter::read`].
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        P::read(received(parts)?.path_parameter(P::NAME)?).map(Self)
    }
}

impl<P: PathParameter> Describe for Path<P> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_schema::<P::Value>(schemas);
        let parameter = ParameterBuilder::new().name(P::NAME).parameter_in(ParameterIn::Path).required(Required::True);
        let parameter = parameter.schema(Some(schema_or_reference::<P::Value>())).description(Some(P::DESCRIPTION));
        // Insert it before the query parameters.
        let parameters = operation.parameters.get_or_insert_default();
        let in_path = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(it) if it.parameter_in == ParameterIn::Path);
        let index = parameters.iter().filter(|parameter| in_path(parameter)).count();
        parameters.insert(index, RefOr::T(parameter.build()));
    }
}

/// 1 MiB.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;
/// A larger body is read up to this size and dropped, so that the client gets a 413 instead of a broken connection. API Gateway's
/// maximum.
const MAX_BYTES_READ: usize = 10 * 1024 * 1024;

pub(crate) enum ReceivedBody {
    Whole(Bytes),
    /// More than [`MAX_BODY_BYTES`].
    TooLarge,
    /// The connection ended before the body did.
    Incomplete,
    /// The request has no credential, so every attempt to read the body fails.
    Unread,
}

/// A request before its arguments are parsed.
pub(crate) struct ReceivedRequest {
    /// Path parameters by their name in the route; `None` for bad percent-encoding.
    pub(crate) path: Option<Vec<(String, String)>>,
    /// The text after `?`.
    query: String,
    is_query_read: AtomicBool,
    /// Whether the method is for writes.
    is_write: bool,
    pub(crate) content_type: Option<String>,
    /// The body is compressed or has another content coding.
    pub(crate) is_encoded: bool,
    pub(crate) body: ReceivedBody,
}

impl ReceivedRequest {
    /// For a handler with query parameters, which reports unknown ones. The `dry_run` of a write is already taken.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding.
    pub(crate) fn params(&self) -> Result<Params, ApiError> {
        self.is_query_read.store(true, Ordering::Relaxed);
        Ok(self.read_params()?.0)
    }

    /// For a handler that might have no query parameters.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and [`ApiError::Invalid`] for parameters that no handler has
    /// read.
    pub(crate) fn refuse_unread_query(&self) -> Result<(), ApiError> {
        if self.is_query_read.load(Ordering::Relaxed) { Ok(()) } else { self.read_params()?.0.finish() }
    }

    /// `None` for a real request. Invalid parameters are reported later, together.
    pub(crate) fn dry_run(&self) -> Option<DryRun> {
        self.read_params().is_ok_and(|(_, is_dry_run)| is_dry_run).then(DryRun::default)
    }

    fn read_params(&self) -> Result<(Params, bool), ApiError> {
        let mut params = Params::parse(&self.query)?;
        let is_dry_run = self.is_write && params.take::<bool>(dry_run::PARAMETER) == Some(true);
        Ok((params, is_dry_run))
    }

    /// `name` is the parameter's name in the route.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and [`ApiError::NotFound`] if the route has no parameter `name`.
    pub(crate) fn path_parameter(&self, name: &str) -> Result<&str, ApiError> {
        let params = self.path.as_ref().ok_or_else(|| ApiError::Malformed("The URL has bad percent-encoding.".into()))?;
        let found = params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or(ApiError::NotFound)
    }

    /// The body and its media type, without parameters such as `charset`.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`] for a request without a credential, [`ApiError::TooLarge`], [`ApiError::Malformed`] for
    /// an incomplete body or, with the detail `missing`, no body, and [`ApiError::UnsupportedContentCoding`].
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

#[cfg(test)]
impl ReceivedRequest {
    /// A GET without anything else.
    pub(in crate::http) fn with_query(query: &str) -> Self {
        Self {
            path: Some(Vec::new()),
            query: query.to_owned(),
            is_query_read: AtomicBool::new(false),
            is_write: false,
            content_type: None,
            is_encoded: false,
            body: ReceivedBody::Unread,
        }
    }
}

/// Stores a [`ReceivedRequest`] in the request's extensions, for the extractors.
pub(in crate::http) async fn receive(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = params.ok().filter(|_| decode(parts.uri.path()).is_ok());
    let body = if has_credential(&parts.headers) { receive_body(body).await } else { ReceivedBody::Unread };
    let received = ReceivedRequest {
        path: path.map(|params| params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        is_query_read: AtomicBool::new(false),
        is_write: !parts.method.is_safe(),
        content_type: parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned),
        is_encoded: list_header(&parts.headers, &header::CONTENT_ENCODING).is_some_and(|codings| !is_identity(&codings)),
        body,
    };
    parts.extensions.insert(Arc::new(received));
    next.run(Request::from_parts(parts, Body::empty())).await
}

/// For headers whose value is a list, which can be spread over several lines (RFC 9110 §5.3).
pub(crate) fn list_header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(HeaderValue::to_str).collect::<Result<_, _>>().ok()?;
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Removes parameters such as `charset`.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// The credential in the only `Authorization: Bearer …` header (RFC 6750 §2.1; the scheme is case-insensitive), if well-formed.
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

/// `codings` is a list of content codings.
fn is_identity(codings: &str) -> bool {
    codings.split(',').map(str::trim).all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"))
}

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

/// The error if [`utf8`] or [`utf8_json`] returns `None`.
pub const NOT_UTF8: &str = "is not UTF-8, or contains U+FFFD, the replacement character";

/// Decodes part of a body. `None` if it isn't UTF-8 or contains U+FFFD: API Gateway passes bodies as strings, with U+FFFD in
/// place of each byte that it couldn't decode.
pub fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains(char::REPLACEMENT_CHARACTER))
}

/// Like [`utf8`], for JSON. Also rejects an escaped U+FFFD, from a client that decoded the text earlier.
pub fn utf8_json(bytes: &[u8]) -> Option<&str> {
    utf8(bytes).filter(|text| !has_escaped_replacement(text))
}

fn has_escaped_replacement(json: &str) -> bool {
    let mut rest = json.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        // The escape, without its backslash.
        let (_, escape) = rest.split_at(at + 1);
        if escape.get(..5).is_some_and(|escape| escape.eq_ignore_ascii_case(b"ufffd")) {
            return true;
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    false
}

/// An unparsed request body. `T` is its kind, which determines the parser.
pub struct Unread<T> {
    pub(in crate::http) received: Arc<ReceivedRequest>,
    part: PhantomData<fn() -> T>,
}

/// A sender with a verified credential: for this request or, while that check is in progress, recently.
pub trait VerifiedSender {}

pub(crate) fn received(parts: &Parts) -> Result<Arc<ReceivedRequest>, ApiError> {
    let received = parts.extensions.get::<Arc<ReceivedRequest>>().cloned();
    received.ok_or_else(|| ApiError::Internal("a route outside of http::service".into()))
}

impl<S: Sync, T> FromRequestParts<S> for Unread<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self { received: received(parts)?, part: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_replaced_are_not_utf8() {
        assert_eq!(utf8("Größe".as_bytes()), Some("Größe"));
        assert_eq!([&b"Gr\xf6\xdfe"[..], "Gr\u{fffd}\u{fffd}e".as_bytes()].map(utf8), [None, None]);
        for json in [r#""\ufffd""#, r#""a\\\uFFFD""#, r#""\u00e9\uFffD"#] {
            assert_eq!(utf8_json(json.as_bytes()), None, "{json}");
        }
        for json in [r#""\\ufffd""#, r#""\ufffe \u00e9""#, r"\", r"\ufff", "ufffd"] {
            assert_eq!(utf8_json(json.as_bytes()), Some(json));
        }
    }
}
