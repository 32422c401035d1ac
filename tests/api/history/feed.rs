//! `GET /v1/events`: all changes of a tenant, in order and without gaps, with filters and the records' names.

use crate::support::functions;
use crate::support::prelude::*;
use rig::events::{Made, samples};

/// Follows the feed to its end. Returns the events, the next cursor, and the number of requests.
async fn follow(client: &Client, after: &Value, query: &str) -> (Vec<Value>, Value, usize) {
    let (mut events, mut after) = (Vec::new(), after.clone());
    for requests in 1.. {
        let cursor = after.as_str().map(|after| format!("&after={after}")).unwrap_or_default();
        let page = client.get(&format!("/events?{query}{cursor}")).await.json();
        events.extend(page["data"].as_array().unwrap_or_else(|| panic!("{page}")).clone());
        assert!(page["meta"]["has_more"] == false || page["meta"]["after"] != after, "no progress: {page}");
        after = page["meta"]["after"].clone();
        if page["meta"]["has_more"] == false {
            return (events, after, requests);
        }
    }
    unreachable!()
}

/// Like [`follow`], without filters; also checks each page. Returns the events and the next cursor.
async fn follow_all(client: &Client, after: &Value, limit: usize) -> (Vec<Value>, Value) {
    let (events, after, requests) = follow(client, after, &format!("limit={limit}")).await;
    assert!(events.len() <= limit * requests, "{} events in {requests} pages of {limit}", events.len());
    assert!(events.last().is_none_or(|last| last["id"] == after), "{after} is not the last event");
    (events, after)
}

#[tokio::test(start_paused = true)]
async fn the_feed_lists_every_event_in_order_after_a_short_delay() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    client.patch(&format!("/assets/{id}"), json!({"name": "b"})).await.data();
    // The events are too recent: events with earlier IDs could still appear.
    assert_eq!(follow_all(&client, &Value::Null, 20).await, (vec![], Value::Null));
    api.advance_clock(11);
    let (events, after) = follow_all(&client, &Value::Null, 20).await;
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types[..2], ["tenant.created", "key.created"]);
    assert_eq!(types[types.len() - 2..], ["asset.created", "asset.updated"]);
    assert_eq!(events.last().unwrap()["changes"], json!({"name": {"old": "a", "new": "b"}}));
    let ids: Vec<&str> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted());
    for limit in [1, 3, 100] {
        assert_eq!(follow_all(&client, &Value::Null, limit).await, (events.clone(), after.clone()), "{limit}");
    }
    assert_eq!(follow_all(&client, &after, 5).await, (vec![], after.clone()));
    client.delete(&format!("/assets/{id}")).await;
    api.advance_clock(11);
    let (events, _) = follow_all(&client, &after, 5).await;
    assert_eq!(events.iter().map(|event| &event["type"]).collect::<Vec<_>>(), ["asset.deleted"]);
}

#[tokio::test(start_paused = true)]
async fn large_changes_do_not_make_a_large_history_or_feed() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    for n in 0..60 {
        let notes: String = std::iter::repeat_n(char::from_u32(0x4e00 + n).unwrap(), 10_000).collect();
        let fields = json!({"a": "ä".repeat(15_000 + n as usize)});
        client.patch(&format!("/assets/{id}"), json!({"notes": notes, "custom_fields": fields})).await.data();
    }
    let reply = client.get(&format!("/assets/{id}/history?limit=100")).await;
    assert!(reply.bytes.len() < 5 * 1024 * 1024, "{} bytes", reply.bytes.len());
    let data = reply.data();
    assert_eq!(data.as_array().unwrap().len(), 61);
    assert!(data[0]["changes"].is_object() && data[60]["changes"].is_null());
    api.advance_clock(11);
    let reply = client.get("/events?limit=100").await;
    assert!(reply.bytes.len() < 5 * 1024 * 1024, "{} bytes", reply.bytes.len());
    assert_eq!(reply.json()["meta"]["has_more"], true);
    assert_eq!(follow_all(&client, &Value::Null, 100).await.0.len(), 9 + 61);
}

