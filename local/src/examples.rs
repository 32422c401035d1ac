//! Examples of requests, responses and problem documents in the OpenAPI document. A test records them from real ones in
//! docs/openapi-examples.json.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, Content, OpenApi, PathItem, RefOr, Response};

/// The file, which is read whenever the document is made, so that one run of the tests can record it and use it.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi-examples.json");

/// Examples by media type.
type ByMediaType = BTreeMap<String, Value>;

/// The examples of one operation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OperationExamples {
    request: ByMediaType,
    /// By status.
    responses: BTreeMap<String, ByMediaType>,
}

/// What the file contains.
#[derive(Default, Deserialize)]
struct Examples {
    /// By operation ID.
    operations: BTreeMap<String, OperationExamples>,
    /// By code.
    problems: BTreeMap<String, Value>,
}

/// Reads the file. Nothing comes from a file that is missing or damaged: the tests notice that.
fn read() -> Examples {
    std::fs::read(FILE).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Returns a problem document with this code.
#[must_use]
pub fn problem(code: &str) -> Option<Value> {
    read().problems.remove(code)
}

/// Adds its examples to every operation: to the request body and to successful responses.
pub(crate) fn add_to(document: &mut OpenApi) {
    let mut examples = read().operations;
    let components = document.components.get_or_insert_default();
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        let id = operation.operation_id.as_deref().unwrap_or_default();
        if let Some(examples) = examples.remove(id) {
            examples.add_to(operation, components);
        }
    }
}

/// Returns the operations of a path.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.patch, &mut item.put, &mut item.delete].into_iter().flatten()
}

impl OperationExamples {
    fn add_to(self, operation: &mut Operation, components: &mut Components) {
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            add(self.request, &mut body.content);
        }
        for (status, examples) in self.responses {
            let response = operation.responses.responses.get_mut(&status);
            if let Some(response) = response.and_then(|response| resolved(response, components)) {
                add(examples, &mut response.content);
            }
        }
    }
}

/// Follows a reference to one of the components.
fn resolved<'a>(response: &'a mut RefOr<Response>, components: &'a mut Components) -> Option<&'a mut Response> {
    match response {
        RefOr::T(response) => Some(response),
        RefOr::Ref(reference) => {
            let name = reference.ref_location.strip_prefix("#/components/responses/")?;
            match components.responses.get_mut(name)? {
                RefOr::T(response) => Some(response),
                RefOr::Ref(_) => None,
            }
        }
    }
}

/// Adds examples where there are none: operations can share a response.
fn add<'a>(mut examples: ByMediaType, content: impl IntoIterator<Item = (&'a String, &'a mut RefOr<Content>)>) {
    for (media_type, content) in content {
        if let RefOr::T(content) = content
            && content.example.is_none()
        {
            content.example = examples.remove(media_type);
        }
    }
}
