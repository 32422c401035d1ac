//! Describes operations for the OpenAPI document by the types of their handlers' arguments and responses.

use crate::app::App;
use crate::http::error::ApiError;
use axum::extract::{RawQuery, State};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema};
use utoipa::openapi::{Content, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

/// Schemas by name, for the document's components.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

pub trait Describe {
    /// Adds the type's part to an operation, and the schemas that it refers to.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

pub trait DescribedHandler<A> {
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

pub fn reference<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    T::schemas(schemas);
    add_named(schemas, T::name(), T::schema())
}

pub(in crate::http) fn add_named(schemas: &mut Schemas, name: impl Into<String>, schema: RefOr<Schema>) -> RefOr<Schema> {
    let name = name.into();
    let reference = RefOr::Ref(Ref::from_schema_name(&name));
    schemas.push((name, schema));
    reference
}

/// The type's schema has a name in the document: it describes a type of this API, not text or a number.
fn has_name<T: ToSchema>() -> bool {
    match T::schema() {
        RefOr::T(Schema::Object(object)) => object.description.is_some(),
        RefOr::T(Schema::Array(array)) => array.description.is_some(),
        RefOr::T(Schema::OneOf(one_of)) => one_of.description.is_some(),
        _ => false,
    }
}

/// The schema itself if the type has no name in the document.
#[must_use]
pub fn schema_or_reference<T: ToSchema>() -> RefOr<Schema> {
    if has_name::<T>() { RefOr::Ref(Ref::from_schema_name(T::name())) } else { T::schema() }
}

/// One schema for a response that is an `A` or a `B`, so that clients get one type: what both have is required. The schemas of `A`
/// and `B` have the descriptions of their members.
#[must_use]
pub fn either<A: PartialSchema, B: PartialSchema>(description: &str) -> Object {
    let (RefOr::T(Schema::Object(mut both)), RefOr::T(Schema::Object(other))) = (A::schema(), B::schema()) else {
        return Object::new();
    };
    both.required.retain(|name| other.required.contains(name));
    for (name, schema) in other.properties {
        both.properties.entry(name).or_insert(schema);
    }
    both.properties.values_mut().for_each(remove_description);
    both.description = Some(description.to_owned());
    both
}

fn remove_description(property: &mut RefOr<Schema>) {
    match property {
        RefOr::Ref(reference) => reference.description.clear(),
        RefOr::T(Schema::Object(object)) => object.description = None,
        RefOr::T(Schema::Array(array)) => array.description = None,
        RefOr::T(Schema::OneOf(one_of)) => {
            one_of.description = None;
            one_of.items.iter_mut().for_each(remove_description);
        }
        RefOr::T(_) => {}
    }
}

/// Adds the schemas that [`schema_or_reference`] refers to.
pub fn add_schema<T: ToSchema>(schemas: &mut Schemas) {
    if has_name::<T>() {
        reference::<T>(schemas);
    } else {
        T::schemas(schemas);
    }
}

pub fn add_parameter(operation: &mut Operation, parameter: Parameter) {
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
}

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

/// Of a response that is described already.
pub(in crate::http) fn add_content(operation: &mut Operation, status: &str, media_type: &str, schema: RefOr<Schema>) {
    if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(status) {
        response.content.insert(media_type.to_owned(), RefOr::T(Content::new(Some(schema))));
    }
}

/// The document describes headers among its components.
pub(super) fn headers(names: &[&str]) -> impl Iterator<Item = (String, Ref)> {
    names.iter().map(|name| ((*name).to_owned(), Ref::new(format!("#/components/headers/{name}"))))
}

pub fn add_headers(operation: &mut Operation, status: &str, names: &[&str]) {
    if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(status) {
        response.headers.extend(headers(names).map(|(name, header)| (name, RefOr::Ref(header))));
    }
}

/// The schema of `{"data": …}`.
pub(in crate::http) fn envelope(data: RefOr<Schema>) -> ObjectBuilder {
    ObjectBuilder::new().property("data", data).required("data")
}

/// A reference to the schema of `{"data": …}` with a `T`.
pub fn response_schema<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    let schema = envelope(reference::<T>(schemas)).into();
    add_named(schemas, format!("{}Response", T::name()), schema)
}

pub fn add_body<B: ToSchema>(operation: &mut Operation, schemas: &mut Schemas, required: Required) {
    let content = Content::new(Some(reference::<B>(schemas)));
    let body = RequestBodyBuilder::new().content("application/json", content).required(Some(required)).build();
    operation.request_body = Some(RefOr::T(body));
}

impl Describe for State<App> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Describe for RawQuery {
    /// The attribute of the handler names the parameters.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// The parameter is optional. The values of a list are separated by commas.
#[must_use]
pub fn query_parameter<T: ToSchema>(schemas: &mut Schemas, name: &str, description: &str) -> Parameter {
    add_schema::<T>(schemas);
    let parameter = ParameterBuilder::new().name(name.trim_start_matches("r#")).parameter_in(ParameterIn::Query);
    let is_list = matches!(T::schema(), RefOr::T(Schema::Array(_)));
    let (style, explode) = (is_list.then_some(ParameterStyle::Form), is_list.then_some(false));
    let parameter = parameter.required(Required::False).description(Some(description.trim())).style(style).explode(explode);
    parameter.schema(Some(schema_or_reference::<T>())).build()
}
