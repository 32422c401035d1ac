//! A mark in every field about people of every operation that takes one; after the erasure it is nowhere.

use crate::support::document::served_document;
use crate::support::people::{MARK, erase_all, items_with};
use crate::support::processes::{create_process, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, signature_step, step};
use crate::support::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The operations whose bodies have fields about a user, besides batches and imports. Names and notes of the catalog, of processes,
/// settings and webhooks are about none.
const WITH_FIELDS: [&str; 16] = [
    "post /assets",
    "put /assets/by-serial/{serial}",
    "patch /assets/{id}",
    "post /keys",
    "post /movements/{id}/advance",
    "post /movements/{id}/cancel",
    "post /movements/{id}/links",
    "post /processes/instances/{id}/advance",
    "post /processes/instances/{id}/cancel",
    "post /processes/instances/{id}/links",
    "post /processes/{id}/start",
    "post /sign/advance",
    "post /users",
    "patch /users/{id}",
    "post /webhooks",
    "patch /webhooks/{id}",
];
const FIELDS: [&str; 7] = ["email", "display_name", "notes", "reason", "signer", "step_data", "description"];

fn has_field(schema: &Value, document: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return has_field(&document["components"]["schemas"][name], document);
    }
    let mut names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let parts = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|part| schema[part].as_array()).flatten();
    names.any(|name| FIELDS.contains(&name)) || parts.into_iter().any(|part| has_field(part, document))
}

/// A new operation with such a field must be added here, and to the story below.
#[test]
fn the_story_has_every_operation_of_the_document() {
    let document = served_document();
    let mut found = BTreeSet::from(["post /keys".to_owned()]);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let is_about_nobody = path.starts_with("/catalog") || path == "/processes" || path == "/processes/{id}";
            if has_field(schema, &document) && !is_about_nobody {
                found.insert(format!("{method} {path}"));
            }
        }
    }
    assert_eq!(found, WITH_FIELDS.iter().map(|it| (*it).to_owned()).collect());
}

fn mark(what: &str) -> String {
    format!("{MARK} {what}")
}

/// Assets by each way to make or change one, all with notes from the time when the user has them.
async fn assets(client: &Client, user: &str) -> Vec<String> {
    let body = |what: &str| json!({"name": what, "assigned_to": user, "notes": mark(what)});
    let mut ids = vec![client.asset(body("single")).await];
    ids.push(client.send("PUT", "/assets/by-serial/S-1", Some("application/json"), body("serial").to_string()).await.id());
    let create = json!({"op": "create", "body": body("batch")});
    let made = client.batch("/assets/batch", &[create]).await.data();
    ids.push(made[0]["data"]["id"].as_str().unwrap().to_owned());
    let update = json!({"op": "update", "id": ids[2], "body": {"notes": mark("batch again")}});
    client.batch("/assets/batch", &[update]).await.data();
    let csv = format!("name,assigned_to_email,notes\nimported,{MARK}@example.com,{}\n", mark("import"));
    let rows = client.import_once("/assets", &csv, "assets").await.data();
    ids.push(rows[0]["id"].as_str().unwrap().to_owned());
    client.patch(&format!("/assets/{}", ids[0]), json!({"notes": mark("patched")})).await.data();
    ids
}

/// Movements and instances: submitted at their start, step by step, through links, and cancelled.
async fn processes(client: &Client, user: &str) {
    let steps =
        json!([step("user_picker", "who"), step("text", "note"), signature_step(), step("text", "last"), step("text", "end")]);
    let process = create_process(client, steps).await;
    let stocked = async |count| {
        let mut ids = client.assets(count).await;
        ids.sort();
        ids
    };
    let body =
        json!({"asset_id": stocked(1).await[0], "through": "note", "step_data": {"who": user, "note": mark("at the start")}});
    let instance = client.post(&format!("/processes/{process}/start"), body).await.id();
    sign_and_go_on(client, &format!("/processes/instances/{instance}"), user).await;
    for is_cancelled in [false, true] {
        let movement = start_movement(client, &process, &stocked(2).await).await;
        let path = format!("/movements/{}", movement["id"].as_str().unwrap());
        client.post(&format!("{path}/advance"), json!({"step_data": {"who": user}})).await.data();
        client.post(&format!("{path}/advance"), json!({"step_data": {"note": mark("moved")}})).await.data();
        if is_cancelled {
            client.post(&format!("{path}/cancel"), json!({"reason": mark("moved no more")})).await.data();
            continue;
        }
        sign_and_go_on(client, &path, user).await;
        client.post(&format!("{path}/advance"), json!({"step_data": {"end": mark("at last")}})).await.data();
    }
}

