//! Descriptions of the request and response headers, which the OpenAPI document has once.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr, Required};

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

fn matching(pattern: &str) -> ObjectBuilder {
    string().pattern(Some(pattern))
}

fn integer(minimum: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer)).minimum(Some(minimum))
}

/// The pattern of a list of entity tags, weak or strong, or `*`.
const ENTITY_TAGS: &str = r#"^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$"#;

fn request_headers() -> [(&'static str, Parameter); 3] {
    let parameter = |name: &'static str, schema: ObjectBuilder, description: &str| {
        let builder = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header).required(Required::False);
        (name, builder.schema(Some(schema)).description(Some(description)).build())
    };
    [
        parameter(
            "Idempotency-Key",
            matching("^[!-~]([ -~]*[!-~])?$").max_length(Some(255)),
            "Makes the request safe to repeat. Within 24 hours, a request with the same key, path, query and body replays the \
             stored response, with `Idempotent-Replayed: true`, instead of taking effect again. A batch or an import that was interrupted goes on where it stopped.",
        ),
        parameter(
            "If-Match",
            matching(ENTITY_TAGS),
            "Makes the change only if the resource's `ETag` is in this list. Returns 412 otherwise.",
        ),
        // Without a pattern: an invalid list is not an error, it just matches nothing.
        parameter(
            "If-None-Match",
            string(),
            "Returns the resource only if its `ETag` is not in this list. Returns 304 otherwise.",
        ),
    ]
}

fn response_headers() -> [(&'static str, Header); 14] {
    let header = |name: &'static str, schema: ObjectBuilder, description: &str| {
        (name, HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build())
    };
    [
        header("Content-Disposition", matching("^(attachment|inline); filename="), "Proposes a name for the file."),
        header("Content-Security-Policy", matching("^default-src 'none'"), "Keeps browsers from loading or running anything."),
        header(
            "ETag",
            matching(r#"^"[0-9]+-[0-9a-f]{16}"$"#),
            "Identifies this representation of the resource. Send it in `If-Match` or `If-None-Match`.",
        ),
        header(
            "Link",
            matching(r#"^</v1/.+>; rel="next"$"#),
            "The path of the next part, as `rel=\"next\"`. Absent on the last part.",
        ),
        header("Location", matching("^/v1/"), "The path of the new resource."),
        header("Referrer-Policy", matching("^no-referrer$"), "Keeps browsers from telling others the address of the page."),
        header("Retry-After", integer(0), "The number of seconds to wait before you send the request again."),
        header("WWW-Authenticate", matching("^Bearer$"), "The authentication scheme, always `Bearer`."),
        header("X-Content-Type-Options", matching("^nosniff$"), "Forbids browsers to take the body for anything else."),
        header("X-RateLimit-Limit", integer(1), "The number of requests that the API key may send per minute."),
        header(
            "X-RateLimit-Remaining",
            integer(0),
            "The number of requests left in the current minute. Absent if the request could not be counted.",
        ),
        header("X-RateLimit-Reset", integer(0), "The Unix time, in seconds, at which the next minute begins."),
        header("X-Request-Id", matching("^[ -~]+$"), "Identifies the request in the log."),
        header(
            "X-Unreadable",
            matching("^[0-9a-f-]+(, [0-9a-f-]+)*$"),
            "IDs of damaged records, which are left out; at most 20.",
        ),
    ]
}

/// Adds the headers to the components. The types of requests and responses refer to them.
pub(crate) fn add_to(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    components.parameters.extend(request_headers().map(|(name, parameter)| (name.to_owned(), RefOr::T(parameter))));
    components.headers.extend(response_headers().map(|(name, header)| (name.to_owned(), RefOr::T(header))));
}