#[tokio::test(start_paused = true)]
async fn the_feed_is_for_admins_and_shows_their_own_tenant() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let scopes = ["events:read", "assets:read"];
    let ada = client.with_new_key(json!({"name": "ada's", "scopes": scopes, "user_id": user})).await;
    for (role, status) in [("viewer", 403), ("helpdesk", 403), ("technician", 403), ("admin", 200)] {
        client.patch(&format!("/users/{user}"), json!({"role": role})).await.data();
        assert_eq!(ada.get("/events").await.status, status, "{role}");
    }
    let other = api.tenant().await;
    api.advance_clock(11);
    let (events, _) = follow_all(&other, &Value::Null, 100).await;
    assert_eq!(events.len(), 9);
    assert!(!json!(events).to_string().contains(&user));
    let foreign = client.get("/events?limit=1").await.data()[0]["id"].clone();
    assert_eq!(follow_all(&other, &foreign, 100).await.0.len(), 9, "a cursor is a point in time, even from another tenant");
    assert_eq!(client.get("/events?after=x&limit=0&page=1").await.field_errors(), ["after", "limit", "page"]);
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_begins_now_in_the_future_or_with_a_period_misses_nothing() {
    let (api, client) = Api::with_tenant().await;
    client.asset(json!({"name": "long ago"})).await;
    api.advance_clock(60);
    client.use_key_once().await;
    // This event has an early ID, but is written late.
    let slow = api.replica(-2_000, 0).client(&client);
    let late = slow.post("/catalog/manufacturers", json!({"name": "late"}));
    let meanwhile = async {
        api.meter.take();
        let start = client.get("/events?after=now&limit=5&types=asset.*").await.json();
        assert!(api.meter.take().calls <= 1, "only the key is checked");
        start
    };
    let (late, start) = api.faults.overtake("TransactWriteItems", late, meanwhile).await;
    late.data();
    assert_eq!((&start["data"], &start["meta"]["has_more"], &start["meta"]["limit"]), (&json!([]), &json!(false), &json!(5)));
    client.post("/catalog/manufacturers", json!({"name": "next"})).await.data();
    let after = &start["meta"]["after"];
    assert_eq!(follow(&client, after, "limit=5").await.0.len(), 0);
    api.advance_clock(11);
    let (events, ..) = follow(&client, after, "limit=5").await;
    let names: Vec<&Value> = events.iter().map(|event| &event["entity_name"]).collect();
    assert_eq!(names, ["late", "next"]);

    let start = client.get("/events?since=2199-01-01T00:00:00Z").await.json();
    assert_eq!((&start["data"], &start["meta"]["has_more"]), (&json!([]), &json!(false)));
    client.post("/catalog/manufacturers", json!({"name": "future"})).await.data();
    api.advance_clock(11);
    let (events, ..) = follow(&client, &start["meta"]["after"], "limit=5").await;
    assert_eq!(types(&events).last(), Some(&"manufacturer.created"));

    // An event's time is when its request arrived, but the feed is in order of writes.
    let path = format!("/assets/{}", client.asset(json!({"name": "a"})).await);
    api.advance_clock(60);
    client.use_key_once().await;
    let since = api.now();
    let between = since.plus_seconds(4);
    let meanwhile = async {
        api.advance_clock(5);
        client.user("Ada").await;
    };
    let (patched, ()) = api.faults.overtake("BatchGetItem", client.patch(&path, json!({"name": "b"})), meanwhile).await;
    patched.data();
    api.advance_clock(60);
    for limit in [1, 20] {
        let period = format!("since={since}&until={between}&limit={limit}");
        assert_eq!(types(&follow(&client, &Value::Null, &period).await.0), ["asset.updated"]);
        let rest = format!("since={between}&limit={limit}");
        assert_eq!(types(&follow(&client, &Value::Null, &rest).await.0), ["user.created"]);
    }
}