/// The user signs through a link, and somebody else goes on through another one, which stays open. Both requests can be repeated.
async fn sign_and_go_on(client: &Client, path: &str, user: &str) {
    let own = Link::create(client, path, json!({"signer": {"user_id": user}, "until": "sign"})).await;
    own.signer(client).sign_once(&json!({"step_data": {"sign": SIGNATURE}}), "signed").await.data();
    let other = Link::create(client, path, json!({"signer": {"name": "Grace Hopper"}, "until": "end"})).await;
    let session = other.signer(client).sign_once(&json!({"step_data": {"last": "checked"}}), "went on").await;
    assert_eq!(session.data()["status"], "open");
    assert!(session.text().contains(MARK), "the session shows who has signed: {}", session.text());
}

#[tokio::test(start_paused = true)]
async fn a_mark_in_every_field_is_nowhere_after_the_erasure() {
    let (api, client) = Api::with_tenant().await;
    let csv = format!("email,display_name,role\n{MARK}@example.com,{},technician\n", mark("imported"));
    let rows = client.import_once("/users", &csv, "users").await.data();
    let user = rows[0]["id"].as_str().unwrap().to_owned();
    let update = json!({"op": "update", "id": user, "body": {"display_name": mark("in a batch")}});
    client.batch("/users/batch", &[update]).await.data();
    client.patch(&format!("/users/{user}"), json!({"email": format!("{MARK}.new@example.com")})).await.data();
    client.patch(&format!("/users/{user}"), json!({"email": format!("{MARK}@example.com")})).await.data();
    let scopes = ["assets:read", "assets:write", "processes:read", "processes:write", "users:read"];
    let key = client.post("/keys", json!({"name": mark("key"), "user_id": user, "scopes": scopes})).await.data();
    let rotated = client.post(&format!("/keys/{}/rotate", key["id"].as_str().unwrap()), json!({})).await.data();
    let own = client.with_key_of(&rotated);
    let held = assets(&own, &user).await;
    processes(&own, &user).await;
    for instance in client.get("/processes/instances?status=in_progress").await.data().as_array().unwrap() {
        let path = format!("/processes/instances/{}/cancel", instance["id"].as_str().unwrap());
        client.post(&path, json!({"reason": mark("ended")})).await.data();
    }
    // What the completed process has given to the user.
    for asset in client.get(&format!("/assets?assigned_to={user}&status=in_use")).await.data().as_array().unwrap() {
        client.patch(&format!("/assets/{}", asset["id"].as_str().unwrap()), json!({"assigned_to": null})).await.data();
    }
    let offboarded = client.post_once(&format!("/users/{user}/offboard"), &json!({}), "offboard").await;
    offboarded.data();
    for asset in &held {
        client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
    }
    api.advance_clock(60);
    assert!(items_with(&api, MARK).await.len() > 60);
    erase_all(&client, &user).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());

    let verified = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
    assert_eq!(verified.broken_links, []);
    for path in ["/users", "/assets", "/processes/instances", "/movements", "/keys", "/events"] {
        let list = client.get(&format!("{path}?limit=100")).await;
        assert!(list.status == 200 && !list.text().contains(MARK), "{path}: {}", list.text());
    }
    for export in ["/users/export", "/assets/export"] {
        assert!(client.export(export).await.iter().all(|part| !part.contains(MARK)), "{export}");
    }
    // The signature is gone, too.
    let image = all_images(&api).await;
    assert_eq!(image, 0);
}

async fn all_images(api: &Api) -> usize {
    items_with(api, "\"SIGNATURE#").await.len()
}
