//! Erasing a person: nothing of the person is left, and every history holds.

use crate::support::people::{MARK, erase, erase_all, items_with, leaves, person};
use crate::support::table::history::readers_hash;
use crate::support::{Api, Client};
use serde_json::{Value, json};

async fn assert_histories_hold(api: &Api, client: &Client, paths: &[String]) {
    let verified = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verified.broken_links, []);
    for path in paths {
        let history = client.get(&format!("{path}/history?verify=true&limit=100")).await.json();
        assert_eq!(history["verification"]["valid"], true, "{path}: {history}");
        for entry in history["data"].as_array().unwrap() {
            assert_eq!(entry["hash"], readers_hash(entry), "{entry}");
        }
        assert!(!history.to_string().contains(MARK), "{path}: {history}");
    }
}

#[tokio::test]
async fn nothing_of_the_person_is_left_and_every_history_holds() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    let other = client.user("Grace Hopper").await;
    leaves(&api, &client, &ada).await;
    assert!(items_with(&api, MARK).await.len() > 20);
    let erased = erase(&client, &ada.id).await.data();
    assert_eq!(erased["done"], true, "{erased}");
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    assert_histories_hold(&api, &client, &ada.histories).await;

    let user = client.get(&format!("/users/{}", ada.id)).await.data();
    let pseudonym = erased["pseudonym"].as_str().unwrap();
    assert!(pseudonym.starts_with("Erased user "), "{pseudonym}");
    assert_eq!((&user["display_name"], &user["is_active"]), (&json!(pseudonym), &json!(false)), "{user}");
    assert!(user["erased_at"].is_string(), "{user}");
    let instance = client.get(&ada.instance).await.data();
    for field in ["note", "story", "sign", "last"] {
        assert_eq!(instance["step_data"][field], pseudonym, "{instance}");
    }
    assert_eq!((&instance["started_by_name"], &instance["step_data"]["who"]), (&json!(pseudonym), &json!(ada.id)));
    let others = client.get(&format!("/users/{other}")).await.data();
    assert_eq!(others["display_name"], "Grace Hopper");
    let kept = client.get("/assets?q=Phone").await.data();
    assert_eq!(kept[0]["notes"], "of others");
    client.post("/users", json!({"email": format!("{MARK}@example.com"), "display_name": "Somebody new"})).await.data();
    // Once more, and nothing is left to do.
    let again = erase(&client, &ada.id).await.data();
    assert_eq!((&again["done"], &again["removed"]["entries"]), (&json!(true), &json!(0)), "{again}");
}

#[tokio::test]
async fn what_is_in_the_way_is_named() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    let refusal = erase(&client, &ada.id).await.problem(409, "CONFLICT");
    assert_eq!(refusal["is_active"], true, "{refusal}");
    client.patch(&format!("/users/{}", ada.id), json!({"is_active": false})).await.data();
    let refusal = erase(&client, &ada.id).await.problem(409, "CONFLICT");
    assert!(refusal["retry_at"].is_string(), "{refusal}");
    api.advance_clock(60);
    let refusal = erase(&client, &ada.id).await.problem(409, "IN_USE");
    assert_eq!((&refusal["asset_ids"], &refusal["process_count"]), (&json!([ada.asset]), &json!(0)), "{refusal}");
    client.patch(&format!("/assets/{}", ada.asset), json!({"assigned_to": null})).await.data();
    erase_all(&client, &ada.id).await;
    for body in [json!({"display_name": "Ada"}), json!({"is_active": true})] {
        client.patch(&format!("/users/{}", ada.id), body).await.problem(409, "CONFLICT");
    }
    let unknown = erase(&client, crate::support::UNKNOWN_ID).await;
    unknown.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn only_admins_erase_and_a_dry_run_only_counts() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    leaves(&api, &client, &ada).await;
    let technician = client.scoped(&["users:write", "users:read"]).await;
    let refusal = erase(&technician, &ada.id).await.problem(403, "FORBIDDEN");
    assert!(refusal["detail"].as_str().unwrap().contains("admin"), "{refusal}");
    let before = api.dump().await;
    let counted = client.post(&format!("/users/{}/erase?dry_run=true", ada.id), json!({})).await.data();
    assert_eq!(api.dump().await, before);
    let done = erase(&client, &ada.id).await.data();
    let removed = |reply: &Value| (reply["removed"]["entries"].clone(), reply["removed"]["signatures"].clone());
    assert_eq!((removed(&counted), counted["done"].clone()), (removed(&done), json!(true)));
}

#[tokio::test]
async fn a_deleted_users_history_is_erased_too() {
    let (api, client) = Api::with_tenant().await;
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": MARK});
    let id = client.post("/users", body).await.id();
    client.delete(&format!("/users/{id}")).await.data();
    assert!(!items_with(&api, MARK).await.is_empty());
    erase_all(&client, &id).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
    assert_histories_hold(&api, &client, &[]).await;
}

#[tokio::test]
async fn a_repetition_of_a_request_whose_response_named_the_person_is_told_so() {
    let (api, client) = Api::with_tenant().await;
    let ada = person(&client).await;
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": format!("{MARK} name"), "role": "technician"});
    let again = client.post_once("/users", &body, "user").await;
    let problem = again.problem(409, "CONFLICT");
    assert!(problem["detail"].as_str().unwrap().contains("erased"), "{problem}");
    assert_eq!(again.header("content-type"), "application/problem+json");
}
