//! Loads of a list index that take longer than a request, or that the index throttles.

use crate::support::{Api, Client, call};
use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use lambda_http::{Context, RequestExt};
use serde_json::json;
use std::time::Duration;

const ASSETS: usize = 60;

/// A tenant whose index is read in many pages, and the number of pages.
async fn tenant_with_pages() -> (Api, Client, usize) {
    let (api, client) = Api::with_tenant().await;
    for n in 0..ASSETS {
        client.asset(json!({"name": format!("a{n}")})).await;
    }
    api.advance_clock(600);
    api.faults.cut_index_pages(4);
    assert_eq!(api.replica(0, usize::MAX).client(&client).total("/assets").await, ASSETS as u64);
    let pages = api.faults.take_index_pages();
    assert!(pages >= ASSETS / 4);
    (api, client, pages)
}

#[tokio::test(start_paused = true)]
async fn a_load_that_was_cut_off_goes_on_with_the_next_list() {
    let (api, client, pages) = tenant_with_pages().await;
    let replica = api.replica(0, usize::MAX);
    let reader = replica.client(&client);
    for part in [3, 5] {
        api.faults.limit_index_pages(Some(part), 0);
        let cut = tokio::time::timeout(Duration::from_secs(2), reader.get("/assets")).await;
        assert!(cut.is_err(), "the list waits for the index");
        assert!(replica.store.list_index_bytes() > 0, "the part that is loaded counts for the budget");
        client.asset(json!({"name": "more"})).await;
    }
    api.faults.limit_index_pages(None, 0);
    assert_eq!(reader.total("/assets").await, ASSETS as u64 + 2);
    let read = api.faults.take_index_pages();
    // The new assets can add a page to a range.
    assert!((pages..=pages + 2).contains(&read), "{read} pages were read instead of {pages}");
    assert_eq!(reader.total("/assets").await, ASSETS as u64 + 2);
    assert_eq!(api.faults.take_index_pages(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_too_old_is_loaded_again() {
    let (api, client, pages) = tenant_with_pages().await;
    let reader = api.replica(0, usize::MAX).client(&client);
    api.faults.limit_index_pages(Some(5), 0);
    assert!(tokio::time::timeout(Duration::from_secs(2), reader.get("/assets")).await.is_err());
    api.faults.limit_index_pages(None, 0);
    api.faults.take_index_pages();
    api.advance_clock(601);
    assert_eq!(reader.total("/assets").await, ASSETS as u64);
    assert_eq!(api.faults.take_index_pages(), pages);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_must_wait_says_for_how_long() {
    let (api, client, _) = tenant_with_pages().await;
    let reader = api.replica(0, usize::MAX).client(&client);
    let list = |seconds: i64| {
        let mut context = Context::default();
        context.deadline = (api.now().millis() + seconds * 1000).try_into().unwrap();
        let request = Request::builder().uri("/v1/assets").header("authorization", format!("Bearer {}", client.key));
        request.body(Body::empty()).unwrap().with_lambda_context(context)
    };
    api.faults.limit_index_pages(Some(10), 0);
    let reply = call(&reader.router, list(3)).await;
    let problem = reply.problem(503, "UNAVAILABLE");
    assert!(problem["detail"].as_str().unwrap().starts_with("The list is being prepared."), "{problem}");
    let seconds: u64 = reply.header("retry-after").parse().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds} s");
    api.faults.limit_index_pages(Some(0), 4);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let reply = call(&reader.router, list(15)).await;
    assert_eq!(reply.json()["meta"]["total"], ASSETS);
}

/// Function instances that start together share the index's read units: 3,000 read units a second are 23 pages of 1 MB, and the
/// index of 100,000 assets has 27 pages.
#[tokio::test(start_paused = true)]
async fn functions_that_start_together_all_get_their_lists() {
    let (api, client, pages) = tenant_with_pages().await;
    api.faults.limit_index_pages(Some(pages), pages * 2);
    let list = async |_| {
        let reader = api.replica(0, usize::MAX).client(&client);
        assert_eq!(reader.total("/assets").await, ASSETS as u64);
    };
    join_all((0..13).map(list)).await;
    assert_eq!(api.faults.take_index_pages(), 13 * pages, "no page was read twice");
}
