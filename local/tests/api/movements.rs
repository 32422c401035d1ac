//! Movements: one process on several assets at once (contract 7; one signature for a laptop, a dock and two screens).

use crate::processes::{advance, define, large_signature, start};
use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client};
use futures_util::future::join_all;
use serde_json::{Value, json};

async fn assets(client: &Client, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(client.asset(json!({"name": format!("a{n}")})).await);
    }
    ids
}

fn handover() -> Value {
    json!([
        {"type": "user_picker", "key": "u", "label": "U", "required": true},
        {"type": "checklist", "key": "l", "label": "L", "items": ["a", "b"]},
        {"type": "signature", "key": "s", "label": "S", "required": true}
    ])
}

async fn move_on(client: &Client, movement: &str, data: Value) -> crate::support::Reply {
    client.post(&format!("/movements/{movement}/advance"), json!({"step_data": data})).await
}

#[tokio::test]
async fn one_signature_serves_several_assets() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = define(&client, handover()).await;
    let ids = assets(&client, 3).await;
    let started = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await;
    assert_eq!(started.status, 201);
    let movement = started.id();
    assert_eq!(started.header("location"), format!("/v1/movements/{movement}"));
    let data = started.data();
    assert_eq!(
        (&data["number"], &data["status"], data["instances"].as_array().unwrap().len()),
        (&json!("MOV-000001"), &json!("in_progress"), 3)
    );
    let run = data["instances"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(data["instances"][0]["movement_id"], movement.as_str());
    assert_eq!(advance(&client, &run, json!({"u": user})).await.problem(409, "CONFLICT")["movement_id"], movement.as_str());

    let wrong = client.post(&format!("/processes/instances/{run}/advance"), json!({"step_data": {"u": 1}, "x": 1})).await;
    assert_eq!(wrong.field_errors(), ["/step_data/u", "/x"]);
    assert_eq!(move_on(&client, &movement, json!({"u": user})).await.data()["current_step"], 1);
    let wrong = json!({"step_data": {"l": ["x"]}, "x": 1});
    assert_eq!(client.post(&format!("/movements/{movement}/advance"), wrong).await.field_errors(), ["/step_data/l", "/x"]);
    move_on(&client, &movement, json!({"u": user, "l": ["a"]})).await.data();
    // One of them is left behind; the others go on.
    client.post(&format!("/processes/instances/{run}/cancel"), json!({})).await.data();
    let done = move_on(&client, &movement, json!({"s": SIGNATURE})).await.data();
    assert_eq!(done["status"], "completed");
    for (n, id) in ids.iter().enumerate() {
        let after = client.get(&format!("/assets/{id}")).await.data();
        let (status, assigned) = if n == 0 { ("in_stock", Value::Null) } else { ("in_use", json!(user)) };
        assert_eq!((&after["status"], &after["assigned_to"]), (&json!(status), &assigned));
        assert_eq!(crate::events::chain(&api, &client, id).await.len(), 3);
    }
    let second = &done["instances"][1];
    assert_eq!(second["step_data"]["s"], SIGNATURE);
    let image = client.get(&format!("/processes/instances/{}/signatures/s", second["id"].as_str().unwrap())).await;
    assert_eq!(image.header("content-type"), "image/png");
    move_on(&client, &movement, json!({})).await.problem(409, "INSTANCE_CLOSED");

    assert_eq!(client.get(&format!("/movements/{movement}")).await.data(), done);
    let list = client.get("/movements?limit=5").await.json();
    assert_eq!((&list["meta"]["total"], &list["data"][0]["number"]), (&json!(1), &json!("MOV-000001")));
    let more = assets(&client, 2).await;
    let next = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": more})).await.data();
    assert_eq!(next["number"], "MOV-000002");
    let ranges = client.get("/settings").await.data()["number_ranges"].clone();
    assert_eq!(ranges.as_array().unwrap().len(), 1, "movements are no tags");
}

#[tokio::test]
async fn a_run_left_behind_keeps_the_image_that_it_showed() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}, {"type": "signature", "key": "s", "label": "S"}]);
    let (process, ids) = (define(&client, steps).await, assets(&client, 2).await);
    let started = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await.data();
    let movement = started["id"].as_str().unwrap();
    move_on(&client, movement, json!({"s": SIGNATURE})).await.data();
    let left = format!("/processes/instances/{}", started["instances"][0]["id"].as_str().unwrap());
    let shown = client.post(&format!("{left}/cancel"), json!({})).await.data();
    assert_eq!(shown["step_data"]["s"], SIGNATURE);
    let other = large_signature();
    let done = move_on(&client, movement, json!({"s": other})).await.data();
    assert_eq!(done["instances"][1]["step_data"]["s"], other);
    assert_eq!(client.get(&left).await.data(), shown);
}

