//! Batches of assets and users.

use crate::support::prelude::*;

/// Sort key prefix of tag counters, which aren't compared, because a refused request can leave a gap in the numbers.
const COUNTER: &str = "SEQUENCE#";

#[tokio::test(start_paused = true)]
async fn each_operation_has_the_response_of_the_single_request() {
    let client = over_http().await;
    let first = client.asset(json!({"name": "first"})).await;
    let second = client.asset(json!({"name": "second"})).await;
    let etag = client.get(&format!("/assets/{second}")).await.header("etag").to_owned();
    let operations = [
        json!({"op": "create", "body": {"name": "new", "purchase_price": 1249.00}}),
        json!({"op": "delete", "id": first}),
        json!({"op": "update", "id": second, "if_match": etag, "body": {"status": "in_use"}}),
    ];
    let reply = client.batch("/assets/batch", &operations).await;
    assert_eq!(statuses(&reply), [201, 200, 200]);
    let entry = |index: usize| reply.data()[index].clone();
    assert_eq!(entry(1)["data"], json!({"message": "Asset deleted."}));
    assert!(reply.text().contains(r#""purchase_price":1249.0"#), "the price keeps the digits that were sent");
    for (index, id) in [(0, entry(0)["data"]["id"].as_str().unwrap()), (2, second.as_str())] {
        let single = client.get(&format!("/assets/{id}")).await;
        assert_eq!(
            (single.data(), single.header("etag")),
            (entry(index)["data"].clone(), entry(index)["etag"].as_str().unwrap())
        );
    }
    client.batch("/assets/batch", &operations[2..]).await.problem(412, "PRECONDITION_FAILED");
}

#[tokio::test(start_paused = true)]
async fn a_batch_changes_everything_or_nothing() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let before = api.dump().await.without(COUNTER);
    let bad = [
        json!({"op": "create", "body": {"name": "good"}}),
        json!({"op": "update", "id": asset, "body": {"name": " "}}),
        json!({"op": "create", "body": {"name": "x", "status": "lost"}}),
    ];
    let reply = client.batch("/assets/batch", &bad).await;
    assert_eq!(reply.field_errors(), ["/operations/1/body/name", "/operations/2/body/status"]);
    let missing = [json!({"op": "create", "body": {"name": "good"}}), json!({"op": "delete", "id": UNKNOWN_ID})];
    let problem = client.batch("/assets/batch", &missing).await.problem(404, "NOT_FOUND");
    assert_eq!(problem["errors"][0]["pointer"], "/operations/1");
    let stale = [json!({"op": "update", "id": asset, "if_match": "\"9-0123456789abcdef\"", "body": {"name": "b"}})];
    client.batch("/assets/batch", &stale).await.problem(412, "PRECONDITION_FAILED");
    let twice = [json!({"op": "delete", "id": asset}), json!({"op": "update", "id": asset, "body": {"name": "b"}})];
    assert_eq!(client.batch("/assets/batch", &twice).await.field_errors(), ["/operations/1/id"]);
    let many: Vec<Value> = (0..21).map(|n| json!({"op": "create", "body": {"name": n.to_string()}})).collect();
    assert_eq!(client.batch("/assets/batch", &many).await.field_errors(), ["/operations"]);
    assert!(api.dump().await.without(COUNTER) == before, "a refused batch changed the table");
    let twenty = client.batch("/assets/batch", &many[..20]).await;
    assert_eq!(statuses(&twenty), [201; 20]);
    assert_eq!(client.total("/assets").await, 21);
}

#[tokio::test(start_paused = true)]
async fn malformed_operations_are_refused_before_any_is_executed() {
    let client = over_http().await;
    let operations = [
        json!({"op": "create", "body": {"name": "good"}}),
        json!({"op": "upsert", "body": {}}),
        json!({"op": "create", "id": UNKNOWN_ID, "body": {}}),
        json!({"op": "update", "body": {}}),
        json!({"op": "delete", "id": UNKNOWN_ID, "body": {}, "verb": "x"}),
        json!({"op": "update", "id": UNKNOWN_ID, "if_match": "x", "body": {}}),
        json!("delete"),
        json!({"op": "delete", "id": "x"}),
    ];
    let reply = client.batch("/assets/batch", &operations).await;
    let expected =
        "1/op 2/body/name 2/id 3/id 4/body 4/verb 5/id 5/if_match 6 7/id".split(' ').map(|place| format!("/operations/{place}"));
    assert_eq!(reply.field_errors(), expected.collect::<Vec<_>>());
    assert_eq!(client.batch("/assets/batch", &[]).await.field_errors(), ["/operations"]);
    assert_eq!(client.total("/assets").await, 0);
}

/// Invalid operations, invalid fields, and conflicts of other operations are listed together.
#[tokio::test(start_paused = true)]
async fn a_batch_lists_the_errors_of_all_operations() {
    let (api, client) = Api::with_tenant().await;
    let (first, second) = (client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await);
    let steps = json!([{"type": "text", "key": "a", "label": "A"}]);
    start(&client, &create_process(&client, steps).await, &second).await;
    let before = api.dump().await.without(COUNTER);
    let other = client.get(&format!("/assets/{first}")).await.header("etag").to_owned();
    let gone = json!({"op": "delete", "id": UNKNOWN_ID});
    let running = json!({"op": "delete", "id": second});
    let stale = json!({"op": "update", "id": first, "if_match": "\"9-0\"", "body": {"name": "c"}});
    let all = [
        json!({"op": "upsert"}),
        json!({"op": "update", "body": {"name": " ", "status": "lost"}}),
        gone.clone(),
        running.clone(),
        json!({"op": "create", "body": {"nmae": "x"}}),
        stale.clone(),
    ];
    let reply = client.batch("/assets/batch", &all).await;
    let expected = ["0/op", "1/body/name", "1/body/status", "1/id", "2", "3", "4/body/name", "4/body/nmae", "5"];
    assert_eq!(reply.field_errors(), expected.map(|place| format!("/operations/{place}")));
    assert_eq!(reply.json()["errors"][5]["detail"], client.delete(&format!("/assets/{second}")).await.json()["detail"]);
    let conflicts = client.batch("/assets/batch", &[running.clone(), stale, gone]).await.problem(409, "PROCESS_RUNNING");
    let pointers: Vec<&Value> = conflicts["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/operations/0", "/operations/1", "/operations/2"]);
    assert!(conflicts["instance_id"].is_string(), "the first conflict is shown in full: {conflicts}");
    let tagged = json!({"op": "delete", "id": second, "if_match": other});
    client.batch("/assets/batch", &[tagged]).await.problem(412, "PRECONDITION_FAILED");
    assert!(api.dump().await.without(COUNTER) == before, "a refused batch changed the table");
}

