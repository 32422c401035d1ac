//! The gateway's routes: each function gets the requests of its endpoint group, and the function `meta` all others.

use crate::support::functions;
use crate::support::prelude::*;

/// Returns a client without a key, whose requests go to this function.
fn sent_to(function: &Function, api: &Api, client: &Client) -> Client {
    Client { router: function.router(api.store.clone()), key: String::new(), ..client.clone() }
}

#[tokio::test(start_paused = true)]
async fn unsupported_methods_are_405_with_the_supported_ones() {
    let api = Api::start().await;
    let client = api.tenant().await;
    let routes = functions::routes();
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
                let own = sent_to(functions::select(&routes, method, &filled).function, &api, &client);
                let reply = own.send(method, filled.strip_prefix("/v1").unwrap(), None, "").await;
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

#[tokio::test(start_paused = true)]
async fn every_function_refuses_a_request_as_the_dev_server_does() {
    let api = Api::start().await;
    let client = api.tenant().await;
    let dev_server = Client { key: String::new(), ..client.clone() };
    for (method, path, status) in [
        ("GET", format!("/assets/{UNKNOWN_ID}/foo"), 404),
        ("GET", format!("/assets/{UNKNOWN_ID}/histroy"), 404),
        ("POST", format!("/users/{UNKNOWN_ID}/offbord"), 404),
        ("GET", "/asset".to_owned(), 404),
        ("GET", "/catalog".to_owned(), 404),
        ("GET", "/assets//".to_owned(), 404),
        ("GET", "/assets/?page=2".to_owned(), 308),
        ("GET", format!("/users/{UNKNOWN_ID}/offboard/"), 308),
        ("TRACE", format!("/users/{UNKNOWN_ID}/offboard"), 405),
        ("TRACE", format!("/processes/{UNKNOWN_ID}"), 405),
        ("TRACE", "/assets".to_owned(), 405),
        ("TRACE", format!("/movements/{UNKNOWN_ID}/cancel"), 405),
    ] {
        let expected = dev_server.send(method, &path, None, "").await;
        assert_eq!(expected.status.as_u16(), status, "{method} {path}");
        for function in FUNCTIONS {
            let reply = sent_to(&function, &api, &client).send(method, &path, None, "").await;
            let context = format!("{method} {path} at {}", function.package);
            assert_eq!(reply.status, expected.status, "{context}");
            if status != 308 {
                assert_eq!(reply.json()["detail"], expected.json()["detail"], "{context}");
            }
            for name in ["allow", "location", "content-type"] {
                assert_eq!(reply.headers.get(name), expected.headers.get(name), "{context}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_route_executes_nothing_of_other_functions() {
    let api = Api::start().await;
    let client = sent_to(Function::named("meta"), &api, &api.tenant().await);
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

#[test]
fn cargo_lambda_watch_routes_each_path_to_its_function() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml")).unwrap();
    let start = manifest.find("[workspace.metadata.lambda.watch.router]").unwrap();
    let rows = manifest[start..].lines().skip(1).take_while(|line| line.starts_with('"'));
    let router: Vec<(&str, &str)> = rows.map(|line| line.split_once(" = ").unwrap()).collect();
    // cargo-lambda uses axum's router, which panics if paths conflict.
    let unquoted = router.iter().map(|(path, _)| path.trim_matches('"'));
    let _ = unquoted.fold(Router::<()>::new(), |all, path| all.route(path, axum::routing::get(async || ())));
    for function in FUNCTIONS {
        for (_, path) in function.operations() {
            let parts: Vec<&str> = path.split('/').collect();
            let collection = format!("\"{}\"", parts[..3].join("/"));
            let below = format!("\"{}/{{*rest}}\"", parts[..3].join("/"));
            let nearest = if parts.len() == 3 { collection } else { below };
            // Like cargo-lambda's router, an exact path takes precedence over a wildcard.
            let candidates = [format!("\"{path}\""), nearest.clone(), "\"/{*rest}\"".to_owned()];
            let find = |wanted: &String| router.iter().find(|(known, _)| known == wanted);
            let found = candidates.iter().find_map(find).unwrap().1;
            assert_eq!(found, format!("{:?}", function.package), "{path}: {nearest} in Cargo.toml");
        }
    }
}
