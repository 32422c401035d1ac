//! The headers that the layers around all handlers read and set. Those of one kind of response are described by its type, and
//! `Dry-Run` and `Idempotent-Replayed` by the parameters that cause them.

use super::describe::headers;
use super::{CHANGED, NOT_MODIFIED, name_of, named};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{HttpMethod, Ref, RefOr, ResponseBuilder};

/// Adds the headers to an operation that its handler's types describe.
pub(in crate::http) fn describe(methods: &[HttpMethod], operation: &mut Operation) {
    let (is_read, is_post) = (methods.contains(&HttpMethod::Get), methods.contains(&HttpMethod::Post));
    if is_post {
        accept(operation, "Idempotency-Key");
    }
    let responses = &mut operation.responses.responses;
    if responses.get("412").is_some_and(|response| name_of(response) == Some(CHANGED)) {
        // The parameter says when, as the default response does.
        responses.remove("412");
        accept(operation, "If-Match");
    } else if is_read && matches!(responses.get("200"), Some(RefOr::T(found)) if found.headers.contains_key("ETag")) {
        let unchanged = ResponseBuilder::new().description("Not modified: `If-None-Match` has the current `ETag`");
        let unchanged = headers(&["ETag"]).fold(unchanged, |response, (name, header)| response.header_ref(name, header));
        responses.insert("304".to_owned(), named(NOT_MODIFIED, unchanged));
        accept(operation, "If-None-Match");
    }
}

/// Adds a request header, which the document describes among its components.
fn accept(operation: &mut Operation, name: &str) {
    operation.parameters.get_or_insert_default().push(RefOr::Ref(Ref::new(format!("#/components/parameters/{name}"))));
}
