//! The responses of handlers, with their descriptions for the OpenAPI document, and errors, with their problem documents
//! (RFC 9457).

pub mod html;

use crate::domain::assets::asset::{MAX_CELL_CHARS, MAX_LISTED_FIELDS};
use crate::domain::history::chain::Verification;
use crate::domain::keys::api_key::Scope;
use crate::domain::keys::grant::GrantError;
use crate::domain::processes::instance::{ImageName, ProcessError};
use crate::domain::record::{ChangedSince, Mismatch, Record, RecordVersion, StoredResponse, entity_tag};
use crate::domain::signing::LinkStatus;
use crate::domain::values::field_error::{ErrorCode, ErrorLocation, FieldError, ValueError};
use crate::domain::values::id::{AssetId, Id, InstanceId};
use crate::domain::values::json;
use crate::event_view::EventView;
use crate::http::openapi::{Describe, Schemas, add_headers, add_named, add_response, envelope, reference, response_schema};
use crate::http::requests::params::{self, Limit, PageNumber};
use crate::key_encryption::KeyEncryptionError;
use crate::queue::QueueError;
use crate::store::{
    CommitFailure, HistoryPage, KeyError, MAX_BODY_BEFORE_OMISSION, Page, PageRequest, Reader, StoreError, UnreadableRecord,
    WriteError,
};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Number, Value, json};
use std::marker::PhantomData;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{Array, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use uuid::Uuid;

macro_rules! into_response {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> IntoResponse for $type {
            fn into_response(self) -> Response {
                self.to_response().into_response()
            }
        }
    )*};
}

const JSON: &str = "application/json";

/// 201 with a new resource, its path in `Location` and its `ETag`.
#[derive(Debug)]
pub struct Created<T> {
    location: String,
    version: Option<RecordVersion>,
    data: T,
}

/// [`Created`] without an `ETag`, because the body contains a secret.
#[derive(Debug)]
pub struct CreatedSecret<T>(Created<T>);

/// 200 with a resource and its `ETag`.
#[derive(Debug)]
pub struct Versioned<T> {
    pub version: RecordVersion,
    pub data: T,
}

/// 200 with a user and the `ETag` and, for a deactivation, what it affects.
#[derive(Debug)]
pub struct ChangedUser<T> {
    pub user: Versioned<T>,
    pub meta: Option<Deactivation>,
}

/// What the deactivation of a user affects.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Deactivation {
    /// IDs of process instances in progress that have picked the user. They can't be advanced while the user is inactive. Searched
    /// among the newest 1,000 instances in progress.
    pub picked_in: Vec<InstanceId>,
}

/// 200 with a resource, without an `ETag`: it has no versions, was deleted, or contains a secret.
#[derive(Debug, Serialize)]
pub struct Data<T> {
    pub data: T,
}

/// 200 with a JSON body that is not wrapped in `data`.
#[derive(Debug)]
pub struct Json<T>(pub T);

/// 201 with a new resource, or 200 with an existing one.
#[derive(Debug)]
pub struct Upserted<T>(ApiResponse, PhantomData<T>);

#[derive(Debug)]
pub struct Png(pub Vec<u8>);

impl<T> Created<T> {
    /// Builds the response to the creation of a resource with the path `/v1/{collection}/{id}`.
    #[must_use]
    pub fn new(collection: &str, id: impl Id, data: T) -> Self {
        Self { location: format!("/v1/{collection}/{id}"), version: Some(RecordVersion { record: id.uuid(), number: 1 }), data }
    }

    /// Omits the `ETag`.
    #[must_use]
    pub fn with_secret(self) -> CreatedSecret<T> {
        CreatedSecret(Self { version: None, ..self })
    }
}

impl<T> Upserted<T> {
    /// Restores the stored response to the change.
    ///
    /// # Errors
    ///
    /// Same as [`ApiResponse::from_stored`].
    pub fn from_stored(stored: StoredResponse) -> Result<Self, ApiError> {
        Ok(Self(ApiResponse::from_stored(stored)?, PhantomData))
    }
}

