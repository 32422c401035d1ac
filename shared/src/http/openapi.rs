//! What the OpenAPI document says of several operations alike: the security scheme and the error responses.

use super::problem::Problem;
use std::collections::BTreeMap;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

/// The name of the security scheme: an API key as a bearer token.
pub const API_KEY: &str = "api_key";

/// Returns the security scheme.
#[must_use]
pub fn scheme() -> SecurityScheme {
    let description = "An API key of the tenant, `apl_…`. Each operation names the scope that the key needs.";
    SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build())
}

fn problem(description: &str) -> RefOr<Response> {
    let content = Content::new(Some(RefOr::Ref(utoipa::openapi::Ref::from_schema_name(Problem::name()))));
    RefOr::T(ResponseBuilder::new().description(description).content("application/problem+json", content).build())
}

/// Returns the schemas of problem documents, which the error responses refer to.
#[must_use]
pub fn schemas() -> Vec<(String, RefOr<utoipa::openapi::schema::Schema>)> {
    let mut schemas = vec![(Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut schemas);
    schemas
}

/// Error responses that several operations share.
type Part = &'static [(&'static str, &'static str)];

const KEY: Part = &[
    ("401", "The API key is missing or invalid"),
    ("403", "The API key lacks the scope"),
    ("429", "The API key has used up its requests for this minute"),
];
const URL: Part = &[("400", "The URL has bad percent-encoding"), ("422", "Invalid parameters")];
const BODY: Part = &[
    ("400", "The body is not JSON"),
    ("413", "The body exceeds 1 MiB"),
    ("415", "The body is not `application/json`"),
    ("422", "Invalid fields; the response lists all of them"),
];
const ROWS: Part = &[
    ("400", "The body is missing"),
    ("409", "The same request is in progress"),
    ("413", "The body exceeds 1 MiB"),
    ("415", "The body is neither `text/csv` nor `application/x-ndjson`"),
    ("422", "Unknown columns, more than 200 rows, or invalid parameters"),
];
const RESOURCE: Part = &[("404", "The tenant has no such resource")];
const STATE: Part = &[("409", "The present state of the data does not permit this")];
const VERSION: Part = &[("412", "The resource has another version than `If-Match` names")];
const TABLE: Part = &[("503", "Temporarily unavailable; try again")];
const SERVER: Part = &[("500", "Internal error")];

macro_rules! error_responses {
    ($($(#[$doc:meta])* $name:ident: $($part:ident)+;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                [$($part),+].into_iter().flatten().map(|(status, text)| ((*status).to_owned(), problem(text))).collect()
            }
        }
    )*};
}

error_responses! {
    /// Errors of an operation without a key that reads nothing.
    StaticErrors: SERVER;
    /// Errors of an operation without a key.
    OpenErrors: TABLE SERVER;
    /// Errors of an operation without a key that takes parameters.
    OpenQueryErrors: URL TABLE SERVER;
    /// Errors of a list.
    ListErrors: URL KEY TABLE SERVER;
    /// Errors of a read of one resource.
    GetErrors: URL KEY RESOURCE TABLE SERVER;
    /// Errors of a receipt.
    ReceiptErrors: URL KEY RESOURCE STATE TABLE SERVER;
    /// Errors of a creation.
    PostErrors: BODY KEY STATE VERSION TABLE SERVER;
    /// Errors of a change of one resource.
    PatchErrors: BODY KEY RESOURCE STATE VERSION TABLE SERVER;
    /// Errors of a batch.
    BatchErrors: BODY KEY RESOURCE STATE VERSION TABLE SERVER;
    /// Errors of an import.
    ImportErrors: ROWS KEY TABLE SERVER;
    /// Errors of a deletion.
    DeleteErrors: URL KEY RESOURCE STATE VERSION TABLE SERVER;
}
