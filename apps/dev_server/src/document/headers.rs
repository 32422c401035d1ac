//! Adds request and response headers to all operations of the OpenAPI document. They are described here rather than with
//! each operation, because the layer around all routes reads and sets most of them.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{OpenApi, Ref, RefOr, Required, Response, ResponseBuilder};

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

fn matching(pattern: &str) -> ObjectBuilder {
    string().pattern(Some(pattern))
}

fn integer(minimum: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer)).minimum(Some(minimum))
}

/// The response for all errors without one of their own.
const ANY_ERROR: &str = "default";

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
             stored response instead of taking effect again.",
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

fn response_headers() -> [(&'static str, Header); 16] {
    let header = |name: &'static str, schema: ObjectBuilder, description: &str| {
        (name, HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build())
    };
    [
        header("Content-Disposition", matching("^(attachment|inline); filename="), "Proposes a name for the file."),
        header("Content-Security-Policy", matching("^default-src 'none'"), "Keeps browsers from loading or running anything."),
        header("Dry-Run", matching("^true$"), "Present if nothing was written, because of `dry_run=true`."),
        header(
            "ETag",
            matching(r#"^"[0-9]+-[0-9a-f]{16}"$"#),
            "Identifies this representation of the resource. Send it in `If-Match` or `If-None-Match`.",
        ),
        header(
            "Idempotent-Replayed",
            matching("^true$"),
            "Present if this is the stored response to an earlier request with the same idempotency key.",
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

/// Adds the headers to the components and to every operation.
pub(crate) fn add_to(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    components.parameters.extend(request_headers().map(|(name, parameter)| (name.to_owned(), RefOr::T(parameter))));
    components.headers.extend(response_headers().map(|(name, header)| (name.to_owned(), RefOr::T(header))));
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("GET", &mut item.get),
            ("POST", &mut item.post),
            ("PATCH", &mut item.patch),
            ("PUT", &mut item.put),
            ("DELETE", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                Endpoint { method, path }.add_headers(operation);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Endpoint<'a> {
    method: &'static str,
    path: &'a str,
}

impl Endpoint<'_> {
    /// It reads or changes a single resource that has a version. Movements and signing sessions have none.
    fn is_versioned(self) -> bool {
        let is_action = ["/advance", "/cancel", "/rotate"].iter().any(|end| self.path.ends_with(end));
        let is_resource = ["/{id}", "/{serial}", "/settings"].iter().any(|end| self.path.ends_with(end));
        let is_unversioned = ["/movements", "/sign/"].iter().any(|start| self.path.starts_with(start));
        (is_resource || is_action) && !is_unversioned || self.path.ends_with("/{link_id}")
    }

    /// The signing page, which browsers store.
    fn is_stored_page(self) -> bool {
        self.path == "/sign"
    }

    fn add_headers(self, operation: &mut Operation) {
        let is_versioned = self.is_versioned();
        let accepted = [
            ("Idempotency-Key", self.method == "POST"),
            ("If-Match", is_versioned && self.method != "GET"),
            ("If-None-Match", (is_versioned || self.is_stored_page()) && self.method == "GET"),
        ];
        let accepted = accepted.iter().filter(|(_, is_accepted)| *is_accepted);
        let references = accepted.map(|(name, _)| RefOr::Ref(Ref::new(format!("#/components/parameters/{name}"))));
        operation.parameters.get_or_insert_default().extend(references);
        let responses = &mut operation.responses.responses;
        if (is_versioned || self.is_stored_page()) && self.method == "GET" {
            let response = ResponseBuilder::new().description("Not modified: `If-None-Match` has the current `ETag`").build();
            responses.insert("304".to_owned(), RefOr::T(response));
        }
        for (status, response) in responses {
            if let RefOr::T(response) = response {
                self.add_response_headers(status, response);
            }
        }
    }

    fn add_response_headers(self, status: &str, response: &mut Response) {
        let is_success = status.starts_with('2');
        let is_error = status.starts_with('4') || status == ANY_ERROR;
        let is_part_of_export = is_success && self.path.ends_with("/export");
        let is_file = is_success && self.path.ends_with("/label");
        // Receipts have these headers as pages, and not as JSON.
        let is_page = is_success && ["/labels", "/docs", "/sign"].iter().any(|end| self.path.ends_with(end));
        // Responses with a secret are shown once, so they have no entity tag.
        let shows_secret = self.method == "POST"
            && (["/keys", "/webhooks"].iter().any(|start| self.path.starts_with(start)) || self.path.ends_with("/links"));
        let is_tagged = self.is_versioned() && self.method != "DELETE" || self.is_stored_page();
        let has_entity_tag = !shows_secret && (status == "201" || is_tagged);
        let names = [
            ("Content-Disposition", is_part_of_export || is_file),
            ("Content-Security-Policy", is_page || is_file),
            ("Dry-Run", status == "200" && self.method != "GET"),
            ("ETag", status == "304" || is_success && has_entity_tag),
            ("Idempotent-Replayed", is_success && self.method == "POST"),
            ("Link", is_part_of_export),
            ("Location", status == "201"),
            ("Referrer-Policy", is_page),
            // 409 when a request with the same idempotency key is still in progress.
            ("Retry-After", ["409", ANY_ERROR].contains(&status)),
            ("WWW-Authenticate", status == ANY_ERROR),
            (
                "X-Content-Type-Options",
                is_part_of_export || is_page || is_file || is_success && self.path.ends_with("/signatures/{key}"),
            ),
            ("X-RateLimit-Limit", status == ANY_ERROR),
            ("X-RateLimit-Remaining", status == ANY_ERROR),
            ("X-RateLimit-Reset", status == ANY_ERROR),
            // Every response has it; the errors say so for all.
            ("X-Request-Id", is_error),
            ("X-Unreadable", is_part_of_export),
        ];
        let names = names.iter().filter(|(_, is_sent)| *is_sent);
        response
            .headers
            .extend(names.map(|(name, _)| ((*name).to_owned(), RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))))));
    }
}
