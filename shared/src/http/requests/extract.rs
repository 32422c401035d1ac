//! A handler's arguments: path parameters, query parameters and bodies.
//!
//! The first argument of a handler is the sender: with it, the credential is verified, or was lately by this instance. So strangers
//! cost next to nothing. The query follows, then the path: errors are reported in this order. A body is read by the handler, which
//! adds the errors that it finds.

use super::body::FromBody;
use super::params::FromQuery;
pub use super::path::{Path, SerialNumber, StepKey, Tag};
use super::receive::{ReceivedBody, ReceivedRequest};
use super::unread::{Unread, VerifiedSender, received};
use crate::domain::values::field_error::FieldError;
use crate::http::error::ApiError;
use crate::http::openapi::describe::{Describe, Schemas, add_body, add_parameter};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::marker::PhantomData;
use utoipa::ToSchema;
use utoipa::openapi::Required;
use utoipa::openapi::path::Operation;

pub type JsonBody<B> = Unread<InBody<B>>;
pub type OptionalJsonBody<B> = Unread<InOptionalBody<B>>;

pub struct InBody<B>(PhantomData<B>);
pub struct InOptionalBody<B>(PhantomData<B>);

/// The query parameters.
pub struct Query<Q>(pub Q);

impl<Q: FromQuery, S: Sync> FromRequestParts<S> for Query<Q> {
    type Rejection = ApiError;

    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and [`ApiError::Invalid`] with every bad parameter.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Q::from_params(received(parts)?.params()?).map(Self)
    }
}

impl<B: FromBody> JsonBody<B> {
    /// On behalf of a verified sender.
    ///
    /// # Errors
    ///
    /// As [`JsonBody::parse_with_errors`], and [`ApiError::Invalid`] with every bad field.
    pub fn parse(&self, _: &impl VerifiedSender) -> Result<B, ApiError> {
        without_errors(read(&self.received)?)
    }

    /// The body without its bad fields, and the errors of those: for an endpoint that finds further errors and reports all of
    /// them together.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::TooLarge`], [`ApiError::UnsupportedMediaType`], [`ApiError::UnsupportedContentCoding`],
    /// [`ApiError::Malformed`] for a body that is missing, incomplete or not JSON, and [`ApiError::Invalid`] if a required
    /// field is missing or bad.
    pub fn parse_with_errors(&self, _: &impl VerifiedSender) -> Result<(B, Vec<FieldError>), ApiError> {
        read(&self.received)
    }

    /// [`JsonBody::parse_with_errors`] for a body of another type, where that depends on the resource that the path names.
    ///
    /// # Errors
    ///
    /// As [`JsonBody::parse_with_errors`].
    pub fn parse_as<C: FromBody>(&self, _: &impl VerifiedSender) -> Result<(C, Vec<FieldError>), ApiError> {
        read(&self.received)
    }
}

impl<B: FromBody> OptionalJsonBody<B> {
    /// On behalf of a verified sender; `None` without a body.
    ///
    /// # Errors
    ///
    /// As [`JsonBody::parse`].
    pub fn parse(&self, _: &impl VerifiedSender) -> Result<Option<B>, ApiError> {
        match &self.received.body {
            ReceivedBody::Whole(bytes) if bytes.is_empty() => Ok(None),
            _ => without_errors(read(&self.received)?).map(Some),
        }
    }
}

fn read<B: FromBody>(received: &ReceivedRequest) -> Result<(B, Vec<FieldError>), ApiError> {
    let (bytes, media_type) = received.whole_body("A body is required: a JSON object.")?;
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::UnsupportedMediaType("application/json"));
    }
    // Some editors and shells write this mark into every file; it is no part of the text.
    match B::read(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))? {
        (Some(body), errors) => Ok((body, errors)),
        (None, errors) => Err(ApiError::Invalid(errors)),
    }
}

fn without_errors<B>((body, errors): (B, Vec<FieldError>)) -> Result<B, ApiError> {
    if errors.is_empty() { Ok(body) } else { Err(ApiError::Invalid(errors)) }
}

impl<Q: FromQuery> Describe for Query<Q> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Q::describe(schemas).into_iter().for_each(|parameter| add_parameter(operation, parameter));
    }
}

impl<B: ToSchema> Describe for JsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_body::<B>(operation, schemas, Required::True);
    }
}

impl<B: ToSchema> Describe for OptionalJsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_body::<B>(operation, schemas, Required::False);
    }
}
