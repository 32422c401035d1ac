//! Requests as the gateway routes them: each function gets its own routes, and the function `meta` the `$default` route.

use crate::support::functions::{FUNCTIONS, Function};
use crate::support::samples::Samples;
use crate::support::{Api, Client, UNKNOWN_ID};
use std::collections::BTreeSet;

/// Returns a client without a key whose requests go to the `$default` route.
async fn default_route() -> (Api, Client) {
    let api = Api::start().await;
    let router = Function::named("meta").router(api.store.clone());
    let client = api.tenant().await;
    (api, Client { router, key: String::new(), ..client })
}

#[tokio::test]
async fn the_default_route_responds_with_405_for_the_paths_of_every_function() {
    let (api, client) = default_route().await;
    api.faults.take_requests();
    let mut seen = 0;
    for function in FUNCTIONS {
        let paths: BTreeSet<String> = function.operations().into_iter().map(|(_, path)| path).collect();
        for path in paths {
            let filled = path
                .replace("{id}", UNKNOWN_ID)
                .replace("{link_id}", UNKNOWN_ID)
                .replace("{key}", "sign")
                .replace("{serial}", "SN-1");
            for method in ["OPTIONS", "TRACE"] {
                let reply = client.send(method, filled.strip_prefix("/v1").unwrap(), None, "").await;
                reply.problem(405, "METHOD_NOT_ALLOWED");
                let allowed: BTreeSet<&str> = reply.header("allow").split(',').collect();
                let has = function.operations().into_iter().filter(|(_, known)| *known == path).map(|(method, _)| method);
                assert_eq!(allowed, has.collect(), "{path}");
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} paths");
    assert_eq!(api.faults.take_requests().len(), 0, "a 405 needs no call to the table");
}

/// What a deployed service says of a wrong path or method is what the dev server says.
#[tokio::test]
async fn the_default_route_says_the_same_as_the_dev_server() {
    let (api, client) = default_route().await;
    let dev_server = Client { router: api.router.clone(), ..client.clone() };
    for (method, path, status) in [
        ("GET", format!("/assets/{UNKNOWN_ID}/foo"), 404),
        ("GET", format!("/assets/{UNKNOWN_ID}/histroy"), 404),
        ("GET", "/asset".to_owned(), 404),
        ("GET", "/catalog".to_owned(), 404),
        ("POST", format!("/processes/{UNKNOWN_ID}"), 405),
        ("DELETE", "/assets".to_owned(), 405),
        ("PUT", format!("/movements/{UNKNOWN_ID}/cancel"), 405),
    ] {
        let deployed = client.send(method, &path, None, "").await;
        let local = dev_server.send(method, &path, None, "").await;
        assert_eq!((deployed.status.as_u16(), local.status.as_u16()), (status, status), "{method} {path}");
        assert_eq!(deployed.json()["detail"], local.json()["detail"], "{method} {path}");
        assert_eq!(deployed.header("allow"), local.header("allow"), "{method} {path}");
    }
}

#[tokio::test]
async fn the_default_route_executes_nothing_of_other_functions() {
    let (api, client) = default_route().await;
    api.faults.take_requests();
    for function in FUNCTIONS.iter().filter(|function| function.package != "meta") {
        for (method, path) in function.operations().iter().filter(|(method, _)| *method != "HEAD") {
            client.send(method, path.strip_prefix("/v1").unwrap(), None, "").await.problem(404, "NOT_FOUND");
        }
    }
    client.get("/nowhere").await.problem(404, "NOT_FOUND");
    let moved = client.get("/assets/?page=2").await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (308, "/v1/assets?page=2"));
    assert_eq!(client.get("/openapi.json").await.status.as_u16(), 200);
    assert_eq!(api.faults.take_requests().len(), 0, "none of these needs a call to the table");
    assert_eq!(client.get("/health").await.status.as_u16(), 200);
}

#[tokio::test]
async fn head_goes_to_the_function_that_has_get() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    for function in FUNCTIONS {
        let own = Client { router: function.router(api.store.clone()), ..client.clone() };
        for (_, path) in function.operations().iter().filter(|(method, path)| *method == "HEAD" && !path.contains('{')) {
            let path = samples.path(path);
            let reply = own.send("HEAD", &path, None, "").await;
            // With the secret of a signing link only, not with a key.
            let status = if path.starts_with("/sign/") { 401 } else { 200 };
            assert_eq!((reply.status.as_u16(), reply.bytes.len()), (status, 0), "{path}");
        }
    }
}

#[test]
fn cargo_lambda_watch_routes_each_path_to_its_function() {
    let manifest = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml")).unwrap();
    let start = manifest.find("[workspace.metadata.lambda.watch.router]").unwrap();
    let rows = manifest[start..].lines().skip(1).take_while(|line| line.starts_with('"'));
    let router: Vec<(&str, &str)> = rows.map(|line| line.split_once(" = ").unwrap()).collect();
    // cargo-lambda's router is axum's, which refuses paths that contradict each other.
    let unquoted = router.iter().map(|(path, _)| path.trim_matches('"'));
    let _ = unquoted.fold(axum::Router::<()>::new(), |all, path| all.route(path, axum::routing::get(async || ())));
    for function in FUNCTIONS {
        for (_, path) in function.operations() {
            let parts: Vec<&str> = path.split('/').collect();
            let collection = format!("\"{}\"", parts[..3].join("/"));
            let below = format!("\"{}/{{*rest}}\"", parts[..3].join("/"));
            let nearest = if parts.len() == 3 { collection } else { below };
            // As cargo-lambda's router: a path of its own comes before all those below another.
            let candidates = [format!("\"{path}\""), nearest.clone(), "\"/{*rest}\"".to_owned()];
            let find = |wanted: &String| router.iter().find(|(known, _)| known == wanted);
            let found = candidates.iter().find_map(find).unwrap().1;
            assert_eq!(found, format!("{:?}", function.package), "{path}: {nearest} in Cargo.toml");
        }
    }
}
