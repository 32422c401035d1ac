//! Describes operations for the OpenAPI document by the types of their handlers: what a handler takes and returns is
//! what the document says.

use super::base_url::BaseUrl;
use super::extract::{
    JsonBody, OptionalJsonBody, PathDeliveryId, PathId, PathLinkId, PathSerial, PathStepKey, QueryParams, RowsBody,
};
use super::page::{Meta, SerializedPage};
use super::params::FromQuery;
use super::response::{ApiResponse, Created, Data, Json, Png, Upserted, Versioned};
use crate::app::App;
use crate::auth::UnverifiedRequest;
use crate::domain::values::id::{EventId, LinkId};
use crate::domain::values::text::Line;
use crate::http::error::ApiError;
use crate::store::Page;
use axum::extract::{RawQuery, State};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{AdditionalProperties, Array, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{Content, KnownFormat, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

/// Schemas by name, for the document's components.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// An argument or a response, as the document describes it.
pub trait Describe {
    /// Adds what the type says to an operation, and the schemas that this refers to.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// A handler, described by its arguments `A` and its response.
pub trait DescribedHandler<A> {
    /// Adds what the handler's types say to an operation.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

macro_rules! described_handler {
    ($($argument:ident),*) => {
        impl<H, F, R, $($argument),*> DescribedHandler<($($argument,)* R)> for H
        where
            H: Fn($($argument),*) -> F,
            F: Future<Output = Result<R, ApiError>>,
            $($argument: Describe,)*
            R: Describe,
        {
            fn describe(operation: &mut Operation, schemas: &mut Schemas) {
                $($argument::describe(operation, schemas);)*
                R::describe(operation, schemas);
            }
        }
    };
}

described_handler!(A1);
described_handler!(A1, A2);
described_handler!(A1, A2, A3);
described_handler!(A1, A2, A3, A4);

/// Returns a reference to a schema, and adds the schema to `schemas`.
pub fn reference<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    T::schemas(schemas);
    add_named(schemas, T::name(), T::schema())
}

/// Adds a schema under a name, and returns a reference to it.
fn add_named(schemas: &mut Schemas, name: impl Into<String>, schema: RefOr<Schema>) -> RefOr<Schema> {
    let name = name.into();
    let reference = RefOr::Ref(Ref::from_schema_name(&name));
    schemas.push((name, schema));
    reference
}

/// Returns whether the document knows the schema of a type by its name: it describes a type of this API, not text or a number.
fn has_name<T: ToSchema>() -> bool {
    match T::schema() {
        RefOr::T(Schema::Object(object)) => object.description.is_some(),
        RefOr::T(Schema::Array(array)) => array.description.is_some(),
        RefOr::T(Schema::OneOf(one_of)) => one_of.description.is_some(),
        _ => false,
    }
}

/// Returns a reference to the schema of a type, or the schema itself if it has no name of its own.
#[must_use]
pub fn schema_or_reference<T: ToSchema>() -> RefOr<Schema> {
    if has_name::<T>() { RefOr::Ref(Ref::from_schema_name(T::name())) } else { T::schema() }
}

/// Adds what [`schema_or_reference`] refers to.
pub fn add_schema<T: ToSchema>(schemas: &mut Schemas) {
    if has_name::<T>() {
        reference::<T>(schemas);
    } else {
        T::schemas(schemas);
    }
}

fn add_parameter(operation: &mut Operation, parameter: Parameter) {
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
}

/// Adds a successful response with its content, by media type.
pub fn add_response<'a>(
    operation: &mut Operation,
    status: &str,
    description: &str,
    contents: impl IntoIterator<Item = (&'a str, RefOr<Schema>)>,
) {
    let response = ResponseBuilder::new().description(description);
    let response = contents
        .into_iter()
        .fold(response, |response, (media_type, schema)| response.content(media_type, Content::new(Some(schema))));
    operation.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
}

/// Returns the schema of `{"data": …}`.
fn envelope(data: RefOr<Schema>) -> ObjectBuilder {
    ObjectBuilder::new().property("data", data).required("data")
}

/// Returns a reference to the schema of `{"data": …}` with a `T`.
fn response_schema<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    let schema = envelope(reference::<T>(schemas)).into();
    add_named(schemas, format!("{}Response", T::name()), schema)
}

/// Returns a reference to the schema of `{"data": …}` with the result of a dry run.
pub(super) fn dry_run_schema(schemas: &mut Schemas) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(Type::Null).description(Some("Always null: nothing was created."));
    let result = ObjectBuilder::new()
        .description(Some("What a dry run would create: the resource, with null for what is not assigned yet."))
        .property("id", null)
        .required("id")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)));
    let result = add_named(schemas, "DryRunResult", result.into());
    add_named(schemas, "DryRunResponse", envelope(result).into())
}

fn path_parameter(name: &str, schema: RefOr<Schema>, description: &str) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
    parameter.schema(Some(schema)).description(Some(description)).build()
}

