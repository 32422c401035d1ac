//! A handler's arguments: path parameters, query parameters and bodies.
//!
//! Extracting an argument reads nothing of it. The handler interprets path and query inside
//! [`authorize`](crate::auth::UnverifiedRequest::authorize), so that nothing about a request is disclosed to a caller
//! whose key turns out to be bad. A body is read on behalf of a [`Caller`], so that nobody without a valid key, its scope
//! and its rate makes the service work. Only a body that decides what is to be read, and is cheap, is read earlier.

use super::body::FromBody;
use super::bulk::rows::{self, ColumnNames, Row, RowFormat};
use super::error::ApiError;
use super::params::FromQuery;
use super::receive::{ReceivedBody, ReceivedRequest, media_type};
use crate::auth::Caller;
use crate::domain::values::field_error::{FieldError, ValueError};
use crate::domain::values::id::{EventId, Id, LinkId};
use crate::domain::values::text::Line;
use crate::store::UnverifiedStore;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::marker::PhantomData;
use std::sync::Arc;

/// The path parameter `{id}`.
pub struct PathId<I> {
    received: Arc<ReceivedRequest>,
    id: PhantomData<I>,
}

/// The path parameter `{key}`: the key of a step.
pub struct PathStepKey(Arc<ReceivedRequest>);

/// The path parameter `{link_id}`: the ID of a signing link.
pub struct PathLinkId(Arc<ReceivedRequest>);

/// The path parameter `{delivery_id}`: the ID of a delivery, which is that of its event.
pub struct PathDeliveryId(Arc<ReceivedRequest>);

/// The query parameters of an endpoint that takes some.
pub struct QueryParams<Q> {
    received: Arc<ReceivedRequest>,
    query: PhantomData<Q>,
}

/// A JSON body.
pub struct JsonBody<B> {
    received: Arc<ReceivedRequest>,
    body: PhantomData<B>,
}

/// A JSON body that may be left out.
pub struct OptionalJsonBody<B>(JsonBody<B>);

/// The rows of an import, as CSV or NDJSON.
pub struct RowsBody(Arc<ReceivedRequest>);

/// The path parameter `{serial}`: a serial number.
pub struct PathSerial(Arc<ReceivedRequest>);

/// Returns what [`receive`](super::receive::receive) received.
pub(crate) fn received(parts: &Parts) -> Result<Arc<ReceivedRequest>, ApiError> {
    let received = parts.extensions.get::<Arc<ReceivedRequest>>().cloned();
    received.ok_or_else(|| ApiError::Internal("a route outside of http::service".into()))
}

impl ReceivedRequest {
    /// Returns a path parameter by the name that the route gives it.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and [`ApiError::NotFound`] if the route has no such
    /// parameter.
    pub(crate) fn path_parameter(&self, name: &str) -> Result<&str, ApiError> {
        let params = self.path.as_ref().ok_or_else(|| ApiError::Malformed("The URL has bad percent-encoding.".into()))?;
        let found = params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or(ApiError::NotFound)
    }

    /// Returns the body and its media type, without parameters such as `charset`.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`] for a request without a credential, [`ApiError::TooLarge`], [`ApiError::Malformed`] for a
    /// body that is incomplete or missing, which `missing` says, and [`ApiError::UnsupportedContentCoding`].
    fn whole_body(&self, missing: &str) -> Result<(&[u8], &str), ApiError> {
        let bytes = match &self.body {
            ReceivedBody::Whole(bytes) => bytes,
            ReceivedBody::TooLarge => return Err(ApiError::TooLarge),
            ReceivedBody::Incomplete => return Err(ApiError::Malformed("The body ended early.".into())),
            ReceivedBody::Unread => return Err(ApiError::Unauthorized),
        };
        if bytes.is_empty() {
            return Err(ApiError::Malformed(missing.into()));
        }
        if self.is_encoded {
            return Err(ApiError::UnsupportedContentCoding);
        }
        let content_type = self.content_type.as_deref().unwrap_or_default();
        Ok((bytes, media_type(content_type)))
    }
}

impl<I: Id> PathId<I> {
    /// Returns the ID.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] for a text that is not an ID, since no resource has it, and
    /// [`ApiError::Malformed`] for bad percent-encoding.
    pub fn parse(&self) -> Result<I, ApiError> {
        self.received.path_parameter("id")?.parse().map_err(|_| ApiError::NotFound)
    }
}

impl PathStepKey {
    /// Returns the text, which may be no step's key.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding.
    pub fn parse(&self) -> Result<&str, ApiError> {
        self.0.path_parameter("key")
    }
}

impl PathLinkId {
    /// Returns the ID.
    ///
    /// # Errors
    ///
    /// As [`PathId::parse`].
    pub fn parse(&self) -> Result<LinkId, ApiError> {
        self.0.path_parameter("link_id")?.parse().map_err(|_| ApiError::NotFound)
    }
}

impl PathDeliveryId {
    /// Returns the ID.
    ///
    /// # Errors
    ///
    /// As [`PathId::parse`].
    pub fn parse(&self) -> Result<EventId, ApiError> {
        self.0.path_parameter("delivery_id")?.parse().map_err(|_| ApiError::NotFound)
    }
}

impl PathSerial {
    /// Returns the serial number.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and [`ApiError::Invalid`] for a text that no asset can have
    /// as its serial number.
    pub fn parse(&self) -> Result<Line, ApiError> {
        let text = self.0.path_parameter("serial")?;
        let invalid = |detail: String| ApiError::Invalid(vec![FieldError::parameter("serial", detail)]);
        let serial: Line = text.parse().map_err(|error: ValueError| invalid(error.to_string()))?;
        if serial.is_empty() { Err(invalid("must not be empty".to_owned())) } else { Ok(serial) }
    }
}

