//! API Gateway as template.yaml declares it: the function of each request. Tests that need nothing but HTTP also run against
//! a deployed API (.ci/aws/deploy).

use super::functions::{FUNCTIONS, Function, resource};
use crate::support::api::resume_clock;
use crate::support::{Api, Client};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, Uri};
use http_body_util::BodyExt;
use shared::app::system_clock;
use shared::aws::environment::function_environment;
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::store::client::function_store;
use shared::store::{StoreError, WriteError};
use std::sync::Arc;

pub struct Route {
    /// As the gateway writes it: `ANY /v1/assets/{proxy+}`, or `$default`.
    pub key: String,
    pub function: &'static Function,
}

pub fn routes() -> Vec<Route> {
    let routes = |function: &'static Function| {
        let events = resource(&format!("{}Function", function.resource))["Properties"]["Events"].clone();
        let keys = events.as_mapping().unwrap().iter().map(|(_, event)| {
            assert_eq!((&event["Type"], event["Properties"].get("Auth")), (&"HttpApi".into(), None), "{}", function.package);
            let text = |name: &str| event["Properties"].get(name).and_then(|value| value.as_str());
            text("Path").map_or_else(|| "$default".to_owned(), |path| format!("{} {path}", text("Method").unwrap()))
        });
        keys.map(|key| Route { key, function }).collect::<Vec<_>>()
    };
    FUNCTIONS.iter().flat_map(routes).collect()
}

/// The most specific one, `$default` last ("Create routes for HTTP APIs" in the guide of API Gateway).
pub fn select<'a>(routes: &'a [Route], method: &str, path: &str) -> &'a Route {
    let candidates = routes.iter().filter_map(|route| Some((specificity(&route.key, method, path)?, route)));
    candidates.max_by_key(|(specificity, _)| *specificity).unwrap().1
}

/// For a route that takes the request: not `$default`, a fixed number of parts, the number of fixed parts, a fixed method.
fn specificity(key: &str, method: &str, path: &str) -> Option<(bool, bool, usize, bool)> {
    let Some((known, template)) = key.split_once(' ') else { return Some((false, false, 0, false)) };
    let parts = template.split('/').filter(|part| *part != "{proxy+}");
    let (parts, is_greedy): (Vec<&str>, bool) = (parts.collect(), template.ends_with("{proxy+}"));
    let mut rest = path.split('/');
    let is_start = parts.iter().all(|part| rest.next().is_some_and(|given| given == *part || part.starts_with('{')));
    let is_end = if is_greedy { rest.next().is_some_and(|part| !part.is_empty()) } else { rest.next().is_none() };
    let fixed = parts.iter().filter(|part| !part.starts_with('{')).count();
    ([method, "ANY"].contains(&known) && is_start && is_end).then_some((true, !is_greedy, fixed, known == method))
}

#[test]
fn the_most_specific_route_is_selected() {
    let route = |key: &str| Route { key: key.to_owned(), function: &FUNCTIONS[0] };
    let routes = ["$default", "ANY /a", "ANY /a/{proxy+}", "ANY /a/{id}/c", "GET /a/{id}/c", "ANY /a/b/{proxy+}"].map(route);
    for (method, path, expected) in [
        ("GET", "/a", "ANY /a"),
        ("GET", "/a/", "$default"),
        ("GET", "/a/x", "ANY /a/{proxy+}"),
        ("GET", "/a/x/c", "GET /a/{id}/c"),
        ("POST", "/a/x/c", "ANY /a/{id}/c"),
        ("POST", "/a/x/c/d", "ANY /a/{proxy+}"),
        ("GET", "/a/b/d", "ANY /a/b/{proxy+}"),
        ("GET", "/b", "$default"),
    ] {
        assert_eq!(select(&routes, method, path).key, expected, "{method} {path}");
    }
}

/// The URL of a deployed API, without `/v1`. Its table and its account are those of a function's environment.
const DEPLOYED_API: &str = "TEST_DEPLOYED_API";

/// A client of a new tenant, whose key has every scope.
pub async fn over_http() -> Client {
    let Ok(origin) = std::env::var(DEPLOYED_API) else {
        let (api, client) = Api::with_tenant().await;
        return Client { table: Some(Arc::new(api)), ..client };
    };
    resume_clock();
    let store = function_store(system_clock()).unwrap();
    let create = async || store.create_tenant("Acme".parse().unwrap(), None, MAX_RATE_LIMIT).await;
    // The emulated account may take longer to connect than a function waits. Then there is a tenant too many.
    let created = match create().await {
        Err(WriteError::Store(StoreError::Unavailable(_))) => create().await,
        created => created,
    };
    let created = created.unwrap();
    let router = forwarding(function_environment().unwrap().connector, origin);
    Client { router, key: created.api_key.expose(), tenant: created.tenant_id, table: None, clock: Arc::default() }
}

/// Sends each request to the origin.
fn forwarding(connector: SharedHttpConnector, origin: String) -> Router {
    Router::new().fallback(move |request: Request<Body>| async move {
        let (mut parts, body) = request.into_parts();
        parts.uri = format!("{origin}{}", parts.uri).parse::<Uri>().unwrap();
        let body = SdkBody::from(body.collect().await.unwrap().to_bytes());
        let request = HttpRequest::try_from(Request::from_parts(parts, body)).unwrap();
        let response = connector.call(request).await.unwrap().try_into_http1x().unwrap();
        let (parts, body) = response.into_parts();
        Response::from_parts(parts, Body::from(body.collect().await.unwrap().to_bytes()))
    })
}