#[tokio::test(start_paused = true)]
async fn only_events_of_these_types_are_listed() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    client.patch(&format!("/assets/{asset}"), json!({"name": "b"})).await.data();
    let user = client.user("Ada").await;
    client.delete(&format!("/users/{user}")).await.data();
    client.asset_type("Laptop", "LAP", "physical").await;
    api.advance_clock(11);
    for (query, expected) in [
        ("types=asset.*", vec!["asset.created", "asset.updated"]),
        ("types=asset.created", vec!["asset.created"]),
        ("types=user.deleted,asset.created", vec!["asset.created", "user.deleted"]),
        ("types=asset_type.*,user.*", vec!["user.created", "user.deleted", "asset_type.created"]),
        ("types=movement.*", vec![]),
        ("types=asset.*,asset.*", vec!["asset.created", "asset.updated"]),
    ] {
        for limit in [1, 20] {
            let (events, ..) = follow(&client, &Value::Null, &format!("{query}&limit={limit}")).await;
            assert_eq!(types(&events), expected, "{query} {limit}");
        }
    }
    for (query, hint) in [
        ("types=asset.craeted", "isn't one of asset.created, "),
        ("types=asset.*,process_instance.*", "isn't one of instance.*, "),
        ("types=asset.*,", "separated by commas"),
    ] {
        let reply = client.get(&format!("/events?{query}")).await;
        assert_eq!(reply.field_errors(), ["types"], "{query}");
        assert!(reply.json()["errors"][0]["detail"].as_str().unwrap().contains(hint), "{query}: {}", reply.text());
    }
    let reply = client.get("/events?after=then&entity_id=x").await;
    assert_eq!(reply.field_errors(), ["after", "entity_id"]);
    assert!(reply.text().contains("or now"), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn events_of_one_resource_are_listed_whether_the_index_has_them_or_not() {
    let (api, client) = Api::with_tenant().await;
    let before = api.history_rows(client.tenant).await;
    let asset = client.asset(json!({"name": "a"})).await;
    let other = client.asset(json!({"name": "other"})).await;
    for name in ["b", "c", "d"] {
        client.patch(&format!("/assets/{asset}"), json!({"name": name})).await.data();
        client.patch(&format!("/assets/{other}"), json!({"name": name})).await.data();
    }
    let query = format!("entity_id={asset}");
    let check = async |seconds: i64, what: &str| {
        api.advance_clock(seconds);
        for limit in [1, 2, 20] {
            let (events, after, _) = follow(&client, &Value::Null, &format!("{query}&limit={limit}")).await;
            assert_eq!(types(&events), ["asset.created", "asset.updated", "asset.updated", "asset.updated"], "{what} {limit}");
            assert!(events.iter().all(|event| event["entity_id"] == asset.as_str()), "{what} {limit}");
            let (updated, ..) = follow(&client, &events[1]["id"], &format!("{query}&types=asset.*&limit={limit}")).await;
            assert_eq!(updated, events[2..], "{what} {limit}");
            assert_eq!(follow(&client, &after, &query).await.0.len(), 0, "{what} {limit}");
        }
        assert_eq!(follow(&client, &Value::Null, &format!("{query}&types=asset.deleted")).await.0.len(), 0);
        assert_eq!(follow(&client, &Value::Null, &format!("entity_id={UNKNOWN_ID}")).await.0.len(), 0);
    };
    api.faults.freeze_history(Some(before));
    check(11, "an index that is behind").await;
    api.faults.freeze_history(None);
    check(0, "an index that may be behind").await;
    check(600, "an index that is up to date").await;
    let (_, after, _) = follow(&client, &Value::Null, &query).await;
    client.delete(&format!("/assets/{asset}")).await;
    api.advance_clock(11);
    assert_eq!(types(&follow(&client, &after, &query).await.0), ["asset.deleted"]);
}

/// Appends copies of another record's event to the table, as in a tenant with many changes.
async fn many_events(api: &Api, client: &Client, count: i64) {
    let other = client.asset(json!({"name": "other"})).await;
    let history = client.get(&format!("/assets/{other}/history")).await.json();
    let (old, event) = (history["data"][0]["id"].as_str().unwrap(), item(api, &event_key(client, &history, 1)).await.unwrap());
    let copies = (1..=count).map(|n| {
        let id = EventId::new(api.now().plus(TimeDelta::milliseconds(n)), [n as u8; 10]);
        let mut copy = event.clone();
        copy.extend(Keys::of(client.tenant).event(id).item());
        copy.insert("entry".into(), AttributeValue::S(event["entry"].as_s().unwrap().replace(old, &id.to_string())));
        copy
    });
    put_all(api, copies).await;
    api.advance_clock(600);
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_matches_little_reads_a_bounded_part_and_makes_progress() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "first"})).await;
    many_events(&api, &client, 1_200).await;
    client.patch(&format!("/assets/{asset}"), json!({"name": "last"})).await.data();
    client.user("Ada").await;
    api.advance_clock(600);
    let (events, _, requests) = follow(&client, &Value::Null, "types=user.created").await;
    assert_eq!((types(&events), requests), (vec!["user.created"], 2));
    let (page, cost) = api.cost(async { client.get("/events?types=user.created").await.json() }).await;
    assert_eq!((&page["data"], &page["meta"]["has_more"]), (&json!([]), &json!(true)));
    assert!(page["meta"]["after"].is_string());
    // Reads four pages of 250 events, checks the key, and counts the request.
    assert!(cost.calls <= 6 && cost.read_units < 400.0, "{cost:?}");
    // With `entity_id`, the index finds the resource's events without reading others.
    let ((events, _, requests), cost) = api.cost(follow(&client, &Value::Null, &format!("entity_id={asset}"))).await;
    assert_eq!((types(&events), requests), (vec!["asset.created", "asset.updated"], 1));
    assert!(cost.calls <= 6 && cost.read_units < 12.0, "{cost:?}");
    // With `since`, reading starts at that time.
    let since = events[1]["at"].as_str().unwrap();
    let (page, cost) = api.cost(async { client.get(&format!("/events?since={since}")).await.json() }).await;
    assert_eq!(types(page["data"].as_array().unwrap()), ["asset.updated", "user.created"]);
    assert!(page["meta"]["has_more"] == false && cost.calls <= 4 && cost.read_units < 12.0, "{cost:?}");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_period_and_of_an_actor_are_listed() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    client.patch(&format!("/users/{user}"), json!({"role": "technician"})).await.data();
    let scopes = ["assets:read", "assets:write"];
    let key = client.post("/keys", json!({"name": "ada's", "scopes": scopes, "user_id": user})).await.data();
    let ada = client.with_key(key["api_key"].as_str().unwrap());
    client.asset(json!({"name": "before"})).await;
    api.advance_clock(3_600);
    let asset = ada.asset(json!({"name": "by Ada"})).await;
    api.advance_clock(3_600);
    client.patch(&format!("/assets/{asset}"), json!({"name": "later"})).await.data();
    api.advance_clock(11);
    let (all, ..) = follow(&client, &Value::Null, "limit=100").await;
    let at = |place: usize| all[place]["at"].as_str().unwrap();
    let (by_ada, later) = (all.len() - 2, all.len() - 1);
    let by = |actor: &str| format!("actor_id={actor}");
    for (query, expected) in [
        (by(&user), &all[by_ada..later]),
        (by(key["id"].as_str().unwrap()), &all[by_ada..later]),
        (format!("{}&types=asset.updated", by(&user)), &all[..0]),
        (by(UNKNOWN_ID), &all[..0]),
        (format!("since={}", at(by_ada)), &all[by_ada..]),
        (format!("until={}", at(by_ada)), &all[..by_ada]),
        (format!("since={}&until={}", at(by_ada), at(later)), &all[by_ada..later]),
        (format!("since={0}&until={0}", at(by_ada)), &all[..0]),
        (format!("since={}&entity_id={asset}", at(later)), &all[later..]),
        (format!("until={}&entity_id={asset}", at(later)), &all[by_ada..later]),
    ] {
        for limit in [1, 20] {
            let (events, after, _) = follow(&client, &Value::Null, &format!("{query}&limit={limit}")).await;
            assert_eq!(events, expected, "{query} {limit}");
            assert_eq!(follow(&client, &after, &query).await.0.len(), 0, "{query} {limit}");
        }
    }
    let reply = client.get("/events?actor_id=x&since=yesterday&until=2026-03-01").await;
    assert_eq!(reply.field_errors(), ["actor_id", "since", "until"]);
}

