//! The parts of a request before the sender's credential is verified.

use super::receive::ReceivedRequest;
use crate::http::error::ApiError;
use crate::store::TenantStore;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::marker::PhantomData;
use std::sync::Arc;

/// A part of a request, not yet read. `T` is the kind of part, with its parser.
pub struct Unread<T> {
    pub(in crate::http) received: Arc<ReceivedRequest>,
    part: PhantomData<fn() -> T>,
}

/// A sender whose key was checked: for this request or, while that goes on, for one of the last minutes.
pub trait VerifiedSender {}

impl VerifiedSender for TenantStore {}

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