/// A response that can be sent and stored.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    status: StatusCode,
    content_type: &'static str,
    location: Option<String>,
    version: Option<RecordVersion>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

pub trait Success {
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] if the body can't be serialized, and [`ApiError::Invalid`] if a page is too large.
    fn to_response(&self) -> Result<ApiResponse, ApiError>;

    /// Builds the response to store for retries of the request. Each of `images` replaces its path in the body.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] if the body can't be serialized.
    fn to_stored(&self, images: Vec<(String, ImageName)>) -> Result<StoredResponse, StoreError> {
        let ApiResponse { status, location, version, body, .. } = self.to_response().map_err(StoreError::broken)?;
        let body = String::from_utf8(body.into()).map_err(StoreError::broken)?;
        Ok(StoredResponse { location, tagged: version, images, ..StoredResponse::new(status.as_u16(), body) })
    }
}

impl ApiResponse {
    /// Builds a response with status 200.
    #[must_use]
    pub fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type, location: None, version: None, headers: Vec::new(), body: body.into() }
    }

    pub(super) fn json(body: &impl Serialize) -> Result<Self, ApiError> {
        let body = serde_json::to_vec(body).map_err(|error| ApiError::Internal(error.into()))?;
        Ok(Self::new(JSON, body))
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] for an invalid HTTP status.
    pub fn from_stored(stored: StoredResponse) -> Result<Self, ApiError> {
        let StoredResponse { status, location, tagged: version, body, images: _, steps: _, is_in_parts: _, is_nameless: _ } =
            stored;
        let status = StatusCode::from_u16(status).map_err(|error| ApiError::Internal(error.into()))?;
        Ok(Self { status, location, version, ..Self::new(JSON, body) })
    }
}

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        let etag = self.version.map(|version| entity_tag(version, &self.body));
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.extend(self.headers);
        // The path and the tag consist of IDs and numbers, so they are valid header values.
        headers.extend(self.location.and_then(|path| Some((header::LOCATION, HeaderValue::try_from(path).ok()?))));
        headers.extend(etag.and_then(|tag| Some((header::ETAG, HeaderValue::try_from(tag).ok()?))));
        response
    }
}

impl<T: Serialize> Success for Created<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        let response = ApiResponse::json(&Data { data: &self.data })?;
        let (location, version) = (Some(self.location.clone()), self.version);
        Ok(ApiResponse { status: StatusCode::CREATED, location, version, ..response })
    }
}

impl<T: Serialize> Success for CreatedSecret<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        self.0.to_response()
    }
}

impl<T: Serialize> Success for Versioned<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        Ok(ApiResponse { version: Some(self.version), ..ApiResponse::json(&Data { data: &self.data })? })
    }
}

impl<T: Serialize> Success for ChangedUser<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        let Self { user: Versioned { version, data }, meta } = self;
        let body = match meta {
            Some(meta) => ApiResponse::json(&json!({"data": data, "meta": meta}))?,
            None => ApiResponse::json(&Data { data })?,
        };
        Ok(ApiResponse { version: Some(*version), ..body })
    }
}

impl<T: Serialize> Success for Data<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        ApiResponse::json(self)
    }
}

impl<T: Serialize> Success for Json<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        ApiResponse::json(&self.0)
    }
}

impl<T> Success for Upserted<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        Ok(self.0.clone())
    }
}

impl Success for Png {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        let response = ApiResponse::new("image/png", self.0.clone());
        Ok(response.with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
    }
}

into_response! {
    [T: Serialize] Created<T>,
    [T: Serialize] CreatedSecret<T>,
    [T: Serialize] Versioned<T>,
    [T: Serialize] ChangedUser<T>,
    [T: Serialize] Data<T>,
    [T: Serialize] Json<T>,
    [T] Upserted<T>,
    [] Png,
}

impl<T: ToSchema> Describe for Created<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        CreatedSecret::<T>::describe(operation, schemas);
        add_headers(operation, "201", &["ETag"]);
    }
}

