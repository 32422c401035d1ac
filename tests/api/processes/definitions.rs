//! Process definitions: creating, changing and deleting them, and starting them on assets.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_new_tenant_has_seven_system_processes() {
    let client = over_http().await;
    let list = client.get("/processes").await.json();
    assert_eq!(list["meta"], json!({"total": 7, "page": 1, "limit": 100, "total_pages": 1}));
    let onboarding = system_process(&client, "employee-onboarding").await;
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
        "required": true,
        "statement": "I confirm what is stated above."
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

#[tokio::test(start_paused = true)]
async fn definitions_are_created_changed_and_deleted_and_get_different_slugs() {
    let client = over_http().await;
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    let body = json!({"name": "Lend out", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let made = client.post("/processes", body.clone()).await;
    assert_eq!((made.status.as_u16(), made.header("location").to_owned()), (201, format!("/v1/processes/{}", made.id())));
    assert_eq!(
        (&made.data()["slug"], &made.data()["description"], &made.data()["status"]),
        (&json!("lend-out"), &json!(""), &json!("active"))
    );
    assert_eq!(client.post("/processes", body.clone()).await.data()["slug"], "lend-out-2");
    let mut same_slug = body.clone();
    same_slug["slug"] = json!("lend-out");
    let refused = client.post("/processes", same_slug).await.problem(409, "DUPLICATE");
    assert_eq!((&refused["field"], &refused["process_id"]), (&json!("slug"), &json!(made.id())));
    let path = format!("/processes/{}", made.id());
    let changed = client.patch(&path, json!({"description": "x", "status": "inactive"})).await.data();
    assert_eq!((&changed["description"], &changed["status"]), (&json!("x"), &json!("inactive")));
    for (query, total) in [("", 8), ("?status=active", 8), ("?status=inactive", 1), ("?status=all", 9), ("?limit=1", 8)] {
        assert_eq!(client.total(&format!("/processes{query}")).await, total, "{query}");
    }
    assert_eq!(
        client.patch(&path, json!({"slug": "x", "is_system": true, "status": "cancelled"})).await.field_errors(),
        ["/is_system", "/slug", "/status"]
    );
    assert_eq!(client.patch(&path, json!({"status": "cancelled"})).await.field_errors(), ["/status"]);
    assert_eq!(client.delete(&path).await.data()["slug"], "lend-out");
    client.get(&path).await.problem(404, "NOT_FOUND");
    let count = if full_tests() { 40 } else { 8 };
    let made = join_all((0..count).map(|_| client.post("/processes", body.clone()))).await;
    let slugs: BTreeSet<String> = made.iter().map(|reply| reply.data()["slug"].as_str().unwrap().to_owned()).collect();
    assert_eq!(slugs.len(), count);
}

#[tokio::test(start_paused = true)]
async fn a_system_process_can_only_be_deactivated() {
    let (api, client) = Api::with_tenant().await;
    let path = format!("/processes/{}", system_process(&client, "prepare").await);
    let before = api.dump().await;
    let refused = client.patch(&path, json!({"name": "x", "status": "inactive"})).await.problem(409, "CONFLICT");
    assert_eq!(refused["detail"], "Only the status of a system process can change.");
    client.delete(&path).await.problem(409, "CONFLICT");
    assert_eq!(api.dump().await, before);
    let name = client.get(&path).await.data()["name"].clone();
    client.patch(&path, json!({"name": name, "status": "inactive"})).await.data();
    let asset = client.asset(json!({"name": "x"})).await;
    client.post(&format!("{path}/start"), json!({"asset_id": asset})).await.problem(409, "PROCESS_INACTIVE");
    client.patch(&path, json!({"status": "active"})).await.data();
    client.post(&format!("{path}/start"), json!({"asset_id": asset})).await.data();
}

#[tokio::test(start_paused = true)]
async fn a_process_starts_only_from_its_trigger_status() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "x"})).await;
    let path = format!("/processes/{}/start", system_process(&client, "repair").await);
    let before = api.dump().await;
    let refused = client.post(&path, json!({"asset_id": asset})).await.problem(409, "WRONG_ASSET_STATUS");
    assert_eq!((&refused["asset_id"], &refused["trigger_status"]), (&json!(asset), &json!("in_use")));
    assert_eq!(client.post(&path, json!({"asset_id": UNKNOWN_ID})).await.field_errors(), ["/asset_id"]);
    assert_eq!(client.post(&path, json!({})).await.field_errors(), ["/asset_id"]);
    assert_eq!(client.post(&path, json!({"asset_id": UNKNOWN_ID, "x": 1})).await.field_errors(), ["/asset_id", "/x"]);
    assert_eq!(
        client.post(&path, json!({"asset_ids": [asset, UNKNOWN_ID], "x": 1})).await.field_errors(),
        ["/asset_ids/1", "/x"]
    );
    assert_eq!(client.post(&path, json!({"asset_id": 1})).await.field_errors(), ["/asset_id"]);
    client.post(&format!("/processes/{UNKNOWN_ID}/start"), json!({"asset_id": asset})).await.problem(404, "NOT_FOUND");
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn an_asset_lists_which_processes_can_start_and_why_others_can_not() {
    let client = over_http().await;
    let asset = client.asset(json!({"name": "x"})).await;
    let path = format!("/assets/{asset}/processes");
    let own = create_process(&client, json!([{"type": "text", "key": "a", "label": "A"}])).await;
    client.patch(&format!("/processes/{own}"), json!({"status": "inactive"})).await.data();
    let rows = async || client.get(&path).await.data().as_array().unwrap().clone();
    let shown = rows().await;
    assert_eq!(shown.len(), 8);
    assert_eq!((&shown[0]["slug"], &shown[0]["can_start"], &shown[0]["code"]), (&json!("prepare"), &json!(true), &Value::Null));
    let code = |rows: &[Value], slug: &str| rows.iter().find(|row| row["slug"] == slug).unwrap()["code"].clone();
    assert_eq!((code(&shown, "own"), code(&shown, "repair")), (json!("PROCESS_INACTIVE"), json!("WRONG_ASSET_STATUS")));
    let instance = start(&client, &system_process(&client, "prepare").await, &asset).await;
    let shown = rows().await;
    assert!(shown.iter().all(|row| row["can_start"] == false));
    let prepare = shown.iter().find(|row| row["slug"] == "prepare").unwrap();
    assert_eq!((&prepare["code"], &prepare["instance_id"]), (&json!("PROCESS_RUNNING"), &json!(instance)));
    let start = format!("/processes/{}/start", prepare["id"].as_str().unwrap());
    let refused = client.post(&start, json!({"asset_id": asset})).await.problem(409, "PROCESS_RUNNING");
    assert_eq!(refused["detail"], prepare["detail"]);
    client.get(&format!("/assets/{UNKNOWN_ID}/processes")).await.problem(404, "NOT_FOUND");
}
