//! Requests without a body.

use super::body::{Fields, FromBody};
use super::extract::OptionalJsonBody;
use super::unread::VerifiedSender;
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::http::openapi::describe::{Describe, Schemas};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::openapi::path::Operation;

/// A body that is left out, or has no members. Nothing that a client sends is ignored.
pub struct NoBody(OptionalJsonBody<NoMembers>);

struct NoMembers;

impl FromBody for NoMembers {
    fn read(body: &[u8]) -> Result<(Option<Self>, Vec<FieldError>), ApiError> {
        Ok((Some(Self), Fields::parse(body)?.finish(&[])))
    }
}

impl NoBody {
    /// On behalf of a verified sender.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for each member, and otherwise as [`JsonBody::parse`](super::extract::JsonBody::parse).
    pub fn check(&self, sender: &impl VerifiedSender) -> Result<(), ApiError> {
        self.0.parse(sender).map(|_| ())
    }
}

impl<S: Sync> FromRequestParts<S> for NoBody {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        OptionalJsonBody::from_request_parts(parts, state).await.map(Self)
    }
}

/// The document says nothing of a body that must be left out.
impl Describe for NoBody {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}
