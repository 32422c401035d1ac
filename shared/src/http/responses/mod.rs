//! The responses of handlers, with their descriptions for the OpenAPI document.

pub mod html;

pub use super::problem::{ApiError, Conflict, ConflictCode, Dependency, Problem, ProblemFieldError};

use crate::domain::history::chain::Verification;
use crate::domain::processes::instance::ImageName;
use crate::domain::record::{Record, RecordVersion, StoredResponse, entity_tag};
use crate::domain::values::field_error::FieldError;
use crate::domain::values::id::{Id, InstanceId};
use crate::domain::values::json;
use crate::event_view::EventView;
use crate::http::openapi::{Describe, Schemas, add_headers, add_named, add_response, envelope, reference, response_schema};
use crate::http::requests::params::{self, Limit, PageNumber};
use crate::store::{HistoryPage, MAX_BODY_BEFORE_OMISSION, Page, PageRequest, Reader, StoreError};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
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
pub enum Upserted<T> {
    Created(Created<T>),
    Changed(Versioned<T>),
}

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

impl<T: Serialize> Success for Upserted<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        match self {
            Self::Created(created) => created.to_response(),
            Self::Changed(changed) => changed.to_response(),
        }
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
    [T: Serialize] Upserted<T>,
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
