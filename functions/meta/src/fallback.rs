//! Rejects requests that match no route: 405 with `Allow` for the paths of other functions, else a redirect or 404.

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use shared::http::error::ApiError;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The part of the OpenAPI document that says which methods a path has.
#[derive(Deserialize)]
struct Document {
    paths: BTreeMap<String, Methods>,
}

#[derive(Deserialize)]
struct Methods {
    get: Option<Operation>,
    post: Option<Operation>,
    patch: Option<Operation>,
    delete: Option<Operation>,
}

/// An operation of the document; only its presence matters.
#[derive(Deserialize)]
struct Operation {}

/// Every path template with the value of `Allow`. Templates with fewer parameters come first, since they are the closer
/// match.
static PATHS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let paths = serde_json::from_str::<Document>(crate::DOCUMENT).map(|document| document.paths).unwrap_or_default();
    let mut paths: Vec<_> = paths.into_iter().map(|(path, methods)| (path, methods.allow())).collect();
    paths.sort_by_key(|(path, _)| path.matches('{').count());
    paths
});

impl Methods {
    fn allow(&self) -> String {
        let known = [("GET,HEAD", &self.get), ("POST", &self.post), ("PATCH", &self.patch), ("DELETE", &self.delete)];
        known.iter().filter(|(_, method)| method.is_some()).map(|(name, _)| *name).collect::<Vec<_>>().join(",")
    }
}

/// Returns whether a path matches a template such as `/v1/assets/{id}`.
fn matches(path: &str, template: &str) -> bool {
    let mut parts = path.split('/');
    let matches = template
        .split('/')
        .all(|wanted| parts.next().is_some_and(|part| part == wanted || (wanted.starts_with('{') && !part.is_empty())));
    matches && parts.next().is_none()
}

/// Returns the response to a request that API Gateway has no route for.
pub(crate) async fn refuse(request: Request) -> Response {
    let path = request.uri().path();
    let Some((_, allow)) = PATHS.iter().find(|(template, _)| matches(path, template)) else {
        return shared::http::unknown_path(request).await;
    };
    let method = request.method().as_str();
    if allow.split(',').any(|known| known == method) {
        // API Gateway should have a route for it, unless it reads the path differently.
        tracing::warn!("a request for another function came here: check the routes in template.yaml");
        return ApiError::NotFound.into_response();
    }
    let mut response = ApiError::MethodNotAllowed.into_response();
    response.headers_mut().extend(HeaderValue::try_from(allow).ok().map(|allow| (header::ALLOW, allow)));
    response
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
            assert_eq!(matches(path, template), is_match, "{path} {template}");
        }
    }

    #[test]
    fn the_document_says_what_paths_allow() {
        let allow = |path: &str| PATHS.iter().find(|(template, _)| matches(path, template)).map(|(_, allow)| allow.as_str());
        assert_eq!(allow("/v1/processes/instances"), Some("GET,HEAD"));
        assert_eq!(allow("/v1/processes/x"), Some("GET,HEAD,PATCH,DELETE"));
        assert_eq!(allow("/v1/x"), None);
    }
}
