//! Movements: one process for several assets, for example a single signature for a laptop, a dock and two screens.

use crate::support::prelude::*;

fn handover_steps() -> Value {
    json!([
        {"type": "user_picker", "key": "u", "label": "U", "required": true},
        {"type": "checklist", "key": "l", "label": "L", "items": ["a", "b"]},
        {"type": "signature", "key": "s", "label": "S", "required": true}
    ])
}

#[tokio::test(start_paused = true)]
async fn one_signature_is_stored_for_several_assets() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, handover_steps()).await;
    let ids = client.assets(3).await;
    let started = client.post(&format!("/processes/{process}/start"), json!({"asset_ids": ids})).await;
    assert_eq!(started.status, 201);
    let movement = started.id();
    assert_eq!(started.header("location"), format!("/v1/movements/{movement}"));
    let data = started.data();
    assert_eq!(
        (&data["number"], &data["status"], data["instances"].as_array().unwrap().len()),
        (&json!("MOV-000001"), &json!("in_progress"), 3)
    );
    let instance = data["instances"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(data["instances"][0]["movement_id"], movement.as_str());
    assert_eq!(advance(&client, &instance, json!({"u": user})).await.problem(409, "CONFLICT")["movement_id"], movement.as_str());

    let wrong = client.post(&format!("/processes/instances/{instance}/advance"), json!({"step_data": {"u": 1}, "x": 1})).await;
    assert_eq!(wrong.field_errors(), ["/step_data/u", "/x"]);
    assert_eq!(advance_movement(&client, &movement, json!({"u": user})).await.data()["current_step"], 1);
    let wrong = json!({"step_data": {"l": ["x"]}, "x": 1});
    assert_eq!(client.post(&format!("/movements/{movement}/advance"), wrong).await.field_errors(), ["/step_data/l", "/x"]);
    advance_movement(&client, &movement, json!({"u": user, "l": ["a"]})).await.data();
    cancel(&client, &instance).await.data();
    let done = advance_movement(&client, &movement, json!({"s": SIGNATURE})).await.data();
    assert_eq!(done["status"], "completed");
    for (n, id) in ids.iter().enumerate() {
        let after = client.get(&format!("/assets/{id}")).await.data();
        let (status, assigned) = if n == 0 { ("in_stock", Value::Null) } else { ("in_use", json!(user)) };
        assert_eq!((&after["status"], &after["assigned_to"]), (&json!(status), &assigned));
        assert_eq!(event_chain(&api, &client, id).await.len(), 3);
    }
    let second = &done["instances"][1];
    assert_eq!(second["step_data"]["s"], SIGNATURE);
    let image = client.get(&format!("/processes/instances/{}/signatures/s", second["id"].as_str().unwrap())).await;
    assert_eq!(image.header("content-type"), "image/png");
    let closed = advance_movement(&client, &movement, json!({})).await.problem(409, "INSTANCE_CLOSED");
    assert_eq!(closed["instance_status"], "completed");

    assert_eq!(client.get(&format!("/movements/{movement}")).await.data(), done);
    let list = client.get("/movements?limit=5").await.json();
    assert_eq!((&list["meta"]["total"], &list["data"][0]["number"]), (&json!(1), &json!("MOV-000001")));
    let more = client.assets(2).await;
    let next = start_movement(&client, &process, &more).await;
    assert_eq!(next["number"], "MOV-000002");
    let ranges = client.get("/settings").await.data()["number_ranges"].clone();
    assert_eq!(ranges.as_array().unwrap().len(), 1, "movements are not number ranges of tags");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_instance_of_a_movement_keeps_its_image_whose_path_stands_for_the_signature() {
    let client = over_http().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}, {"type": "signature", "key": "s", "label": "S"}]);
    let (process, ids) = (create_process(&client, steps).await, client.assets(2).await);
    let started = start_movement(&client, &process, &ids).await;
    let movement = started["id"].as_str().unwrap();
    advance_movement(&client, movement, json!({"s": SIGNATURE})).await.data();
    let cancelled = format!("/processes/instances/{}", started["instances"][0]["id"].as_str().unwrap());
    let shown = client.post(&format!("{cancelled}/cancel"), json!({})).await.data();
    assert_eq!(shown["step_data"]["s"], SIGNATURE);
    let other = large_signature();
    let done = advance_movement(&client, movement, json!({"s": other})).await.data();
    assert_eq!(done["instances"][1]["step_data"]["s"], other);
    assert_eq!(client.get(&cancelled).await.data(), shown);

    let steps = json!([{"type": "signature", "key": "s", "label": "S"}, {"type": "complete", "key": "c", "label": "C"}]);
    let (process, ids) = (create_process(&client, steps).await, client.assets(2).await);
    let movement = start_movement(&client, &process, &ids).await["id"].as_str().unwrap().to_owned();
    advance_movement(&client, &movement, json!({"s": SIGNATURE})).await.data();
    let listed = client.get("/movements").await.data();
    let path = |instance: usize| listed[0]["instances"][instance]["step_data"]["s"].as_str().unwrap().to_owned();
    assert!(path(0).ends_with("/signatures/s") && path(0) != path(1));
    advance_movement(&client, &movement, json!({"s": path(0).replace("/signatures", "/signature")}))
        .await
        .problem(409, "STEP_SUBMITTED");
    assert_eq!(advance_movement(&client, &movement, json!({"s": path(1)})).await.data()["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn either_all_assets_start_or_none_and_a_movement_is_cancelled_as_a_whole() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, handover_steps()).await;
    let path = format!("/processes/{process}/start");
    let ids = client.assets(4).await;
    let instance = start(&client, &process, &ids[1]).await;
    client.patch(&format!("/assets/{}", ids[2]), json!({"status": "scrapped"})).await.data();
    let before = api.dump().await.0.len();
    let refused = client.post(&path, json!({"asset_ids": ids})).await.problem(409, "PROCESS_RUNNING");
    let rows = refused["assets"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["asset_id"], &rows[0]["instance_id"]), (&json!(ids[1]), &json!(instance)));
    assert_eq!((&rows[1]["asset_id"], &rows[1]["code"]), (&json!(ids[2]), &json!("WRONG_ASSET_STATUS")));
    // At most a movement number was taken.
    assert!(api.dump().await.0.len() <= before + 1);
    for (body, location) in [
        (json!({"asset_ids": [ids[0]]}), "/asset_ids"),
        (json!({"asset_ids": [ids[0], ids[0]]}), "/asset_ids"),
        (json!({"asset_ids": [ids[0], "x"]}), "/asset_ids"),
        (json!({"asset_ids": (0..21).map(|n| Uuid::from_u128(n).to_string()).collect::<Vec<_>>()}), "/asset_ids"),
        (json!({"asset_ids": [ids[0], UNKNOWN_ID]}), "/asset_ids/1"),
        (json!({"asset_ids": [ids[0], ids[3]], "asset_id": ids[0]}), "/asset_ids"),
        (json!({}), "/asset_id"),
    ] {
        assert_eq!(client.post(&path, body.clone()).await.field_errors(), [location], "{body}");
    }

    let ids = client.assets(3).await;
    let started = start_movement(&client, &process, &ids).await;
    let path = format!("/movements/{}/cancel", started["id"].as_str().unwrap());
    let alone = started["instances"][0]["id"].as_str().unwrap();
    cancel(&client, alone).await.data();
    let user = client.user("Ada").await;
    advance_movement(&client, started["id"].as_str().unwrap(), json!({"u": user})).await.data();
    let ended = client.post(&path, json!({"reason": "rain"})).await.data();
    assert_eq!((&ended["status"], &ended["instances"][2]["cancel_reason"]), (&json!("cancelled"), &json!("rain")));
    assert!(ended["instances"][0]["cancel_reason"].is_null());
    assert_eq!(client.post(&path, json!({})).await.problem(409, "INSTANCE_CLOSED")["instance_status"], "cancelled");
    assert_eq!(client.post(&path, json!({"x": 1})).await.field_errors(), ["/x"]);
    client.delete(&format!("/users/{user}")).await.data();
    for id in &ids {
        assert_eq!(event_chain(&api, &client, id).await.len(), 3);
        client.delete(&format!("/assets/{id}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_assets_of_twenty_users_start_and_end_if_a_transaction_can_hold_them() {
    let client = over_http().await;
    let steps = json!([{"type": "user_picker", "key": "u", "label": "U"}, {"type": "complete", "key": "c", "label": "C"}]);
    let process = create_process(&client, steps).await;
    let recipient = client.user("Recipient").await;
    let ids = client.assets(20).await;
    let mut users = Vec::new();
    for n in 0..20 {
        users.push(client.user(&format!("User {n}")).await);
    }
    for (id, user) in ids.iter().zip(&users) {
        client.patch(&format!("/assets/{id}"), json!({"assigned_to": user})).await.data();
    }
    let path = format!("/processes/{process}/start");
    assert_eq!(client.post(&path, json!({"asset_ids": ids})).await.field_errors(), ["/asset_ids"]);
    let without_picker = create_process(&client, json!([{"type": "complete", "key": "c", "label": "C"}])).await;
    let started = start_movement(&client, &without_picker, &ids).await;
    for instance in started["instances"].as_array().unwrap() {
        cancel(&client, instance["id"].as_str().unwrap()).await.data();
    }
    for id in &ids[..5] {
        client.patch(&format!("/assets/{id}"), json!({"assigned_to": null})).await.data();
    }
    let movement = client.post(&path, json!({"asset_ids": ids})).await.id();
    advance_movement(&client, &movement, json!({"u": recipient})).await.data();
    assert_eq!(advance_movement(&client, &movement, json!({})).await.data()["status"], "completed");
    assert_eq!(client.total(&format!("/assets?assigned_to={recipient}")).await, 20);
    for user in &users {
        client.delete(&format!("/users/{user}")).await.data();
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_too_large_for_one_transaction_is_refused() {
    let (api, client) = Api::with_tenant().await;
    let step = |key: &str| json!({"type": "textarea", "key": key, "label": "K"});
    let process = create_process(&client, json!([step("a"), step("b"), step("c")])).await;
    let ids = client.assets(20).await;
    let movement = start_movement(&client, &process, &ids).await["id"].as_str().unwrap().to_owned();
    let long = "😀".repeat(10_000);
    let before = api.dump().await;
    assert_eq!(
        advance_movement(&client, &movement, json!({"a": long, "b": long, "c": long})).await.field_errors(),
        ["/step_data"]
    );
    assert_eq!(api.dump().await, before);
    for key in ["a", "b", "c"] {
        advance_movement(&client, &movement, json!({key: if key == "a" { &long } else { "short" }})).await.data();
    }
}

/// The largest movement that can start: every later step fits in one transaction, including the stored response for its
/// idempotency key.
#[tokio::test(start_paused = true)]
async fn what_can_start_fits_one_transaction_at_every_step() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "t", "label": "T"}, {"type": "user_picker", "key": "u", "label": "U"}]);
    let process = create_process(&client, steps).await;
    let start = format!("/processes/{process}/start");
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(client.asset(json!({"name": format!("{n}")})).await);
        if n < 15 {
            let holder = client.user(&format!("Holder {n}")).await;
            client.patch(&format!("/assets/{}", ids[n]), json!({"assigned_to": holder})).await.data();
        }
    }
    let (first, second) = (client.user("First").await, client.user("Second").await);
    assert_eq!(client.post(&start, json!({"asset_ids": ids})).await.field_errors(), ["/asset_ids"], "101 items, with a link");
    client.patch(&format!("/assets/{}", ids[14]), json!({"assigned_to": null})).await.data();
    let movement = client.post(&start, json!({"asset_ids": ids})).await.id();
    let path = format!("/movements/{movement}/advance");
    let body = json!({"step_data": {"t": "x", "u": first}}).to_string();
    client.send_json("POST", &path, &body, ("idempotency-key", "one")).await.data();
    let signer = Link::for_guest(&client, &format!("/movements/{movement}")).await.signer(&client);
    api.faults.take_requests();
    assert_eq!(signer.sign_once(&json!({"step_data": {"u": second}}), "two").await.data()["is_completed"], true);
    let requests = api.faults.take_requests();
    let written = requests.iter().find(|(operation, _)| operation == "TransactWriteItems").unwrap();
    assert_eq!(written.1["TransactItems"].as_array().unwrap().len(), 100);
    client.delete(&format!("/users/{first}")).await.data();
}
