//! Creating, reading, changing and deleting users.

use crate::support::bulk::outcomes;
use crate::support::{Api, over_http};
use insta::assert_json_snapshot;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_new_user_has_every_field() {
    let client = over_http().await;
    let reply = client.post("/users", json!({"email": "Ada@Example.com", "display_name": "Ada"})).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), format!("/v1/users/{}", reply.id()));
    assert_json_snapshot!(reply.json(), {".data.id" => "[id]", ".data.created_at" => "[time]", ".data.updated_at" => "[time]"}, @r#"
    {
      "data": {
        "id": "[id]",
        "email": "Ada@Example.com",
        "display_name": "Ada",
        "role": "viewer",
        "is_active": true,
        "last_login_at": null,
        "erased_at": null,
        "created_at": "[time]",
        "updated_at": "[time]"
      }
    }
    "#);
    assert_eq!(client.get(&format!("/users/{}", reply.id())).await.json(), reply.json());
}

#[tokio::test(start_paused = true)]
async fn email_addresses_are_unique_ignoring_case() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.post("/users", json!({"email": "ada@example.com", "display_name": "Ada"})).await.id();
    let eve = client.post("/users", json!({"email": "eve@example.com", "display_name": "Eve"})).await.id();
    let before = api.dump().await;
    let again = client.post("/users", json!({"email": "ADA@example.COM", "display_name": "Other"})).await;
    let taken = again.problem(409, "DUPLICATE");
    assert_eq!((&taken["field"], &taken["user_id"]), (&json!("email"), &json!(ada)));
    client.patch(&format!("/users/{eve}"), json!({"email": "Ada@example.com"})).await.problem(409, "DUPLICATE");
    assert_eq!(api.dump().await, before);
    // Case is ignored as in searches.
    client.post("/users", json!({"email": "STRASSE@example.com", "display_name": "S"})).await.data();
    client.post("/users", json!({"email": "straße@example.com", "display_name": "S"})).await.problem(409, "DUPLICATE");
    // A user's own address in another case is no duplicate, an address that was given up can be used again, and other
    // tenants have their own.
    client.patch(&format!("/users/{ada}"), json!({"email": "ADA@example.com"})).await.data();
    client.patch(&format!("/users/{ada}"), json!({"email": "lovelace@example.com"})).await.data();
    client.patch(&format!("/users/{eve}"), json!({"email": "ada@example.com"})).await.data();
    client.delete(&format!("/users/{eve}")).await.data();
    client.post("/users", json!({"email": "eve@example.com", "display_name": "New Eve"})).await.data();
    let other = api.tenant().await;
    other.post("/users", json!({"email": "ada@example.com", "display_name": "Ada"})).await.data();
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_shares_its_capital_with_another_is_somebody_else() {
    let client = over_http().await;
    let kadi = client.user("kadi").await;
    let other = json!({"email": "kadı@example.com", "display_name": "Kadı"});
    let rows = "name,assigned_to_email\nLaptop,kadı@example.com\n";
    assert_eq!(outcomes(&client.import("/assets", "", rows).await), ["refused"]);
    assert_ne!(client.post("/users", other).await.id(), kadi);
    assert_eq!(client.get("/users?email=KADI@example.com").await.data()[0]["id"], kadi);
}

#[tokio::test(start_paused = true)]
async fn a_user_with_assets_can_be_deactivated_but_not_deleted() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let path = format!("/users/{user}");
    let mut assets = Vec::new();
    for name in ["a", "b"] {
        let asset = format!("/assets/{}", client.asset(json!({"name": name})).await);
        client.patch(&asset, json!({"assigned_to": user})).await.data();
        assets.push(asset);
    }
    assert_eq!(client.delete(&path).await.problem(409, "IN_USE")["count"], 2);
    client.patch(&path, json!({"is_active": false})).await.data();
    client.patch(&assets[0], json!({"name": "still assigned"})).await.data();
    client.patch(&assets[0], json!({"assigned_to": null})).await.data();
    assert_eq!(client.patch(&assets[0], json!({"assigned_to": user})).await.field_errors(), ["/assigned_to"]);
    client.delete(&assets[1]).await;
    assert_eq!(client.delete(&path).await.data()["display_name"], "Ada");
    client.get(&path).await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn invalid_fields_are_refused_by_name() {
    let client = over_http().await;
    let body = json!({"email": "nobody", "display_name": "", "role": "king", "is_active": "yes", "last_login_at": null});
    let errors = client.post("/users", body).await.field_errors();
    assert_eq!(errors, ["/display_name", "/email", "/is_active", "/last_login_at", "/role"]);
    assert_eq!(client.post("/users", json!({})).await.field_errors(), ["/display_name", "/email"]);
}

#[tokio::test(start_paused = true)]
async fn users_are_searched_and_filtered() {
    let client = over_http().await;
    for (name, role, is_active) in
        [("Ada Lovelace", "admin", true), ("Jürgen Müller", "viewer", true), ("Old Ada", "viewer", false)]
    {
        let email = format!("{}@example.com", name.replace([' ', 'ü'], "").to_lowercase());
        client.post("/users", json!({"email": email, "display_name": name, "role": role, "is_active": is_active})).await.data();
    }
    for (query, names) in [
        ("", vec!["Old Ada", "Jürgen Müller", "Ada Lovelace"]),
        ("?q=ADA", vec!["Old Ada", "Ada Lovelace"]),
        ("?q=M%C3%9CLLER", vec!["Jürgen Müller"]),
        ("?q=example.com%20love", vec!["Ada Lovelace"]),
        ("?role=viewer&is_active=true", vec!["Jürgen Müller"]),
        ("?is_active=false", vec!["Old Ada"]),
        ("?q=nobody", vec![]),
    ] {
        let reply = client.get(&format!("/users{query}")).await.json();
        let found: Vec<&str> =
            reply["data"].as_array().unwrap().iter().map(|user| user["display_name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{query}");
        assert_eq!(reply["meta"]["total"], names.len());
    }
    assert_eq!(client.get("/users?role=x&is_active=1&page=0").await.field_errors(), ["is_active", "page", "role"]);
}