/// Returns `Asset type ID` for `AssetTypeId`.
fn words_of(name: &str) -> String {
    let mut words = String::new();
    for c in name.trim_end_matches("Id").chars() {
        match c.is_uppercase() && !words.is_empty() {
            true => words.extend([' ', c.to_ascii_lowercase()]),
            false => words.push(c),
        }
    }
    words.replace("Api", "API") + " ID"
}

fn body<B: ToSchema>(operation: &mut Operation, schemas: &mut Schemas, required: Required) {
    let content = Content::new(Some(reference::<B>(schemas)));
    let body = RequestBodyBuilder::new().content("application/json", content).required(Some(required)).build();
    operation.request_body = Some(RefOr::T(body));
}

impl<C> Describe for UnverifiedRequest<C> {
    /// The attribute of the handler names the scope.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Describe for BaseUrl {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Describe for State<App> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Describe for RawQuery {
    /// The attribute of the handler names the parameters.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl<I: ToSchema> Describe for PathId<I> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_parameter(operation, path_parameter("id", reference::<I>(schemas), &words_of(&I::name())));
    }
}

impl Describe for PathStepKey {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        add_parameter(operation, path_parameter("key", String::schema(), "Step key"));
    }
}

impl Describe for PathLinkId {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_parameter(operation, path_parameter("link_id", reference::<LinkId>(schemas), &words_of("LinkId")));
    }
}

impl Describe for PathDeliveryId {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_parameter(operation, path_parameter("delivery_id", reference::<EventId>(schemas), &words_of("DeliveryId")));
    }
}

impl Describe for PathSerial {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        add_parameter(operation, path_parameter("serial", reference::<Line>(schemas), "Serial number"));
    }
}

impl Describe for RowsBody {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let body = ["text/csv", "application/x-ndjson"]
            .into_iter()
            .fold(RequestBodyBuilder::new(), |body, kind| body.content(kind, Content::new(Some(String::schema()))));
        operation.request_body = Some(RefOr::T(body.required(Some(Required::True)).build()));
    }
}

impl<Q: FromQuery> Describe for QueryParams<Q> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Q::describe(schemas).into_iter().for_each(|parameter| add_parameter(operation, parameter));
    }
}

/// Returns an optional query parameter, and adds its schema to `schemas`. The values of a list are separated by commas.
#[must_use]
pub fn query_parameter<T: ToSchema>(schemas: &mut Schemas, name: &str, description: &str) -> Parameter {
    add_schema::<T>(schemas);
    let parameter = ParameterBuilder::new().name(name.trim_start_matches("r#")).parameter_in(ParameterIn::Query);
    let is_list = matches!(T::schema(), RefOr::T(Schema::Array(_)));
    let (style, explode) = (is_list.then_some(ParameterStyle::Form), is_list.then_some(false));
    let parameter = parameter.required(Required::False).description(Some(description.trim())).style(style).explode(explode);
    parameter.schema(Some(schema_or_reference::<T>())).build()
}

impl<B: ToSchema> Describe for JsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        body::<B>(operation, schemas, Required::True);
    }
}

impl<B: ToSchema> Describe for OptionalJsonBody<B> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        body::<B>(operation, schemas, Required::False);
    }
}

impl<T: ToSchema> Describe for Created<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = response_schema::<T>(schemas);
        add_response(operation, "201", "Created", [("application/json", schema)]);
    }
}

impl<T: ToSchema> Describe for Versioned<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Data::<T>::describe(operation, schemas);
    }
}

impl<T: ToSchema> Describe for Data<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = response_schema::<T>(schemas);
        add_response(operation, "200", "OK", [("application/json", schema)]);
    }
}

impl<T: ToSchema> Describe for Upserted<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Data::<T>::describe(operation, schemas);
        Created::<T>::describe(operation, schemas);
    }
}

impl<T: ToSchema> Describe for Json<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = reference::<T>(schemas);
        add_response(operation, "200", "OK", [("application/json", schema)]);
    }
}

impl<T: ToSchema> Describe for Page<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let items = Array::new(reference::<T>(schemas));
        let list = envelope(RefOr::T(items.into())).property("meta", reference::<Meta>(schemas)).required("meta");
        let schema = add_named(schemas, format!("{}List", T::name()), list.into());
        add_response(operation, "200", "A page of the list", [("application/json", schema)]);
    }
}

impl<T: ToSchema> Describe for SerializedPage<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Page::<T>::describe(operation, schemas);
    }
}

impl Describe for Png {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let bytes = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
        let image: Object = bytes.build();
        add_response(operation, "200", "The image", [("image/png", RefOr::T(image.into()))]);
    }
}

impl Describe for ApiResponse {
    /// The attribute of the handler describes the response.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

#[cfg(test)]
mod tests {
    use super::words_of;

    #[test]
    fn an_id_type_is_described_in_words() {
        assert_eq!(words_of("AssetId"), "Asset ID");
        assert_eq!(words_of("AssetTypeId"), "Asset type ID");
        assert_eq!(words_of("ApiKeyId"), "API key ID");
    }
}
