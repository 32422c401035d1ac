//! Where clients reach the service.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;

/// The address that the service is reached at, such as `https://example.com`; empty if it is not known.
#[derive(Debug, Clone, Default)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Returns the text, without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for BaseUrl {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}
