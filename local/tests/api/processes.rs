//! `/v1/processes` (interface 4.6 to 4.9, contract 7).

use crate::support::samples::SIGNATURE;
use crate::support::{Api, Client};
use futures_util::future::join_all;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NOBODY: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// The id of the system process with this slug.
pub async fn system(client: &Client, slug: &str) -> String {
    let all = client.get("/processes").await.data();
    let found = all.as_array().unwrap().iter().find(|process| process["slug"] == slug).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

pub async fn start(client: &Client, process: &str, asset: &str) -> String {
    client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await.id()
}

pub async fn advance(client: &Client, run: &str, data: Value) -> crate::support::Reply {
    client.post(&format!("/processes/instances/{run}/advance"), json!({"step_data": data})).await
}

/// A definition of the tenant's own, from in_stock to in_use, with these steps; gives its id.
pub async fn define(client: &Client, steps: Value) -> String {
    let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    client.post("/processes", body).await.id()
}

/// Hands a new asset over to `user`, to the end; gives the run's id.
pub async fn handover(client: &Client, user: &str) -> String {
    let body = json!({"name": "Laptop", "status": "preparing", "serial_number": "S-1", "manufacturer": "Dell", "model": "XPS"});
    let asset = client.asset(body).await;
    let run = start(client, &system(client, "employee-onboarding").await, &asset).await;
    for data in [json!({"employee": user}), json!({"handover": ["Device"]}), json!({"signature": SIGNATURE}), json!({})] {
        advance(client, &run, data).await.data();
    }
    run
}

#[tokio::test]
async fn a_tenant_begins_with_seven_system_processes() {
    let (_api, client) = Api::with_tenant().await;
    let list = client.get("/processes").await.json();
    assert_eq!(list["meta"], json!({"total": 7, "page": 1, "limit": 100, "total_pages": 1}));
    let onboarding = system(&client, "employee-onboarding").await;
    let shown = client.get(&format!("/processes/{onboarding}")).await.json();
    assert_json_snapshot!(shown["data"]["steps"], @r#"
    [
      {
        "type": "user_picker",
        "key": "employee",
        "label": "Who gets the asset?",
        "required": true
      },
      {
        "type": "checklist",
        "key": "handover",
        "label": "Handed over",
        "items": [
          "Device",
          "Power supply",
          "Accessories",
          "Usage policy explained"
        ]
      },
      {
        "type": "signature",
        "key": "signature",
        "label": "Signature of the recipient",
        "required": true
      },
      {
        "type": "complete",
        "key": "complete",
        "label": "Complete the handover"
      }
    ]
    "#);
    assert_eq!(shown["data"]["is_system"], true);
}

#[tokio::test]
async fn definitions_are_created_changed_and_deleted() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let body = json!({"name": "Lend out", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let made = client.post("/processes", body.clone()).await;
    assert_eq!((made.status.as_u16(), made.header("location").to_owned()), (201, format!("/v1/processes/{}", made.id())));
    assert_eq!(
        (&made.data()["slug"], &made.data()["description"], &made.data()["status"]),
        (&json!("lend-out"), &json!(""), &json!("active"))
    );
    assert_eq!(client.post("/processes", body.clone()).await.data()["slug"], "lend-out-2");
    let mut taken = body;
    taken["slug"] = json!("lend-out");
    let taken = client.post("/processes", taken).await.problem(409, "DUPLICATE");
    assert_eq!((&taken["field"], &taken["process_id"]), (&json!("slug"), &json!(made.id())));
    let path = format!("/processes/{}", made.id());
    let changed = client.patch(&path, json!({"description": "x", "status": "inactive"})).await.data();
    assert_eq!((&changed["description"], &changed["status"]), (&json!("x"), &json!("inactive")));
    for (query, total) in [("", 8), ("?status=active", 8), ("?status=inactive", 1), ("?status=all", 9), ("?limit=1", 8)] {
        assert_eq!(client.get(&format!("/processes{query}")).await.json()["meta"]["total"], total, "{query}");
    }
    assert_eq!(
        client.patch(&path, json!({"slug": "x", "is_system": true, "status": "cancelled"})).await.field_errors(),
        ["/is_system", "/slug", "/status"]
    );
    assert_eq!(client.patch(&path, json!({"status": "cancelled"})).await.field_errors(), ["/status"]);
    assert_eq!(client.delete(&path).await.data()["slug"], "lend-out");
    client.get(&path).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_name_that_many_have_still_makes_a_slug() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let body = json!({"name": "Lend out", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let made = join_all((0..40).map(|_| client.post("/processes", body.clone()))).await;
    let slugs: BTreeSet<String> = made.iter().map(|reply| reply.data()["slug"].as_str().unwrap().to_owned()).collect();
    assert_eq!(slugs.len(), 40);
}

#[tokio::test]
async fn a_system_process_can_only_be_switched_off() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/processes/{}", system(&client, "prepare").await);
    let before = api.dump().await;
    client.patch(&path, json!({"name": "x", "status": "inactive"})).await.problem(409, "CONFLICT");
    client.delete(&path).await.problem(409, "CONFLICT");
    assert_eq!(api.dump().await, before);
    client.patch(&path, json!({"status": "inactive"})).await.data();
    let asset = client.asset(json!({"name": "x"})).await;
    client.post(&format!("{path}/start"), json!({"asset_id": asset})).await.problem(409, "PROCESS_INACTIVE");
    client.patch(&path, json!({"status": "active"})).await.data();
    client.post(&format!("{path}/start"), json!({"asset_id": asset})).await.data();
}

#[tokio::test]
async fn a_handover_goes_from_start_to_signature_to_the_assets_new_user() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let asset = client.asset(json!({"name": "Laptop", "status": "preparing"})).await;
    let process = system(&client, "employee-onboarding").await;
    let started = client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await;
    assert_eq!(started.status, 201);
    let run = started.id();
    assert_eq!(started.header("location"), format!("/v1/processes/instances/{run}"));
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
    // As real clients do it: everything gathered so far with each call, once with a later value ahead of time.
    let checked = json!(["Device", "Power supply"]);
    assert_eq!(advance(&client, &run, json!({"employee": user, "handover": checked})).await.data()["current_step"], 1);
    assert_eq!(advance(&client, &run, json!({"employee": user})).await.data()["current_step"], 2);
    let signed = advance(&client, &run, json!({"employee": user, "handover": checked, "signature": SIGNATURE})).await.data();
    assert_eq!((&signed["current_step"], &signed["step_data"]["signature"]), (&json!(3), &json!(SIGNATURE)));
    let done = advance(&client, &run, signed["step_data"].clone()).await.data();
    assert_eq!((&done["status"], &done["current_step"]), (&json!("completed"), &json!(3)));
    assert!(done["completed_at"].is_string());
    let after = client.get(&format!("/assets/{asset}")).await.data();
    assert_eq!((&after["status"], &after["assigned_to"]), (&json!("in_use"), &json!(user)));

    let path = format!("/v1/processes/instances/{run}/signatures/signature");
    let image = client.get(path.strip_prefix("/v1").unwrap()).await;
    assert_eq!((image.header("content-type"), &image.bytes[1..4]), ("image/png", &b"PNG"[..]));
    let omitted = client.get(&format!("/processes/instances/{run}?omit=signatures")).await.data();
    assert_eq!(omitted["step_data"]["signature"], path.as_str());
    client.get(&format!("/processes/instances/{run}/signatures/handover")).await.problem(404, "NOT_FOUND");

    assert_eq!(crate::events::chain(&api, &client, &run).await.len(), 5);
    let events = crate::events::chain(&api, &client, &asset).await;
    assert_eq!(events.len(), 3, "created, taken by the run, changed by its end");
    assert_eq!(events[2]["changes"]["status"], json!({"old": "preparing", "new": "in_use"}));
    // Nobody who took part is held any more, but the user has the asset.
    assert_eq!(client.delete(&format!("/users/{user}")).await.problem(409, "IN_USE")["count"], 1);
}

#[tokio::test]
async fn while_a_process_runs_it_alone_moves_the_asset() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let asset = client.asset(json!({"name": "x", "status": "preparing"})).await;
    let path = format!("/assets/{asset}");
    let process = system(&client, "employee-onboarding").await;
    let run = start(&client, &process, &asset).await;
    advance(&client, &run, json!({"employee": user})).await.data();
    let before = api.dump().await;
    for refused in [
        client.patch(&path, json!({"status": "in_stock"})).await,
        client.patch(&path, json!({"assigned_to": user})).await,
        client.delete(&path).await,
        client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset})).await,
    ] {
        assert_eq!(refused.problem(409, "PROCESS_RUNNING")["instance_id"], run.as_str());
    }
    assert_eq!(client.delete(&format!("/users/{user}")).await.problem(409, "IN_USE")["count"], 1);
    assert_eq!(api.dump().await, before);
    let changed = client.patch(&path, json!({"name": "y", "status": "preparing", "notes": "n"})).await.data();
    let cancelled =
        client.post(&format!("/processes/instances/{run}/cancel"), json!({"reason": "changed our mind"})).await.data();
    assert_eq!((&cancelled["status"], &cancelled["cancel_reason"]), (&json!("cancelled"), &json!("changed our mind")));
    let after = client.get(&path).await.data();
    assert_eq!(after["updated_at"], changed["updated_at"], "the asset itself did not change");
    assert_eq!((&after["status"], &after["assigned_to"], &after["name"]), (&json!("preparing"), &Value::Null, &json!("y")));
    client.delete(&format!("/users/{user}")).await.data();
    start(&client, &process, &asset).await;
}

