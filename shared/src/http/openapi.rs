//! What the OpenAPI document says of every operation alike.

use super::problem::Problem;
use std::collections::BTreeMap;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

/// The name of the security scheme: an API key as a bearer token.
pub const API_KEY: &str = "api_key";

/// The security scheme.
#[must_use]
pub fn scheme() -> SecurityScheme {
    let description = "An API key of the tenant, `apl_…`. Each operation names the scope that the key needs.";
    SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build())
}

fn problem(description: &str) -> RefOr<Response> {
    let content = Content::new(Some(RefOr::Ref(utoipa::openapi::Ref::from_schema_name(Problem::name()))));
    RefOr::T(ResponseBuilder::new().description(description).content("application/problem+json", content).build())
}

/// The problem documents' schemas, which responses refer to.
#[must_use]
pub fn schemas() -> Vec<(String, RefOr<utoipa::openapi::schema::Schema>)> {
    let mut schemas = vec![(Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut schemas);
    schemas
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident: $($status:literal $text:literal,)*;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                BTreeMap::from([$(($status.to_owned(), problem($text)),)*])
            }
        }
    )*};
}

refusals! {
    /// What every operation without a key may answer but success.
    Open:
        "500" "An error on our side",;
    /// What a list may answer but success.
    ListErrors:
        "400" "Bad percent-encoding",
        "401" "No valid API key",
        "403" "The key lacks the scope",
        "422" "Refused parameters",
        "429" "The key has sent its requests for this minute",
        "500" "An error on our side",
        "503" "The database is busy",;
    /// What a read of one thing may answer but success.
    GetErrors:
        "400" "Bad percent-encoding",
        "401" "No valid API key",
        "403" "The key lacks the scope",
        "404" "There is no such thing in this tenant",
        "422" "Refused parameters",
        "429" "The key has sent its requests for this minute",
        "500" "An error on our side",
        "503" "The database is busy",;
    /// What a receipt may answer but success.
    ReceiptErrors:
        "400" "Bad percent-encoding",
        "401" "No valid API key",
        "403" "The key lacks the scope",
        "404" "There is no such thing in this tenant",
        "409" "The run is not completed, or receipts are not set up",
        "422" "Refused parameters",
        "500" "An error on our side",
        "503" "The database is busy",;
    /// What an operation without a key that takes parameters may answer but success.
    OpenQueryErrors:
        "400" "Bad percent-encoding",
        "422" "Refused parameters",
        "500" "An error on our side",
        "503" "The database is busy",;
    /// What a creation may answer but success.
    PostErrors:
        "400" "Not JSON",
        "401" "No valid API key",
        "403" "The key lacks the scope",
        "409" "The state of the data forbids it",
        "412" "It is not what If-Match names",
        "413" "The body is over 1 MiB",
        "415" "The body is not application/json",
        "422" "Refused fields, every one of them",
        "429" "The key has sent its requests for this minute",
        "500" "An error on our side",
        "503" "The database is busy",;
    /// What a change may answer but success.
    PatchErrors:
        "400" "Not JSON",
        "401" "No valid API key",
        "403" "The key lacks the scope",
        "404" "There is no such thing in this tenant",
        "409" "The state of the data forbids it",
        "412" "It is not what If-Match names",
        "413" "The body is over 1 MiB",
        "415" "The body is not application/json",
        "422" "Refused fields, every one of them",
        "429" "The key has sent its requests for this minute",
        "500" "An error on our side",
        "503" "The database is busy",;
    /// What a deletion may answer but success.
    DeleteErrors:
        "400" "Bad percent-encoding",
        "401" "No valid API key",
        "403" "The key lacks the scope",
        "404" "There is no such thing in this tenant",
        "409" "The state of the data forbids it",
        "412" "It is not what If-Match names",
        "422" "Refused parameters",
        "429" "The key has sent its requests for this minute",
        "500" "An error on our side",
        "503" "The database is busy",;
}
