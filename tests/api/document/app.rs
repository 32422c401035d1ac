//! The page to look at the inventory, its files, and the way to it from a label. `.ci/pages/app` opens it in a browser.

use crate::support::functions::Function;
use crate::support::{Api, Reply, call};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use serde_json::json;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn send(router: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let request =
        headers.iter().fold(Request::builder().method(method).uri(path), |request, (name, value)| request.header(*name, *value));
    call(router, request.body(Body::empty()).unwrap()).await
}

/// Those of the dev server, and those of the deployed function.
async fn routers() -> (Api, [Router; 2]) {
    let api = Api::start().await;
    let routers = [api.router.clone(), Function::named("meta").router(api.store.clone())];
    (api, routers)
}

/// The paths of the page's files, in its order.
fn named(page: &str) -> Vec<&str> {
    let values = ["src=\"", "href=\""].into_iter().flat_map(|start| page.split(start).skip(1));
    values.filter_map(|rest| rest.split('"').next()).filter(|path| path.starts_with("/v1/app/")).collect()
}

#[tokio::test(start_paused = true)]
async fn the_page_and_its_files_come_from_here_under_a_strict_policy() {
    let (api, routers) = routers().await;
    api.faults.take_requests();
    for router in &routers {
        let page = send(router, "GET", "/v1/app", &[("accept", BROWSER)]).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert_eq!(page.header("cache-control"), "no-cache");
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        let policy = page.header("content-security-policy");
        assert_eq!(
            policy,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src data: blob:; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'"
        );
        let again = send(router, "GET", "/v1/app", &[("if-none-match", page.header("etag"))]).await;
        assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0));
        let text = page.text();
        assert!(
            text.len() <= 40 * 1024 && !text.contains("VERSION") && !text.contains("PRELOADS") && !text.contains("//"),
            "{text}"
        );

        let paths = named(text);
        let types = [(".js", "text/javascript; charset=utf-8"), (".css", "text/css; charset=utf-8")];
        assert!(paths.iter().any(|path| path.ends_with("/start.js")) && paths.len() > 10, "{paths:?}");
        let (folder, _) = paths[0].rsplit_once('/').unwrap();
        let texts = ["en", "de", "fr", "es"].map(|language| format!("{folder}/{language}.json"));
        for path in paths.iter().copied().chain(texts.iter().map(String::as_str)) {
            let file = send(router, "GET", path, &[("accept-encoding", "gzip, deflate, br")]).await;
            let content_type = types.iter().find(|(end, _)| path.ends_with(end)).map_or("application/json", |(_, value)| value);
            assert_eq!((file.status.as_u16(), file.header("content-type")), (200, content_type), "{path}");
            assert_eq!(file.header("content-encoding"), "gzip");
            assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable");
            assert_eq!(file.header("x-content-type-options"), "nosniff");
            assert_eq!(file.bytes[..2], [0x1f, 0x8b], "a gzip header");
            for headers in [&[][..], &[("accept-encoding", "identity")], &[("accept-encoding", "br, gzip;q=0")]] {
                let plain = send(router, "GET", path, headers).await;
                assert_eq!((plain.status.as_u16(), plain.header("content-type")), (200, content_type), "{path}");
                assert!(!plain.headers.contains_key("content-encoding") && !plain.text().is_empty(), "{path} {headers:?}");
                assert!(content_type != "application/json" || plain.json().is_object(), "{path}");
                for reply in [&file, &plain] {
                    assert!(reply.headers.get_all("vary").iter().any(|value| value == "accept-encoding"), "{path} {headers:?}");
                }
            }
            let refused = send(router, "POST", path, &[]).await;
            refused.problem(405, "METHOD_NOT_ALLOWED");
            let missing = path.replace(".js", ".map").replace(".css", ".map").replace(".json", ".map");
            send(router, "GET", &missing, &[]).await.problem(404, "NOT_FOUND");
        }
        for path in ["/v1/app/start.js", "/v1/app/0123456789abcdef/start.js", "/v1/app/x/y/z"] {
            send(router, "GET", path, &[]).await.problem(404, "NOT_FOUND");
        }
    }
    assert_eq!(api.faults.take_requests().len(), 0, "the page needs no call to the table");
}

#[tokio::test(start_paused = true)]
async fn what_is_looked_at_reaches_no_log() {
    let (_api, routers) = routers().await;
    for router in &routers {
        for query in ["?q=ada", "?key=apl_1", "?status=in_use&page=2"] {
            let refused = send(router, "GET", &format!("/v1/app{query}"), &[("accept", BROWSER)]).await;
            refused.problem(422, "VALIDATION_ERROR");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_address_on_a_label_leads_people_to_the_page_whatever_the_tag_is() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.post("/assets", json!({"name": "Laptop"})).await.data();
    let known = asset["asset_tag"].as_str().unwrap();
    api.faults.take_requests();
    for tag in [known, "AST-999999", "INV%2F1", "%3Cscript%3E", "x"] {
        for method in ["GET", "HEAD"] {
            let moved = send(&api.router, method, &format!("/v1/assets/by-tag/{tag}"), &[("accept", BROWSER)]).await;
            assert_eq!((moved.status.as_u16(), moved.bytes.len()), (302, 0), "{tag}");
            assert_eq!(moved.header("location"), format!("/v1/app#/tag/{tag}"));
            assert_eq!(moved.header("cache-control"), "no-store");
            assert!(!moved.header("x-request-id").is_empty());
        }
    }
    assert_eq!(api.faults.take_requests().len(), 0, "nothing is read");
    let path = format!("/v1/assets/by-tag/{known}");
    // Programs, and browsers with a key, get what they always got.
    for accept in ["*/*", "application/json"] {
        send(&api.router, "GET", &path, &[("accept", accept)]).await.problem(401, "UNAUTHORIZED");
    }
    let key = format!("Bearer {}", client.key);
    let read = send(&api.router, "GET", &path, &[("accept", BROWSER), ("authorization", &key)]).await;
    assert_eq!(read.json()["data"]["asset_tag"], known);
    send(&api.router, "GET", "/v1/assets/by-tag/x/y", &[("accept", BROWSER)]).await.problem(404, "NOT_FOUND");
    send(&api.router, "POST", &path, &[("accept", BROWSER)]).await.problem(405, "METHOD_NOT_ALLOWED");
}