impl<T: ToSchema> Describe for CreatedSecret<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = response_schema::<T>(schemas);
        add_response(operation, "201", "Created", [("application/json", schema)]);
        add_headers(operation, "201", &["Location"]);
    }
}

impl<T: ToSchema> Describe for Versioned<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Data::<T>::describe(operation, schemas);
        add_headers(operation, "200", &["ETag"]);
    }
}

impl<T: ToSchema> Describe for ChangedUser<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let meta = reference::<Deactivation>(schemas);
        let schema = envelope(reference::<T>(schemas)).property("meta", meta).into();
        let schema = add_named(schemas, format!("Changed{}Response", T::name()), schema);
        add_response(operation, "200", "OK. With `meta` if the request deactivates the user", [("application/json", schema)]);
        add_headers(operation, "200", &["ETag"]);
    }
}

impl<T: ToSchema> Describe for Data<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = response_schema::<T>(schemas);
        add_response(operation, "200", "OK", [("application/json", schema)]);
    }
}

impl<T: ToSchema> Describe for Upserted<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Versioned::<T>::describe(operation, schemas);
        Created::<T>::describe(operation, schemas);
    }
}

impl<T: ToSchema> Describe for Json<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = reference::<T>(schemas);
        add_response(operation, "200", "OK", [("application/json", schema)]);
    }
}

impl Describe for Png {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let bytes = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
        let image: Object = bytes.build();
        add_response(operation, "200", "The image", [("image/png", RefOr::T(image.into()))]);
        add_headers(operation, "200", &["X-Content-Type-Options"]);
    }
}

impl Describe for ApiResponse {
    /// Does nothing: the handler's `utoipa::path` attribute describes the response.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// # Errors
///
/// Returns [`ApiError::NotFound`] for `None`.
pub fn or_not_found<T>(read: Option<T>) -> Result<T, ApiError> {
    read.ok_or(ApiError::NotFound)
}

/// Maximum size of a page's items in bytes, escaped. A larger page is refused, because Lambda limits a response, with headers, to
/// 6,291,556 bytes ("Lambda quotas" in the AWS Lambda guide).
const MAX_PAGE_BYTES: usize = 6_000_000;

/// 200 with a page of a list, already serialized by [`PageItems`].
#[derive(Debug)]
pub struct SerializedPage<T> {
    /// Items as JSON values, separated by commas.
    items: Vec<u8>,
    meta: Meta,
    item: PhantomData<T>,
}

/// Position of a page in its list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = PageMeta)]
pub struct Meta {
    /// Number of items in the whole list.
    pub total: usize,
    /// Page number, from 1.
    pub page: u32,
    /// Maximum number of items per page.
    pub limit: u32,
    /// Number of pages; 0 for an empty list.
    pub total_pages: usize,
    /// IDs of resources missing from `data` because they are damaged and can't be read. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unreadable: Vec<Uuid>,
    /// Why a list of assets is empty, if no asset has a location, a custom field, a manufacturer or a type code of the request: a
    /// sentence with the nearest ones. Otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub hint: Option<String>,
}

impl Meta {
    /// Computes the position of a page in a list of `total` items.
    #[must_use]
    pub fn new(total: usize, request: PageRequest) -> Self {
        let total_pages = total.div_ceil(request.limit as usize);
        Self { total, page: request.number, limit: request.limit, total_pages, unreadable: Vec::new(), hint: None }
    }
}

into_response! {
    [T: Serialize] Page<T>,
    [T] SerializedPage<T>,
}

impl<T: Serialize> Success for Page<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        let mut items = PageItems::default();
        self.items.iter().try_for_each(|item| items.push(item))?;
        let page = items.into_page::<T>(self.total, self.request, self.unreadable.clone())?;
        SerializedPage { meta: Meta { hint: self.hint.clone(), ..page.meta }, ..page }.to_response()
    }
}

