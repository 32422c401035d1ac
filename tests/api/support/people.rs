//! A person with a mark in every personal field.

use super::client::Client;
use super::processes::{create_process, start, system_process};
use super::samples::SIGNATURE;
use super::signing::{Link, signature_step, step};
use super::table::all_items;
use super::{Api, Reply, Template};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Contained in all texts about the person.
pub const MARK: &str = "Zyx9Mark";

#[derive(Clone)]
pub struct Person {
    pub id: String,
    /// Paths of the resources with a history that the person was involved in.
    pub histories: Vec<String>,
    pub instance: String,
    pub asset: String,
}

pub fn steps() -> Value {
    json!([
        step("user_picker", "who"),
        step("text", "note"),
        step("textarea", "story"),
        signature_step(),
        step("text", "last"),
        step("complete", "done")
    ])
}

/// Creates a person who had an asset, signed for it with a link, typed texts, and worked with a bound key.
pub async fn person(client: &Client) -> Person {
    let mark = |what: &str| format!("{MARK} {what}");
    let body = json!({"email": format!("{MARK}@example.com"), "display_name": mark("name"), "role": "technician"});
    let id = client.post_once("/users", &body, "user").await.id();
    let scopes = ["assets:read", "assets:write", "processes:read", "processes:write", "users:read"];
    let own = client.with_new_key(json!({"name": mark("key"), "user_id": id, "scopes": scopes})).await;
    let body = json!({"name": "Laptop", "assigned_to": id, "notes": mark("notes")});
    let asset = own.post_once("/assets", &body, "asset").await.id();
    client.patch(&format!("/assets/{asset}"), json!({"notes": mark("more notes")})).await.data();
    let process = create_process(client, steps()).await;
    let instance = start(&own, &process, &asset).await;
    let path = format!("/processes/instances/{instance}");
    let data = json!({"step_data": {"who": id}});
    client.post_once(&format!("{path}/advance"), &data, "pick").await.data();
    own.post(&format!("{path}/advance"), json!({"step_data": {"note": mark("typed")}})).await.data();
    let link = Link::create(client, &path, json!({"signer": {"user_id": id}, "until": "sign"})).await;
    link.signer(client).sign(json!({"step_data": {"story": mark("told")}})).await.data();
    link.signer(client).sign_once(&json!({"step_data": {"sign": SIGNATURE}, "typed_signatures": ["sign"]}), "sign").await.data();
    client.post(&format!("{path}/advance"), json!({"step_data": {"last": mark("last")}})).await.data();
    client.post(&format!("{path}/advance"), json!({"step_data": {}})).await.data();
    client.patch(&format!("/users/{id}"), json!({"display_name": mark("new name")})).await.data();
    let cancelled = client.asset(json!({"name": "Phone", "notes": "of others"})).await;
    let second = start(client, &process, &cancelled).await;
    client.post(&format!("/processes/instances/{second}/advance"), json!({"step_data": {"who": id}})).await.data();
    client.post(&format!("/processes/instances/{second}/cancel"), json!({"reason": mark("reason")})).await.data();
    let histories = [format!("/assets/{asset}"), format!("/assets/{cancelled}")];
    let instances = [path.clone(), format!("/processes/instances/{second}")];
    Person { id, histories: histories.into_iter().chain(instances).collect(), instance: path, asset }
}

/// Starts the return of a different user's asset. `user` signs with a link, and IT's confirmation is still missing. Returns the
/// instance's path.
pub async fn signed_return(client: &Client, user: &str) -> String {
    let holder = client.user("Somebody Else").await;
    let asset = client.asset(json!({"name": "Laptop", "status": "in_use", "assigned_to": holder})).await;
    let process = system_process(client, "device-return").await;
    let path = format!("/processes/instances/{}", start(client, &process, &asset).await);
    let link = Link::create(client, &path, json!({"signer": {"user_id": user}, "until": "signature"})).await;
    let data = json!({"condition": format!("{MARK} scratched"), "signature": SIGNATURE});
    link.signer(client).sign(json!({"step_data": data, "through": "signature"})).await.data();
    path
}

pub async fn with_person() -> (Api, Client, Person) {
    static TEMPLATE: OnceCell<Template<Person>> = OnceCell::const_new();
    TEMPLATE.get_or_init(|| Template::new(person)).await.copied().await
}

/// Takes the asset back and deactivates the person, so that nothing blocks the erasure.
pub async fn leaves(api: &Api, client: &Client, person: &Person) {
    client.patch(&format!("/assets/{}", person.asset), json!({"assigned_to": null})).await.data();
    client.patch(&format!("/users/{}", person.id), json!({"is_active": false})).await.data();
    api.advance_clock(60);
}

pub async fn erase(client: &Client, user: &str) -> Reply {
    client.post(&format!("/users/{user}/erase"), json!({})).await
}

/// Repeats the erasure until it is done.
pub async fn erase_all(client: &Client, user: &str) {
    while erase(client, user).await.data()["done"] == false {}
}

/// Deactivates a user without assets, and erases the user.
pub async fn erase_leaver(api: &Api, client: &Client, user: &str) {
    client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
    api.advance_clock(60);
    erase_all(client, user).await;
}

pub async fn erase_person(api: &Api, client: &Client, person: &Person) {
    leaves(api, client, person).await;
    erase_all(client, &person.id).await;
}

/// Returns the items that contain this text in upper or lower case.
pub async fn items_with(api: &Api, text: &str) -> Vec<String> {
    let shown = all_items(api).await.into_iter().map(|item| format!("{item:?}"));
    shown.filter(|item| item.to_lowercase().contains(&text.to_lowercase())).collect()
}
