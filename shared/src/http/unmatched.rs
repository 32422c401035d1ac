//! Requests that match no route: 405 with `Allow`, 404 with similar paths, or a redirect.

use super::responses::ApiError;
use super::routes::BASE;
use crate::domain::values::field_error::nearest_first;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::LazyLock;

/// The hint for an unknown path without similar paths.
const ALL_PATHS: &str = "All paths start with /v1/; /v1/openapi.json describes them.";

const MAX_NAMED_PATHS: usize = 8;

/// Every path template of the API with its `Allow` value. A test derives the list from the OpenAPI document. With this list,
/// every function rejects a request exactly as the function for the path would.
const LIST: &str = include_str!("paths.txt");

/// [`LIST`] with full paths. Templates with fewer parameters come first, because they match more closely.
static PATHS: LazyLock<Vec<(String, &str)>> = LazyLock::new(|| {
    let mut paths: Vec<_> = LIST.lines().filter_map(|line| line.split_once(' ')).collect();
    paths.sort_by_key(|(path, _)| path.matches('{').count());
    paths.into_iter().map(|(path, allow)| (format!("{BASE}{path}"), allow)).collect()
});

/// Number of parts in the longest template.
static MAX_PARTS: LazyLock<usize> =
    LazyLock::new(|| PATHS.iter().map(|(template, _)| template.split('/').count()).max().unwrap_or_default());

/// Responds to a request that matches no route of this function.
pub(super) async fn refuse(request: Request) -> Response {
    let parts = parts(request.uri().path());
    let Some((_, allow)) = PATHS.iter().find(|(template, _)| matches(&parts, template)) else {
        return unknown_path(&request, alternatives_to(&parts));
    };
    let method = request.method().as_str();
    if allow.split(',').any(|known| known == method) {
        tracing::warn!("received a request for another function: check the routes in template.yaml");
        return ApiError::UnknownPath(ALL_PATHS.to_owned()).into_response();
    }
    let mut response = ApiError::MethodNotAllowed(methods_of(&parts, allow)).into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

/// Redirects to the path without its trailing slash, or returns a 404 with a hint.
fn unknown_path(request: &Request, hint: String) -> Response {
    let path = request.uri().path();
    let unknown = || ApiError::UnknownPath(hint).into_response();
    // Redirect only below /v1/: a Location of `//host` would redirect to another site.
    let bare = path.strip_suffix('/').filter(|bare| path.starts_with("/v1/") && !bare.ends_with('/'));
    let Some(bare) = bare else { return unknown() };
    let target = request.uri().query().map_or_else(|| bare.to_owned(), |query| format!("{bare}?{query}"));
    match HeaderValue::try_from(target) {
        Ok(target) => (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, target)]).into_response(),
        Err(_) => unknown(),
    }
}

/// Splits a path. Stops one part after the longest template, so that long paths don't cost more to match.
fn parts(path: &str) -> Vec<&str> {
    path.split('/').take(*MAX_PARTS + 1).collect()
}

/// Whether a part of a path matches a part of a template such as `/v1/assets/{id}`.
fn part_matches(part: &str, template: &str) -> bool {
    part == template || template.starts_with('{') && !part.is_empty()
}

/// Whether the template's paths can start with `parts`.
fn begins(parts: &[&str], template: &str) -> bool {
    let mut templates = template.split('/');
    parts.iter().all(|part| templates.next().is_some_and(|template| part_matches(part, template)))
}

fn matches(parts: &[&str], template: &str) -> bool {
    begins(parts, template) && parts.len() == template.split('/').count()
}

