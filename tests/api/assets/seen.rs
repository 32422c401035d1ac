//! Scans of assets, as for stock-taking.

use crate::support::bulk::outcomes;
use crate::support::{Api, Client, UNKNOWN_ID, over_http};
use serde_json::{Value, json};

async fn types(client: &Client, path: &str) -> Vec<String> {
    let data = client.get(path).await.data();
    data.as_array().unwrap().iter().map(|entry| entry["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_item_is_answered_in_its_place() {
    let (api, client) = Api::with_tenant().await;
    let ada = client.user("Ada").await;
    for body in [
        json!({"name": "here", "asset_tag": "T-1", "location": "Berlin/3/14"}),
        json!({"name": "there", "asset_tag": "T-2", "serial_number": "S 2", "location": "Bonn", "assigned_to": ada}),
        json!({"name": "double", "serial_number": "D"}),
        json!({"name": "double", "serial_number": "d"}),
    ] {
        client.post("/assets", body).await.data();
    }
    api.advance_clock(60);
    let here = client.get("/assets?asset_tag=T-1").await.data()[0].clone();
    let items = json!([{"tag": "t-1"}, {"serial_number": "s2"}, {"serial_number": "D"}, {"tag": "T-9"}, {"id": here["id"]},
        {"id": UNKNOWN_ID}, {"tag": " t-9 "}, {"serial_number": " d"}, {"id": UNKNOWN_ID}, {"id": here["id"]}]);
    let body = |moves: bool| json!({"location": "berlin / 3", "items": items, "move": moves});
    let reply = client.post("/assets/seen", body(false)).await;
    let different = ["seen", "elsewhere", "ambiguous", "unknown", "seen", "unknown"];
    assert_eq!(outcomes(&reply), [&different[..], &["unknown", "ambiguous", "unknown", "seen"]].concat());
    let data = reply.data();
    assert_eq!(data[1]["location"], "Bonn");
    assert_eq!((&data[1]["assigned_to"], &data[4]["index"], &data[4]["id"]), (&json!(ada), &json!(4), &here["id"]));
    assert_eq!((data[2]["candidates"].as_array().unwrap().len(), &data[7]["candidates"]), (2, &data[2]["candidates"]));
    assert_eq!((&data[9]["index"], &data[9]["id"]), (&json!(9), &here["id"]));
    let counts = json!({"items": 10, "seen": 1, "moved": 0, "elsewhere": 1, "unknown": 2, "ambiguous": 1});
    assert_eq!(reply.json()["meta"], counts);
    assert_eq!(
        types(&client, &format!("/assets/{}/history", here["id"].as_str().unwrap())).await,
        ["asset.seen", "asset.created"]
    );

    api.advance_clock(60);
    let moved = client.post("/assets/seen", body(true)).await;
    assert_eq!(outcomes(&moved)[..2], ["seen", "moved"]);
    assert_eq!(moved.data()[1]["location"], "berlin / 3");
    let there = client.get("/assets?asset_tag=T-2").await.data()[0].clone();
    assert_eq!((&there["location"], &there["last_seen_at"]), (&json!("berlin / 3"), &there["updated_at"]));
    // What is missing.
    let since = there["last_seen_at"].as_str().unwrap();
    assert_eq!(client.total(&format!("/assets?location=berlin&last_seen_before={since}")).await, 0);
    assert_eq!(client.total(&format!("/assets?last_seen_before={since}")).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_scan_spoils_nothing_that_was_read_before() {
    let (api, client) = Api::with_tenant().await;
    let created = client.post("/assets", json!({"name": "a", "location": "Bonn"})).await;
    let (path, id) = (format!("/assets/{}", created.id()), created.id());
    api.advance_clock(60);
    let scan = async |at: Option<String>| {
        let mut body = json!({"items": [{"id": id}]});
        body.as_object_mut().unwrap().extend(at.map(|at| ("at".to_owned(), json!(at))));
        outcomes(&client.post("/assets/seen", body).await)
    };
    assert_eq!(scan(None).await, ["seen"]);
    let seen = client.get(&path).await;
    assert_eq!(seen.data()["updated_at"], created.data()["updated_at"]);
    assert_ne!(seen.header("etag"), created.header("etag"), "the body is another one");
    let unmodified = client.send_with("GET", &path, None, "", &[("if-none-match", created.header("etag"))]).await;
    assert_eq!(unmodified.status, 200);
    let before = api.now();
    api.advance_clock(60);
    assert_eq!(scan(None).await, ["seen"]);
    // As it was read, with If-Match, after another scan; a later value is refused.
    let patch = |asset: &Value, etag: &str| {
        let (client, path, body, etag) = (client.clone(), path.clone(), asset.to_string(), etag.to_owned());
        async move { client.send_json("PATCH", &path, &body, ("if-match", &etag)).await }
    };
    assert_eq!(patch(&seen.data(), seen.header("etag")).await.status, 200);
    assert_eq!(patch(&created.data(), created.header("etag")).await.status, 200);
    let mut later = seen.data();
    later["last_seen_at"] = json!("2099-01-01T00:00:00.000Z");
    assert_eq!(patch(&later, seen.header("etag")).await.field_errors(), ["/last_seen_at"]);
    let csv = client.export("/assets/export").await.concat();
    api.advance_clock(60);
    assert_eq!(scan(None).await, ["seen"]);
    assert_eq!(outcomes(&client.import("/assets", "?match=id", &csv).await), ["unchanged"]);

    // Earlier scans change nothing, and the past is known.
    let last = client.get(&path).await.data();
    assert_eq!(scan(Some(before.to_string())).await, ["seen"]);
    assert_eq!(client.get(&path).await.data(), last);
    let past = client.get(&format!("{path}?as_of={before}")).await;
    assert_eq!(past.data()["last_seen_at"], seen.data()["last_seen_at"]);
    assert_eq!(past.header("etag"), seen.header("etag"));
    let verified = client.get(&format!("{path}/history?verify=true")).await;
    assert_eq!(verified.json()["meta"]["total"], 4, "{}", verified.text());
    let changed = patch(&json!({"name": "b"}), seen.header("etag")).await;
    assert_eq!(changed.status, 200);
    patch(&json!({"name": "c"}), seen.header("etag")).await.problem(412, "PRECONDITION_FAILED");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_scan_moved_the_asset_can_be_sent_back() {
    let (api, client) = Api::with_tenant().await;
    let created = client.post("/assets", json!({"name": "a", "location": "Bonn"})).await;
    let path = format!("/assets/{}", created.id());
    api.advance_clock(60);
    let scan = json!({"items": [{"id": created.id()}], "location": "Ulm", "move": true});
    client.post("/assets/seen", scan).await.data();
    let mut read = created.data();
    read.as_object_mut().unwrap().remove("location");
    read["name"] = json!("b");
    let batch = client.batch("/assets/batch", &[json!({"op": "update", "id": created.id(), "body": read})]).await.data();
    assert_eq!((&batch[0]["data"]["name"], &batch[0]["data"]["location"]), (&json!("b"), &json!("Ulm")));
    read["name"] = json!("c");
    let patched = client.patch(&path, read.clone()).await.data();
    assert_eq!((&patched["name"], &patched["location"]), (&json!("c"), &json!("Ulm")));
    for wrong in ["2020-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z", "x"] {
        read["updated_at"] = json!(wrong);
        assert_eq!(client.patch(&path, read.clone()).await.field_errors(), ["/updated_at"], "{wrong}");
    }
    // What no scan changes.
    let user = client.post("/users", json!({"email": "ada@example.com", "display_name": "Ada"})).await;
    api.advance_clock(60);
    let path = format!("/users/{}", user.id());
    client.patch(&path, json!({"display_name": "Eve"})).await.data();
    assert_eq!(client.patch(&path, user.data()).await.field_errors(), ["/updated_at"]);
}

#[tokio::test(start_paused = true)]
async fn readers_of_the_feed_get_scans_if_they_name_them() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    client.post("/assets/seen", json!({"items": [{"id": id}], "location": "Bonn", "move": true})).await.data();
    client.patch(&format!("/assets/{id}"), json!({"name": "b"})).await.data();
    api.advance_clock(60);
    for (query, expected) in [
        ("", &["asset.created", "asset.updated"][..]),
        ("&types=asset.*", &["asset.created", "asset.updated"]),
        ("&types=*", &["asset.created", "asset.updated"]),
        ("&types=*,asset.seen", &["asset.created", "asset.seen", "asset.updated"]),
        ("&types=asset.seen", &["asset.seen"]),
        ("&types=asset.*,asset.seen", &["asset.created", "asset.seen", "asset.updated"]),
    ] {
        let found = types(&client, &format!("/events?entity_id={id}{query}")).await;
        assert_eq!(found, expected, "{query}");
        let all = types(&client, &format!("/events?limit=100{query}")).await;
        assert_eq!(all.contains(&"asset.seen".to_owned()), expected.contains(&"asset.seen"), "{query}");
    }
    // A list shows what a scan has moved.
    assert_eq!(client.total("/assets?location=bonn").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_does_nothing_twice_and_two_people_scan_twice() {
    let (api, client) = Api::with_tenant().await;
    let ids = client.assets(3).await;
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    let body = json!({"location": "Bonn", "items": items});
    let history = |id: &str| format!("/assets/{id}/history");
    let first = client.post_once("/assets/seen", &body, "scan").await;
    api.advance_clock(60);
    let again = client.post_once("/assets/seen", &body, "scan").await;
    assert_eq!((first.json(), again.status.as_u16()), (again.json(), 200));
    for id in &ids {
        assert_eq!(types(&client, &history(id)).await, ["asset.seen", "asset.created"]);
    }
    let other = client.scoped(&["assets:read", "assets:write"]).await;
    let (one, two) = tokio::join!(client.post("/assets/seen", body.clone()), other.post("/assets/seen", body.clone()));
    assert_eq!((outcomes(&one), outcomes(&two)), (outcomes(&first), outcomes(&first)));
    for id in &ids {
        assert_eq!(types(&client, &history(id)).await[..3], ["asset.seen"; 3]);
    }
    let before = api.dump().await;
    let dry = client.post("/assets/seen?dry_run=true", body).await;
    assert_eq!((outcomes(&dry).len(), api.dump().await), (3, before));
}

/// The one that is stored later came first: it is decided again.
#[tokio::test(start_paused = true)]
async fn of_two_scans_at_once_both_count_and_the_later_one_moves() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    let other = client.scoped(&["assets:write"]).await;
    let scan = |place: &str| json!({"items": [{"id": id}], "location": place, "move": true});
    let (late, early) = (client.post("/assets/seen", scan("Ulm")), other.post("/assets/seen", scan("Bonn")));
    let (late, early) = api.faults.overtake("TransactWriteItems", late, early).await;
    assert_eq!((outcomes(&late), outcomes(&early)), (vec!["moved".to_owned()], vec!["moved".to_owned()]));
    let asset = client.get(&format!("/assets/{id}")).await.data();
    assert_eq!(asset["location"], "Ulm");
    let history = client.get(&format!("/assets/{id}/history?verify=true")).await.data();
    let seen = |entry: &Value| (entry["type"].clone(), entry["changes"]["last_seen_at"]["new"].clone());
    let ((newest, last), (earlier, before)) = (seen(&history[0]), seen(&history[1]));
    assert_eq!((newest, earlier), (json!("asset.seen"), json!("asset.seen")));
    assert!(last == asset["last_seen_at"] && last.as_str() > before.as_str(), "{history}");
}

#[tokio::test(start_paused = true)]
async fn a_scan_costs_at_most_seven_write_units() {
    let (api, client) = Api::with_tenant().await;
    let ids = client.assets(100).await;
    client.use_key_once().await;
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    client.post("/assets/seen", json!({"items": items})).await.data();
    api.advance_clock(60);
    api.meter.take();
    client.post("/assets/seen", json!({"items": items})).await.data();
    let cost = api.meter.take();
    assert!(cost.write_units <= 700.0, "100 scans: {cost:?}");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_checked() {
    let client = over_http().await;
    let item = || json!([{"tag": "T"}]);
    for (body, wrong) in [
        (json!({}), "/items"),
        (json!({"items": []}), "/items"),
        (json!({"items": vec![json!({"tag": "T"}); 101]}), "/items"),
        (json!({"items": [{"tag": "T"}, {}]}), "/items/1"),
        (json!({"items": [{"tag": "T", "id": UNKNOWN_ID}]}), "/items/0"),
        (json!({"items": [{"tog": "T"}]}), "/items/0/tog"),
        (json!({"items": item(), "move": true}), "/location"),
        (json!({"items": item(), "location": "a//b"}), "/location"),
        (json!({"items": item(), "at": "2099-01-01T00:00:00Z"}), "/at"),
        (json!({"items": item(), "at": "2020-01-01T00:00:00Z"}), "/at"),
    ] {
        assert_eq!(client.post("/assets/seen", body.clone()).await.field_errors(), [wrong], "{body}");
    }
    let nothing = json!({"items": item(), "location": null, "at": null, "move": null});
    assert_eq!(outcomes(&client.post("/assets/seen", nothing).await), ["unknown"]);
    let reader = client.scoped(&["assets:read"]).await;
    assert_eq!(reader.post("/assets/seen", json!({"items": item()})).await.problem(403, "FORBIDDEN")["scope"], "assets:write");
}