#[tokio::test(start_paused = true)]
async fn events_say_what_the_resource_is_called_now() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    let asset = client.post("/assets", json!({"name": "old name"})).await.data();
    let (id, tag) = (asset["id"].as_str().unwrap(), &asset["asset_tag"]);
    let user = client.user("Ada").await;
    let instance = start(&client, &process, id).await;
    client.patch(&format!("/assets/{id}"), json!({"name": "new name"})).await.data();
    let gone = client.post("/assets", json!({"name": "gone"})).await.data();
    client.patch(&format!("/assets/{}", gone["id"].as_str().unwrap()), json!({"name": "at last"})).await.data();
    client.delete(&format!("/assets/{}", gone["id"].as_str().unwrap())).await;
    let movement = start_movement(&client, &process, &client.assets(2).await).await;
    client.asset_type("Laptop", "LAP", "physical").await;
    api.advance_clock(11);
    let (events, ..) = follow(&client, &Value::Null, "limit=100").await;
    let called = |entity: &Value| {
        let names: Vec<_> = events
            .iter()
            .filter(|event| event["entity_id"] == *entity)
            .map(|event| (event["entity_name"].clone(), event["entity_tag"].clone()))
            .collect();
        assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
        names[0].clone()
    };
    assert_eq!(called(&json!(id)), (json!("new name"), tag.clone()));
    assert_eq!(called(&gone["id"]), (json!("at last"), gone["asset_tag"].clone()));
    assert_eq!(called(&json!(user)), (json!("Ada"), Value::Null));
    assert_eq!(called(&json!(instance)), (json!("old name"), tag.clone()), "as the instance shows it");
    assert_eq!(called(&movement["id"]), (movement["number"].clone(), Value::Null));
    assert_eq!(called(&json!(client.tenant.to_string())), (json!("Acme"), Value::Null));
    assert!(events.iter().all(|event| event["entity_name"].is_string()), "{events:?}");
    // Names appear only in the feed, not in the history.
    let history = client.get(&format!("/assets/{id}/history")).await.data();
    let newest = events.iter().rfind(|event| event["entity_id"] == id).unwrap();
    let mut entry = newest.clone();
    for name in ["entity_name", "entity_tag"] {
        entry.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(entry, history[0]);
    delete_item(&api, &Keys::of(client.tenant).record(Kind::Asset, id.parse::<AssetId>().unwrap().uuid()).item()).await;
    let (events, ..) = follow(&client, &Value::Null, &format!("entity_id={id}")).await;
    assert_eq!((&events[0]["entity_name"], &events[0]["entity_tag"]), (&Value::Null, &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn the_names_of_a_page_take_one_more_read_and_a_page_behind_many_scans_few() {
    let (api, client) = Api::with_tenant().await;
    let ids = client.assets(100).await;
    api.advance_clock(11);
    let cost = async |path: &str| {
        api.meter.take();
        assert!(!client.get(path).await.data().as_array().unwrap().is_empty());
        api.meter.take()
    };
    cost("/events?limit=1").await;
    let first = cost("/events?limit=100").await;
    // Reads the key and the events concurrently, then the records.
    assert_eq!((first.calls, first.round_trips), (3, 2));
    client.delete(&format!("/assets/{}", ids[99])).await;
    api.advance_clock(11);
    // Also reads the tombstone and the event of the deletion.
    let last = cost(&format!("/events?entity_id={}&types=asset.created", ids[99])).await;
    assert!(last.calls <= 8, "{last:?}");

    let items: Vec<Value> = ids[..99].iter().map(|id| json!({"id": id})).collect();
    api.advance_clock(11);
    let (_, after, _) = follow(&client, &Value::Null, "limit=100").await;
    client.post("/assets/seen", json!({"items": items})).await.data();
    client.user("Ada").await;
    api.advance_clock(11);
    client.use_key_once().await;
    let path = format!("/events?limit=1&after={}", after.as_str().unwrap());
    let (page, cost) = api.cost(async { client.get(&path).await.json() }).await;
    assert_eq!((types(page["data"].as_array().unwrap()), &page["meta"]["has_more"]), (vec!["user.created"], &json!(false)));
    // Reads the first two events and then all others, the key, and the name.
    assert!(cost.round_trips <= 4 && cost.calls <= 5, "{cost:?}");
}

/// Tests in `http::coverage` check that refused requests write nothing.
#[tokio::test(start_paused = true)]
async fn every_successful_write_adds_one_event_for_each_changed_record() {
    let (api, client, samples) = Api::with_samples().await;
    let (_, operations) = operations();
    let count = async || api.dump().await.0.iter().filter(|item| item.contains(r#"type: S("event")"#)).count();
    let mut before = count().await;
    let writes = by_method(operations, &["POST", "PATCH", "PUT", "DELETE"]).filter(|operation| !only_reads(&operation.path));
    for operation in sample(writes, 10) {
        let reply = operation.send(&client, &samples).await;
        assert!(reply.status.is_success(), "{operation}: {}", reply.text());
        let after = count().await;
        assert_eq!(after, before + event_count(&operation.method, &operation.path), "{operation}");
        before = after;
    }
}

#[tokio::test(start_paused = true)]
async fn each_sample_event_gets_the_status_in_its_name() {
    let (api, client) = Api::with_tenant().await;
    let routes = functions::routes();
    let asset = client.asset(json!({"name": "Laptop"})).await;
    let (mut seen, mut made) = (0, Made::default());
    for sample in samples(&client.key, &asset).unwrap() {
        let name = &sample.name;
        let text = made.insert_into(&sample.event);
        let request = lambda_http::request::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let event: Value = serde_json::from_str(&text).unwrap();
        let route = functions::select(&routes, request.method().as_str(), request.uri().path());
        assert_eq!((&event["routeKey"], &event["requestContext"]["routeKey"]), (&json!(route.key), &json!(route.key)), "{name}");
        assert_eq!(route.function.package, Function::named(&sample.function).package, "{name}");
        let router = route.function.router(api.store.clone());
        let reply = call(&router, request.map(Body::new)).await;
        assert_eq!(u64::from(reply.status.as_u16()), sample.status, "{name}: {}", reply.text());
        if reply.status == 201 {
            made.keep(name, &reply.json()).unwrap();
        }
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} events");
}
