//! Successful answers (contract 1, "Envelope").

use super::error::ApiError;
use crate::domain::id::Id;
use crate::domain::refusal::Fault;
use crate::store::{Listed, Page};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// What the things of a page may weigh: a Lambda's answer has at most 6 MB, escaped, with its headers
/// ("Lambda quotas" in the AWS guide: 6,291,556 bytes).
const LARGEST_ANSWER: usize = 6_000_000;

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
/// As [`json`]; 422 if the page is too large for an answer.
pub fn list<T, V: Serialize>(listed: Listed<T>, mut view: impl FnMut(T) -> V) -> Result<Response, ApiError> {
    let mut rows = Rows::default();
    for item in listed.items {
        rows.push(&view(item))?;
    }
    rows.reply(listed.total, listed.page)
}

/// What a body weighs in a Lambda's answer, where it is a text within JSON.
#[must_use]
pub fn weight(body: &[u8]) -> usize {
    body.len() + body.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

/// The things of a page, written one by one as long as an answer can hold them.
#[derive(Default)]
pub struct Rows {
    rows: Vec<Box<RawValue>>,
    weight: usize,
    largest: usize,
}

impl Rows {
    /// Adds a thing; of one too many only its weight is kept.
    ///
    /// # Errors
    ///
    /// As [`json`].
    pub fn push(&mut self, view: &impl Serialize) -> Result<(), ApiError> {
        let row = to_raw_value(view).map_err(|error| ApiError::Internal(error.into()))?;
        let weight = weight(row.get().as_bytes()) + 1;
        (self.weight, self.largest) = (self.weight + weight, self.largest.max(weight));
        if self.are_too_many() {
            self.rows = Vec::new();
        } else {
            self.rows.push(row);
        }
        Ok(())
    }

    /// Whether no answer can hold them.
    #[must_use]
    pub fn are_too_many(&self) -> bool {
        self.weight > LARGEST_ANSWER
    }

    /// 200 with the page.
    ///
    /// # Errors
    ///
    /// As [`list`].
    pub fn reply(self, total: usize, page: Page) -> Result<Response, ApiError> {
        if self.are_too_many() {
            let fit = (LARGEST_ANSWER / self.largest.max(1)).max(1);
            let detail = format!("gives more than one answer can hold, since these things are large; ask for {fit} at most");
            return Err(ApiError::Invalid(vec![Fault::parameter("limit", detail)]));
        }
        let Page { number, limit } = page;
        json(&List { data: self.rows, meta: Meta { total, page: number, limit, total_pages: total.div_ceil(limit as usize) } })
    }
}
