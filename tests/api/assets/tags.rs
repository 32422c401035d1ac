//! Asset tags: templates, number ranges and collisions.

use crate::support::{Api, over_http};
use serde_json::json;

#[tokio::test]
async fn tags_follow_the_template_of_their_type_and_month() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let set = json!({"asset_tag_prefix": "ACME", "asset_tag_template": "{PREFIX}/{TYPE_CODE}/{YY}{MM}/NNN"});
    client.patch("/settings", set).await.data();
    let tag = async |body| client.post("/assets", body).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert_eq!(tag(json!({"name": "a"})).await, "ACME/GEN/2603/001");
    assert_eq!(tag(json!({"name": "b", "asset_type_id": laptop})).await, "ACME/LAP/2603/001");
    assert_eq!(tag(json!({"name": "c", "asset_type_id": laptop})).await, "ACME/LAP/2603/002");
    api.advance_clock(31 * 24 * 3600);
    assert_eq!(tag(json!({"name": "d"})).await, "ACME/GEN/2604/001");
}

#[tokio::test]
async fn a_full_range_goes_on_with_one_more_digit_and_skips_tags_of_another_template() {
    let (api, client) = Api::with_tenant().await;
    client.patch("/settings", json!({"asset_tag_template": "A-1NNN"})).await.data();
    let tag = async || client.post("/assets", json!({"name": "x"})).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert_eq!((tag().await, tag().await), ("A-1001".into(), "A-1002".into()));
    client.patch("/settings", json!({"asset_tag_template": "A-NNN"})).await.data();
    // Moves the counter of A-NNN to where its tags meet those of A-1NNN.
    let range = "A-NNN".parse::<shared::domain::assets::tag::TagTemplate>().unwrap();
    let range = range.range(&"AST".parse().unwrap(), None, api.now());
    let store = api.store.tenant(client.tenant);
    while store.next_number(&range, 1).await.unwrap() < 999 {}
    assert_eq!(tag().await, "A-1000");
    assert_eq!(tag().await, "A-1003");
}

#[tokio::test]
async fn a_free_tag_is_found_after_many_taken_ones() {
    let client = over_http().await;
    client.patch("/settings", json!({"asset_tag_template": "A-0NNN"})).await.data();
    for _ in 0..70 {
        client.asset(json!({"name": "x"})).await;
    }
    client.patch("/settings", json!({"asset_tag_template": "A-NNNN"})).await.data();
    let tag = client.post("/assets", json!({"name": "x"})).await.data()["asset_tag"].as_str().unwrap().to_owned();
    assert!(("A-0071".."A-0200").contains(&tag.as_str()), "{tag}");
}
