//! Path parameters.

use super::unread::received;
use crate::domain::values::field_error::{FieldError, ValueError};
use crate::domain::values::id::{
    ApiKeyId, AssetId, AssetTypeId, EventId, InstanceId, LinkId, ManufacturerId, ModelId, MovementId, ProcessId, UserId,
    WebhookId,
};
use crate::domain::values::text::Line;
use crate::http::error::ApiError;
use crate::http::openapi::describe::{Describe, Schemas, add_schema, schema_or_reference};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required};

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

/// A path parameter: the ID of a resource, or another value. Of a delivery, the ID is that of its event.
pub struct Path<P: PathParameter>(pub P::Value);

/// Any text; perhaps no step has this key.
pub struct StepKey;
pub struct SerialNumber;
/// Any text; perhaps no asset has this tag.
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
        Ok(text.to_owned())
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
        // Before those of the query.
        let parameters = operation.parameters.get_or_insert_default();
        let in_path = |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(it) if it.parameter_in == ParameterIn::Path);
        let index = parameters.iter().filter(|parameter| in_path(parameter)).count();
        parameters.insert(index, RefOr::T(parameter.build()));
    }
}
