//! A request that Lambda is about to end says so first.

use crate::support::functions::Function;
use crate::support::{Api, call};
use axum::body::Body;
use axum::http::Request;
use lambda_http::{Context, RequestExt};
use std::time::{Duration, Instant};

fn request(method: &str, key: &str, body: &str, deadline: i64) -> Request<Body> {
    let request = Request::builder().method(method).uri("/v1/assets").header("authorization", format!("Bearer {key}"));
    let mut context = Context::default();
    context.request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd".into();
    context.deadline = deadline.try_into().unwrap();
    request.header("content-type", "application/json").body(Body::from(body.to_owned())).unwrap().with_lambda_context(context)
}

#[tokio::test]
async fn what_does_not_end_in_time_is_a_503_before_lambda_ends_it() {
    let (api, client) = Api::with_tenant().await;
    client.settle().await;
    let router = Function::named("assets").router(api.store.clone());
    let before = api.dump().await;
    let held = api.faults.hold("TransactWriteItems");
    let began = Instant::now();
    let deadline = api.now().millis() + 800;
    let reply = call(&router, request("POST", &client.key, r#"{"name": "slow"}"#, deadline)).await;
    let problem = reply.problem(503, "UNAVAILABLE");
    assert!(began.elapsed() < Duration::from_millis(800), "after {:?}", began.elapsed());
    assert_eq!(problem["request_id"], "8476a536-e9f4-11e8-9739-2dfe598c3fcd");
    assert_eq!((reply.header("retry-after"), reply.header("cache-control")), ("1", "no-store"));
    drop(held);
    // The counter of tags was counted up; nothing of the asset is there.
    let after = api.dump().await;
    assert_eq!(after.0.iter().filter(|item| !before.0.contains(item)).count(), 1);
}

#[tokio::test]
async fn with_time_left_a_deadline_changes_nothing() {
    let (api, client) = Api::with_tenant().await;
    let router = Function::named("assets").router(api.store.clone());
    let deadline = api.now().millis() + 15_000;
    assert_eq!(call(&router, request("POST", &client.key, r#"{"name": "quick"}"#, deadline)).await.status.as_u16(), 201);
    // With less than the answer needs, nothing is begun that has to wait for the table.
    call(&router, request("GET", &client.key, "", api.now().millis() + 300)).await.problem(503, "UNAVAILABLE");
    // What hands over no deadline but a small number, as `cargo lambda watch` does, means none.
    assert_eq!(call(&router, request("GET", &client.key, "", 600_000)).await.status.as_u16(), 200);
}
