//! Simultaneous requests: no change is lost, and nothing unique is given twice.

use crate::support::table::history::event_chain;
use crate::support::{Api, Reply};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;

fn statuses(replies: &[Reply]) -> Vec<u16> {
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    statuses
}

#[tokio::test]
async fn simultaneous_creations_get_different_tags() {
    let (_api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let made = join_all((0..24).map(|n| client.post("/assets", json!({"name": format!("a{n}"), "asset_type_id": laptop})))).await;
    let tags: BTreeSet<String> = made.iter().map(|reply| reply.data()["asset_tag"].as_str().unwrap().to_owned()).collect();
    assert_eq!(tags.len(), 24);
    assert_eq!(client.total("/assets").await, 24);
    let in_use = client.delete(&format!("/catalog/asset-types/{laptop}")).await.problem(409, "IN_USE");
    assert_eq!(in_use["count"], 24, "every reference is counted");
}

#[tokio::test]
async fn two_simultaneous_patches_never_lose_a_change() {
    let (_api, client) = Api::with_tenant().await;
    for round in 0..10 {
        let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
        let (notes, serial) = tokio::join!(
            client.patch(&path, json!({"notes": format!("n{round}")})),
            client.patch(&path, json!({"serial_number": format!("s{round}")}))
        );
        let after = client.get(&path).await.data();
        for (reply, field) in [(&notes, "notes"), (&serial, "serial_number")] {
            match reply.status.as_u16() {
                200 => assert!(after[field].is_string(), "{field} was lost"),
                409 => assert!(after[field].is_null()),
                other => panic!("{other}: {}", reply.text()),
            }
        }
    }
}

#[tokio::test]
async fn simultaneous_patches_of_one_field_leave_an_unbroken_chain() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let path = format!("/assets/{id}");
    let replies = join_all((0..8).map(|n| client.patch(&path, json!({"name": format!("n{n}")})))).await;
    let succeeded = replies.iter().filter(|reply| reply.status == 200).count();
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        reply.problem(409, "CONFLICT");
    }
    let chain = event_chain(&api, &client, &id).await;
    assert_eq!(chain.len(), 1 + succeeded);
}

#[tokio::test]
async fn most_of_twenty_simultaneous_patches_succeed() {
    let (_api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    let replies = join_all((0..20).map(|n| client.patch(&path, json!({"name": format!("n{n}")})))).await;
    let succeeded = replies.iter().filter(|reply| reply.status == 200).count();
    assert!(succeeded >= 10, "{succeeded} of 20: retries should wait before they read again");
}

#[tokio::test]
async fn of_simultaneous_users_with_one_address_one_is_created() {
    let (_api, client) = Api::with_tenant().await;
    let bodies = ["ada@example.com", "ADA@example.com"].map(|email| json!({"email": email, "display_name": "Ada"}));
    let replies = join_all(bodies.into_iter().cycle().take(6).map(|body| client.post("/users", body))).await;
    assert_eq!(statuses(&replies), [201, 409, 409, 409, 409, 409]);
    assert_eq!(client.total("/users").await, 1);
}

#[tokio::test]
async fn a_simultaneous_deletion_and_assignment_leave_no_dangling_reference() {
    let (_api, client) = Api::with_tenant().await;
    for _ in 0..10 {
        let user = client.user("Ada").await;
        let asset = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
        let user_path = format!("/users/{user}");
        let (assigned, deleted) = tokio::join!(client.patch(&asset, json!({"assigned_to": user})), client.delete(&user_path));
        match (assigned.status.as_u16(), deleted.status.as_u16()) {
            (200, 409) => {
                client.delete(&asset).await;
                client.delete(&user_path).await.data();
            }
            (422, 200) => assert!(client.get(&asset).await.data()["assigned_to"].is_null()),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_asset_never_gets_outdated_fields_of_its_model() {
    let (api, client) = Api::with_tenant().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let screen = client.asset_type("Screen", "SCR", "physical").await;
    let other = client.post("/catalog/manufacturers", json!({"name": "Other"})).await.id();
    for round in 0..2 {
        let model = client.model(&format!("Manufacturer {round}"), "M", &laptop).await;
        let asset = client.asset(json!({"name": "x"})).await;
        let write = async {
            match round {
                0 => client.post("/assets", json!({"name": "x", "model_id": model})).await.data(),
                _ => client.patch(&format!("/assets/{asset}"), json!({"model_id": model})).await.data(),
            }
        };
        let another = json!({"asset_type_id": screen, "manufacturer_id": other});
        let model = format!("/catalog/models/{model}");
        let (asset, changed) = api.faults.overtake("TransactWriteItems", write, client.patch(&model, another)).await;
        changed.data();
        assert_eq!((&asset["asset_type_id"], &asset["manufacturer"]), (&json!(screen), &json!("Other")));
    }
}

#[tokio::test]
async fn of_simultaneous_deletions_one_succeeds() {
    let (_api, client) = Api::with_tenant().await;
    let path = format!("/assets/{}", client.asset(json!({"name": "x"})).await);
    let replies = join_all((0..4).map(|_| client.delete(&path))).await;
    assert_eq!(statuses(&replies), [200, 404, 404, 404]);
}