impl<T> Success for SerializedPage<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        let meta = serde_json::to_vec(&self.meta).map_err(|error| ApiError::Internal(error.into()))?;
        Ok(ApiResponse::new(JSON, [b"{\"data\":[", self.items.as_slice(), b"],\"meta\":", &meta, b"}"].concat()))
    }
}

/// Serializes the items of a page, as long as they fit in a response.
#[derive(Default)]
pub struct PageItems {
    /// Items as JSON values, separated by commas.
    items: Vec<u8>,
    bytes: usize,
    largest: usize,
}

impl PageItems {
    /// Adds an item. Once the page is too large, only the size of further items is kept.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] if the item can't be serialized.
    pub fn push(&mut self, item: &impl Serialize) -> Result<(), ApiError> {
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        let start = self.items.len();
        serde_json::to_writer(&mut self.items, item).map_err(|error| ApiError::Internal(error.into()))?;
        let bytes = json::escaped_len(&self.items[start..]) + 1;
        (self.bytes, self.largest) = (self.bytes + bytes, self.largest.max(bytes));
        if self.is_too_large() {
            self.items = Vec::new();
        }
        Ok(())
    }

    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.bytes > MAX_PAGE_BYTES
    }

    /// Completes a page of a list of `total` items. `unreadable` contains the IDs of damaged records, which are missing from the
    /// page.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for `limit`, with a limit that fits, if the page is too large for a response.
    pub fn into_page<T>(self, total: usize, request: PageRequest, unreadable: Vec<Uuid>) -> Result<SerializedPage<T>, ApiError> {
        if self.is_too_large() {
            let fit = (MAX_PAGE_BYTES / self.largest.max(1)).max(1);
            let detail = format!("is too high for these large items: the response would exceed 6 MB. Use at most {fit}");
            return Err(ApiError::Invalid(vec![FieldError::parameter("limit", detail)]));
        }
        Ok(SerializedPage { items: self.items, meta: Meta { unreadable, ..Meta::new(total, request) }, item: PhantomData })
    }
}

impl<T: ToSchema> Describe for Page<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let items = Array::new(reference::<T>(schemas));
        let list = envelope(RefOr::T(items.into())).property("meta", reference::<Meta>(schemas)).required("meta");
        let schema = add_named(schemas, format!("{}List", T::name()), list.into());
        add_response(operation, "200", "A page of the list", [("application/json", schema)]);
    }
}

impl<T: ToSchema> Describe for SerializedPage<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Page::<T>::describe(operation, schemas);
    }
}

crate::query! {
    /// Part of a history.
    pub struct HistoryQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// `true` also recomputes the whole hash chain.
        verify: bool as bool,
    }
}

/// A page of a resource's history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventHistory)]
pub struct History {
    /// Changes, newest first.
    data: Vec<EventView>,
    /// Position of the page.
    meta: Meta,
    /// Result of recomputing the hash chain. Only with `verify=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Verification, required = false)]
    verification: Option<Verification>,
}

/// Reads a page of a record's history.
///
/// # Errors
///
/// Returns [`ApiError::NotFound`] if the record never existed, and [`ApiError::Unavailable`] if the table doesn't respond or the
/// index still lacks an entry.
pub async fn read_history<T: Record>(store: &Reader, id: T::Id, query: HistoryQuery) -> Result<History, ApiError> {
    let request = params::page(query.page, query.limit);
    let verification = async {
        match query.verify {
            Some(true) => store.verify_history::<T>(id).await,
            _ => Ok(None),
        }
    };
    let (page, verification) = tokio::try_join!(store.history::<T>(id, request), verification)?;
    let HistoryPage { entries, total, request } = or_not_found(page)?;
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    let mut bytes = 0;
    let data = entries.into_iter().filter_map(|entry| {
        bytes += json::escaped_len(entry.text.as_bytes());
        let view = EventView::read(entry)?;
        Some(if bytes > MAX_BODY_BEFORE_OMISSION { EventView { changes: None, ..view } } else { view })
    });
    Ok(History { data: data.collect(), meta: Meta::new(total, request), verification })
}

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
