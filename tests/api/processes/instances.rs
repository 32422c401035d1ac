//! Process instances: from the start through each step to the end.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_completed_handover_assigns_the_asset_to_its_new_user() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let asset = client.asset(json!({"name": "Laptop", "status": "preparing"})).await;
    let process = system_process(&client, "employee-onboarding").await;
    let started = client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    assert_eq!(started.status, 201);
    let instance = started.id();
    assert_eq!(started.header("location"), format!("/v1/processes/instances/{instance}"));
    let mut shown = started.data();
    shown.as_object_mut().unwrap().remove("steps");
    assert_json_snapshot!(shown, {".id" => "[id]", ".process_id" => "[id]", ".asset_id" => "[id]", ".started_by" => "[id]", ".started_at" => "[time]"}, @r#"
    {
      "id": "[id]",
      "process_id": "[id]",
      "asset_id": "[id]",
      "movement_id": null,
      "status": "in_progress",
      "current_step": 0,
      "step_data": {},
      "process_name": "Employee Onboarding",
      "asset_name": "Laptop",
      "asset_tag": "AST-000001",
      "started_by": "[id]",
      "started_by_name": "first key",
      "started_at": "[time]",
      "completed_at": null,
      "cancelled_at": null,
      "cancel_reason": null
    }
    "#);
    // Like real clients: each call repeats the earlier values, and one sends a later step's value in advance.
    let checked = json!(["Device", "Power supply"]);
    assert_eq!(advance(&client, &instance, json!({"employee": user, "handover": checked})).await.data()["current_step"], 1);
    assert_eq!(advance(&client, &instance, json!({"employee": user})).await.data()["current_step"], 2);
    let signed = advance(&client, &instance, json!({"employee": user, "handover": checked, "signature": SIGNATURE})).await.data();
    assert_eq!((&signed["current_step"], &signed["step_data"]["signature"]), (&json!(3), &json!(SIGNATURE)));
    let done = advance(&client, &instance, signed["step_data"].clone()).await.data();
    assert_eq!((&done["status"], &done["current_step"]), (&json!("completed"), &json!(3)));
    assert!(done["completed_at"].is_string());
    let after = client.get(&format!("/assets/{asset}")).await.data();
    assert_eq!((&after["status"], &after["assigned_to"]), (&json!("in_use"), &json!(user)));

    let path = format!("/v1/processes/instances/{instance}/signatures/signature");
    let image = client.get(path.strip_prefix("/v1").unwrap()).await;
    assert_eq!((image.header("content-type"), &image.bytes[1..4]), ("image/png", &b"PNG"[..]));
    assert_eq!(image.header("x-content-type-options"), "nosniff");
    let omitted = client.get(&format!("/processes/instances/{instance}?omit=signatures")).await.data();
    assert_eq!(omitted["step_data"]["signature"], path.as_str());
    client.get(&format!("/processes/instances/{instance}/signatures/handover")).await.problem(404, "NOT_FOUND");

    assert_eq!(event_chain(&api, &client, &instance).await.len(), 5);
    let events = event_chain(&api, &client, &asset).await;
    assert_eq!(events.len(), 3, "created, reserved at the start, changed at the end");
    assert_eq!(events[2]["changes"]["status"], json!({"old": "preparing", "new": "in_use"}));
    // The instance no longer refers to the user, but the asset still does.
    assert_eq!(client.delete(&format!("/users/{user}")).await.problem(409, "IN_USE")["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn while_a_process_runs_only_it_changes_the_status_of_the_asset() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let asset = client.asset(json!({"name": "x", "status": "preparing"})).await;
    let path = format!("/assets/{asset}");
    let process = system_process(&client, "employee-onboarding").await;
    let instance = start(&client, &process, &asset).await;
    advance(&client, &instance, json!({"employee": user})).await.data();
    let before = api.dump().await;
    for refused in [
        client.patch(&path, json!({"status": "in_stock"})).await,
        client.patch(&path, json!({"assigned_to": user})).await,
        client.delete(&path).await,
        client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await,
    ] {
        assert_eq!(refused.problem(409, "PROCESS_RUNNING")["instance_id"], instance.as_str());
    }
    assert_eq!(client.delete(&format!("/users/{user}")).await.problem(409, "IN_USE")["count"], 1);
    assert_eq!(api.dump().await, before);
    let changed = client.patch(&path, json!({"name": "y", "status": "preparing", "notes": "n"})).await.data();
    let cancelled =
        client.post(&format!("/processes/instances/{instance}/cancel"), json!({"reason": "changed our minds"})).await.data();
    assert_eq!((&cancelled["status"], &cancelled["cancel_reason"]), (&json!("cancelled"), &json!("changed our minds")));
    let after = client.get(&path).await.data();
    assert_eq!(after["updated_at"], changed["updated_at"], "cancelling must not change the asset");
    assert_eq!((&after["status"], &after["assigned_to"], &after["name"]), (&json!("preparing"), &Value::Null, &json!("y")));
    client.delete(&format!("/users/{user}")).await.data();
    start(&client, &process, &asset).await;
}

#[tokio::test(start_paused = true)]
async fn a_return_clears_the_assignment_and_a_repair_keeps_it() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    for (slug, data, status, stays_assigned) in [
        ("repair", json!({"fault": "screen"}), "in_service", true),
        ("device-return", json!({"signature": SIGNATURE, "received": true}), "returned", false),
    ] {
        let asset = client.asset(json!({"name": "x", "status": "in_use"})).await;
        client.patch(&format!("/assets/{asset}"), json!({"assigned_to": user})).await.data();
        let instance = start(&client, &system_process(&client, slug).await, &asset).await;
        let mut reply = advance(&client, &instance, data).await.data();
        while reply["status"] == "in_progress" {
            reply = advance(&client, &instance, json!({})).await.data();
        }
        let after = client.get(&format!("/assets/{asset}")).await.data();
        assert_eq!((&after["status"], after["assigned_to"].is_string()), (&json!(status), stays_assigned), "{slug}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_with_the_id_of_an_instance_cancels_it() {
    let client = over_http().await;
    let process = system_process(&client, "prepare").await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    let path = format!("/processes/{instance}");
    let invalid = json!({"status": "inactive", "name": "x", "slug": "x"});
    assert_eq!(client.patch(&path, invalid).await.field_errors(), ["/name", "/slug", "/status"]);
    assert_eq!(client.patch(&path, json!({"status": "cancelled"})).await.data()["status"], "cancelled");
    assert_eq!(client.patch(&path, json!({"status": "cancelled"})).await.data()["status"], "cancelled");
    assert_eq!(client.patch(&path, json!({"status": "in_progress"})).await.field_errors(), ["/status"]);
    client.patch(&format!("/processes/{UNKNOWN_ID}"), json!({"status": "cancelled"})).await.problem(404, "NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn an_instance_keeps_the_steps_it_started_with() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([step("text", "a")]);
    let process = create_process(&client, steps.clone()).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    assert_eq!(client.delete(&format!("/processes/{process}")).await.problem(409, "IN_USE")["count"], 1);
    let change =
        json!({"steps": [{"type": "confirmation", "key": "z", "label": "Z"}], "target_status": "scrapped", "name": "New"});
    client.patch(&format!("/processes/{process}"), change).await.data();
    // Another function instance has empty caches.
    for client in [&client, &api.replica(0, usize::MAX).client(&client)] {
        assert_eq!(client.get(&format!("/processes/instances/{instance}")).await.data()["steps"], steps);
        assert_eq!(client.get("/processes/instances").await.data()[0]["steps"], steps);
        assert_eq!(client.get(&format!("/processes/{process}")).await.data()["steps"][0]["key"], "z");
    }
    let again = client.patch(&format!("/processes/{process}"), json!({"steps": steps})).await.data();
    assert_eq!(again["steps"], steps, "steps that were written before can be written again");
    let done = advance(&client, &instance, json!({"a": "1"})).await.data();
    assert_eq!((&done["status"], &done["process_name"]), (&json!("completed"), &json!("Own")));
    assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["status"], "in_use");
    client.delete(&format!("/processes/{process}")).await.data();
    assert_eq!(client.get(&format!("/processes/instances/{instance}")).await.data()["steps"][0]["key"], "a");
}

#[tokio::test(start_paused = true)]
async fn instances_are_listed_by_status_asset_and_process() {
    let client = over_http().await;
    let process = system_process(&client, "prepare").await;
    let mut assets = Vec::new();
    for _ in 0..3 {
        let asset = client.asset(json!({"name": "x"})).await;
        assets.push((start(&client, &process, &asset).await, asset));
    }
    client.post(&format!("/processes/instances/{}/cancel", assets[0].0), json!({})).await.data();
    advance(&client, &assets[1].0, json!({})).await.data();
    advance(&client, &assets[1].0, json!({"complete": true})).await.data();
    for (query, total) in [
        (String::new(), 2),
        ("?status=cancelled".into(), 1),
        ("?status=completed".into(), 1),
        ("?status=in_progress".into(), 1),
        (format!("?asset_id={}", assets[0].1), 0),
        (format!("?asset_id={}&status=cancelled", assets[0].1), 1),
        (format!("?process_id={process}&limit=1"), 2),
        (format!("?process_id={UNKNOWN_ID}"), 0),
    ] {
        assert_eq!(client.total(&format!("/processes/instances{query}")).await, total, "{query}");
    }
    assert_eq!(
        client.get("/processes/instances?status=x&asset_id=1&omit=all").await.field_errors(),
        ["asset_id", "omit", "status"]
    );
    let several = client.get("/processes/instances?status=in_progress,cancelled").await.json()["errors"][0]["detail"].clone();
    assert_eq!(several, "must be one of in_progress, completed, cancelled; send a separate request for each value");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_signed_instances_stays_below_the_size_limit() {
    let client = over_http().await;
    let signature = large_signature();
    let process = create_process(&client, json!([{"type": "signature", "key": "sign", "label": "S"}])).await;
    for asset in client.assets(40).await {
        let body = json!({"asset_id": asset, "step_data": {"sign": signature}, "through": "sign"});
        client.post(&format!("/processes/{process}/start"), body).await.data();
    }
    let list = client.get("/processes/instances?limit=100").await;
    assert!(list.bytes.len() <= 4 * 1024 * 1024, "{} bytes", list.bytes.len());
    let data = list.data();
    let embedded = data.as_array().unwrap().iter().filter(|instance| instance["step_data"]["sign"] == signature.as_str()).count();
    assert!((20..40).contains(&embedded), "{embedded} signatures are embedded");
    let last = &data[39];
    assert_eq!(last["step_data"]["sign"], format!("/v1/processes/instances/{}/signatures/sign", last["id"].as_str().unwrap()));
    assert!(client.get("/processes/instances?limit=100&omit=signatures").await.bytes.len() < 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_picked_user_must_still_be_active_at_the_end() {
    let client = over_http().await;
    let steps = json!([{"type": "user_picker", "key": "u", "label": "U"}, {"type": "complete", "key": "end", "label": "End"}]);
    let process = create_process(&client, steps).await;
    for (name, is_assigned) in [("Ada", false), ("Eve", true)] {
        let user = client.user(name).await;
        let asset = client.asset(json!({"name": "x"})).await;
        if is_assigned {
            client.patch(&format!("/assets/{asset}"), json!({"assigned_to": user})).await.data();
        }
        let instance = start(&client, &process, &asset).await;
        advance(&client, &instance, json!({"u": user})).await.data();
        client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
        assert_eq!(advance(&client, &instance, json!({})).await.problem(409, "CONFLICT")["user_id"], user.as_str());
        assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["status"], "in_stock");
        client.patch(&format!("/users/{user}"), json!({"is_active": true})).await.data();
        assert_eq!(advance(&client, &instance, json!({})).await.data()["status"], "completed");
    }
}

#[tokio::test(start_paused = true)]
async fn picked_user_who_became_inactive_is_refused_at_the_next_advance() {
    let client = over_http().await;
    let steps = json!([step("user_picker", "u"), step("text", "a"), step("user_picker", "later"), step("text", "b")]);
    let process = create_process(&client, steps).await;
    let [ada, eve] = [client.user("Ada").await, client.user("Eve").await];
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    advance(&client, &instance, json!({"u": ada, "later": eve})).await.data();
    let set = async |user: &str, is_active: bool| {
        client.patch(&format!("/users/{user}"), json!({"is_active": is_active})).await.json()["meta"].clone()
    };
    assert_eq!(set(&eve, false).await, json!({"picked_in": [instance]}));
    assert_eq!(set(&ada, false).await, json!({"picked_in": [instance]}));
    assert_eq!(advance(&client, &instance, json!({"a": 5})).await.field_errors(), ["/step_data/a"]);
    assert_eq!(advance(&client, &instance, json!({"a": "x"})).await.problem(409, "CONFLICT")["user_id"], ada.as_str());
    assert_eq!(set(&ada, true).await, Value::Null, "only a deactivation names the instances");
    assert_eq!(advance(&client, &instance, json!({"a": "x"})).await.problem(409, "CONFLICT")["user_id"], eve.as_str());
    // A value sent ahead can be replaced.
    advance(&client, &instance, json!({"a": "x", "later": ada})).await.data();
    assert_eq!(set(&eve, false).await, json!({"picked_in": []}));
    let process = system_process(&client, "device-return").await;
    let offboarded = client.post(&format!("/users/{ada}/offboard"), json!({"process_id": process})).await.json();
    assert_eq!(offboarded["meta"], json!({"picked_in": [instance]}));
    client.get(&format!("/processes/instances/{instance}")).await.data();
    assert_eq!(cancel(&client, &instance).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_advance_finds_the_instance_closed_when_its_asset_was_deleted_meanwhile() {
    let (api, client) = Api::with_tenant().await;
    let process = create_process(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    // The instance is read first, then its asset.
    let mut first = api.faults.hold("BatchGetItem");
    let other_request = async {
        first.arrived().await;
        let mut second = api.faults.hold("BatchGetItem");
        first.release();
        second.arrived().await;
        cancel(&client, &instance).await.data();
        client.delete(&format!("/assets/{asset}")).await.data();
        second.release();
    };
    let (late, ()) = tokio::join!(advance(&client, &instance, json!({})), other_request);
    assert_eq!(late.problem(409, "INSTANCE_CLOSED")["instance_status"], "cancelled");
}
