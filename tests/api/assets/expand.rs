//! `expand=assigned_to`: the users whom assets are assigned to, beside the assets.

use crate::support::table::history::set_text;
use crate::support::{Api, over_http};
use serde_json::{Value, json};
use shared::domain::record::Kind;
use shared::domain::values::id::{Id, UserId};
use shared::store::keys::Keys;

#[tokio::test(start_paused = true)]
async fn the_assigned_user_is_shown_on_request_only() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let assigned = client.assigned_asset("a", &ada).await;
    let free = client.asset(json!({"name": "b"})).await;
    let shown = json!({"id": ada, "display_name": "Ada", "email": "ada@example.com"});
    for (id, user) in [(&assigned, &shown), (&free, &Value::Null)] {
        let plain = client.get(&format!("/assets/{id}")).await.data();
        assert!(plain.get("assigned_user").is_none(), "{plain}");
        let mut expanded = client.get(&format!("/assets/{id}?expand=assigned_to")).await.data();
        assert_eq!(expanded["assigned_user"], *user);
        expanded.as_object_mut().unwrap().remove("assigned_user");
        assert_eq!(expanded, plain);
    }
    let list = client.get("/assets?expand=assigned_to&sort=name").await.data();
    assert_eq!((&list[0]["assigned_user"], &list[1]["assigned_user"]), (&shown, &Value::Null));
    assert!(client.get("/assets").await.data()[0].get("assigned_user").is_none());
    let wrong = client.get("/assets?expand=model").await;
    assert_eq!(wrong.field_errors(), ["expand"]);
    assert!(wrong.text().contains("must be assigned_to"), "{}", wrong.text());
}

#[tokio::test(start_paused = true)]
async fn users_are_shown_to_those_only_who_may_read_users() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let asset = client.assigned_asset("a", &ada).await;
    let lacking = client.scoped(&["assets:read", "assets:write"]).await;
    for path in ["/assets?expand=assigned_to".to_owned(), format!("/assets/{asset}?expand=assigned_to")] {
        let reply = lacking.get(&path).await;
        assert_eq!(reply.problem(403, "FORBIDDEN")["scope"], "users:read");
        assert!(!reply.text().contains("ada@"));
        assert_eq!(client.scoped(&["assets:read", "users:read"]).await.get(&path).await.status, 200);
    }
    assert_eq!(lacking.get("/assets").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_etags_of_both_representations_differ() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let assigned = client.assigned_asset("a", &ada).await;
    for asset in [assigned.clone(), client.asset(json!({"name": "b"})).await] {
        let (plain, expanded) = (format!("/assets/{asset}"), format!("/assets/{asset}?expand=assigned_to"));
        let tag = async |path: &str| client.get(path).await.header("etag").to_owned();
        let (plain_tag, expanded_tag) = (tag(&plain).await, tag(&expanded).await);
        assert_ne!(plain_tag, expanded_tag);
        for (path, tag, status) in [
            (&plain, &plain_tag, 304),
            (&expanded, &expanded_tag, 304),
            (&plain, &expanded_tag, 200),
            (&expanded, &plain_tag, 200),
        ] {
            let reply = client.send_with("GET", path, None, "", &[("if-none-match", tag)]).await;
            assert_eq!(reply.status.as_u16(), status, "{path} {tag}");
        }
    }
    let expanded = format!("/assets/{assigned}?expand=assigned_to");
    let before = client.get(&expanded).await.header("etag").to_owned();
    client.patch(&format!("/users/{ada}"), json!({"display_name": "Countess"})).await.data();
    let reply = client.send_with("GET", &expanded, None, "", &[("if-none-match", &before)]).await;
    assert_eq!((reply.status.as_u16(), &reply.data()["assigned_user"]["display_name"]), (200, &json!("Countess")));
}

#[tokio::test(start_paused = true)]
async fn an_expanded_asset_can_be_sent_back() {
    let client = over_http().await;
    let (ada, eve) = (client.user("Ada").await, client.user("Eve").await);
    let asset = client.assigned_asset("a", &ada).await;
    let path = format!("/assets/{asset}");
    let read = client.get(&format!("{path}?expand=assigned_to")).await.data();
    assert_eq!(client.patch(&path, read.clone()).await.data(), client.get(&path).await.data());
    let batch = client.batch("/assets/batch", &[json!({"op": "update", "id": asset, "body": read})]).await;
    assert_eq!(batch.data()[0]["status"], 200, "{}", batch.text());
    for other in [json!({"id": eve, "display_name": "Eve", "email": "eve@example.com"}), Value::Null, json!({}), json!("x")] {
        let mut changed = read.clone();
        changed["assigned_user"] = other;
        assert_eq!(client.patch(&path, changed).await.field_errors(), ["/assigned_user"]);
    }
    let created = client.post("/assets", json!({"name": "x", "assigned_user": null})).await;
    assert!(created.json()["errors"][0]["detail"].as_str().unwrap().contains("read-only"), "{}", created.text());
    client.patch(&path, json!({"assigned_to": null})).await.data();
    let read = client.get(&format!("{path}?expand=assigned_to")).await.data();
    assert_eq!(client.patch(&path, read).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_users_of_a_page_take_one_more_read() {
    let (api, client) = Api::with_tenant().await;
    for n in 0..20 {
        let user = client.user(&format!("User {n}")).await;
        client.assigned_asset(&format!("a{n}"), &user).await;
    }
    api.advance_clock(120);
    client.get("/assets").await.data();
    let cost = async |path: &str| {
        api.meter.take();
        client.get(path).await.data();
        api.meter.take()
    };
    let (plain, expanded) = (cost("/assets").await, cost("/assets?expand=assigned_to").await);
    assert_eq!((expanded.calls, expanded.round_trips), (plain.calls + 1, plain.round_trips + 1));
    assert!(expanded.read_units <= plain.read_units + 20.0, "{plain:?} {expanded:?}");
    let id = client.get("/assets?limit=1").await.data()[0]["id"].as_str().unwrap().to_owned();
    let (plain, expanded) = (cost(&format!("/assets/{id}")).await, cost(&format!("/assets/{id}?expand=assigned_to")).await);
    assert_eq!((expanded.calls, expanded.round_trips), (plain.calls + 1, plain.round_trips + 1));
}

#[tokio::test(start_paused = true)]
async fn a_user_who_cannot_be_read_is_shown_as_null() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    let asset = client.assigned_asset("a", &ada).await;
    let eve = client.user("Eve").await;
    let other = client.assigned_asset("b", &eve).await;
    let key = Keys::of(client.tenant).record(Kind::User, ada.parse::<UserId>().unwrap().uuid()).item();
    set_text(&api, &key, "role", "king".to_owned()).await;
    for path in [format!("/assets/{asset}?expand=assigned_to"), "/assets?expand=assigned_to&sort=name".to_owned()] {
        let data = client.get(&path).await.data();
        let shown = if data.is_array() { &data[0] } else { &data };
        assert_eq!((&shown["assigned_to"], &shown["assigned_user"]), (&json!(ada), &Value::Null), "{path}");
    }
    assert_eq!(client.get(&format!("/assets/{other}?expand=assigned_to")).await.data()["assigned_user"]["display_name"], "Eve");
}
