//! 405 for the paths of other functions.

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use shared::http::error::ApiError;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The part of the document that says which methods a path has.
#[derive(Deserialize)]
struct Document {
    paths: BTreeMap<String, Methods>,
}

#[derive(Deserialize)]
struct Methods {
    get: Option<Present>,
    post: Option<Present>,
    patch: Option<Present>,
    delete: Option<Present>,
}

/// Anything at all.
#[derive(Deserialize)]
struct Present {}

/// Every path and what it allows, those with the fewest parameters first: they are the closest match.
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

/// Whether a path is one of a template such as `/v1/assets/{id}`.
fn fits(path: &str, template: &str) -> bool {
    let mut parts = path.split('/');
    let fits = template
        .split('/')
        .all(|wanted| parts.next().is_some_and(|part| part == wanted || (wanted.starts_with('{') && !part.is_empty())));
    fits && parts.next().is_none()
}

/// Refuses what the gateway has no route for: 405 with `Allow` for a path of the API, else 308 or 404.
pub(crate) async fn refuse(request: Request) -> Response {
    let path = request.uri().path();
    let Some((_, allow)) = PATHS.iter().find(|(template, _)| fits(path, template)) else {
        return shared::http::unmatched(request).await;
    };
    let method = request.method().as_str();
    if allow.split(',').any(|known| known == method) {
        // The gateway has a route for it, unless the path is written in a way that the gateway reads otherwise.
        tracing::warn!("the gateway gave a request of another function's to this one: is it in template.yaml?");
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
    fn a_path_fits_its_template_only() {
        for (path, template, is_fit) in [
            ("/v1/assets", "/v1/assets", true),
            ("/v1/assets/x", "/v1/assets/{id}", true),
            ("/v1/assets/", "/v1/assets/{id}", false),
            ("/v1/assets/x/y", "/v1/assets/{id}", false),
            ("/v1/assets", "/v1/assets/{id}", false),
            ("/v1/assets/x/processes", "/v1/assets/{id}/processes", true),
        ] {
            assert_eq!(fits(path, template), is_fit, "{path} {template}");
        }
    }

    #[test]
    fn the_document_says_what_paths_allow() {
        let allow = |path: &str| PATHS.iter().find(|(template, _)| fits(path, template)).map(|(_, allow)| allow.as_str());
        assert_eq!(allow("/v1/processes/instances"), Some("GET,HEAD"));
        assert_eq!(allow("/v1/processes/x"), Some("GET,HEAD,PATCH,DELETE"));
        assert_eq!(allow("/v1/x"), None);
    }
}
