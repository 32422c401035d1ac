//! Successful answers (contract 1, "Envelope").

use super::Answer;
use super::error::ApiError;
use crate::domain::field_error::FieldError;
use crate::domain::id::Id;
use crate::domain::instance::ImageName;
pub use crate::domain::json::escaped_len;
use crate::domain::request::{StoredResponse, entity_tag};
use crate::store::{Page, PageRequest, StoreError};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
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

/// A success.
#[derive(Debug, Clone)]
pub struct Reply {
    status: StatusCode,
    content_type: &'static str,
    location: Option<String>,
    /// The version of the thing that it shows, for the header `ETag`.
    version: Option<u64>,
    /// Headers of its own.
    more: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Reply {
    /// 200 with a body of any type.
    #[must_use]
    pub fn bytes(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type, location: None, version: None, more: Vec::new(), body: body.into() }
    }

    /// The answer as the thing of this version: it gets an entity tag.
    #[must_use]
    pub fn at(self, version: u64) -> Self {
        Self { version: Some(version), ..self }
    }

    /// The answer without an entity tag, for a body that is shown once.
    #[must_use]
    pub fn untagged(self) -> Self {
        Self { version: None, ..self }
    }

    /// The answer with another header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.more.push((name, value));
        self
    }

    /// The answer as it is kept for when the request comes again; each of `images` is shown where its path stands.
    ///
    /// # Errors
    ///
    /// The body is no text, which no answer to a POST is.
    pub fn kept(self, images: Vec<(String, ImageName)>) -> Result<StoredResponse, StoreError> {
        let body = String::from_utf8(self.body.into()).map_err(StoreError::broken)?;
        Ok(StoredResponse { status: self.status.as_u16(), location: self.location, version: self.version, body, images })
    }

    /// The answer to a request that came again.
    ///
    /// # Errors
    ///
    /// A status that is none.
    pub fn again(kept: StoredResponse) -> Answer {
        let status = StatusCode::from_u16(kept.status).map_err(|error| ApiError::Internal(error.into()))?;
        Ok(Self {
            status,
            content_type: JSON,
            location: kept.location,
            version: kept.version,
            more: Vec::new(),
            body: kept.body.into(),
        })
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let etag = self.version.map(|version| entity_tag(version, &self.body));
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.extend(self.more);
        // Both are made of ids and numbers, which a header can hold.
        headers.extend(self.location.and_then(|path| Some((header::LOCATION, HeaderValue::try_from(path).ok()?))));
        headers.extend(etag.and_then(|tag| Some((header::ETAG, HeaderValue::try_from(tag).ok()?))));
        response
    }
}

const JSON: &str = "application/json";

/// An answer of 200 with this body.
///
/// # Errors
///
/// The body can't be written, which is a mistake of ours.
pub fn json(body: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(body).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(Reply::bytes(JSON, body))
}

/// 200 with one thing.
///
/// # Errors
///
/// As [`json`].
pub fn data<T: Serialize>(data: T) -> Answer {
    json(&Data { data })
}

/// 200 with the thing of this version.
///
/// # Errors
///
/// As [`json`].
pub fn record<T: Serialize>(version: u64, shown: T) -> Answer {
    Ok(data(shown)?.at(version))
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
pub fn created<T: Serialize>(collection: &str, id: impl Id, data: T) -> Answer {
    let reply = json(&Data { data })?.at(1);
    Ok(Reply { status: StatusCode::CREATED, location: Some(format!("/v1/{collection}/{id}")), ..reply })
}

/// 200 with a page of a list.
///
/// # Errors
///
/// As [`json`]; 422 if the page is too large for an answer.
pub fn list<T, V: Serialize>(listed: Page<T>, mut view: impl FnMut(T) -> V) -> Answer {
    let mut rows = Rows::default();
    for item in listed.items {
        rows.push(&view(item))?;
    }
    rows.reply(listed.total, listed.page)
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
        let weight = escaped_len(row.get().as_bytes()) + 1;
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
    pub fn reply(self, total: usize, page: PageRequest) -> Answer {
        if self.are_too_many() {
            let fit = (LARGEST_ANSWER / self.largest.max(1)).max(1);
            let detail = format!("gives more than one answer can hold, since these things are large; ask for {fit} at most");
            return Err(ApiError::Invalid(vec![FieldError::parameter("limit", detail)]));
        }
        let PageRequest { number, limit } = page;
        json(&List { data: self.rows, meta: Meta { total, page: number, limit, total_pages: total.div_ceil(limit as usize) } })
    }
}