#[tokio::test]
async fn a_return_clears_the_assignment_and_a_repair_keeps_it() {
    let (_api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    for (slug, data, status, keeps) in
        [("repair", json!({"fault": "screen"}), "in_service", true), ("device-return", json!({}), "returned", false)]
    {
        let asset = client.asset(json!({"name": "x", "status": "in_use"})).await;
        client.patch(&format!("/assets/{asset}"), json!({"assigned_to": user})).await.data();
        let run = start(&client, &system(&client, slug).await, &asset).await;
        let mut reply = advance(&client, &run, data).await.data();
        while reply["status"] == "in_progress" {
            reply = advance(&client, &run, json!({})).await.data();
        }
        let after = client.get(&format!("/assets/{asset}")).await.data();
        assert_eq!((&after["status"], after["assigned_to"].is_string()), (&json!(status), keeps), "{slug}");
    }
}

#[tokio::test]
async fn a_process_starts_only_where_it_begins() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "x"})).await;
    let path = format!("/processes/{}/start", system(&client, "repair").await);
    let before = api.dump().await;
    let refused = client.post(&path, json!({"asset_id": asset})).await.problem(409, "WRONG_ASSET_STATUS");
    assert_eq!((&refused["asset_id"], &refused["trigger_status"]), (&json!(asset), &json!("in_use")));
    assert_eq!(client.post(&path, json!({"asset_id": NOBODY})).await.field_errors(), ["/asset_id"]);
    assert_eq!(client.post(&path, json!({})).await.field_errors(), ["/asset_id"]);
    assert_eq!(client.post(&path, json!({"asset_id": NOBODY, "x": 1})).await.field_errors(), ["/asset_id", "/x"]);
    assert_eq!(client.post(&path, json!({"asset_ids": [asset, NOBODY], "x": 1})).await.field_errors(), ["/asset_ids/1", "/x"]);
    assert_eq!(client.post(&path, json!({"asset_id": 1})).await.field_errors(), ["/asset_id"]);
    client.post(&format!("/processes/{NOBODY}/start"), json!({"asset_id": asset})).await.problem(404, "NOT_FOUND");
    assert_eq!(api.dump().await, before);
}

