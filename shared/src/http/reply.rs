//! Successful answers (contract 1, "Envelope").

use super::error::ApiError;
use crate::domain::id::Id;
use crate::store::Listed;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

/// The body of every success but a list and the deletion of an asset.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Data<T> {
    /// What was asked for.
    pub data: T,
}

/// The body of a list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct List<T> {
    /// The page's things.
    pub data: Vec<T>,
    /// Where the page stands.
    pub meta: Meta,
}

/// Where a page stands in its list (interface 2.2).
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Meta {
    /// How many things the whole list has.
    pub total: usize,
    /// Which page this is, from 1.
    pub page: u32,
    /// How many things a page has.
    pub limit: u32,
    /// How many pages there are; 0 when there is nothing.
    pub total_pages: usize,
}

/// An answer of 200 with this body.
///
/// # Errors
///
/// The body can't be written, which is a mistake of ours.
pub fn json(body: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(body).map_err(|error| ApiError::Internal(error.into()))?;
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// 200 with one thing.
///
/// # Errors
///
/// As [`json`].
pub fn data<T: Serialize>(data: T) -> Result<Response, ApiError> {
    json(&Data { data })
}

/// The thing that was read, or 404.
///
/// # Errors
///
/// [`ApiError::NotFound`] if there was none.
pub fn present<T>(found: Option<T>) -> Result<T, ApiError> {
    found.ok_or(ApiError::NotFound)
}

/// 201 with a new thing, which can be read at `collection/id` from now on.
///
/// # Errors
///
/// As [`json`].
pub fn created<T: Serialize>(collection: &str, id: impl Id, data: T) -> Result<Response, ApiError> {
    let mut response = json(&Data { data })?;
    *response.status_mut() = StatusCode::CREATED;
    let location = HeaderValue::try_from(format!("/v1/{collection}/{id}")).map_err(|error| ApiError::Internal(error.into()))?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// 200 with a page of a list.
///
/// # Errors
///
/// As [`json`].
pub fn list<T, V: Serialize>(listed: Listed<T>, view: impl FnMut(T) -> V) -> Result<Response, ApiError> {
    let limit = listed.page.limit;
    let meta = Meta { total: listed.total, page: listed.page.number, limit, total_pages: listed.total.div_ceil(limit as usize) };
    json(&List { data: listed.items.into_iter().map(view).collect(), meta })
}
