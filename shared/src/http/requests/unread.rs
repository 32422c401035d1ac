//! Bodies before they are read.

use super::receive::ReceivedRequest;
use crate::http::error::ApiError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::marker::PhantomData;
use std::sync::Arc;

/// The body of a request, not yet read. `T` is its kind, with its parser.
pub struct Unread<T> {
    pub(in crate::http) received: Arc<ReceivedRequest>,
    part: PhantomData<fn() -> T>,
}

/// A sender whose credential was checked: for this request or, while that goes on, for one of the last minutes.
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