#[tokio::test]
async fn an_answers_own_path_says_what_was_signed() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "signature", "key": "s", "label": "S"}, {"type": "complete", "key": "c", "label": "C"}]);
    let (process, ids) = (define(&client, steps).await, assets(&client, 2).await);
    let movement = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await.id();
    move_on(&client, &movement, json!({"s": SIGNATURE})).await.data();
    let listed = client.get("/movements").await.data();
    let path = |run: usize| listed[0]["instances"][run]["step_data"]["s"].as_str().unwrap().to_owned();
    assert!(path(0).ends_with("/signatures/s") && path(0) != path(1));
    move_on(&client, &movement, json!({"s": path(0).replace("/signatures", "/signature")})).await.problem(409, "STEP_SUBMITTED");
    assert_eq!(move_on(&client, &movement, json!({"s": path(1)})).await.data()["status"], "completed");
}

#[tokio::test]
async fn a_movement_is_closed_as_the_runs_that_came_furthest() {
    let (_api, client) = Api::with_tenant().await;
    let process = define(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    let ids = assets(&client, 2).await;
    let started = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await.data();
    let movement = started["id"].as_str().unwrap();
    let first = started["instances"][0]["id"].as_str().unwrap();
    client.post(&format!("/processes/instances/{first}/cancel"), json!({})).await.data();
    move_on(&client, movement, json!({})).await.data();
    assert_eq!(move_on(&client, movement, json!({})).await.problem(409, "INSTANCE_CLOSED")["instance_status"], "completed");
}

#[tokio::test]
async fn whoever_is_late_for_the_last_step_of_a_movement_hears_that_it_moved() {
    let (api, client) = Api::with_tenant().await;
    let process = define(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    let ids = assets(&client, 2).await;
    let movement = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await.id();
    let mut held = api.faults.hold("TransactWriteItems");
    let overtake = async {
        held.arrived().await;
        move_on(&client, &movement, json!({"a": "1"})).await.data();
        held.release();
    };
    let (late, ()) = tokio::join!(move_on(&client, &movement, json!({"a": "2"})), overtake);
    assert_eq!(late.problem(409, "STEP_MOVED")["current_step"], 0);
}

#[tokio::test]
async fn all_start_or_none() {
    let (api, client) = Api::with_tenant().await;
    let process = define(&client, handover()).await;
    let path = format!("/processes/{process}/start");
    let ids = assets(&client, 4).await;
    let run = start(&client, &process, &ids[1]).await;
    client.patch(&format!("/assets/{}", ids[2]), json!({"status": "scrapped"})).await.data();
    let before = api.dump().await.0.len();
    let refused = client.post(&path, json!({"asset_ids": ids})).await.problem(409, "PROCESS_RUNNING");
    let rows = refused["assets"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["asset_id"], &rows[0]["instance_id"]), (&json!(ids[1]), &json!(run)));
    assert_eq!((&rows[1]["asset_id"], &rows[1]["code"]), (&json!(ids[2]), &json!("WRONG_ASSET_STATUS")));
    // A number is gone, as numbers may be, and nothing else.
    assert!(api.dump().await.0.len() <= before + 1);
    let nobody = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (body, place) in [
        (json!({"asset_ids": [ids[0]]}), "/asset_ids"),
        (json!({"asset_ids": [ids[0], ids[0]]}), "/asset_ids"),
        (json!({"asset_ids": [ids[0], "x"]}), "/asset_ids"),
        (json!({"asset_ids": vec![nobody; 21]}), "/asset_ids"),
        (json!({"asset_ids": [ids[0], nobody]}), "/asset_ids/1"),
        (json!({"asset_ids": [ids[0], ids[3]], "asset_id": ids[0]}), "/asset_ids"),
        (json!({}), "/asset_id"),
    ] {
        assert_eq!(client.post(&path, body.clone()).await.field_errors(), [place], "{body}");
    }
}

#[tokio::test]
async fn twenty_assets_of_as_many_users_are_one_transaction_while_it_holds_them() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "user_picker", "key": "u", "label": "U"}, {"type": "complete", "key": "c", "label": "C"}]);
    let process = define(&client, steps).await;
    let recipient = client.user("Recipient").await;
    let ids = assets(&client, 20).await;
    let mut users = Vec::new();
    for n in 0..20 {
        users.push(client.user(&format!("User {n}")).await);
    }
    for (id, user) in ids.iter().zip(&users) {
        client.patch(&format!("/assets/{id}"), json!({"assigned_to": user})).await.data();
    }
    let path = format!("/processes/{process}/start");
    assert_eq!(client.post(&path, json!({"asset_ids": ids})).await.field_errors(), ["/asset_ids"]);
    let keeping = define(&client, json!([{"type": "complete", "key": "c", "label": "C"}])).await;
    let kept = client.post(&format!("/processes/{keeping}/start"), json!({"asset_ids": ids})).await.data();
    for run in kept["instances"].as_array().unwrap() {
        client.post(&format!("/processes/instances/{}/cancel", run["id"].as_str().unwrap()), json!({})).await.data();
    }
    for id in &ids[..3] {
        client.patch(&format!("/assets/{id}"), json!({"assigned_to": null})).await.data();
    }
    let movement = client.post(&path, json!({"asset_ids": ids})).await.id();
    move_on(&client, &movement, json!({"u": recipient})).await.data();
    assert_eq!(move_on(&client, &movement, json!({})).await.data()["status"], "completed");
    assert_eq!(client.get(&format!("/assets?assigned_to={recipient}")).await.json()["meta"]["total"], 20);
    for user in &users {
        client.delete(&format!("/users/{user}")).await.data();
    }
}