#[tokio::test(start_paused = true)]
async fn users_are_changed_in_batches_with_the_rules_of_single_requests() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    client.assigned_asset("Laptop", &ada).await;
    let create = |email: &str| json!({"op": "create", "body": {"email": email, "display_name": "Another"}});
    let mail = json!({"op": "update", "id": ada, "body": {"email": "countess@example.com"}});
    let refused = async |operations: &[Value], status: u16, code: &str| {
        let problem = client.batch("/users/batch", operations).await.problem(status, code);
        assert_eq!(client.get(&format!("/users/{ada}")).await.data()["email"], "ada@example.com");
        problem
    };
    let problem = refused(&[mail.clone(), create("ADA@example.com")], 409, "DUPLICATE").await;
    assert_eq!((&problem["errors"][0]["pointer"], &problem["user_id"]), (&json!("/operations/1"), &json!(ada)));
    refused(&[create("b@example.com"), json!({"op": "delete", "id": ada})], 409, "IN_USE").await;
    refused(&[mail, json!({"op": "create", "body": {"display_name": "Nobody"}})], 422, "VALIDATION_ERROR").await;
    let viewer = client.scoped(&["users:write"]).await;
    let admin = [json!({"op": "create", "body": {"email": "x@example.com", "display_name": "X", "role": "admin"}})];
    viewer.batch("/users/batch", &admin).await.problem(403, "FORBIDDEN");
}

#[tokio::test(start_paused = true)]
async fn a_batch_says_which_operation_the_table_refuses() {
    let (api, client) = Api::with_tenant().await;
    let create = |email: &str| json!({"op": "create", "body": {"email": email, "display_name": "New"}});
    let twice = [create("a@example.com"), create("b@example.com"), create("A@example.com")];
    for path in ["/users/batch", "/users/batch?dry_run=true"] {
        let problem = client.batch(path, &twice).await.problem(409, "DUPLICATE");
        assert_eq!(problem["errors"][0]["pointer"], "/operations/2", "{path}");
        assert_eq!(problem["detail"], "Operation 0 of the request has the same email.", "{path}");
    }
    let (free, holder) = (client.user("Free").await, client.user("Holder").await);
    client.assigned_asset("Laptop", &holder).await;
    let before = api.dump().await;
    let delete = [json!({"op": "delete", "id": free}), json!({"op": "delete", "id": holder})];
    let problem = client.batch("/users/batch", &delete).await.problem(409, "IN_USE");
    assert_eq!(problem["errors"][0]["pointer"], "/operations/1");
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn batch_beyond_a_transaction_is_refused_and_no_response_exceeds_lambdas_limit() {
    let client = over_http().await;
    let mut operations = Vec::new();
    for n in 0..20 {
        operations.push(json!({"op": "delete", "id": client.user(&format!("User {n}")).await}));
    }
    let body = json!({"operations": operations}).to_string();
    let refused = client.send_json("POST", "/users/batch", &body, ("idempotency-key", "key")).await;
    assert_eq!(refused.field_errors(), ["/operations"]);
    assert_eq!(statuses(&client.batch("/users/batch", &operations).await), [200; 20]);

    let body = json!({"name": "large", "notes": "\"".repeat(9_990), "custom_fields": {"text": "\\".repeat(16_000)}});
    let made = client.create_all(&vec![body; 20]).await;
    let update = |asset: &Value| json!({"op": "update", "id": asset["id"], "body": {"status": "in_use"}});
    let reply = client.batch("/assets/batch", &made.iter().map(update).collect::<Vec<_>>()).await;
    assert_eq!(statuses(&reply), [200; 20]);
    let escaped = serde_json::to_string(reply.text()).unwrap().len();
    assert!((1_500_000..6_000_000).contains(&escaped), "{escaped} bytes");
}
