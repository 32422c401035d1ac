//! Steps of definitions and instances, which are stored beside them.

use crate::support::processes::{create_process, start, start_movement};
use crate::support::{Api, Client};
use serde_json::{Value, json};

fn text_step(key: &str) -> Value {
    json!([{"type": "text", "key": key, "label": "T"}])
}

/// Sort keys of the steps items that the requests read.
fn steps_read(api: &Api) -> Vec<String> {
    let mut read = Vec::new();
    for (_, request) in api.faults.take_requests().into_iter().filter(|(operation, _)| operation == "BatchGetItem") {
        let keys = request["RequestItems"][&api.table]["Keys"].as_array().cloned().unwrap_or_default();
        let sort_keys = keys.iter().filter_map(|key| key["SK"]["S"].as_str().map(str::to_owned));
        read.extend(sort_keys.filter(|key| key.starts_with("STEPS#")));
    }
    read
}

/// A client of another copy of the functions, without steps in memory.
fn cold(api: &Api, client: &Client) -> Client {
    api.replica(0, usize::MAX).client(client)
}

#[tokio::test(start_paused = true)]
async fn an_instance_keeps_the_steps_that_the_definition_had() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, text_step("old")).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    client.patch(&format!("/processes/{process}"), json!({"steps": text_step("new")})).await.data();
    for client in [&client, &cold(&api, &client)] {
        assert_eq!(client.get(&format!("/processes/instances/{instance}")).await.data()["steps"][0]["key"], "old");
        assert_eq!(client.get(&format!("/processes/{process}")).await.data()["steps"][0]["key"], "new");
        assert_eq!(client.get("/processes/instances").await.data()[0]["steps"][0]["key"], "old");
    }
    let again = client.patch(&format!("/processes/{process}"), json!({"steps": text_step("old")})).await.data();
    assert_eq!(again["steps"][0]["key"], "old", "steps that were written before can be written again");
    assert_eq!(cold(&api, &client).get(&format!("/processes/{process}")).await.data()["steps"][0]["key"], "old");
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
    assert!(!writes.iter().any(|write| write.to_string().contains("STEPS#")), "the steps were read before the start");
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
    // By then they are lost.
    api.advance_clock(11);
    api.faults.take_requests();
    cold(&api, &client).get(&path).await.problem(500, "INTERNAL_ERROR");
    assert_eq!(steps_read(&api).len(), 1);
}

/// The stored response names the steps, and the repeated one has them again.
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
