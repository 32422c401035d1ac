//! What the document says of headers, for every operation in one place: the layer around all routes sets and reads most
//! of them (contract 6 and 8).

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{OpenApi, Ref, RefOr, Required, Response, ResponseBuilder};

fn any_text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

/// Text that looks like this.
fn text(pattern: &str) -> ObjectBuilder {
    any_text().pattern(Some(pattern))
}

/// A whole number from this one on.
fn whole(minimum: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer)).minimum(Some(minimum))
}

/// A list of entity tags, perhaps weak ones, or `*`.
const TAGS: &str = r#"^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$"#;

/// The headers of requests.
fn parameters() -> [(&'static str, Parameter); 3] {
    let parameter = |name: &'static str, schema: ObjectBuilder, description: &str| {
        let builder = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header).required(Required::False);
        (name, builder.schema(Some(schema)).description(Some(description)).build())
    };
    [
        parameter(
            "Idempotency-Key",
            text("^[!-~]([ -~]*[!-~])?$").max_length(Some(255)),
            "What you call the request: sent again within 24 hours with the same body it is answered again, and done once.",
        ),
        parameter("If-Match", text(TAGS), "Change it only if this is its `ETag`; 412 otherwise."),
        // What is no list of tags names nothing.
        parameter("If-None-Match", any_text(), "Show it only if its `ETag` is another one; 304 otherwise."),
    ]
}

/// The headers of answers.
fn headers() -> [(&'static str, Header); 10] {
    let header = |name: &'static str, schema: ObjectBuilder, description: &str| {
        (name, HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build())
    };
    [
        header("Cache-Control", text("^no-store$"), "Always `no-store`."),
        header("ETag", text(r#"^"[0-9]+-[0-9a-f]{16}"$"#), "Names the thing as it is shown: for `If-Match` and `If-None-Match`."),
        header("Idempotent-Replayed", text("^true$"), "The request came before, and this is the answer that it got then."),
        header("Location", text("^/v1/"), "The path of the new thing."),
        header("Retry-After", whole(0), "In how many seconds to send the request again."),
        header("WWW-Authenticate", text("^Bearer$"), "How to send a key."),
        header("X-RateLimit-Limit", whole(1), "How many requests a minute the key may make."),
        header("X-RateLimit-Remaining", whole(0), "How many of them are left."),
        header("X-RateLimit-Reset", whole(0), "When the next minute begins, in seconds since 1970."),
        header("X-Request-Id", text("^[ -~]+$"), "The request's name in the log."),
    ]
}

/// Adds the headers to every operation.
pub(crate) fn describe(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    components.parameters.extend(parameters().map(|(name, parameter)| (name.to_owned(), RefOr::T(parameter))));
    components.headers.extend(headers().map(|(name, header)| (name.to_owned(), RefOr::T(header))));
    for (path, item) in &mut document.paths.paths {
        let operations =
            [("GET", &mut item.get), ("POST", &mut item.post), ("PATCH", &mut item.patch), ("DELETE", &mut item.delete)];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                Described { method, path }.complete(operation);
            }
        }
    }
}

/// One operation.
#[derive(Clone, Copy)]
struct Described<'a> {
    method: &'static str,
    path: &'a str,
}

impl Described<'_> {
    /// Whether it answers, or changes, one thing that has versions. Movements have none: their runs do.
    fn is_of_one_thing(self) -> bool {
        let step = ["/advance", "/cancel", "/rotate"].iter().any(|end| self.path.ends_with(end));
        let shown = self.path.ends_with("/{id}") || self.path == "/v1/settings";
        (shown || step) && !self.path.starts_with("/v1/movements")
    }

    fn complete(self, operation: &mut Operation) {
        let one = self.is_of_one_thing();
        let sent = [
            ("Idempotency-Key", self.method == "POST"),
            ("If-Match", one && self.method != "GET"),
            ("If-None-Match", one && self.method == "GET"),
        ];
        let sent = sent.iter().filter(|(_, is_read)| *is_read);
        let references = sent.map(|(name, _)| RefOr::Ref(Ref::new(format!("#/components/parameters/{name}"))));
        operation.parameters.get_or_insert_default().extend(references);
        let responses = &mut operation.responses.responses;
        let needs_key = responses.contains_key("401");
        if one && self.method == "GET" {
            let response = ResponseBuilder::new().description("It is what If-None-Match names").build();
            responses.insert("304".to_owned(), RefOr::T(response));
        }
        for (status, response) in responses {
            if let RefOr::T(response) = response {
                self.answered(status, needs_key, response);
            }
        }
    }

    fn answered(self, status: &str, needs_key: bool, response: &mut Response) {
        let is_success = status.starts_with('2');
        // What shows a key's secret is shown once, and never compared.
        let shows_secret = self.method == "POST" && self.path.starts_with("/v1/keys");
        let shows_one = !shows_secret && (status == "201" || self.is_of_one_thing() && self.method != "DELETE");
        let names = [
            ("Cache-Control", true),
            ("ETag", status == "304" || is_success && shows_one),
            ("Idempotent-Replayed", is_success && self.method == "POST"),
            ("Location", status == "201"),
            // 409 while the same request is being answered.
            ("Retry-After", ["409", "429", "503"].contains(&status)),
            ("WWW-Authenticate", status == "401"),
            ("X-RateLimit-Limit", needs_key && status != "401"),
            ("X-RateLimit-Remaining", needs_key && status != "401"),
            ("X-RateLimit-Reset", needs_key && status != "401"),
            ("X-Request-Id", true),
        ];
        let names = names.iter().filter(|(_, is_sent)| *is_sent);
        response
            .headers
            .extend(names.map(|(name, _)| ((*name).to_owned(), RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))))));
    }
}
