//! Shared parts of the OpenAPI document: security schemes, error responses, and the headers that the layers around all handlers
//! read and set. The rest of an operation follows from the types of its handler's arguments and response ([`Describe`]).

use crate::http::responses::{ApiError, ConflictCode, Problem};
use crate::services::App;
use axum::extract::{RawQuery, State};
use std::collections::BTreeMap;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, HttpMethod, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

/// Schemas by name, for the document's components.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// Name of the security scheme for API keys.
pub const API_KEY: &str = "api_key";

/// Name of the security scheme for the secrets of signing links.
pub const SIGNING_LINK: &str = "signing_link";

/// The extension with a response's name among the components. It is removed from the final document.
pub const RESPONSE_NAME: &str = "x-name";

/// The status of all errors without a separate response.
pub(super) const ANY_STATUS: &str = "default";
/// The name of the response if `If-Match` doesn't match.
const CHANGED: &str = "PreconditionFailed";
/// The name of the response if `If-None-Match` matches.
const NOT_MODIFIED: &str = "NotModified";

#[must_use]
pub fn schemes() -> [(&'static str, SecurityScheme); 2] {
    let key = "An API key of the tenant, `apl_…`. Each operation names the scope that the key needs.";
    let link = "The secret of a signing link, `sgn_…`: the fragment of the link's URL.";
    let bearer = |description: &'static str| {
        SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build())
    };
    [(API_KEY, bearer(key)), (SIGNING_LINK, bearer(link))]
}

/// Lists the 409 codes and their meanings in Markdown. The document contains this list once; responses list only codes.
#[must_use]
pub fn conflicts() -> String {
    ConflictCode::ALL.map(|code| format!("- `{}`: {}", code.as_str(), code.meaning())).join("\n")
}

/// Names a response, which the final document contains once, under this name.
fn named(name: &str, response: ResponseBuilder) -> RefOr<Response> {
    RefOr::T(response.extensions(Some(ExtensionsBuilder::new().add(RESPONSE_NAME, name).build())).build())
}

fn name_of(response: &RefOr<Response>) -> Option<&str> {
    let RefOr::T(response) = response else { return None };
    response.extensions.as_ref()?.get(RESPONSE_NAME)?.as_str()
}

fn problem(status: &str, name: &str, description: &str) -> RefOr<Response> {
    let names: &[&str] = match status {
        ANY_STATUS => &[
            "Retry-After",
            "WWW-Authenticate",
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
            "X-Request-Id",
        ],
        // The client can retry once the request with the same idempotency key is no longer in progress.
        "409" if description.contains(ConflictCode::RequestInProgress.as_str()) => &["Retry-After"],
        _ => &[],
    };
    let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name(Problem::name()))));
    let response = ResponseBuilder::new().description(description).content("application/problem+json", content);
    named(name, headers(names).fold(response, |response, (name, header)| response.header_ref(name, header)))
}

/// Returns the schemas of problem documents, which error responses refer to.
#[must_use]
pub fn schemas() -> Schemas {
    let mut schemas = vec![(Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut schemas);
    schemas
}

/// Error responses that several operations share: status, name and description.
type Part = &'static [(&'static str, &'static str, &'static str)];

/// Errors of every operation. The other errors depend on the operation, and are listed by status.
const ANY: Part = &[(
    ANY_STATUS,
    "Error",
    "Any other error:\n\
     - 400 `MALFORMED_REQUEST`: the URL has bad percent-encoding, or the body is missing or not JSON.\n\
     - 401 `UNAUTHORIZED`: the API key or signing link is missing or invalid. For a link that has ended, `link_status` says why: \
     `used`, `revoked`, `expired` or `ended`.\n\
     - 403 `FORBIDDEN`: the API key lacks a scope, or would grant permissions that it doesn't have.\n\
     - 412 `PRECONDITION_FAILED`: `If-Match` doesn't match the resource's version, or the resource has no version.\n\
     - 413 `PAYLOAD_TOO_LARGE`: the body exceeds 1 MiB.\n\
     - 415 `UNSUPPORTED_MEDIA_TYPE`: the body has the wrong media type.\n\
     - 429 `RATE_LIMITED`: the rate limit of the API key, the signing link or the organization is reached.\n\
     - 500 `INTERNAL_ERROR`: an error in the service. The log has the cause.\n\
     - 503 `UNAVAILABLE`: temporarily unavailable. Send the request again.",
)];
const INPUT: Part = &[("422", "Invalid", "`VALIDATION_ERROR`: invalid fields or parameters. The response lists all of them.")];
const ROWS: Part = &[("422", "InvalidRows", "`VALIDATION_ERROR`: unknown columns, more than 200 rows, or invalid parameters.")];
const RESOURCE: Part = &[("404", "NotFound", "`NOT_FOUND`: the tenant has no such resource.")];
const VERSION: Part = &[(
    "412",
    CHANGED,
    "`PRECONDITION_FAILED`: the resource's version doesn't match `If-Match`, or the resource was changed after the `updated_at` in \
     the body. Then `updated_at` and `updated_by` say when and by whom.",
)];
const VERSIONS: Part = &[(
    "412",
    "OperationPreconditionFailed",
    "`PRECONDITION_FAILED`: a record's version doesn't match the `if_match` of its operation, or the record was changed after the \
     `updated_at` in its body.",
)];

