//! The documentation page and the inventory page, their files, and the redirect from a label. `.ci/pages/app` tests the
//! inventory page in a browser.

use crate::support::prelude::*;
use sha2::Digest;

/// The `Accept` header that browsers send for a page.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

async fn send(router: &Router, method: &str, path: &str, accept: &str) -> Reply {
    send_with(router, method, path, &[("accept", accept)]).await
}

async fn send_with(router: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    call(router, request.body(Body::empty()).unwrap()).await
}

async fn routers() -> (Api, [Router; 2]) {
    let api = Api::start().await;
    let routers = [api.router.clone(), Function::named("meta").router(api.store.clone())];
    (api, routers)
}

fn directives(policy: &str) -> BTreeMap<&str, &str> {
    policy.split("; ").map(|directive| directive.split_once(' ').unwrap()).collect()
}

fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(&start).skip(1).map(|rest| rest.split_once('"').unwrap().0).collect()
}

#[tokio::test(start_paused = true)]
async fn the_index_is_json_unless_the_client_prefers_html() {
    let (api, routers) = routers().await;
    api.faults.take_requests();
    for (router, path) in routers.iter().flat_map(|router| [(router, "/"), (router, "/v1")]) {
        for accept in ["*/*", "", "application/json", "text/html;q=0.5, */*;q=0.9"] {
            let index = send(router, "GET", path, accept).await;
            assert_eq!((index.status.as_u16(), index.header("content-type")), (200, "application/json"), "{path} {accept}");
            let document = send(router, "GET", "/v1/openapi.json", "*/*").await.json();
            let expected = json!({
                "name": document["info"]["title"], "version": document["info"]["version"],
                "app": "/v1/app", "documentation": "/v1/docs", "openapi": "/v1/openapi.json", "health": "/v1/health"
            });
            assert_eq!(index.json(), expected);
            assert!(index.headers.get_all("vary").iter().any(|value| value == "accept"));
            assert_eq!(index.header("cache-control"), "no-store");
        }
        let page = send(router, "GET", path, BROWSER).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert_eq!(values(page.text(), "href")[1..], ["/v1/app", "/v1/docs", "/v1/openapi.json", "/v1/health"]);
        let style = page.text().split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        let hash = base64_simd::STANDARD.encode_to_string(sha2::Sha256::digest(style));
        assert_eq!(directives(page.header("content-security-policy"))["style-src"], format!("'sha256-{hash}'"));
        assert!(!page.text().contains("<script") && !page.text().contains("//"), "{}", page.text());
        assert!(page.headers.get_all("vary").iter().any(|value| value == "accept"));
    }
    assert_eq!(api.faults.take_requests().len(), 0, "the index needs no call to the table");
}