#[tokio::test]
async fn an_asset_says_what_can_start_on_it_and_why_the_rest_can_not() {
    let (_api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "x"})).await;
    let path = format!("/assets/{asset}/processes");
    let own = define(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    client.patch(&format!("/processes/{own}"), json!({"status": "inactive"})).await.data();
    let rows = async || client.get(&path).await.data().as_array().unwrap().clone();
    let shown = rows().await;
    assert_eq!(shown.len(), 8);
    assert_eq!((&shown[0]["slug"], &shown[0]["can_start"], &shown[0]["code"]), (&json!("prepare"), &json!(true), &Value::Null));
    let code = |rows: &[Value], slug: &str| rows.iter().find(|row| row["slug"] == slug).unwrap()["code"].clone();
    assert_eq!((code(&shown, "own"), code(&shown, "repair")), (json!("PROCESS_INACTIVE"), json!("WRONG_ASSET_STATUS")));
    let run = start(&client, &system(&client, "prepare").await, &asset).await;
    let shown = rows().await;
    assert!(shown.iter().all(|row| row["can_start"] == false));
    let prepare = shown.iter().find(|row| row["slug"] == "prepare").unwrap();
    assert_eq!((&prepare["code"], &prepare["instance_id"]), (&json!("PROCESS_RUNNING"), &json!(run)));
    let start = format!("/processes/{}/start", prepare["id"].as_str().unwrap());
    let heard = client.post(&start, json!({"asset_id": asset})).await.problem(409, "PROCESS_RUNNING");
    assert_eq!(heard["detail"], prepare["detail"]);
    client.get(&format!("/assets/{NOBODY}/processes")).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_patch_with_a_runs_id_cancels_it() {
    let (_api, client) = Api::with_tenant().await;
    let process = system(&client, "prepare").await;
    let asset = client.asset(json!({"name": "x"})).await;
    let run = start(&client, &process, &asset).await;
    let path = format!("/processes/{run}");
    let wrong = json!({"status": "inactive", "name": "x", "slug": "x"});
    assert_eq!(client.patch(&path, wrong).await.field_errors(), ["/name", "/slug", "/status"]);
    assert_eq!(client.patch(&path, json!({"status": "cancelled"})).await.data()["status"], "cancelled");
    client.patch(&path, json!({"status": "cancelled"})).await.problem(409, "INSTANCE_CLOSED");
    client.patch(&format!("/processes/{NOBODY}"), json!({"status": "cancelled"})).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_run_keeps_the_steps_it_started_with() {
    let (_api, client) = Api::with_tenant().await;
    let process = define(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let run = start(&client, &process, &asset).await;
    assert_eq!(client.delete(&format!("/processes/{process}")).await.problem(409, "IN_USE")["count"], 1);
    let change =
        json!({"steps": [{"type": "confirmation", "key": "z", "label": "Z"}], "target_status": "scrapped", "name": "New"});
    client.patch(&format!("/processes/{process}"), change).await.data();
    let done = advance(&client, &run, json!({"a": "1"})).await.data();
    assert_eq!((&done["status"], &done["process_name"]), (&json!("completed"), &json!("Own")));
    assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["status"], "in_use");
    client.delete(&format!("/processes/{process}")).await.data();
    assert_eq!(client.get(&format!("/processes/instances/{run}")).await.data()["steps"][0]["key"], "a");
}

#[tokio::test]
async fn runs_are_listed_by_status_asset_and_process() {
    let (_api, client) = Api::with_tenant().await;
    let process = system(&client, "prepare").await;
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
        (format!("?process_id={NOBODY}"), 0),
    ] {
        assert_eq!(client.get(&format!("/processes/instances{query}")).await.json()["meta"]["total"], total, "{query}");
    }
    assert_eq!(
        client.get("/processes/instances?status=x&asset_id=1&omit=all").await.field_errors(),
        ["asset_id", "omit", "status"]
    );
}

#[tokio::test]
async fn a_list_of_signed_runs_stays_under_the_answer_limit() {
    let (_api, client) = Api::with_tenant().await;
    let signature = large_signature();
    let process = define(&client, json!([{"type": "signature", "key": "sign", "label": "S"}])).await;
    for _ in 0..40 {
        let asset = client.asset(json!({"name": "x"})).await;
        let run = start(&client, &process, &asset).await;
        advance(&client, &run, json!({"sign": signature})).await.data();
    }
    let list = client.get("/processes/instances?limit=100").await;
    assert!(list.bytes.len() <= 4 * 1024 * 1024, "{} bytes", list.bytes.len());
    let data = list.data();
    let whole = data.as_array().unwrap().iter().filter(|run| run["step_data"]["sign"] == signature.as_str()).count();
    assert!((20..40).contains(&whole), "{whole} signatures came whole");
    let last = &data[39];
    assert_eq!(last["step_data"]["sign"], format!("/v1/processes/instances/{}/signatures/sign", last["id"].as_str().unwrap()));
    assert!(client.get("/processes/instances?limit=100&omit=signatures").await.bytes.len() < 100_000);
}

/// A PNG of about 100 KB, as a data URL.
pub fn large_signature() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 320, 320);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_compression(png::Compression::Fast);
    let mut noise = RandomState::new().build_hasher();
    let pixels: Vec<u8> = (0..320u32 * 320)
        .map(|n| {
            noise.write_u32(n);
            noise.finish().to_le_bytes()[0]
        })
        .collect();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    shared::domain::signature_image::data_url(&bytes)
}

#[tokio::test]
async fn whoever_is_picked_must_still_be_there_at_the_end() {
    let (_api, client) = Api::with_tenant().await;
    let steps = json!([{"type": "user_picker", "key": "u", "label": "U"}, {"type": "complete", "key": "end", "label": "End"}]);
    let process = define(&client, steps).await;
    for (name, has_it) in [("Ada", false), ("Eve", true)] {
        let user = client.user(name).await;
        let asset = client.asset(json!({"name": "x"})).await;
        if has_it {
            client.patch(&format!("/assets/{asset}"), json!({"assigned_to": user})).await.data();
        }
        let run = start(&client, &process, &asset).await;
        advance(&client, &run, json!({"u": user})).await.data();
        client.patch(&format!("/users/{user}"), json!({"is_active": false})).await.data();
        assert_eq!(advance(&client, &run, json!({})).await.problem(409, "CONFLICT")["user_id"], user.as_str());
        assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["status"], "in_stock");
        client.patch(&format!("/users/{user}"), json!({"is_active": true})).await.data();
        assert_eq!(advance(&client, &run, json!({})).await.data()["status"], "completed");
    }
}
