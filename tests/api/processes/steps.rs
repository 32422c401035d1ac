//! Steps of processes: their definitions and values.

use crate::support::prelude::*;

#[tokio::test(start_paused = true)]
async fn invalid_steps_are_refused_by_location() {
    let client = over_http().await;
    let steps =
        json!([{"type": "complete", "key": "a", "label": "A"}, {"type": "select", "key": "A", "label": "B", "options": []}]);
    let body = json!({"name": "x", "trigger_status": "lost", "target_status": "in_use", "steps": steps, "is_system": true});
    assert_eq!(
        client.post("/processes", body).await.field_errors(),
        ["/is_system", "/steps/0/type", "/steps/1/key", "/steps/1/options", "/trigger_status"]
    );
}

/// `shared/domain/src/processes/process.rs` has the rules of each type.
#[tokio::test(start_paused = true)]
async fn the_type_of_a_step_decides_which_values_it_accepts() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let inactive = client.user("Inactive").await;
    client.patch(&format!("/users/{inactive}"), json!({"is_active": false})).await.data();
    let plain = |kind: &str| json!({"type": kind, "key": "k", "label": "K"});
    let list = json!({"type": "checklist", "key": "k", "label": "K", "required": true, "items": ["a", "b"]});
    let too_large = format!("data:image/png;base64,{}", "A".repeat(200_000));
    let unknown = |value: Value| (value, "unknown_reference");
    let missing = |value: Value| (value, "required");
    let no_text = (json!(1), "invalid_format");
    // A step with values that it accepts, and values that it refuses, each with an error code.
    let cases = [
        (
            plain("user_picker"),
            vec![json!(user), Value::Null],
            vec![unknown(json!(inactive)), unknown(json!(UNKNOWN_ID)), unknown(json!("x")), no_text.clone()],
        ),
        (
            list,
            vec![json!(["b", "a"])],
            vec![missing(json!(["a"])), missing(json!([])), missing(Value::Null), (json!(["c"]), "unknown_value")],
        ),
        (plain("signature"), vec![json!(SIGNATURE), Value::Null], vec![(json!("x"), ""), (json!(too_large), "")]),
        (plain("text"), vec![json!("ä".repeat(255)), json!("")], vec![(json!("ä".repeat(256)), "too_long"), no_text]),
        (plain("confirmation"), vec![json!(true)], vec![missing(json!(false)), missing(Value::Null), missing(json!(1))]),
    ];
    for (step, accepted, refused) in cases {
        let process = create_process(&client, json!([step])).await;
        let asset = client.asset(json!({"name": "x"})).await;
        let instance = start(&client, &process, &asset).await;
        let before = api.dump().await;
        for (value, code) in refused {
            let reply = advance(&client, &instance, json!({"k": value})).await;
            assert_eq!(reply.field_errors(), ["/step_data/k"], "{step} {value}");
            assert_eq!(reply.json()["errors"][0]["code"].as_str().unwrap_or_default(), code, "{step} {value}");
        }
        assert_eq!(api.dump().await, before);
        cancel(&client, &instance).await.data();
        for value in accepted {
            let asset = client.asset(json!({"name": "x"})).await;
            let instance = start(&client, &process, &asset).await;
            let done = advance(&client, &instance, json!({"k": value})).await.data();
            assert_eq!(done["status"], "completed", "{step} {value}");
            assert_eq!(done["step_data"].get("k"), Some(&value).filter(|value| !value.is_null()), "{step}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn submitted_values_can_not_be_changed_and_unknown_keys_are_refused() {
    let (api, client) = Api::with_tenant().await;
    let steps = json!([
        {"type": "text", "key": "a", "label": "A"}, {"type": "text", "key": "b", "label": "B"},
        {"type": "text", "key": "c", "label": "C", "required": true}
    ]);
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &create_process(&client, steps).await, &asset).await;
    let path = format!("/processes/instances/{instance}/advance");
    advance(&client, &instance, json!({"a": "1", "b": "ahead"})).await.data();
    let before = api.dump().await;
    assert_eq!(advance(&client, &instance, json!({"a": "2"})).await.problem(409, "STEP_SUBMITTED")["step"], "a");
    assert_eq!(advance(&client, &instance, json!({"x": 1, "c": 2})).await.field_errors(), ["/step_data/c", "/step_data/x"]);
    for other in [0, 2] {
        let moved = client.post(&path, json!({"step_data": {}, "current_step": other})).await.problem(409, "STEP_MOVED");
        assert_eq!(moved["current_step"], 1);
    }
    let invalid = json!({"step_data": {"c": 2}, "current_step": -1, "x": 1});
    assert_eq!(client.post(&path, invalid).await.field_errors(), ["/current_step", "/step_data/c", "/x"]);
    let many: Map<String, Value> = (0..51).map(|n| (format!("k{n}"), json!(UNKNOWN_ID))).collect();
    assert_eq!(advance(&client, &instance, json!(many)).await.field_errors(), ["/step_data"]);
    assert_eq!(
        client.post(&path, json!({"step_data": [], "current_step": -1})).await.field_errors(),
        ["/current_step", "/step_data"]
    );
    assert_eq!(client.post(&path, json!({})).await.field_errors(), ["/step_data"]);
    assert_eq!(api.dump().await, before);
    let next = client.post(&path, json!({"step_data": {"a": " 1 "}, "current_step": 1})).await.data();
    assert_eq!((&next["current_step"], &next["step_data"]), (&json!(2), &json!({"a": "1", "b": "ahead"})));
    assert_eq!(advance(&client, &instance, json!({})).await.field_errors(), ["/step_data/c"]);
    advance(&client, &instance, json!({"c": "3"})).await.data();
    let closed = advance(&client, &instance, json!({"c": "3"})).await.problem(409, "INSTANCE_CLOSED");
    assert_eq!(closed["instance_status"], "completed");
    cancel(&client, &instance).await.problem(409, "INSTANCE_CLOSED");
}
