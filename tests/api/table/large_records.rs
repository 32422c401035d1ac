//! Large records: steps of definitions and instances, which are stored separately, and the costs of operations with a schema of
//! 23 KB or steps of 52 KB. docs/scale.md has most of the printed table.

use crate::support::prelude::*;
use crate::table::costs::{Costs, cost};
use dev_server::meter::Cost;

/// Limits only the write units.
fn writes(most: f64) -> Cost {
    cost(usize::MAX, usize::MAX, f64::MAX, most)
}

/// Returns a schema of about 23 KB.
fn large_schema() -> Value {
    let field = |n: usize| (format!("field_{n:03}"), json!({"type": "string", "maxLength": 80, "title": "x".repeat(170)}));
    json!({"type": "object", "properties": (0..100).map(field).collect::<Map<_, _>>()})
}

/// Returns steps of about 52 KB: a picker, a checklist and a signature.
fn large_steps() -> Value {
    let items = |list: usize| (0..100).map(move |n| format!("{list}.{n:03} {}", "x".repeat(240))).collect::<Vec<_>>();
    json!([
        {"type": "user_picker", "key": "who", "label": "Who"},
        {"type": "checklist", "key": "first", "label": "First", "items": items(1)},
        {"type": "checklist", "key": "second", "label": "Second", "items": items(2)},
        {"type": "signature", "key": "sign", "label": "Sign"}
    ])
}

#[tokio::test(start_paused = true)]
async fn operations_stay_cheap_however_large_schemas_and_steps_are() {
    let (api, client) = Api::with_tenant().await;
    client.use_key_once().await;
    let schema = large_schema();
    assert!((22_000..25_000).contains(&schema.to_string().len()), "{}", schema.to_string().len());
    let large_type = client.type_with_schema("Laptop", "LAP", schema).await;
    let maker = client.post("/catalog/manufacturers", json!({"name": "Dell"})).await.id();
    let body = json!({"name": "XPS", "manufacturer_id": maker, "asset_type_id": large_type});
    let model = client.post("/catalog/models", body).await.id();
    let user = client.user("Ada").await;
    let other = client.user("Grace").await;
    let mut costs = Costs::new(&api);
    let max = f64::MAX;

    let asset = costs.of("create an asset", client.post("/assets", json!({"name": "plain"})), writes(15.0)).await;
    let asset = format!("/assets/{}", asset.id());
    let typed = json!({"name": "typed", "asset_type_id": large_type});
    let typed = costs.of("create an asset of the type", client.post("/assets", typed), writes(15.0)).await.id();
    let with_model = json!({"name": "model", "model_id": model});
    costs.of("create an asset of a model of the type", client.post("/assets", with_model.clone()), writes(15.0)).await;
    costs.of("the same, with an idempotency key", client.post_once("/assets", &with_model, "one"), writes(max)).await;
    costs.of("change an asset's name", client.patch(&asset, json!({"name": "new"})), writes(max)).await;
    costs.of("assign an asset", client.patch(&asset, json!({"assigned_to": user})), writes(max)).await;
    costs.of("delete an asset", client.delete(&asset), writes(max)).await;
    let body = json!({"email": "a@example.com", "display_name": "A", "role": "viewer"});
    let new_user = costs.of("create a user", client.post("/users", body), writes(max)).await.id();
    costs.of("delete a user", client.delete(&format!("/users/{new_user}")), writes(max)).await;

    let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": large_steps()});
    let process = costs.of("create the definition", client.post("/processes", body), writes(max)).await.id();
    let process = format!("/processes/{process}");
    costs.of("rename the definition", client.patch(&process, json!({"name": "Mine"})), writes(15.0)).await;
    let start = format!("{process}/start");
    let items = |list: usize| large_steps()[list]["items"].clone();
    let steps = [json!({"who": user}), json!({"first": items(1)}), json!({"second": items(2)}), json!({"sign": SIGNATURE})];
    let begun = costs.of("start an instance", client.post(&start, json!({"asset_id": typed})), writes(20.0)).await;
    let instance = format!("/processes/instances/{}", begun.id());
    let advance = format!("{instance}/advance");
    costs.of("advance: pick a user", client.post(&advance, json!({"step_data": steps[0]})), writes(15.0)).await;
    costs.of("advance: check nothing", client.post(&advance, json!({"step_data": {}})), writes(15.0)).await;
    costs.of("advance: check nothing", client.post(&advance, json!({"step_data": {}})), writes(15.0)).await;
    costs.of("complete: sign", client.post(&advance, json!({"step_data": steps[3]})), writes(25.0)).await;
    costs.of("get an instance", client.get(&instance), writes(max)).await;
    let second = client.asset(json!({"name": "second"})).await;
    let body = json!({"asset_id": second});
    let begun =
        costs.of("start an instance, with an idempotency key", client.post_once(&start, &body, "two"), writes(20.0)).await;
    let instance = format!("/processes/instances/{}", begun.id());
    costs.of("cancel an instance", client.post(&format!("{instance}/cancel"), json!({})), writes(20.0)).await;

    let mut assets = Vec::new();
    for n in 0..20 {
        assets.push(client.asset(json!({"name": format!("moved {n}"), "asset_type_id": large_type})).await);
    }
    let body = json!({"asset_ids": assets});
    let movement = costs.of("start a movement of 20", client.post(&start, body.clone()), writes(max)).await;
    let movement = format!("/movements/{}", movement.id());
    let advance = format!("{movement}/advance");
    costs
        .of("advance a movement of 20: pick a user", client.post(&advance, json!({"step_data": {"who": other}})), writes(max))
        .await;
    costs.of("advance a movement of 20: check nothing", client.post(&advance, json!({"step_data": {}})), writes(max)).await;
    costs.of("cancel a movement of 20", client.post(&format!("{movement}/cancel"), json!({})), writes(max)).await;
    let movement = client.post(&start, body).await.id();
    let advance = format!("/movements/{movement}/advance");
    for _ in 0..3 {
        client.post(&advance, json!({"step_data": {}})).await.data();
    }
    costs.of("complete a movement of 20", client.post(&advance, json!({"step_data": {}})), writes(max)).await;

    // No event is recent any more, and the list indexes are loaded.
    api.advance_clock(120);
    client.get("/assets").await.data();
    client.get("/processes/instances").await.data();
    costs.of("get an asset of the type", client.get(&format!("/assets/{typed}")), writes(max)).await;
    costs.of("list 20 assets of the type", client.get("/assets"), writes(max)).await;
    costs.of("list 20 instances", client.get("/processes/instances"), writes(max)).await;
    costs.of("list the definitions", client.get("/processes"), writes(max)).await;
    costs.of("get the history of an asset", client.get(&format!("/assets/{typed}/history")), writes(max)).await;
    costs.print();
}

