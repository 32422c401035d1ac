//! Deadlines: a function responds before Lambda ends the request.

use crate::support::functions::Function;
use crate::support::{Api, call};
use axum::body::Body;
use axum::http::Request;
use lambda_http::{Context, RequestExt};
use std::time::Duration;
use tokio::time::timeout;

fn request(method: &str, key: &str, body: &str, deadline: i64) -> Request<Body> {
    let request = Request::builder().method(method).uri("/v1/assets").header("authorization", format!("Bearer {key}"));
    let mut context = Context::default();
    context.request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd".into();
    context.deadline = deadline.try_into().unwrap();
    request.header("content-type", "application/json").body(Body::from(body.to_owned())).unwrap().with_lambda_context(context)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_a_503_before_the_deadline() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let router = Function::named("assets").router(api.store.clone());
    let before = api.dump().await;
    let held = api.faults.hold("TransactWriteItems");
    let deadline = api.now().millis() + 800;
    let reply = call(&router, request("POST", &client.key, r#"{"name": "slow"}"#, deadline));
    let reply = timeout(Duration::from_millis(800), reply).await.expect("a response before the deadline");
    let problem = reply.problem(503, "UNAVAILABLE");
    assert_eq!(problem["request_id"], "8476a536-e9f4-11e8-9739-2dfe598c3fcd");
    assert_eq!((reply.header("retry-after"), reply.header("cache-control")), ("1", "no-store"));
    drop(held);
    // The counter of asset tags has moved; nothing of the asset was written.
    let after = api.dump().await;
    assert_eq!(after.0.iter().filter(|item| !before.0.contains(item)).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_with_enough_time_left_changes_nothing() {
    let (api, client) = Api::with_tenant().await;
    let router = Function::named("assets").router(api.store.clone());
    let deadline = api.now().millis() + 15_000;
    assert_eq!(call(&router, request("POST", &client.key, r#"{"name": "quick"}"#, deadline)).await.status.as_u16(), 201);
    // With less time than the response needs, no call to the table is started.
    call(&router, request("GET", &client.key, "", api.now().millis() + 300)).await.problem(503, "UNAVAILABLE");
    // A small number is no deadline: `cargo lambda watch` sends one.
    assert_eq!(call(&router, request("GET", &client.key, "", 600_000)).await.status.as_u16(), 200);
}