fn responses(parts: &[Part]) -> BTreeMap<String, RefOr<Response>> {
    let responses = parts.iter().copied().flatten();
    responses.map(|(status, name, text)| ((*status).to_owned(), problem(status, name, text))).collect()
}

macro_rules! error_responses {
    ($($(#[$doc:meta])* $name:ident: $($part:ident)+;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                responses(&[$($part),+])
            }
        }
    )*};
}

error_responses! {
    /// Errors of a list, or of a creation except conflicts.
    InputErrors: INPUT ANY;
    /// Errors when reading a resource, or in an action on a resource without a version; without conflicts.
    ResourceErrors: INPUT RESOURCE ANY;
    /// Errors when changing the settings, except conflicts.
    SettingsErrors: INPUT VERSION ANY;
    /// Errors when changing or deleting a resource, except conflicts.
    ChangeErrors: INPUT RESOURCE VERSION ANY;
    BatchErrors: INPUT RESOURCE VERSIONS ANY;
    ImportErrors: ROWS ANY;
}

macro_rules! conflicts {
    ($($(#[$doc:meta])* $name:ident: $($code:ident)+;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let codes = [$(ConflictCode::$code),+].map(|code| format!("`{}`", code.as_str()));
                let text = format!("Conflict: {}", codes.join(", "));
                BTreeMap::from([("409".to_owned(), problem("409", stringify!($name), &text))])
            }
        }
    )*};
}

conflicts! {
    /// 409 for a POST without conflicts specific to it.
    RequestConflict: Conflict RequestInProgress;
    /// 409 when creating a resource with a unique value.
    DuplicateConflict: Conflict Duplicate RequestInProgress;
    /// 409 when changing a unique value.
    UniqueConflict: Conflict Duplicate;
    ModelConflict: Conflict Duplicate InUse;
    /// 409 when changing a process definition, or cancelling an instance by its ID.
    DefinitionConflict: Conflict Duplicate InstanceClosed;
    /// 409 when changing any other resource.
    ChangeConflict: Conflict;
    /// 409 when deleting a resource that others can refer to.
    InUseConflict: Conflict InUse;
    /// 409 when changing an asset.
    AssetConflict: Conflict ProcessRunning TransitionNotAllowed;
    /// 409 when creating or changing the asset with a serial number.
    SerialNumberConflict: Conflict Duplicate ProcessRunning TransitionNotAllowed;
    AssetDeletionConflict: Conflict ProcessRunning;
    AssetBatchConflict: Conflict Duplicate ProcessRunning TransitionNotAllowed RequestInProgress;
    UserBatchConflict: Conflict Duplicate InUse RequestInProgress;
    StartConflict: Conflict ProcessRunning WrongAssetStatus ProcessInactive RequestInProgress;
    /// 409 when submitting steps.
    SubmissionConflict: Conflict InstanceClosed StepMoved StepSubmitted RequestInProgress;
    CancellationConflict: Conflict InstanceClosed RequestInProgress;
    OffboardingConflict: Conflict ProcessInactive RequestInProgress;
    ErasureConflict: Conflict InUse RequestInProgress;
    GuestErasureConflict: Conflict ProcessRunning RequestInProgress;
    ImportConflict: RequestInProgress;
}

pub struct ReceiptConflict;

impl IntoResponses for ReceiptConflict {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let text = "`CONFLICT` if the instance is not completed (see `instance_status`), or if its history is damaged.";
        BTreeMap::from([("409".to_owned(), problem("409", "ReceiptConflict", text))])
    }
}

/// Adds the request headers and the 304 that the described responses imply. `Dry-Run` and `Idempotent-Replayed` are described by
/// the parameters that cause them.
pub(in crate::http) fn add_shared_headers(methods: &[HttpMethod], operation: &mut Operation) {
    let (is_read, is_post) = (methods.contains(&HttpMethod::Get), methods.contains(&HttpMethod::Post));
    if is_post {
        accept(operation, "Idempotency-Key");
    }
    let responses = &mut operation.responses.responses;
    if responses.get("412").is_some_and(|response| name_of(response) == Some(CHANGED)) {
        // The parameter and the default response describe the 412.
        responses.remove("412");
        accept(operation, "If-Match");
    } else if is_read && matches!(responses.get("200"), Some(RefOr::T(found)) if found.headers.contains_key("ETag")) {
        let unchanged = ResponseBuilder::new().description("Not modified: `If-None-Match` has the current `ETag`");
        let unchanged = headers(&["ETag"]).fold(unchanged, |response, (name, header)| response.header_ref(name, header));
        responses.insert("304".to_owned(), named(NOT_MODIFIED, unchanged));
        accept(operation, "If-None-Match");
    }
}

