//! A handler's arguments: path parameters, query parameters and bodies.
//!
//! The first argument of a handler is the sender, so that unauthenticated requests stay cheap. The query follows, then the
//! path: errors are reported in this order. The handler reads the body itself, and adds the errors that it finds.

use super::body::FromBody;
use super::params::FromQuery;
use super::receive::{ReceivedBody, ReceivedRequest, Unread, VerifiedSender, received};
use crate::domain::values::field_error::{FieldError, ValueError};
use crate::domain::values::id::{
    ApiKeyId, AssetId, AssetTypeId, EventId, InstanceId, LinkId, ManufacturerId, ModelId, MovementId, ProcessId, UserId,
    WebhookId,
};
use crate::domain::values::text::Line;
use crate::http::error::ApiError;
use crate::http::openapi::{Describe, Schemas, add_body, add_parameter, add_schema, schema_or_reference};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::marker::PhantomData;
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required};

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

    /// The body without its bad fields, and their errors: for an endpoint that finds further errors and reports all of them
    /// together.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::TooLarge`], [`ApiError::UnsupportedMediaType`], [`ApiError::UnsupportedContentCoding`],
    /// [`ApiError::Malformed`] for a body that is missing, incomplete or not JSON, and [`ApiError::Invalid`] if a required
    /// field is missing or bad.
    pub fn parse_with_errors(&self, _: &impl VerifiedSender) -> Result<(B, Vec<FieldError>), ApiError> {
        read(&self.received)
    }

    /// [`JsonBody::parse_with_errors`] for a body whose type depends on the resource that the path names.
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

pub trait PathParameter {
    /// As in the route.
    const NAME: &'static str;
    /// For the OpenAPI document.
    const DESCRIPTION: &'static str;
    type Value: ToSchema;

    /// `text` is decoded.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::NotFound`] for the text of an impossible ID, since no resource has it, and [`ApiError::Invalid`] for
    /// another impossible value.
    fn read(text: &str) -> Result<Self::Value, ApiError>;
}

/// A path parameter: the ID of a resource, or another value. A delivery has the ID of its event.
pub struct Path<P: PathParameter>(pub P::Value);

/// Any text; perhaps no step has this key.
pub struct StepKey;
pub struct SerialNumber;
/// Any text; perhaps no asset has this tag. Scanners add white space around it.
pub struct Tag;

macro_rules! path_ids {
    ($($id:ty: $name:literal, $description:literal;)*) => {$(
        impl PathParameter for $id {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = $description;
            type Value = Self;

            fn read(text: &str) -> Result<Self, ApiError> {
                text.parse().map_err(|_| ApiError::NotFound)
            }
        }
    )*};
}

path_ids! {
    ApiKeyId: "id", "API key ID";
    AssetId: "id", "Asset ID";
    AssetTypeId: "id", "Asset type ID";
    EventId: "delivery_id", "Delivery ID";
    InstanceId: "id", "Instance ID";
    LinkId: "link_id", "Link ID";
    ManufacturerId: "id", "Manufacturer ID";
    ModelId: "id", "Model ID";
    MovementId: "id", "Movement ID";
    ProcessId: "id", "Process ID";
    UserId: "id", "User ID";
    WebhookId: "id", "Webhook ID";
}

impl PathParameter for StepKey {
    const NAME: &'static str = "key";
    const DESCRIPTION: &'static str = "Step key";
    type Value = String;

    fn read(text: &str) -> Result<String, ApiError> {
        Ok(text.to_owned())
    }
}

impl PathParameter for Tag {
    const NAME: &'static str = "tag";
    const DESCRIPTION: &'static str = "Asset tag";
    type Value = String;

    fn read(text: &str) -> Result<String, ApiError> {
        Ok(text.trim().to_owned())
    }
}

impl PathParameter for SerialNumber {
    const NAME: &'static str = "serial";
    const DESCRIPTION: &'static str = "Serial number";
    type Value = Line;

    fn read(text: &str) -> Result<Line, ApiError> {
        let invalid = |detail: String| ApiError::Invalid(vec![FieldError::parameter(Self::NAME, detail)]);
        let serial: Line = text.parse().map_err(|error: ValueError| invalid(error.to_string()))?;
        if serial.is_empty() { Err(invalid("must not be empty".to_owned())) } else { Ok(serial) }
    }
}

impl<P: PathParameter, S: Sync> FromRequestParts<S> for Path<P> {
    type Rejection = ApiError;

    /// # Errors
    ///
    /// Returns [`ApiError::Malformed`] for bad percent-encoding, and otherwise as [`PathParameter::read`].
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        P::read(received(parts)?.path_parameter(P::NAME)?).map(Self)
    }
}

impl<P: PathParameter> Describe for Path<P> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_schema::<P::Value>(schemas);
        let parameter = ParameterBuilder::new().name(P::NAME).parameter_in(ParameterIn::Path).required(Required::True);
        let parameter = parameter.schema(Some(schema_or_reference::<P::Value>())).description(Some(P::DESCRIPTION));
        // Before the query parameters.
        let parameters = operation.parameters.get_or_insert_default();
        let in_path = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(it) if it.parameter_in == ParameterIn::Path);
        let index = parameters.iter().filter(|parameter| in_path(parameter)).count();
        parameters.insert(index, RefOr::T(parameter.build()));
    }
}
