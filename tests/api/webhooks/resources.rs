//! Webhooks: creating, changing and deleting them, and accepted values.

use crate::support::table::history::event_chain;
use crate::support::webhooks::deliveries::{URL, path};
use crate::support::{Api, Client, over_http};
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::app::App;
use shared::domain::keys::scope::{Role, Scope};
use shared::domain::webhooks::AddressPolicy;

/// The service on the same table, as another operator has configured it.
fn configured(api: &Api, client: &Client, configure: impl Fn(App) -> App) -> Client {
    Client { router: dev_server::server::router(configure(App::new(api.store.clone()))), ..client.clone() }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_created_listed_changed_and_deleted() {
    let (api, client) = Api::with_tenant().await;
    let body =
        json!({"url": "https://Hooks.example.com:443/assets?a=b", "description": "ERP", "events": ["asset.*", "user.deleted"]});
    let created = client.post("/webhooks", body).await;
    assert_eq!((created.status.as_u16(), created.header("etag")), (201, ""));
    let mut webhook = created.data();
    assert_eq!(created.header("location"), format!("/v1{}", path(&webhook)));
    webhook.as_object_mut().unwrap().remove("secret").expect("a secret");
    let expected = json!({
        "id": webhook["id"], "url": "https://hooks.example.com/assets?a=b", "description": "ERP",
        "events": ["asset.*", "user.deleted"], "is_active": true, "disabled_reason": null, "created_at": webhook["created_at"],
        "updated_at": webhook["created_at"], "rotated_at": null, "previous_secret_until": null
    });
    assert_eq!(webhook, expected);
    let read = client.get(&path(&webhook)).await;
    assert_eq!(read.data(), webhook);
    let etag = read.header("etag").to_owned();
    let other = client.webhook(json!(["*"])).await;
    let listed = client.get("/webhooks").await.json();
    assert_eq!(listed["meta"], json!({"total": 2, "page": 1, "limit": 20, "total_pages": 1}));
    assert_eq!((&listed["data"][0]["id"], &listed["data"][1]), (&other["id"], &webhook));

    let patched = client.send_json("PATCH", &path(&webhook), r#"{"is_active": false}"#, ("if-match", &etag)).await.data();
    assert_eq!((patched["is_active"].as_bool(), &patched["url"]), (Some(false), &webhook["url"]));
    client
        .send_json("PATCH", &path(&webhook), r#"{"is_active": true}"#, ("if-match", &etag))
        .await
        .problem(412, "PRECONDITION_FAILED");
    // A response can be sent back.
    assert_eq!(client.patch(&path(&webhook), patched.clone()).await.data(), patched);
    let refused = json!({"secret": "whsec_x", "disabled_reason": "gone", "id": other["id"], "slot": 1});
    assert_eq!(client.patch(&path(&webhook), refused).await.field_errors(), ["/disabled_reason", "/id", "/secret", "/slot"]);

    assert_eq!(client.delete(&path(&webhook)).await.data(), patched);
    client.get(&path(&webhook)).await.problem(404, "NOT_FOUND");
    assert_eq!(client.total("/webhooks").await, 1);
    let types: Vec<Value> =
        event_chain(&api, &client, webhook["id"].as_str().unwrap()).await.iter().map(|it| it["type"].clone()).collect();
    assert_eq!(types, ["webhook.created", "webhook.updated", "webhook.deleted"]);
}

#[tokio::test(start_paused = true)]
async fn addresses_and_events_are_checked_together() {
    let client = over_http().await;
    for url in [
        "http://hooks.example.com/",
        "https://127.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:10.0.0.1]/",
        "https://localhost/",
        "https://metadata.google.internal/",
        "https://example.com:6379/",
        "https://ada:secret@example.com/",
        "https://example.com/#x",
        "ftp://example.com/",
        "",
    ] {
        let body = json!({"url": url, "events": ["*"]});
        assert_eq!(client.post("/webhooks", body).await.field_errors(), ["/url"], "{url}");
    }
    let both = json!({"url": "https://10.0.0.1/", "events": ["*"], "description": "a\u{7}", "colour": "red"});
    assert_eq!(client.post("/webhooks", both).await.field_errors(), ["/colour", "/description", "/url"]);
    let events = json!({"url": URL, "events": ["asset.craeted", "asset.*", "asset.*", "webhook.test"]});
    let refused = client.post("/webhooks", events).await;
    assert_eq!(refused.field_errors(), ["/events/0", "/events/2", "/events/3"]);
    assert!(refused.text().contains("unknown event type; known: asset.created, "), "{}", refused.text());
    for events in [json!([]), json!("*"), json!([1]), json!(vec!["*"; 51]), Value::Null] {
        let reply = client.post("/webhooks", json!({"url": URL, "events": events})).await;
        assert_eq!(reply.field_errors(), ["/events"], "{events}");
    }
    assert_eq!(client.post("/webhooks", json!({})).await.field_errors(), ["/events", "/url"]);
    assert_eq!(client.total("/webhooks").await, 0);

    let webhook = client.webhook(json!(["*"])).await;
    for body in [json!({"url": "https://[::1]/"}), json!({"url": "http://example.com/"}), json!({"url": null})] {
        assert_eq!(client.patch(&path(&webhook), body).await.field_errors(), ["/url"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_can_allow_addresses_of_this_machine_and_nothing_else() {
    let (api, client) = Api::with_tenant().await;
    let (key_encryption, queue) = (api.key_encryption.clone(), api.queue.clone());
    let local = configured(&api, &client, |app| {
        let app = app.with_key_encryption(Some(key_encryption.clone())).with_queue(Some(queue.clone()));
        app.with_address_policy(AddressPolicy::PublicOrLoopback)
    });
    let mut created = Value::Null;
    for url in ["http://127.0.0.1:9000/hook", "http://localhost:9000/", "https://[::1]/", URL] {
        created = local.post("/webhooks", json!({"url": url, "events": ["*"]})).await.data();
        assert_eq!(created["url"], url);
    }
    for url in ["http://10.0.0.1/", "http://example.com/", "https://192.168.0.1/"] {
        assert_eq!(local.post("/webhooks", json!({"url": url, "events": ["*"]})).await.field_errors(), ["/url"], "{url}");
    }
    // Without the policy, such an address can be sent back as it is, and not be chosen again.
    let here = json!({"url": "http://127.0.0.1:9000/hook"});
    local.patch(&path(&created), here.clone()).await.data();
    let mut read = client.get(&path(&created)).await.data();
    read["description"] = json!("still here");
    assert_eq!(client.patch(&path(&created), read).await.data()["url"], here["url"]);
    client.patch(&path(&created), json!({"url": URL})).await.data();
    assert_eq!(client.patch(&path(&created), here).await.field_errors(), ["/url"]);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_at_most_twenty_webhooks_however_many_are_created_at_once() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let body = json!({"url": URL, "events": ["*"]});
    let all = join_all((0..25).map(|_| client.post("/webhooks", body.clone()))).await;
    let created: Vec<Value> = all.iter().filter(|reply| reply.status == 201).map(|reply| reply.data()).collect();
    for refused in all.iter().filter(|reply| reply.status != 201) {
        refused.problem(409, "CONFLICT");
    }
    // A request that lost too many races can be repeated.
    let mut created = created;
    while created.len() < 20 {
        created.push(client.post("/webhooks", body.clone()).await.data());
    }
    let problem = client.post("/webhooks", body.clone()).await.problem(409, "CONFLICT");
    assert_eq!(problem["limit"], 20);
    assert_eq!(client.total("/webhooks?limit=100").await, 20);
    assert_eq!(client.post("/webhooks?dry_run=true", body.clone()).await.status, 409);
    client.delete(&path(&created[7])).await.data();
    client.post("/webhooks", body.clone()).await.data();
    client.post("/webhooks", body.clone()).await.problem(409, "CONFLICT");
    // Another tenant has webhooks of its own.
    let other = api.tenant().await;
    assert_eq!(other.total("/webhooks").await, 0);
    other.webhook(json!(["*"])).await;
}

#[tokio::test(start_paused = true)]
async fn only_admins_have_the_scopes_of_webhooks() {
    for role in Role::ALL {
        let is_admin = *role == Role::Admin;
        for scope in [Scope::WebhooksRead, Scope::WebhooksWrite] {
            assert_eq!(role.allows(scope), is_admin, "{role} {scope}");
        }
    }
    let client = over_http().await;
    let user = client.user("Ada").await;
    client.patch(&format!("/users/{user}"), json!({"role": "technician"})).await.data();
    let key = json!({"name": "k", "scopes": ["webhooks:read", "webhooks:write"], "user_id": user});
    let bound = client.with_key_of(&client.post("/keys", key).await.data());
    assert_eq!(bound.get("/webhooks").await.problem(403, "FORBIDDEN")["scope"], "webhooks:read");
    let body = json!({"url": URL, "events": ["*"]});
    assert_eq!(bound.post("/webhooks", body.clone()).await.problem(403, "FORBIDDEN")["scope"], "webhooks:write");
    client.patch(&format!("/users/{user}"), json!({"role": "admin"})).await.data();
    bound.post("/webhooks", body).await.data();
    bound.get("/webhooks").await.data();
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_or_an_encryption_key_there_are_no_webhooks() {
    let (api, client) = Api::with_tenant().await;
    let webhook = client.webhook(json!(["*"])).await;
    let (key_encryption, queue) = (api.key_encryption.clone(), api.queue.clone());
    let without_queue = configured(&api, &client, |app| app.with_key_encryption(Some(key_encryption.clone())));
    let without_key = configured(&api, &client, |app| app.with_queue(Some(queue.clone())));
    let before = api.dump().await;
    let body = json!({"url": URL, "events": ["*"]});
    for (client, post, body) in [
        (&without_queue, "/webhooks".to_owned(), body.clone()),
        (&without_key, "/webhooks".to_owned(), body.clone()),
        (&without_key, format!("{}/rotate", path(&webhook)), json!({})),
        (&without_queue, format!("{}/test", path(&webhook)), json!({})),
        (&without_queue, format!("{}/replay", path(&webhook)), json!({"since": "2026-03-01T00:00:00Z"})),
    ] {
        let problem = client.post(&post, body).await.problem(409, "CONFLICT");
        assert!(problem["detail"].as_str().unwrap().starts_with("Webhooks are not available: "), "{problem}");
    }
    assert_eq!(api.dump().await, before);
    assert_eq!(api.queue.take(), []);
    // What is there can be read, changed and deleted.
    without_queue.patch(&path(&webhook), json!({"is_active": false})).await.data();
    assert_eq!(without_key.get(&path(&webhook)).await.data()["is_active"], false);
    without_key.delete(&path(&webhook)).await.data();
}
