//! Races of many requests, whose answers are counted.

use crate::support::table::history::event_chain;
use crate::support::{Api, over_http};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;

#[tokio::test(start_paused = true)]
async fn simultaneous_creations_get_different_tags() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let made = join_all((0..24).map(|n| client.post("/assets", json!({"name": format!("a{n}"), "asset_type_id": laptop})))).await;
    let tags: BTreeSet<String> = made.iter().map(|reply| reply.data()["asset_tag"].as_str().unwrap().to_owned()).collect();
    assert_eq!(tags.len(), 24);
    assert_eq!(client.total("/assets").await, 24);
    let in_use = client.delete(&format!("/catalog/asset-types/{laptop}")).await.problem(409, "IN_USE");
    assert_eq!(in_use["count"], 24, "every reference is counted");
}

#[tokio::test(start_paused = true)]
async fn most_of_twenty_simultaneous_patches_succeed_and_leave_an_unbroken_chain() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let path = format!("/assets/{id}");
    let replies = join_all((0..20).map(|n| client.patch(&path, json!({"name": format!("n{n}")})))).await;
    let succeeded = replies.iter().filter(|reply| reply.status == 200).count();
    assert!(succeeded >= 10, "{succeeded} of 20: retries should wait before they read again");
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        reply.problem(409, "CONFLICT");
    }
    assert_eq!(event_chain(&api, &client, &id).await.len(), 1 + succeeded);
}