/// Lists templates with their methods: `GET/POST /v1/assets, GET /v1/users`.
fn listed<'a>(paths: impl IntoIterator<Item = &'a (String, &'a str)>) -> String {
    let named = paths.into_iter().take(MAX_NAMED_PATHS).map(|(template, allow)| {
        let methods = allow.split(',').filter(|method| *method != "HEAD").collect::<Vec<_>>().join("/");
        format!("{methods} {template}")
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Returns the templates of paths that can start with `parts`. A literal path such as `/v1/assets/seen` doesn't count as
/// `/v1/assets/{id}`.
fn beginning_with(parts: &[&str]) -> impl Iterator<Item = &'static (String, &'static str)> {
    let is_named =
        PATHS.iter().any(|(template, _)| matches(parts, template) && template.split('/').next_back() == parts.last().copied());
    let name = parts.len().saturating_sub(1);
    let has_name = move |template: &str| !is_named || !template.split('/').nth(name).is_some_and(|part| part.starts_with('{'));
    PATHS.iter().filter(move |(template, _)| begins(parts, template) && has_name(template))
}

/// Builds the detail of a 405: the path's methods, and the paths below it.
fn methods_of(parts: &[&str], allow: &str) -> String {
    let below: Vec<_> = beginning_with(parts).filter(|(template, _)| !matches(parts, template)).collect();
    let below = if below.is_empty() { String::new() } else { format!(" Below it: {}.", listed(below)) };
    format!("This path takes {}.{below}", allow.replace(',', ", "))
}

/// Builds the hint of a 404: the paths below the longest existing prefix, most similar first.
fn alternatives_to(parts: &[&str]) -> String {
    // The first part is empty, because all paths start with a slash.
    for depth in (2..parts.len()).rev() {
        let (parent, missing) = (parts.get(..depth).unwrap_or_default(), parts.get(depth).copied().unwrap_or_default());
        let next = |template: &str| template.split('/').nth(depth).map(str::to_owned);
        let below = beginning_with(parent);
        let mut below: Vec<_> = below.filter_map(|path| Some((next(&path.0)?, path))).collect();
        if !below.is_empty() {
            let names: Vec<String> = below.iter().map(|(name, _)| name.clone()).collect();
            let order = nearest_first(missing, names.iter().map(String::as_str));
            below.sort_by_key(|(name, _)| order.iter().position(|known| known == name).unwrap_or(usize::MAX));
            return format!(
                "Similar paths: {}; /v1/openapi.json describes all paths.",
                listed(below.into_iter().map(|(_, path)| path))
            );
        }
    }
    ALL_PATHS.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_matches_its_own_template_only() {
        for (path, template, is_match) in [
            ("/v1/assets", "/v1/assets", true),
            ("/v1/assets/x", "/v1/assets/{id}", true),
            ("/v1/assets/", "/v1/assets/{id}", false),
            ("/v1/assets/x/y", "/v1/assets/{id}", false),
            ("/v1/assets", "/v1/assets/{id}", false),
            ("/v1/assets/x/processes", "/v1/assets/{id}/processes", true),
        ] {
            assert_eq!(matches(&parts(path), template), is_match, "{path} {template}");
        }
    }

    #[test]
    fn the_list_says_what_paths_allow() {
        let allow = |path: &str| PATHS.iter().find(|(template, _)| matches(&parts(path), template)).map(|(_, allow)| *allow);
        assert_eq!(allow("/v1/processes/instances"), Some("GET,HEAD"));
        assert_eq!(allow("/v1/assets/by-serial/x"), Some("PUT"));
        assert_eq!(allow("/v1/processes/x"), Some("GET,HEAD,PATCH,DELETE"));
        assert_eq!(allow("/v1/x"), None);
    }

    #[test]
    fn errors_say_what_there_is() {
        let text = methods_of(&parts("/v1/processes/instances/x"), "GET,HEAD");
        assert!(text.starts_with("This path takes GET, HEAD. Below it: "), "{text}");
        assert!(text.contains("POST /v1/processes/instances/{id}/cancel"), "{text}");
        for path in ["/v1/health", "/v1/assets/seen", "/v1/users/batch"] {
            assert_eq!(methods_of(&parts(path), "POST"), "This path takes POST.", "{path}");
        }
        for (path, first) in [
            ("/v1/asset", "Similar paths: GET/POST /v1/assets,"),
            ("/v1/assets/x/histroy", "Similar paths: GET /v1/assets/{id}/history,"),
            ("/v1/catalog/model/x/y/z", "Similar paths: GET/POST /v1/catalog/models,"),
            ("/v1/movements/x/cancle", "Similar paths: POST /v1/movements/{id}/cancel,"),
            ("/v1/assets/seen/x", "Similar paths: POST /v1/assets/seen,"),
            ("/v2/assets", "All paths start with /v1/"),
        ] {
            let text = alternatives_to(&parts(path));
            assert!(text.starts_with(first), "{path}: {text}");
            assert!(text.contains("/v1/openapi.json"), "{path}: {text}");
        }
    }
}