impl RowsBody {
    /// Returns the rows, on behalf of their verified sender.
    ///
    /// # Errors
    ///
    /// As [`JsonBody::parse_early`], for the content types `text/csv` and `application/x-ndjson`, and as
    /// [`rows::parse`].
    pub fn parse(&self, _: &Caller, names: ColumnNames, matched: Option<&str>) -> Result<Vec<Row>, ApiError> {
        let (bytes, media_type) = self.0.whole_body("A body is required: CSV or NDJSON.")?;
        let format = match media_type.to_ascii_lowercase().as_str() {
            "text/csv" => RowFormat::Csv,
            "application/x-ndjson" => RowFormat::Ndjson,
            _ => return Err(ApiError::UnsupportedMediaType("text/csv or application/x-ndjson")),
        };
        let charset =
            self.0.content_type.as_deref().and_then(|kind| {
                kind.to_ascii_lowercase().split_once("charset=").map(|(_, name)| name.trim_matches('"').to_owned())
            });
        if charset.is_some_and(|name| !name.starts_with("utf-8") && !name.starts_with("us-ascii")) {
            return Err(ApiError::UnsupportedMediaType("text/csv; charset=utf-8"));
        }
        rows::parse(bytes, format, names, matched)
    }
}

impl<Q: FromQuery> QueryParams<Q> {
    /// Returns the query as it was sent.
    #[must_use]
    pub fn text(&self) -> &str {
        self.received.query()
    }

    /// Returns the parameters.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and [`ApiError::Invalid`] with every bad parameter.
    pub fn parse(&self) -> Result<Q, ApiError> {
        Q::from_params(self.received.params()?)
    }
}

impl<B: FromBody> JsonBody<B> {
    /// Returns the body, on behalf of its verified sender.
    ///
    /// # Errors
    ///
    /// As [`JsonBody::parse_with_errors`], and [`ApiError::Invalid`] with every bad field.
    pub fn parse(&self, caller: &Caller) -> Result<B, ApiError> {
        let (body, errors) = self.parse_with_errors(caller)?;
        if errors.is_empty() { Ok(body) } else { Err(ApiError::Invalid(errors)) }
    }

    /// Returns the body without its bad fields, and the errors of those: for an endpoint that finds further errors and
    /// reports all of them together.
    ///
    /// # Errors
    ///
    /// As [`JsonBody::parse_early`].
    pub fn parse_with_errors(&self, _: &Caller) -> Result<(B, Vec<FieldError>), ApiError> {
        self.read()
    }

    /// [`JsonBody::parse_with_errors`] for an endpoint whose body decides what must be read for the decision: at once,
    /// if the body is small, so that this takes no round trip more, and otherwise once the caller's key is verified. Only
    /// for bodies that are cheap to read.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::TooLarge`], [`ApiError::UnsupportedMediaType`], [`ApiError::UnsupportedContentCoding`],
    /// [`ApiError::Malformed`] for a body that is missing, incomplete or not JSON, and [`ApiError::Invalid`] if a required
    /// field is missing or bad.
    pub async fn parse_early(&self, store: &UnverifiedStore) -> Result<(B, Vec<FieldError>), ApiError> {
        const { assert!(B::IS_CHEAP, "such a body is read on behalf of a caller") };
        if self.received.has_large_body() {
            store.verified().await;
        }
        self.read()
    }

    fn read(&self) -> Result<(B, Vec<FieldError>), ApiError> {
        let (bytes, media_type) = self.received.whole_body("A body is required: a JSON object.")?;
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(ApiError::UnsupportedMediaType("application/json"));
        }
        match B::read(bytes)? {
            (Some(body), errors) => Ok((body, errors)),
            (None, errors) => Err(ApiError::Invalid(errors)),
        }
    }
}

impl<B: FromBody> OptionalJsonBody<B> {
    /// Returns the body, on behalf of its verified sender; `None` when there is none.
    ///
    /// # Errors
    ///
    /// As [`JsonBody::parse`].
    pub fn parse(&self, caller: &Caller) -> Result<Option<B>, ApiError> {
        match &self.0.received.body {
            ReceivedBody::Whole(bytes) if bytes.is_empty() => Ok(None),
            _ => self.0.parse(caller).map(Some),
        }
    }
}

impl<S: Sync, I> FromRequestParts<S> for PathId<I> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self { received: received(parts)?, id: PhantomData })
    }
}

impl<S: Sync> FromRequestParts<S> for PathStepKey {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(received(parts)?))
    }
}

impl<S: Sync> FromRequestParts<S> for PathLinkId {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(received(parts)?))
    }
}

impl<S: Sync> FromRequestParts<S> for PathDeliveryId {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(received(parts)?))
    }
}

impl<S: Sync> FromRequestParts<S> for PathSerial {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(received(parts)?))
    }
}

impl<S: Sync> FromRequestParts<S> for RowsBody {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(received(parts)?))
    }
}

impl<S: Sync, Q> FromRequestParts<S> for QueryParams<Q> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self { received: received(parts)?, query: PhantomData })
    }
}

impl<S: Sync, B> FromRequestParts<S> for JsonBody<B> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self { received: received(parts)?, body: PhantomData })
    }
}

impl<S: Sync, B> FromRequestParts<S> for OptionalJsonBody<B> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        JsonBody::from_request_parts(parts, state).await.map(Self)
    }
}
