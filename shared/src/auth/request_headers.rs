//! The headers that make a change repeatable or conditional: `Idempotency-Key` and `If-Match`.

use crate::domain::keys::token::{BearerToken, Credential};
use crate::domain::request::{ExpectedVersions, IdempotencyKey, IdempotentRequest, Precondition};
use crate::domain::values::field_error::ValueError;
use crate::domain::values::id::{Id, TenantId};
use crate::http::error::ApiError;
use crate::http::requests::receive::{list_header, media_type};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use uuid::Uuid;

/// The headers that the method uses. A bad one is reported once the key is verified.
pub(super) struct RequestHeaders {
    /// The path, with the parameters that change the meaning of the request.
    path: String,
    idempotency_key: Option<Result<IdempotencyKey, ValueError>>,
    expected: Option<Result<ExpectedVersions, ValueError>>,
}

impl RequestHeaders {
    /// Reads `Idempotency-Key` of a POST, and `If-Match` of every request that is not safe (RFC 9110 §9.2.1).
    pub(super) fn of(parts: &Parts) -> Self {
        let (is_post, is_safe) = (parts.method == Method::POST, parts.method.is_safe());
        let idempotency_key = single_header(&parts.headers, "idempotency-key").filter(|_| is_post);
        let if_match = parts.headers.get(header::IF_MATCH).filter(|_| !is_safe);
        Self {
            path: path_with_parameters(parts),
            idempotency_key: idempotency_key.map(|text| text?.parse()),
            expected: if_match.map(|_| {
                let text = list_header(&parts.headers, &header::IF_MATCH);
                ExpectedVersions::parse(&text.ok_or_else(|| ValueError::new("must be printable ASCII"))?)
            }),
        }
    }

    /// `None` without an idempotency key.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] for a bad idempotency key.
    pub(super) fn idempotent_request<C: Credential>(
        &self,
        by: &BearerToken<C>,
        body: &[u8],
    ) -> Result<Option<IdempotentRequest>, ApiError> {
        match &self.idempotency_key {
            None => Ok(None),
            Some(Ok(key)) => Ok(Some(IdempotentRequest::new(by, key.clone(), &self.path, body))),
            Some(Err(error)) => Err(ApiError::idempotency_key(error.to_string())),
        }
    }

    /// Refuses an idempotency key.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Invalid`] with `reason` if there is one.
    pub(super) fn refuse_idempotency_key(&self, reason: &str) -> Result<(), ApiError> {
        self.idempotency_key.as_ref().map_or(Ok(()), |_| Err(ApiError::idempotency_key(reason)))
    }

    /// From `If-Match`: the versions of the resource that the path names by its last ID, or else of the tenant.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for a text that is not a list of entity tags.
    pub(super) fn precondition(&self, id: Option<Uuid>, tenant: TenantId) -> Result<Option<Precondition>, ApiError> {
        match &self.expected {
            None => Ok(None),
            Some(Ok(expected)) => {
                Ok(Some(Precondition { record_id: id.unwrap_or_else(|| tenant.uuid()), expected: expected.clone() }))
            }
            Some(Err(error)) => Err(ApiError::Malformed(format!("The header If-Match {error}."))),
        }
    }
}

/// Returns the path with its query parameters, in an order that does not depend on the client, and with the format of rows,
/// since the same text can be rows of CSV and of NDJSON. Whether it is a dry run is left out: a dry run has no idempotency key.
fn path_with_parameters(parts: &Parts) -> String {
    let query = parts.uri.query().unwrap_or_default();
    let is_kept = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some("dry_run");
    let mut parameters: Vec<&str> = query.split('&').filter(is_kept).collect();
    parameters.sort_unstable();
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Nothing is added for other types: they can differ in letter case or parameters and mean the same.
    let format = Some("\nNDJSON").filter(|_| media_type(content_type).eq_ignore_ascii_case("application/x-ndjson"));
    [vec![parts.uri.path()], parameters, format.into_iter().collect()].concat().join("&")
}

fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<Result<&'a str, ValueError>> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return Some(Err(ValueError::new("must be sent once")));
    }
    Some(value.to_str().map_err(|_| ValueError::new("must be printable ASCII")))
}
