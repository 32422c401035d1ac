//! `GET /v1/events`: every change of the tenant, in order and without gaps.

use crate::support::{Api, Client};
use serde_json::{Value, json};

/// Reads the feed to its end. Returns the events and the next cursor.
async fn follow(client: &Client, mut after: Value, limit: u32) -> (Vec<Value>, Value) {
    let mut events = Vec::new();
    loop {
        let cursor = after.as_str().map(|after| format!("&after={after}")).unwrap_or_default();
        let page = client.get(&format!("/events?limit={limit}{cursor}")).await.json();
        let data = page["data"].as_array().unwrap().clone();
        assert!(data.len() <= limit as usize);
        assert_eq!(page["meta"]["limit"], limit);
        after = page["meta"]["after"].clone();
        if let Some(last) = data.last() {
            assert_eq!(last["id"], after);
        }
        events.extend(data);
        if page["meta"]["has_more"] == false {
            return (events, after);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_feed_lists_every_event_in_order_after_a_short_delay() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    client.patch(&format!("/assets/{id}"), json!({"name": "b"})).await.data();
    // Events with earlier ids may still appear.
    assert_eq!(follow(&client, Value::Null, 20).await, (vec![], Value::Null));
    api.advance_clock(11);
    let (events, after) = follow(&client, Value::Null, 20).await;
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types[..2], ["tenant.created", "key.created"]);
    assert_eq!(types[types.len() - 2..], ["asset.created", "asset.updated"]);
    assert_eq!(events.last().unwrap()["changes"], json!({"name": {"old": "a", "new": "b"}}));
    let ids: Vec<&str> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted());
    for limit in [1, 3, 100] {
        assert_eq!(follow(&client, Value::Null, limit).await, (events.clone(), after.clone()), "{limit}");
    }
    assert_eq!(follow(&client, after.clone(), 5).await, (vec![], after.clone()));
    client.delete(&format!("/assets/{id}")).await;
    api.advance_clock(11);
    let (events, _) = follow(&client, after, 5).await;
    assert_eq!(events.iter().map(|event| &event["type"]).collect::<Vec<_>>(), ["asset.deleted"]);
}

/// The feed must not pass an event whose id was taken early and which is written late.
#[tokio::test(start_paused = true)]
async fn a_reader_of_the_feed_misses_no_late_write() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    api.advance_clock(11);
    let (_, after) = follow(&client, Value::Null, 100).await;
    let slow = api.replica(-2_000, 0).client(&client);
    let late = slow.post("/catalog/manufacturers", json!({"name": "late"}));
    let early = async {
        client.post("/catalog/manufacturers", json!({"name": "early"})).await.data();
        api.advance_clock(4);
        follow(&client, after, 100).await
    };
    let (late, (events, after)) = api.faults.overtake("TransactWriteItems", late, early).await;
    late.data();
    assert!(events.is_empty());
    api.advance_clock(11);
    let (events, _) = follow(&client, after, 100).await;
    let names: Vec<&Value> = events.iter().map(|event| &event["changes"]["name"]["new"]).collect();
    assert_eq!(names, ["late", "early"]);
}

#[tokio::test(start_paused = true)]
async fn large_events_do_not_make_a_large_response() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    for n in 0..60 {
        let notes: String = std::iter::repeat_n(char::from_u32(0x4e00 + n).unwrap(), 10_000).collect();
        let fields = json!({"a": "ä".repeat(15_000 + n as usize)});
        client.patch(&format!("/assets/{id}"), json!({"notes": notes, "custom_fields": fields})).await.data();
    }
    api.advance_clock(11);
    let reply = client.get("/events?limit=100").await;
    assert!(reply.bytes.len() < 5 * 1024 * 1024, "{} bytes", reply.bytes.len());
    assert_eq!(reply.json()["meta"]["has_more"], true);
    assert_eq!(follow(&client, Value::Null, 100).await.0.len(), 9 + 61);
}

#[tokio::test(start_paused = true)]
async fn the_feed_is_for_admins_and_shows_their_own_tenant() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let scopes = ["events:read", "assets:read"];
    let key = client.post("/keys", json!({"name": "ada's", "scopes": scopes, "user_id": user})).await.data();
    let ada = client.with_key(key["api_key"].as_str().unwrap());
    for (role, status) in [("viewer", 403), ("helpdesk", 403), ("technician", 403), ("admin", 200)] {
        client.patch(&format!("/users/{user}"), json!({"role": role})).await.data();
        assert_eq!(ada.get("/events").await.status, status, "{role}");
    }
    let other = api.tenant().await;
    api.advance_clock(11);
    let (events, _) = follow(&other, Value::Null, 100).await;
    assert_eq!(events.len(), 9);
    assert!(!json!(events).to_string().contains(&user));
    let foreign = client.get("/events?limit=1").await.data()[0]["id"].clone();
    assert_eq!(follow(&other, foreign, 100).await.0.len(), 9, "a cursor is a point in time, even one from another tenant");
    assert_eq!(client.get("/events?after=x&limit=0&page=1").await.field_errors(), ["after", "limit", "page"]);
}
