//! Conventions for every route: reading bodies and paths, the order of checks, and errors of the service itself.

use crate::support::{Api, call, log, over_http};
use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use shared::app::App;

#[tokio::test(start_paused = true)]
async fn malformed_bodies_are_400_and_change_nothing() {
    let (api, client) = Api::with_tenant().await;
    let before = api.dump().await;
    let deep = format!(r#"{{"name":"x","custom_fields":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    for (body, content_type, status, code) in [
        (b"{bad".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{}{}".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":\"a\xff\"}".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":\"a\"}".to_vec(), "text/plain", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (b"{\"name\":\"a\"}".to_vec(), "application/jsonx", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (b"{\"name\":\"a\"}".to_vec(), "", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (vec![b' '; 1024 * 1024 + 1], "application/json", 413, "PAYLOAD_TOO_LARGE"),
        (vec![b' '; 2 * 1024 * 1024], "text/plain", 413, "PAYLOAD_TOO_LARGE"),
        (vec![b' '; 1024 * 1024], "application/json", 400, "MALFORMED_REQUEST"),
        (deep.into_bytes(), "application/json", 422, "VALIDATION_ERROR"),
        (b"{\"name\":\"a\\u0000b\"}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        (b"null".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        // API Gateway replaces what it can't decode.
        ("{\"name\":\"Gr\u{fffd}\u{fffd}e\"}".into(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":\"Gr\\ufffd\"}".to_vec(), "application/json", 400, "MALFORMED_REQUEST"),
        (b"{\"name\":1e999}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        (b"{\"name\":\"a\",\"purchase_date\":\"12024-01-01\"}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
        (b"{\"name\":\"a\",\"custom_fields\":{\"n\":1e999}}".to_vec(), "application/json", 422, "VALIDATION_ERROR"),
    ] {
        let content_type = (!content_type.is_empty()).then_some(content_type);
        let reply = client.send("POST", "/assets", content_type, body).await;
        reply.problem(status, code);
    }
    client.get("/assets?q=Gr%EF%BF%BDe").await.problem(400, "MALFORMED_REQUEST");
    let upsert = client.send("PUT", "/assets/by-serial/Gr%EF%BF%BDe", Some("application/json"), r#"{"name":"a"}"#).await;
    upsert.problem(400, "MALFORMED_REQUEST");
    assert_eq!(api.dump().await, before);
    for content_type in ["application/json; charset=utf-8", "APPLICATION/JSON"] {
        assert_eq!(client.send("POST", "/assets", Some(content_type), r#"{"name":"a"}"#).await.status, 201);
    }
    let marked = client.send("POST", "/assets", Some("application/json"), "\u{feff}{\"name\":\"a\"}").await;
    assert_eq!(marked.status, 201, "a byte order mark is no part of the text");
    client.send("POST", "/assets", Some("application/json"), "\u{feff}\u{feff}{}").await.problem(400, "MALFORMED_REQUEST");
}

#[tokio::test(start_paused = true)]
async fn route_method_key_scope_and_body_are_checked_in_this_order() {
    let client = over_http().await;
    let without_key = client.with_key("");
    let reader = client.scoped(&["assets:read"]).await;
    without_key.get("/nothing").await.problem(404, "NOT_FOUND");
    without_key.send("PUT", "/assets", None, "").await.problem(405, "METHOD_NOT_ALLOWED");
    without_key.send("POST", "/assets", Some("text/plain"), "{bad").await.problem(401, "UNAUTHORIZED");
    without_key.get("/assets?page=0").await.problem(401, "UNAUTHORIZED");
    without_key.get("/assets/x").await.problem(401, "UNAUTHORIZED");
    reader.send("POST", "/assets", Some("text/plain"), "{bad").await.problem(403, "FORBIDDEN");
    reader.patch("/assets/x", json!({})).await.problem(403, "FORBIDDEN");
    client.send("PATCH", "/assets/x", Some("text/plain"), "{bad").await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn paths_are_exact_except_for_a_trailing_slash() {
    let (_api, client) = Api::with_tenant().await;
    for (path, target) in [
        ("/v1/", "/v1"),
        ("/v1/assets/", "/v1/assets"),
        ("/v1/assets/?q=a&page=2", "/v1/assets?q=a&page=2"),
        ("/v1/nothing/", "/v1/nothing"),
    ] {
        let reply = call(&client.router, Request::builder().uri(path).body(Body::empty()).unwrap()).await;
        assert_eq!((reply.status.as_u16(), reply.header("location")), (308, target));
    }
    for path in ["/assets", "/v2/assets", "/v1//", "/v1//assets", "//example.com/", "/v1/assets//", "/V1/assets"] {
        call(&client.router, Request::builder().uri(path).body(Body::empty()).unwrap()).await.problem(404, "NOT_FOUND");
    }
    let id = client.asset(json!({"name": "x"})).await;
    for invalid in [id.to_uppercase(), id.replace('-', ""), "1".into(), format!("{id}x"), "%00".into(), "..".into()] {
        client.get(&format!("/assets/{invalid}")).await.problem(404, "NOT_FOUND");
    }
    for malformed in ["/assets/%zz", "/assets/%ff", "/assets?q=%zz", "/assets?q=%ff", "/assets?%e4=1"] {
        client.get(malformed).await.problem(400, "MALFORMED_REQUEST");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_500_for_one_request_and_is_logged() {
    async fn panics() {
        panic!("on purpose, with a secret");
    }
    log::begin();
    let (api, client) = Api::with_tenant().await;
    let routes: axum::Router<App> = dev_server::api::all_routes().route("/v1/panics", axum::routing::get(panics));
    let router = shared::http::service(routes, App::new(api.store.clone()));
    let request = |path: &str| {
        Request::builder().uri(path).header("authorization", format!("Bearer {}", client.key)).body(Body::empty()).unwrap()
    };
    let reply = call(&router, request("/v1/panics")).await;
    let problem = reply.problem(500, "INTERNAL_ERROR");
    assert!(!problem.to_string().contains("secret"));
    assert_eq!(call(&router, request("/v1/assets?q=private-words")).await.status, 200);

    let text = log::text();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.iter().find(|line| line["request_id"] == problem["request_id"]).expect("a line with the id of the request");
    assert_eq!((line["level"].as_str(), line["status"].as_u64()), (Some("ERROR"), Some(500)));
    assert!(line["cause"].as_str().unwrap().contains("on purpose"));
    let line = lines.iter().find(|line| line["route"] == "/v1/assets").unwrap();
    assert_eq!(line["tenant_id"], client.tenant.to_string());
    for private in ["private-words", &client.key, "Bearer"] {
        assert!(!text.contains(private), "{private} was logged");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_table_is_503_and_a_missing_one_is_500() {
    let (api, client) = Api::with_tenant().await;
    let unreachable = aws_sdk_dynamodb::Client::from_conf(dev_server::engine::config("http://127.0.0.1:9").build());
    let system = shared::app::system_clock();
    let store = shared::store::Store::new(unreachable, "none", system.clone());
    let down = crate::support::Client { router: dev_server::server::router(App::new(store)), ..client.clone() };
    for path in ["/assets", "/health"] {
        let reply = down.get(path).await;
        reply.problem(503, "UNAVAILABLE");
        assert_eq!(reply.header("retry-after"), "1");
    }
    let store = shared::store::Store::new(api.dynamo.clone(), "no-such-table", system);
    let wrong = crate::support::Client { router: dev_server::server::router(App::new(store)), ..client };
    let problem = wrong.get("/assets").await.problem(500, "INTERNAL_ERROR");
    assert!(!problem.to_string().contains("no-such-table"));
}

#[tokio::test(start_paused = true)]
async fn half_a_surrogate_pair_is_refused_with_an_explanation() {
    let client = over_http().await;
    let refused = client.post_text("/assets", r#"{"name":"x","\ud800":1}"#).await;
    assert_eq!(refused.field_errors(), [""]);
    assert!(refused.text().contains("half of a character"), "{}", refused.text());
    let refused = client.post_text("/assets", r#"{"name":"x","custom_fields":{"\ud800":1}}"#).await;
    assert!(refused.text().contains("half of a character"), "{}", refused.text());
}