#[tokio::test]
async fn what_is_too_large_for_one_transaction_is_refused_in_words() {
    let (api, client) = Api::with_tenant().await;
    let step = |key: &str| json!({"type": "textarea", "key": key, "label": "K"});
    let process = define(&client, json!([step("a"), step("b"), step("c")])).await;
    let ids = assets(&client, 20).await;
    let movement = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await.id();
    let long = "😀".repeat(10_000);
    let before = api.dump().await;
    assert_eq!(move_on(&client, &movement, json!({"a": long, "b": long, "c": long})).await.field_errors(), ["/step_data"]);
    assert_eq!(api.dump().await, before);
    for key in ["a", "b", "c"] {
        move_on(&client, &movement, json!({key: if key == "a" { &long } else { "short" }})).await.data();
    }
}

#[tokio::test]
async fn of_two_advances_of_a_movement_exactly_one_wins() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}, {"type": "text", "key": "b", "label": "B"}]);
    let process = define(&client, steps).await;
    for _ in 0..4 {
        let ids = assets(&client, 2).await;
        let movement = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await.id();
        let replies = join_all((0..3).map(|_| move_on(&client, &movement, json!({"a": "1"})))).await;
        // Without current_step, whoever comes later submits the next step; at the same moment only one can.
        assert!(replies.iter().any(|reply| reply.status == 200));
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            let code = reply.json()["code"].as_str().unwrap().to_owned();
            assert!(["STEP_MOVED", "INSTANCE_CLOSED"].contains(&code.as_str()), "{code}");
        }
        let shown = client.get(&format!("/movements/{movement}")).await.data();
        let steps: Vec<&Value> = shown["instances"].as_array().unwrap().iter().map(|run| &run["current_step"]).collect();
        assert_eq!(steps[0], steps[1], "the runs of a movement stay together");
        for id in &ids {
            crate::events::chain(&api, &client, id).await;
        }
    }
}

#[tokio::test]
async fn a_movement_is_cancelled_as_a_whole() {
    let (api, client) = Api::with_tenant().await;
    let process = define(&client, handover()).await;
    let ids = assets(&client, 3).await;
    let started = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await.data();
    let path = format!("/movements/{}/cancel", started["id"].as_str().unwrap());
    let alone = started["instances"][0]["id"].as_str().unwrap();
    client.post(&format!("/processes/instances/{alone}/cancel"), json!({})).await.data();
    let user = client.user("Ada").await;
    move_on(&client, started["id"].as_str().unwrap(), json!({"u": user})).await.data();
    let ended = client.post(&path, json!({"reason": "rain"})).await.data();
    assert_eq!((&ended["status"], &ended["instances"][2]["cancel_reason"]), (&json!("cancelled"), &json!("rain")));
    assert!(ended["instances"][0]["cancel_reason"].is_null());
    assert_eq!(client.post(&path, json!({})).await.problem(409, "INSTANCE_CLOSED")["instance_status"], "cancelled");
    assert_eq!(client.post(&path, json!({"x": 1})).await.field_errors(), ["/x"]);
    client.delete(&format!("/users/{user}")).await.data();
    for id in &ids {
        assert_eq!(crate::events::chain(&api, &client, id).await.len(), 3);
        client.delete(&format!("/assets/{id}")).await;
    }
}