#[tokio::test(start_paused = true)]
async fn the_documentation_names_no_other_host_and_stores_nothing_but_its_script() {
    let (_api, routers) = routers().await;
    for router in &routers {
        let page = send(router, "GET", "/v1/docs", BROWSER).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
        let text = page.text();
        assert!(!text.contains("//") && !text.contains("http"), "{text}");
        let noscript = text.split_once("<noscript>").unwrap().1.split_once("</noscript>").unwrap().0;
        assert_eq!(values(noscript, "href"), ["/v1/openapi.json"]);
        assert_eq!(page.header("cache-control"), "no-store");
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        let policy = directives(page.header("content-security-policy"));
        assert_eq!((policy["default-src"], policy["script-src"], policy["connect-src"]), ("'none'", "'self'", "'self'"));
        assert_eq!(policy["frame-ancestors"], "'none'");
        assert!(policy.values().all(|sources| !sources.contains(['*', '/'])), "{policy:?}");

        let scripts = values(text, "src");
        let [script] = scripts[..] else { panic!("{scripts:?}") };
        assert!(script.starts_with("/v1/docs/"), "{script}");
        let get = |accept_encoding: &str| {
            let request = Request::builder().uri(script).header("accept-encoding", accept_encoding);
            call(router, request.body(Body::empty()).unwrap())
        };
        let reply = get("gzip").await;
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "text/javascript; charset=utf-8"));
        assert_eq!(reply.header("content-encoding"), "gzip");
        assert_eq!(reply.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.bytes[..2], [0x1f, 0x8b], "a gzip header");
        // Encoded as Base64, the script must fit in a Lambda response, and the whole function must stay below 8 MB.
        assert!((500_000..1_500_000).contains(&reply.bytes.len()), "{} bytes", reply.bytes.len());
        let plain = get("identity").await;
        assert!(!plain.headers.contains_key("content-encoding"));
        assert!((reply.bytes.len()..5_500_000).contains(&plain.text().len()), "{} bytes", plain.bytes.len());
        for reply in [&reply, &plain] {
            assert!(reply.headers.get_all("vary").iter().any(|value| value == "accept-encoding"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_get_and_head_are_taken_and_other_paths_do_not_exist() {
    let (_api, routers) = routers().await;
    for router in &routers {
        let page = send(router, "GET", "/v1/docs", BROWSER).await;
        let script = values(page.text(), "src")[0];
        for path in ["/", "/v1", "/v1/docs", script] {
            let (head, get) = (send(router, "HEAD", path, BROWSER).await, send(router, "GET", path, BROWSER).await);
            assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0), "{path}");
            for header in ["content-type", "content-length", "content-security-policy", "cache-control"] {
                assert_eq!(head.header(header), get.header(header), "{path} {header}");
            }
            for method in ["POST", "DELETE", "TRACE"] {
                let refused = send(router, method, path, BROWSER).await;
                refused.problem(405, "METHOD_NOT_ALLOWED");
                assert_eq!(refused.header("allow"), "GET,HEAD", "{method} {path}");
                assert_eq!(refused.header("cache-control"), "no-store");
            }
        }
        for path in ["/v1/docs/viewer.js", "/v1/docs/x", "/v1/docs/x/y", "/docs", "/index.html", "/favicon.ico"] {
            let missing = send(router, "GET", path, BROWSER).await;
            missing.problem(404, "NOT_FOUND");
            assert_eq!(missing.header("cache-control"), "no-store");
        }
        for (path, target) in [("/v1/", "/v1"), ("/v1/docs/", "/v1/docs")] {
            let moved = send(router, "GET", path, BROWSER).await;
            assert_eq!((moved.status.as_u16(), moved.header("location")), (308, target));
        }
    }
}

/// Returns the paths of the page's files, in the page's order.
fn named(page: &str) -> Vec<&str> {
    let values = ["src=\"", "href=\""].into_iter().flat_map(|start| page.split(start).skip(1));
    values.filter_map(|rest| rest.split('"').next()).filter(|path| path.starts_with("/v1/app/")).collect()
}

#[tokio::test(start_paused = true)]
async fn the_page_and_its_files_come_from_here_under_a_strict_policy() {
    let (api, routers) = routers().await;
    api.faults.take_requests();
    for router in &routers {
        let page = send(router, "GET", "/v1/app", BROWSER).await;
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
        let again = send_with(router, "GET", "/v1/app", &[("if-none-match", page.header("etag"))]).await;
        assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0));
        let text = page.text();
        assert!(
            text.len() <= 40 * 1024 && !text.contains("VERSION") && !text.contains("PRELOADS") && !text.contains("//"),
            "{text}"
        );

        let paths = named(text);
        let types = [
            (".js", "text/javascript; charset=utf-8"),
            (".css", "text/css; charset=utf-8"),
            (".txt", "text/plain; charset=utf-8"),
        ];
        assert!(paths.iter().any(|path| path.ends_with("/start.js")) && paths.len() > 10, "{paths:?}");
        assert!(paths.iter().any(|path| path.ends_with("/texts.txt")), "{paths:?}");
        for path in paths {
            let file = send_with(router, "GET", path, &[("accept-encoding", "gzip, deflate, br")]).await;
            let content_type = types.iter().find(|(end, _)| path.ends_with(end)).map(|(_, value)| *value).unwrap();
            assert_eq!((file.status.as_u16(), file.header("content-type")), (200, content_type), "{path}");
            assert_eq!(file.header("content-encoding"), "gzip");
            assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable");
            assert_eq!(file.header("x-content-type-options"), "nosniff");
            assert_eq!(file.bytes[..2], [0x1f, 0x8b], "a gzip header");
            for headers in [&[][..], &[("accept-encoding", "identity")], &[("accept-encoding", "br, gzip;q=0")]] {
                let plain = send_with(router, "GET", path, headers).await;
                assert_eq!((plain.status.as_u16(), plain.header("content-type")), (200, content_type), "{path}");
                assert!(!plain.headers.contains_key("content-encoding") && !plain.text().is_empty(), "{path} {headers:?}");
                for reply in [&file, &plain] {
                    assert!(reply.headers.get_all("vary").iter().any(|value| value == "accept-encoding"), "{path} {headers:?}");
                }
            }
            let refused = send(router, "POST", path, "*/*").await;
            refused.problem(405, "METHOD_NOT_ALLOWED");
            let missing = path.replace(".js", ".map").replace(".css", ".map").replace(".txt", ".map");
            send(router, "GET", &missing, "*/*").await.problem(404, "NOT_FOUND");
        }
        for path in ["/v1/app/start.js", "/v1/app/0123456789abcdef/start.js", "/v1/app/x/y/z"] {
            send(router, "GET", path, "*/*").await.problem(404, "NOT_FOUND");
        }
    }
    assert_eq!(api.faults.take_requests().len(), 0, "the page needs no call to the table");
    // Searches and keys belong in the fragment, which browsers don't send, so that they can't be logged.
    for router in &routers {
        for query in ["?q=ada", "?key=apl_1", "?status=in_use&page=2"] {
            let refused = send(router, "GET", &format!("/v1/app{query}"), BROWSER).await;
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
            let moved = send(&api.router, method, &format!("/v1/assets/by-tag/{tag}"), BROWSER).await;
            assert_eq!((moved.status.as_u16(), moved.bytes.len()), (302, 0), "{tag}");
            assert_eq!(moved.header("location"), format!("/v1/app#/tag/{tag}"));
            assert_eq!(moved.header("cache-control"), "no-store");
            assert!(!moved.header("x-request-id").is_empty());
        }
    }
    assert_eq!(api.faults.take_requests().len(), 0, "nothing is read");
    let path = format!("/v1/assets/by-tag/{known}");
    // Without `text/html` or with a key, the response is unchanged.
    for accept in ["*/*", "application/json"] {
        send(&api.router, "GET", &path, accept).await.problem(401, "UNAUTHORIZED");
    }
    let key = format!("Bearer {}", client.key);
    let read = send_with(&api.router, "GET", &path, &[("accept", BROWSER), ("authorization", &key)]).await;
    assert_eq!(read.json()["data"]["asset_tag"], known);
    send(&api.router, "GET", "/v1/assets/by-tag/x/y", BROWSER).await.problem(404, "NOT_FOUND");
    send(&api.router, "POST", &path, BROWSER).await.problem(405, "METHOD_NOT_ALLOWED");
}

