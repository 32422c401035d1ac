//! The functions and API Gateway, as template.yaml declares them: each function has only its own routes. Tests that only need
//! HTTP can also run against a deployed API (.ci/aws/deploy).

use super::api::resume_clock;
use super::document::BASE;
use super::samples::Samples;
use super::{Api, Client};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, Uri};
use http_body_util::BodyExt;
use shared::app::function_store;
use shared::aws::environment::function_environment;
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::services::{App, system_clock};
use shared::store::{Store, StoreError, WriteError};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use utoipa::openapi::OpenApi;
use yaml_serde::Value;

pub struct Function {
    /// Name of the package, the binary and the folder in `functions/`.
    pub package: &'static str,
    /// Name in template.yaml, before `Function` and `Role`.
    pub resource: &'static str,
    pub description: fn() -> OpenApi,
    pub routes: fn() -> Router<App>,
}

const fn function(
    package: &'static str,
    resource: &'static str,
    description: fn() -> OpenApi,
    routes: fn() -> Router<App>,
) -> Function {
    Function { package, resource, description, routes }
}

/// The functions that serve requests.
pub const FUNCTIONS: [Function; 8] = [
    function("assets", "Assets", assets::description, assets::routes),
    function("processes", "Processes", processes::description, processes::routes),
    function("users", "Users", users::description, users::routes),
    function("catalog", "Catalog", catalog::description, catalog::routes),
    function("account", "Account", account::description, account::routes),
    function("sign", "Sign", sign::description, sign::routes),
    function("webhooks", "Webhooks", webhooks::description, webhooks::routes),
    function("meta", "Meta", meta::description, meta::all_routes),
];

pub struct Background {
    pub package: &'static str,
    /// Name in template.yaml, before `Function` and `Role`.
    pub resource: &'static str,
}

/// Functions that serve no requests: one runs on a schedule, one on events of the table's stream, and one on messages in the
/// queues.
pub const BACKGROUND: [Background; 3] = [
    Background { package: "snapshots", resource: "Snapshots" },
    Background { package: "fanout", resource: "Fanout" },
    Background { package: "deliver", resource: "Deliver" },
];

/// Returns names in template.yaml, before `Function` and `Role`.
pub fn resources() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.resource).chain(BACKGROUND.iter().map(|function| function.resource))
}

impl Function {
    pub fn named(package: &str) -> &'static Self {
        FUNCTIONS.iter().find(|function| function.package == package).unwrap_or_else(|| panic!("no function {package}"))
    }

    pub fn router(&self, store: Store) -> Router {
        shared::http::service((self.routes)(), App::new(store))
    }

    /// Returns methods and paths, including HEAD for every GET.
    pub fn operations(&self) -> BTreeSet<(&'static str, String)> {
        let mut operations = BTreeSet::new();
        for (path, item) in (self.description)().paths.paths {
            let path = format!("{BASE}{path}");
            let methods = [
                ("GET", item.get.is_some()),
                ("HEAD", item.get.is_some()),
                ("POST", item.post.is_some()),
                ("PATCH", item.patch.is_some()),
                ("DELETE", item.delete.is_some()),
                ("PUT", item.put.is_some()),
            ];
            operations.extend(methods.into_iter().filter(|(_, exists)| *exists).map(|(name, _)| (name, path.clone())));
        }
        operations
    }
}

pub fn resource(name: &str) -> Value {
    template()["Resources"].get(name).unwrap_or_else(|| panic!("template.yaml has no {name}")).clone()
}

pub fn variables_of_all() -> &'static Value {
    &template()["Globals"]["Function"]["Environment"]["Variables"]
}

/// Parses template.yaml once, because parsing is slow in a debug build.
fn template() -> &'static Value {
    static TEMPLATE: LazyLock<Value> = LazyLock::new(|| yaml_serde::from_str(dev_server::table::TEMPLATE).unwrap());
    &TEMPLATE
}

#[test]
fn every_folder_in_functions_is_a_function_of_the_template() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let background = || BACKGROUND.iter().map(|function| (function.package, function.resource));
    let names = || FUNCTIONS.iter().map(|function| (function.package, function.resource)).chain(background());
    let known: BTreeSet<String> = names().map(|(package, _)| package.to_owned()).collect();
    assert_eq!(folders.collect::<BTreeSet<_>>(), known);
    let of_type = |(name, resource): (&Value, &Value)| {
        (resource["Type"] == "AWS::Serverless::Function").then(|| name.as_str().unwrap().to_owned())
    };
    let declared: BTreeSet<String> = template()["Resources"].as_mapping().unwrap().iter().filter_map(of_type).collect();
    assert_eq!(declared, names().map(|(_, resource)| format!("{resource}Function")).collect());
    for (package, resource_name) in names() {
        let declared = resource(&format!("{resource_name}Function"));
        assert_eq!(declared["Properties"]["CodeUri"], format!("functions/{package}"));
        assert_eq!(declared["Metadata"]["BuildMethod"], "rust-cargolambda");
        assert_eq!(declared["Metadata"]["BuildProperties"]["Binary"], package);
    }
}

pub struct Route {
    /// The route in the gateway's notation: `ANY /v1/assets/{proxy+}`, or `$default`.
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

/// Returns the most specific matching route; `$default` comes last ("Create routes for HTTP APIs" in the guide of API Gateway).
pub fn select<'a>(routes: &'a [Route], method: &str, path: &str) -> &'a Route {
    let candidates = routes.iter().filter_map(|route| Some((specificity(&route.key, method, path)?, route)));
    candidates.max_by_key(|(specificity, _)| *specificity).unwrap().1
}

/// Ranks a matching route: by whether it isn't `$default`, whether its length is fixed, its number of literal segments, and
/// whether its method is fixed.
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

/// Environment variable with the URL of a deployed API, without `/v1`. Table and account come from the same variables as for a
/// function.
const DEPLOYED_API: &str = "TEST_DEPLOYED_API";

/// Creates a tenant. The client's key has all scopes.
pub async fn over_http() -> Client {
    let Ok(origin) = std::env::var(DEPLOYED_API) else {
        let (api, client) = Api::with_tenant().await;
        return Client { table: Some(Arc::new(api)), ..client };
    };
    resume_clock();
    let store = function_store(system_clock()).unwrap();
    let create = async || store.create_tenant("Acme".parse().unwrap(), None, MAX_RATE_LIMIT).await;
    // Connecting to the emulated account can take longer than the timeout. Then the retry creates a second tenant.
    let created = match create().await {
        Err(WriteError::Store(StoreError::Unavailable(_))) => create().await,
        created => created,
    };
    let created = created.unwrap();
    let router = forwarding(function_environment().unwrap().connector, origin);
    Client { router, key: created.api_key.expose(), tenant: created.tenant_id, table: None, clock: Arc::default() }
}

pub async fn samples_over_http() -> (Client, Samples) {
    if std::env::var_os(DEPLOYED_API).is_some() {
        let client = over_http().await;
        let samples = Samples::create(&client).await;
        return (client, samples);
    }
    let (api, client, samples) = Api::with_samples().await;
    (Client { table: Some(Arc::new(api)), ..client }, samples)
}

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