/// Adds a reference to a request header, which the document describes among its components.
fn accept(operation: &mut Operation, name: &str) {
    operation.parameters.get_or_insert_default().push(RefOr::Ref(Ref::new(format!("#/components/parameters/{name}"))));
}

/// Returns the names of query parameters.
pub type QueryParameters = fn() -> Vec<&'static str>;

pub trait Describe {
    /// The query parameters that the type reads; `None` for a type that reads no query.
    const QUERY: Option<QueryParameters> = None;

    /// Adds the type's part to an operation, and the schemas that it refers to.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

pub trait DescribedHandler<A> {
    /// The query parameters that the handler reads; `None` for a handler without a query.
    const QUERY: Option<QueryParameters>;

    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// Returns the last member of a list that is not `None`.
const fn last(queries: &[Option<QueryParameters>]) -> Option<QueryParameters> {
    match queries {
        [.., Some(query)] => Some(*query),
        [rest @ .., None] => last(rest),
        [] => None,
    }
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
            const QUERY: Option<QueryParameters> = last(&[$($argument::QUERY),*]);

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

/// Whether the schema is a named component of the document. This API's types are: they have descriptions. Strings and numbers
/// without a type are inlined.
fn has_name<T: ToSchema>() -> bool {
    match T::schema() {
        RefOr::T(Schema::Object(object)) => object.description.is_some(),
        RefOr::T(Schema::Array(array)) => array.description.is_some(),
        RefOr::T(Schema::OneOf(one_of)) => one_of.description.is_some(),
        _ => false,
    }
}

/// Returns a reference to the type's schema, or the schema itself if it has no name in the document.
#[must_use]
pub fn schema_or_reference<T: ToSchema>() -> RefOr<Schema> {
    if has_name::<T>() { RefOr::Ref(Ref::from_schema_name(T::name())) } else { T::schema() }
}

/// Merges the schemas of `A` and `B` into one, so that clients get one type for a response that can be either. Members required
/// in both are required. Omits the members' descriptions, which the schemas of `A` and `B` have.
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

/// Adds another media type to a described response.
pub(in crate::http) fn add_content(operation: &mut Operation, status: &str, media_type: &str, schema: RefOr<Schema>) {
    if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(status) {
        response.content.insert(media_type.to_owned(), RefOr::T(Content::new(Some(schema))));
    }
}

/// Returns references to headers, which the document describes among its components.
fn headers(names: &[&str]) -> impl Iterator<Item = (String, Ref)> {
    names.iter().map(|name| ((*name).to_owned(), Ref::new(format!("#/components/headers/{name}"))))
}

pub fn add_headers(operation: &mut Operation, status: &str, names: &[&str]) {
    if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(status) {
        response.headers.extend(headers(names).map(|(name, header)| (name, RefOr::Ref(header))));
    }
}

/// Returns the schema of `{"data": …}`.
pub(in crate::http) fn envelope(data: RefOr<Schema>) -> ObjectBuilder {
    ObjectBuilder::new().property("data", data).required("data")
}

/// Returns a reference to the schema of `{"data": …}` with a `T`.
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
    /// Does nothing: the handler's `utoipa::path` attribute declares the parameters.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// Describes an optional query parameter. List values are comma-separated.
#[must_use]
pub fn query_parameter<T: ToSchema>(schemas: &mut Schemas, name: &str, description: &str) -> Parameter {
    add_schema::<T>(schemas);
    let parameter = ParameterBuilder::new().name(name.trim_start_matches("r#")).parameter_in(ParameterIn::Query);
    let is_list = matches!(T::schema(), RefOr::T(Schema::Array(_)));
    let (style, explode) = (is_list.then_some(ParameterStyle::Form), is_list.then_some(false));
    let parameter = parameter.required(Required::False).description(Some(description.trim())).style(style).explode(explode);
    parameter.schema(Some(schema_or_reference::<T>())).build()
}

/// Describes an optional query parameter that can be repeated. Its values can contain commas.
#[must_use]
pub fn repeated_parameter(name: &str, description: &str) -> Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query).required(Required::False);
    let parameter = parameter.description(Some(description)).style(Some(ParameterStyle::Form)).explode(Some(true));
    parameter.schema(Some(Vec::<String>::schema())).build()
}
