//! Successful responses. A handler's return type is its response, and describes it in the OpenAPI document.

pub mod html;
pub mod page;

use crate::domain::processes::instance::ImageName;
use crate::domain::request::{StoredResponse, entity_tag};
use crate::domain::values::id::Id;
use crate::http::error::ApiError;
use crate::http::openapi::{Describe, Schemas, add_headers, add_response, reference, response_schema};
use crate::store::StoreError;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::marker::PhantomData;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};

macro_rules! into_response {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> IntoResponse for $type {
            fn into_response(self) -> Response {
                self.to_response().into_response()
            }
        }
    )*};
}
use into_response;

const JSON: &str = "application/json";

/// 201 with a new resource, its path in `Location` and its `ETag`.
#[derive(Debug)]
pub struct Created<T> {
    location: String,
    version: Option<u64>,
    data: T,
}

/// [`Created`] without an `ETag`: the body shows a secret.
#[derive(Debug)]
pub struct CreatedSecret<T>(Created<T>);

/// 200 with a resource and its `ETag`.
#[derive(Debug)]
pub struct Versioned<T> {
    pub version: u64,
    pub data: T,
}

/// 200 with a resource, without an `ETag`: one that has no versions, was deleted, or shows a secret.
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
    /// The resource can be read at `/v1/{collection}/{id}`.
    #[must_use]
    pub fn new(collection: &str, id: impl Id, data: T) -> Self {
        Self { location: format!("/v1/{collection}/{id}"), version: Some(1), data }
    }

    /// For a body that shows a secret.
    #[must_use]
    pub fn with_secret(self) -> CreatedSecret<T> {
        CreatedSecret(Self { version: None, ..self })
    }
}

impl<T> Upserted<T> {
    /// The stored response of the change.
    ///
    /// # Errors
    ///
    /// As [`ApiResponse::from_stored`].
    pub fn from_stored(stored: StoredResponse) -> Result<Self, ApiError> {
        Ok(Self(ApiResponse::from_stored(stored)?, PhantomData))
    }
}

/// A response in its sent and stored form.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    status: StatusCode,
    content_type: &'static str,
    location: Option<String>,
    version: Option<u64>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

pub trait Success {
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] if the body can't be serialized, and [`ApiError::Invalid`] for a page that is too large for
    /// a response.
    fn to_response(&self) -> Result<ApiResponse, ApiError>;

    /// For a repetition of the request; each of `images` is shown in place of its path.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] if the body can't be serialized.
    fn to_stored(&self, images: Vec<(String, ImageName)>) -> Result<StoredResponse, StoreError> {
        let ApiResponse { status, location, version, body, .. } = self.to_response().map_err(StoreError::broken)?;
        let body = String::from_utf8(body.into()).map_err(StoreError::broken)?;
        Ok(StoredResponse { location, version, images, ..StoredResponse::new(status.as_u16(), body) })
    }
}

impl ApiResponse {
    /// A 200.
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

    /// To be sent again.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Internal`] for a status that is not an HTTP status.
    pub fn from_stored(stored: StoredResponse) -> Result<Self, ApiError> {
        let StoredResponse { status, location, version, body, images: _, steps: _, is_in_parts: _, is_nameless: _ } = stored;
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
        // Both consist of IDs and numbers, which a header can hold.
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
    /// The attribute of the handler describes the response.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// Unwraps a record that was read.
///
/// # Errors
///
/// Returns [`ApiError::NotFound`] for `None`.
pub fn or_not_found<T>(read: Option<T>) -> Result<T, ApiError> {
    read.ok_or(ApiError::NotFound)
}
