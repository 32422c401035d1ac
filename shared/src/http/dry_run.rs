//! The query parameter `dry_run`, which every write has: its response and its description.

use super::openapi::ANY_STATUS;
use crate::store::DryRun;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Required};

pub(super) const PARAMETER: &str = "dry_run";
/// Marks the response to a dry run.
const DRY_RUN: HeaderName = HeaderName::from_static("dry-run");

/// Turns a response into a dry run's response. In JSON, null replaces values that only the real request would assign. A success
/// gets the header `Dry-Run` and status 200, and loses `Location` and `ETag`.
pub(super) async fn into_dry_run(response: Response, dry_run: &DryRun) -> Response {
    let (mut parts, body) = response.into_parts();
    let content_type = parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_json = matches!(content_type, Some(b"application/json" | b"application/problem+json"));
    let body = match is_json {
        // A handler's body is in memory and can't fail.
        true => Body::from(with_nulls(&body.collect().await.map(|body| body.to_bytes()).unwrap_or_default(), dry_run)),
        false => body,
    };
    if parts.status.is_success() {
        parts.headers.insert(DRY_RUN, HeaderValue::from_static("true"));
        parts.headers.remove(header::LOCATION);
        parts.headers.remove(header::ETAG);
        parts.status = StatusCode::OK;
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, body)
}

/// Replaces placeholders with null, but not in member names. Works on the text, so that numbers keep their digits.
fn with_nulls(json: &[u8], dry_run: &DryRun) -> Vec<u8> {
    let mut written = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let (before, string) = rest.split_at(start);
        let (string, after) = string.split_at(string_len(string));
        // Placeholders have no characters that JSON escapes.
        let text = string.get(1..string.len() - 1).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        let is_name = after.first() == Some(&b':');
        written.extend_from_slice(before);
        written.extend_from_slice(if !is_name && dry_run.is_placeholder(text) { b"null" } else { string });
        rest = after;
    }
    written.extend_from_slice(rest);
    written
}

/// Length of the JSON string at the start of `json`, including its quotes.
fn string_len(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Adds the parameter to a write. A creation returns 200 only in a dry run. Just the parameter describes that status: with
/// another schema, generated clients would return one of two types. The default response would cover the 200, so `4XX` and `5XX`
/// replace it. If the operation has a 200 anyway, the description of the 200 mentions dry runs.
pub(super) fn describe(operation: &mut Operation) {
    let parameter = ParameterBuilder::new()
        .name(PARAMETER)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .schema(Some(ObjectBuilder::new().schema_type(Type::Boolean)))
        .description(Some(
            "With `true`, the request is processed as usual, but nothing is written. The response is the error that the request would get, or 200 with `Dry-Run: true` and the body of the real response, even if that is a 201. IDs, \
             tags, numbers and secrets that are not assigned yet are null.",
        ));
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
    let responses = &mut operation.responses.responses;
    if !responses.contains_key("201") {
        return;
    }
    if let Some(RefOr::T(changed)) = responses.get_mut("200") {
        changed.description =
            "Changed. Also the status of a dry run that would create the resource; IDs and tags not yet assigned are then null, regardless of the schema."
                .to_owned();
    } else if let Some(errors) = responses.remove(ANY_STATUS) {
        responses.extend(["4XX", "5XX"].map(|range| (range.to_owned(), errors.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dry_run(texts: &[&str]) -> DryRun {
        let dry_run = DryRun::default();
        texts.iter().for_each(|text| dry_run.add_placeholder(*text));
        dry_run
    }

    #[test]
    fn placeholders_become_null_and_everything_else_stays() {
        let known = dry_run(&["id-1", "id-2"]);
        for (json, expected) in [
            (r#"{"id":"id-1","of":["id-2","id-3"]}"#, r#"{"id":null,"of":[null,"id-3"]}"#),
            (r#"{"a":"","b":"id-1"}"#, r#"{"a":"","b":null}"#),
            (r#"{"id-1":"id-1","price":1249.00}"#, r#"{"id-1":null,"price":1249.00}"#),
            (r#"{"a":"\"id-1\"","b":"\\","c":"id-1"}"#, r#"{"a":"\"id-1\"","b":"\\","c":null}"#),
            (r#"{"path":"/v1/assets/id-1","text":"see id-1"}"#, r#"{"path":null,"text":"see id-1"}"#),
            (r#""id-1""#, "null"),
            ("[]", "[]"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(with_nulls(json.as_bytes(), &known)).unwrap(), expected, "{json}");
        }
    }
}