fn text_step(key: &str) -> Value {
    json!([{"type": "text", "key": key, "label": "T"}])
}

/// Returns the sort keys of the steps items read by requests.
fn steps_read(api: &Api) -> Vec<String> {
    let mut read = Vec::new();
    for (_, request) in api.faults.take_requests().into_iter().filter(|(operation, _)| operation == "BatchGetItem") {
        let keys = request["RequestItems"][&api.table]["Keys"].as_array().cloned().unwrap_or_default();
        let sort_keys = keys.iter().filter_map(|key| key["SK"]["S"].as_str().map(str::to_owned));
        read.extend(sort_keys.filter(|key| key.starts_with("STEPS#")));
    }
    read
}

/// Returns a client of a new replica, which has no cached steps.
fn cold(api: &Api, client: &Client) -> Client {
    api.replica(0, usize::MAX).client(client)
}

#[tokio::test(start_paused = true)]
async fn steps_are_read_once_and_only_those_that_a_page_shows() {
    let (api, client) = Api::with_tenant().await;
    for key in ["a", "b", "c"] {
        create_process(&client, text_step(key)).await;
    }
    let client = cold(&api, &client);
    api.faults.take_requests();
    let page = client.get("/processes?limit=2").await.data();
    assert_eq!((page[0]["steps"][0]["key"].as_str(), page[1]["steps"][0]["key"].as_str()), (Some("c"), Some("b")));
    assert_eq!(steps_read(&api).len(), 2);
    client.get("/processes?limit=2").await.data();
    assert_eq!(steps_read(&api), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_start_does_not_write_steps_that_the_table_has() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, text_step("a")).await;
    let mut assets = Vec::new();
    for n in 0..4 {
        assets.push(client.asset(json!({"name": format!("{n}")})).await);
    }
    let client = cold(&api, &client);
    api.faults.take_requests();
    start(&client, &process, &assets[0]).await;
    start(&client, &process, &assets[1]).await;
    start_movement(&client, &process, &assets[2..]).await;
    let requests = api.faults.take_requests();
    let writes: Vec<&Value> = requests.iter().filter(|it| it.0 == "TransactWriteItems").map(|it| &it.1).collect();
    assert_eq!(writes.len(), 3);
    assert!(!writes.iter().any(|write| write.to_string().contains("STEPS#")), "the transactions of the starts contain no steps");
}

