//! Dry runs are refused with the same errors as real requests.

use crate::support::operations::dry_run;
use crate::support::processes::{advance, create_process, start};
use crate::support::{Api, Client, UNKNOWN_ID, over_http};
use serde_json::{Value, json};

/// Sends a request as a dry run and as a real request. Both must be refused alike, and neither must change the table.
async fn check(api: &Api, client: &Client, (method, path, body): (&str, &str, Value), status: u16, code: &str) -> Value {
    // The numbers that a request takes before it is refused are not given back.
    let before = api.dump().await.without("counter");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut problems = Vec::new();
    for path in [dry_run(path), path.to_owned()] {
        let reply = client.send(method, &path, Some("application/json"), body.clone()).await;
        assert_eq!(reply.header("dry-run"), "", "{method} {path}: only a success is marked");
        let mut problem = reply.problem(status, code);
        problem.as_object_mut().unwrap().remove("request_id");
        problems.push(problem);
    }
    assert_eq!(api.dump().await.without("counter"), before, "{method} {path}");
    assert_eq!(problems[0], problems[1], "{method} {path}");
    problems.remove(0)
}

#[tokio::test(start_paused = true)]
async fn records_are_refused_alike() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let inactive = client.user("Grace").await;
    client.patch(&format!("/users/{inactive}"), json!({"is_active": false})).await.data();
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    client.model("Dell", "XPS", &laptop).await;
    let asset = client.assigned_asset("assigned", &user).await;
    client.patch("/settings", json!({"status_transitions": {"in_stock": ["preparing"]}})).await.data();
    let (asset, user, unknown) = (format!("/assets/{asset}"), format!("/users/{user}"), format!("/assets/{UNKNOWN_ID}"));
    let new_user = json!({"email": "ADA@example.com", "display_name": "A"});
    let duplicate = check(&api, &client, ("POST", "/users", new_user), 409, "DUPLICATE").await;
    assert!(duplicate.to_string().contains(&user[7..]), "names the owner: {duplicate}");
    let email = json!({"email": "grace@example.com"});
    check(&api, &client, ("PATCH", &user, email), 409, "DUPLICATE").await;
    let same_code = json!({"name": "x", "code": "LAP", "kind": "logical"});
    check(&api, &client, ("POST", "/catalog/asset-types", same_code), 409, "DUPLICATE").await;
    check(&api, &client, ("POST", "/catalog/manufacturers", json!({"name": "DELL"})), 409, "DUPLICATE").await;
    assert_eq!(check(&api, &client, ("DELETE", &user, Value::Null), 409, "IN_USE").await["count"], 1);
    let laptop = format!("/catalog/asset-types/{laptop}");
    check(&api, &client, ("DELETE", &laptop, Value::Null), 409, "IN_USE").await;
    let scrapped = json!({"status": "scrapped"});
    let refused = check(&api, &client, ("PATCH", &asset, scrapped), 409, "TRANSITION_NOT_ALLOWED").await;
    assert_eq!(refused["allowed"], json!(["preparing"]));
    check(&api, &client, ("PATCH", &unknown, json!({"name": "x"})), 404, "NOT_FOUND").await;
    check(&api, &client, ("DELETE", &unknown, Value::Null), 404, "NOT_FOUND").await;
    for body in [
        json!({"assigned_to": inactive}),
        json!({"assigned_to": UNKNOWN_ID}),
        json!({"nmae": "x", "purchase_price": -1}),
        json!({"model_id": UNKNOWN_ID}),
    ] {
        check(&api, &client, ("PATCH", &asset, body), 422, "VALIDATION_ERROR").await;
    }
    check(&api, &client, ("POST", "/assets", json!({"asset_type_id": UNKNOWN_ID})), 422, "VALIDATION_ERROR").await;
    let path = dry_run(&asset);
    for (method, body) in [("PATCH", r#"{"name":"x"}"#), ("DELETE", "")] {
        client.send_json(method, &path, body, ("if-match", "\"7-0\"")).await.problem(412, "PRECONDITION_FAILED");
        let reply = client.send_json(method, &path, body, ("if-match", client.get(&asset).await.header("etag"))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn processes_are_refused_alike() {
    let (api, client) = Api::with_tenant().await;
    let step = |key: &str| json!({"type": "text", "key": key, "label": "L"});
    let process = create_process(&client, json!([step("a"), step("b")])).await;
    let (busy, free) = (client.asset(json!({"name": "busy"})).await, client.asset(json!({"name": "free"})).await);
    let in_use = client.asset(json!({"name": "in use", "status": "in_use"})).await;
    let instance = start(&client, &process, &busy).await;
    advance(&client, &instance, json!({"a": "x"})).await.data();
    let (start, asset) = (format!("/processes/{process}/start"), format!("/assets/{busy}"));
    for (method, path, body) in [
        ("POST", &start, json!({"asset_id": busy})),
        ("POST", &start, json!({"asset_ids": [free, busy]})),
        ("PATCH", &asset, json!({"status": "scrapped"})),
        ("DELETE", &asset, Value::Null),
    ] {
        let running = check(&api, &client, (method, path, body), 409, "PROCESS_RUNNING").await;
        assert!(running.to_string().contains(&instance), "{running}");
    }
    check(&api, &client, ("POST", &start, json!({"asset_id": in_use})), 409, "WRONG_ASSET_STATUS").await;
    let advance = format!("/processes/instances/{instance}/advance");
    let earlier = json!({"step_data": {"a": "other"}});
    check(&api, &client, ("POST", &advance, earlier), 409, "STEP_SUBMITTED").await;
    let moved = json!({"step_data": {}, "current_step": 0});
    check(&api, &client, ("POST", &advance, moved), 409, "STEP_MOVED").await;
    check(&api, &client, ("DELETE", &format!("/processes/{process}"), Value::Null), 409, "IN_USE").await;
    client.post(&dry_run(&format!("/processes/instances/{instance}/cancel")), json!({})).await.data();
    client.post(&format!("/processes/instances/{instance}/cancel"), json!({})).await.data();
    check(&api, &client, ("POST", &advance, json!({"step_data": {}})), 409, "INSTANCE_CLOSED").await;
}

#[tokio::test(start_paused = true)]
async fn requests_are_refused_alike_before_anything_is_decided() {
    let client = over_http().await;
    let path = dry_run("/assets");
    client.with_key("").post(&path, json!({"name": "x"})).await.problem(401, "UNAUTHORIZED");
    let reader = client.scoped(&["assets:read"]).await;
    reader.post(&path, json!({"name": "x"})).await.problem(403, "FORBIDDEN");
    client.post_text(&path, "{").await.problem(400, "MALFORMED_REQUEST");
    client.send("POST", &path, Some("text/plain"), "{}").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    let too_large = " ".repeat((1 << 20) + 1);
    client.post_text(&path, &too_large).await.problem(413, "PAYLOAD_TOO_LARGE");
    let limited = client.post("/keys", json!({"name": "k", "scopes": ["assets:write"], "rate_limit_per_minute": 2})).await;
    let limited = client.with_key_of(&limited.data());
    for _ in 0..2 {
        limited.post(&path, json!({"name": "x"})).await.data();
    }
    limited.post(&path, json!({"name": "x"})).await.problem(429, "RATE_LIMITED");
}