/// Mail programs encode the `#` of links.
#[tokio::test(start_paused = true)]
async fn an_encoded_fragment_leads_to_the_page() {
    let (api, routers) = routers().await;
    api.faults.take_requests();
    for (router, method) in routers.iter().flat_map(|router| [(router, "GET"), (router, "HEAD")]) {
        for (path, expected) in [
            ("/v1/app%23/assets?q=dell&status=in_use", "/v1/app#/assets?q=dell&status=in_use"),
            ("/v1/app/%23/tag/INV%2F1", "/v1/app#/tag/INV%2F1"),
            ("/v1/app%23key=apl_1", "/v1/app#key=apl_1"),
            ("/v1/sign%23sgn_1", "/v1/sign#sgn_1"),
            ("/v1/sign/%23sgn_1?utm_source=mail", "/v1/sign#sgn_1?utm_source=mail"),
        ] {
            let moved = send(router, method, path, BROWSER).await;
            assert_eq!((moved.status.as_u16(), moved.bytes.len(), moved.header("location")), (302, 0, expected), "{path}");
            assert_eq!(moved.header("cache-control"), "no-store");
        }
        for path in ["/v1/app%2523x", "/v1/apps%23x", "/v1/app%3Fx", "/app%23x", "/v1/sign/session%23x"] {
            assert_eq!(send(router, method, path, BROWSER).await.status, 404, "{path}");
        }
    }
    send(&routers[0], "POST", "/v1/app%23/assets", BROWSER).await.problem(404, "NOT_FOUND");
    assert_eq!(api.faults.take_requests().len(), 0, "nothing is read");
}

#[tokio::test(start_paused = true)]
async fn the_signing_page_takes_no_query() {
    let api = Api::start().await;
    let refused = send(&api.router, "GET", "/v1/sign?x=1", BROWSER).await;
    assert_eq!(refused.field_errors(), ["x"]);
    assert_eq!(send(&api.router, "GET", "/v1/sign", BROWSER).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn phones_make_no_phone_link_of_a_serial_number() {
    let api = Api::start().await;
    for path in ["/v1/app", "/v1/sign"] {
        let page = send(&api.router, "GET", path, BROWSER).await;
        assert!(page.text().contains("<meta name=\"format-detection\" content=\"telephone=no\">"), "{path}");
    }
}
