//! Pages of lists and of histories as responses.

use super::{ApiResponse, JSON, Success, into_response, or_not_found};
use crate::domain::history::chain::Verification;
use crate::domain::record::Record;
use crate::domain::values::field_error::FieldError;
use crate::domain::values::json;
use crate::event_view::EventView;
use crate::http::error::ApiError;
use crate::http::openapi::{Describe, Schemas, add_named, add_response, envelope, reference};
use crate::http::requests::params::{self, Limit, PageNumber};
use crate::store::{HistoryPage, MAX_BODY_BEFORE_OMISSION, Page, PageRequest, TenantStore};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::marker::PhantomData;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::Array;
use uuid::Uuid;

/// The maximum size of the items of a page. A Lambda response has at most 6 MB, escaped, headers included ("Lambda quotas" in the
/// AWS Lambda guide: 6,291,556 bytes).
const MAX_PAGE_BYTES: usize = 6_000_000;

/// 200 with a page of a list, whose items were serialized one by one: see [`PageItems`].
#[derive(Debug)]
pub struct SerializedPage<T> {
    /// JSON, separated by commas.
    items: Vec<u8>,
    meta: Meta,
    item: PhantomData<T>,
}

/// The position of a page in its list.
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
    /// IDs of resources that `data` lacks because they are damaged and can't be read. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unreadable: Vec<Uuid>,
}

impl Meta {
    /// The position of a page in a list of `total` items.
    #[must_use]
    pub fn new(total: usize, request: PageRequest) -> Self {
        let total_pages = total.div_ceil(request.limit as usize);
        Self { total, page: request.number, limit: request.limit, total_pages, unreadable: Vec::new() }
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
        items.into_page::<T>(self.total, self.request, self.unreadable.clone())?.to_response()
    }
}

impl<T> Success for SerializedPage<T> {
    fn to_response(&self) -> Result<ApiResponse, ApiError> {
        let meta = serde_json::to_vec(&self.meta).map_err(|error| ApiError::Internal(error.into()))?;
        Ok(ApiResponse::new(JSON, [b"{\"data\":[", self.items.as_slice(), b"],\"meta\":", &meta, b"}"].concat()))
    }
}

/// The items of a page, serialized one by one while a response can hold them.
#[derive(Default)]
pub struct PageItems {
    /// JSON, separated by commas.
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

    /// `total` is the length of the list; `unreadable` names records that the page lacks.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for `limit`, with one that fits, if the page is too large for a response.
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
    /// Result of recomputing the hash chain. Present if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Verification, required = false)]
    verification: Option<Verification>,
}

/// Reads a page of a record's history.
///
/// # Errors
///
/// Returns [`ApiError::NotFound`] if no such record ever existed, and [`ApiError::Unavailable`] if the table does not respond or
/// an entry can't be found yet.
pub async fn read_history<T: Record>(store: &TenantStore, id: T::Id, query: HistoryQuery) -> Result<History, ApiError> {
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
