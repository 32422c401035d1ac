//! What a request's headers ask for beside its body: not to be done twice, and only if nothing has changed.

use crate::domain::field_error::ValueError;
use crate::domain::id::{ApiKeyId, Id, TenantId};
use crate::domain::request::{ExpectedVersions, IdempotencyKey, IdempotentRequest, Precondition};
use crate::http::error::ApiError;
use crate::http::listed;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};

/// The headers of contract 6 and 8, as far as the method has a use for them.
pub struct RequestHeaders {
    path: String,
    idempotency_key: Option<Result<IdempotencyKey, ValueError>>,
    expected: Option<Result<ExpectedVersions, ValueError>>,
}

impl RequestHeaders {
    /// Reads them.
    pub fn of(parts: &Parts) -> Self {
        let (post, reads) = (parts.method == Method::POST, parts.method.is_safe());
        Self {
            path: parts.uri.path().to_owned(),
            idempotency_key: single(&parts.headers, "idempotency-key").filter(|_| post).map(|text| text?.parse()),
            expected: parts.headers.get(header::IF_MATCH).filter(|_| !reads).map(|_| {
                let text = listed(&parts.headers, &header::IF_MATCH);
                ExpectedVersions::parse(&text.ok_or_else(|| ValueError::new("must be printable ASCII"))?)
            }),
        }
    }

    /// What the request is called, if it may come again.
    ///
    /// # Errors
    ///
    /// 422 for a name that can't be one.
    pub fn claim(&self, by: ApiKeyId, body: &[u8]) -> Result<Option<IdempotentRequest>, ApiError> {
        match &self.idempotency_key {
            None => Ok(None),
            Some(Ok(key)) => Ok(Some(IdempotentRequest::new(by, key.clone(), &self.path, body))),
            Some(Err(refusal)) => Err(ApiError::idempotency(refusal.to_string())),
        }
    }

    /// The version that the request is meant for: of what its path names by `id`, or of the tenant itself.
    ///
    /// # Errors
    ///
    /// 400 for what is no list of entity tags.
    pub fn precondition(&self, id: Option<&str>, tenant: TenantId) -> Result<Option<Precondition>, ApiError> {
        let of = id.and_then(|id| id.parse().ok()).unwrap_or_else(|| tenant.uuid());
        match &self.expected {
            None => Ok(None),
            Some(Ok(expected)) => Ok(Some(Precondition { record_id: of, expected: expected.clone() })),
            Some(Err(refusal)) => Err(ApiError::Malformed(format!("The header If-Match {refusal}."))),
        }
    }
}

/// The text of a header that may be there once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<Result<&'a str, ValueError>> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return Some(Err(ValueError::new("must be sent once")));
    }
    Some(value.to_str().map_err(|_| ValueError::new("must be printable ASCII")))
}