#[tokio::test(start_paused = true)]
async fn a_stranger_does_not_make_the_service_read_steps() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, text_step("a")).await;
    let instance = start(&client, &process, &client.asset(json!({"name": "x"})).await).await;
    let stranger = cold(&api, &client).impostor();
    api.faults.take_requests();
    for path in [format!("/processes/{process}"), format!("/processes/instances/{instance}")] {
        stranger.get(&path).await.problem(401, "UNAUTHORIZED");
    }
    assert_eq!(steps_read(&api), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn steps_that_become_visible_after_their_record_are_waited_for() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/processes/{}", create_process(&client, text_step("a")).await);
    let nothing = json!({"Responses": {&api.table: []}, "UnprocessedKeys": {}});
    api.faults.plan("BatchGetItem", 3, 200, &nothing, false);
    assert_eq!(cold(&api, &client).get(&path).await.data()["steps"][0]["key"], "a");
    assert_eq!(api.faults.planned(), 0);
    api.faults.plan("BatchGetItem", 100, 200, &nothing, false);
    cold(&api, &client).get(&path).await.problem(503, "UNAVAILABLE");
    // After this time, missing steps count as lost.
    api.advance_clock(11);
    api.faults.take_requests();
    cold(&api, &client).get(&path).await.problem(500, "INTERNAL_ERROR");
    assert_eq!(steps_read(&api).len(), 1);
}

/// The stored response refers to the steps by hash. A replay includes them again.
#[tokio::test(start_paused = true)]
async fn a_repeated_start_or_advance_gets_the_same_response_with_its_steps() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "checklist", "key": "steps", "label": "\"steps\":[]", "items": ["a"]}, text_step("b")[0]]);
    let process = create_process(&client, steps.clone()).await;
    let (one, more) = (client.asset(json!({"name": "x"})).await, client.assets(2).await);
    let start = format!("/processes/{process}/start");
    let send = async |client: &Client, path: &str, body: &Value, key: &str| {
        client.send_json("POST", path, &body.to_string(), ("idempotency-key", key)).await
    };
    let begun = send(&client, &start, &json!({"asset_id": one}), "start").await;
    let moved = send(&client, &start, &json!({"asset_ids": more}), "movement").await;
    let advance = format!("/processes/instances/{}/advance", begun.id());
    let data = json!({"step_data": {"steps": []}});
    let advanced = send(&client, &advance, &data, "advance").await;
    assert_eq!((begun.status.as_u16(), advanced.status.as_u16()), (201, 200), "{}", advanced.text());
    client.patch(&format!("/processes/{process}"), json!({"steps": text_step("other")})).await.data();
    for client in [&client, &cold(&api, &client)] {
        let repeated = send(client, &start, &json!({"asset_id": one}), "start").await;
        assert_eq!((repeated.text(), repeated.header("idempotent-replayed")), (begun.text(), "true"));
        assert_eq!(repeated.data()["steps"], steps);
        assert_eq!(send(client, &advance, &data, "advance").await.text(), advanced.text());
        assert_eq!(send(client, &start, &json!({"asset_ids": more}), "movement").await.text(), moved.text());
    }
    assert_eq!(moved.data()["instances"][1]["steps"], steps);
    let stored = api.dump().await.0.into_iter().filter(|item| item.contains("stored_response"));
    assert!(stored.clone().count() == 3 && !stored.clone().any(|item| item.contains("checklist")));
}
