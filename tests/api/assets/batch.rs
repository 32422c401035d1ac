//! Batches of assets and users.

use crate::support::bulk::statuses;
use crate::support::{Api, UNKNOWN_ID, over_http};
use serde_json::{Value, json};

/// The prefix of the keys of tag counters: a refused request may leave a gap.
const COUNTER: &str = "SEQUENCE#";

#[tokio::test(start_paused = true)]
async fn each_operation_succeeds_or_fails_on_its_own_in_its_order() {
    let client = over_http().await;
    let first = client.asset(json!({"name": "first"})).await;
    let second = client.asset(json!({"name": "second"})).await;
    let etag = client.get(&format!("/assets/{second}")).await.header("etag").to_owned();
    let operations = [
        json!({"op": "create", "body": {"name": "new", "purchase_price": 1249.00}}),
        json!({"op": "update", "id": first, "body": {"name": "renamed"}}),
        json!({"op": "update", "id": first, "body": {"notes": "after the first change"}}),
        json!({"op": "delete", "id": first}),
        json!({"op": "update", "id": first, "body": {"name": "gone"}}),
        json!({"op": "update", "id": second, "if_match": etag, "body": {"status": "in_use"}}),
        json!({"op": "update", "id": second, "if_match": etag, "body": {"status": "in_repair"}}),
        json!({"op": "create", "body": {"name": "", "color": 1}}),
        json!({"op": "delete", "id": UNKNOWN_ID}),
    ];
    let reply = client.batch("/assets/batch", &operations, false).await;
    assert_eq!(statuses(&reply), [201, 200, 200, 200, 404, 200, 412, 422, 404]);
    assert_eq!(reply.json()["meta"], json!({"succeeded": 5, "failed": 4}));
    let entry = |index: usize| reply.data()[index].clone();
    assert_eq!((entry(1)["data"]["name"].clone(), entry(2)["data"]["name"].clone()), (json!("renamed"), json!("renamed")));
    assert_eq!(entry(3)["data"], json!({"message": "Asset deleted."}));
    assert!(reply.text().contains(r#""purchase_price":1249.0"#), "the digits that were sent stay");
    let errors: Vec<Value> =
        entry(7)["error"]["errors"].as_array().unwrap().iter().map(|error| error["pointer"].clone()).collect();
    assert_eq!(errors, [json!("/color"), json!("/name")].into_iter().rev().collect::<Vec<_>>());
    let made = client.get(&format!("/assets/{}", entry(0)["data"]["id"].as_str().unwrap())).await;
    assert_eq!((made.data(), made.header("etag")), (entry(0)["data"].clone(), entry(0)["etag"].as_str().unwrap()));
    assert_eq!(client.get(&format!("/assets/{second}")).await.data(), entry(5)["data"]);
}

#[tokio::test(start_paused = true)]
async fn an_atomic_batch_changes_everything_or_nothing() {
    let (api, client) = Api::with_tenant().await;
    let asset = client.asset(json!({"name": "a"})).await;
    let before = api.dump().await.without(COUNTER);
    let bad = [
        json!({"op": "create", "body": {"name": "good"}}),
        json!({"op": "update", "id": asset, "body": {"name": " "}}),
        json!({"op": "create", "body": {"name": "x", "status": "lost"}}),
    ];
    let reply = client.batch("/assets/batch", &bad, true).await;
    assert_eq!(reply.field_errors(), ["/operations/1/body/name", "/operations/2/body/status"]);
    let missing = [json!({"op": "create", "body": {"name": "good"}}), json!({"op": "delete", "id": UNKNOWN_ID})];
    let problem = client.batch("/assets/batch", &missing, true).await.problem(404, "NOT_FOUND");
    assert_eq!(problem["errors"][0]["pointer"], "/operations/1");
    let stale = [json!({"op": "update", "id": asset, "if_match": "\"9-0123456789abcdef\"", "body": {"name": "b"}})];
    client.batch("/assets/batch", &stale, true).await.problem(412, "PRECONDITION_FAILED");
    let twice = [json!({"op": "delete", "id": asset}), json!({"op": "update", "id": asset, "body": {"name": "b"}})];
    assert_eq!(client.batch("/assets/batch", &twice, true).await.field_errors(), ["/operations/1/id"]);
    let many: Vec<Value> = (0..21).map(|n| json!({"op": "create", "body": {"name": n.to_string()}})).collect();
    assert_eq!(client.batch("/assets/batch", &many, true).await.field_errors(), ["/operations"]);
    assert!(api.dump().await.without(COUNTER) == before, "a refused batch changed the table");
    let twenty = client.batch("/assets/batch", &many[..20], true).await;
    assert_eq!(statuses(&twenty), [201; 20]);
    assert_eq!(client.total("/assets").await, 21);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_an_operation_is_refused_before_anything_is_done() {
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
    let reply = client.batch("/assets/batch", &operations, false).await;
    let expected = [
        "/operations/1/op",
        "/operations/2/id",
        "/operations/3/id",
        "/operations/4/body",
        "/operations/4/verb",
        "/operations/5/if_match",
        "/operations/6",
        "/operations/7/id",
    ];
    assert_eq!(reply.field_errors(), expected);
    assert_eq!(client.batch("/assets/batch", &[], false).await.field_errors(), ["/operations"]);
    assert_eq!(client.total("/assets").await, 0);
}

#[tokio::test(start_paused = true)]
async fn users_are_changed_in_batches_with_the_rules_of_single_requests() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let asset = client.assigned_asset("Laptop", &ada).await;
    let operations = [
        json!({"op": "create", "body": {"email": "ADA@example.com", "display_name": "Another"}}),
        json!({"op": "update", "id": ada, "body": {"email": "countess@example.com"}}),
        json!({"op": "create", "body": {"email": "ada@EXAMPLE.com", "display_name": "Next"}}),
        json!({"op": "delete", "id": ada}),
        json!({"op": "create", "body": {"display_name": "Nobody"}}),
    ];
    let reply = client.batch("/users/batch", &operations, false).await;
    assert_eq!(statuses(&reply), [409, 200, 201, 409, 422]);
    let codes: Vec<Value> = [0, 3].map(|index| reply.data()[index]["error"]["code"].clone()).into();
    assert_eq!(codes, ["DUPLICATE", "IN_USE"]);
    assert_eq!(reply.data()[0]["error"]["user_id"], ada);
    client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
    let swap = [
        json!({"op": "delete", "id": ada}),
        json!({"op": "create", "body": {"email": "ada@example.com", "display_name": "Taken"}}),
    ];
    let problem = client.batch("/users/batch", &swap, true).await.problem(409, "DUPLICATE");
    assert_eq!(problem["errors"][0]["pointer"], "/operations/1");
    assert_eq!(client.get(&format!("/users/{ada}")).await.status, 200);
    let viewer = client.scoped(&["users:write"]).await;
    let admin = [json!({"op": "create", "body": {"email": "x@example.com", "display_name": "X", "role": "admin"}})];
    assert_eq!(statuses(&viewer.batch("/users/batch", &admin, false).await), [403]);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_passed_on_is_free_for_the_operations_that_follow() {
    let client = over_http().await;
    let ada = client.user("Ada").await;
    let email = |email: &str| json!({"op": "update", "id": ada, "body": {"email": email}});
    let create = |email: &str| json!({"op": "create", "body": {"email": email, "display_name": "Next"}});
    let operations = [email("y@example.com"), email("z@example.com"), create("y@example.com"), create("ada@example.com")];
    assert_eq!(statuses(&client.batch("/users/batch", &operations, false).await), [200, 200, 201, 201]);
}

#[tokio::test(start_paused = true)]
async fn an_atomic_batch_says_which_operation_the_table_refuses() {
    let (api, client) = Api::with_tenant().await;
    let create = |email: &str| json!({"op": "create", "body": {"email": email, "display_name": "New"}});
    let twice = [create("a@example.com"), create("b@example.com"), create("A@example.com")];
    for path in ["/users/batch", "/users/batch?dry_run=true"] {
        let problem = client.batch(path, &twice, true).await.problem(409, "DUPLICATE");
        assert_eq!(problem["errors"][0]["pointer"], "/operations/2", "{path}");
    }
    let (free, holder) = (client.user("Free").await, client.user("Holder").await);
    client.assigned_asset("Laptop", &holder).await;
    let before = api.dump().await;
    let delete = [json!({"op": "delete", "id": free}), json!({"op": "delete", "id": holder})];
    let problem = client.batch("/users/batch", &delete, true).await.problem(409, "IN_USE");
    assert_eq!(problem["errors"][0]["pointer"], "/operations/1");
    assert_eq!(api.dump().await, before);
}

#[tokio::test(start_paused = true)]
async fn an_atomic_batch_that_exceeds_a_transaction_says_so() {
    let client = over_http().await;
    let mut operations = Vec::new();
    for n in 0..20 {
        operations.push(json!({"op": "delete", "id": client.user(&format!("User {n}")).await}));
    }
    let body = json!({"operations": operations, "atomic": true}).to_string();
    let refused = client.send_json("POST", "/users/batch", &body, ("idempotency-key", "key")).await;
    assert_eq!(refused.field_errors(), ["/operations"]);
    assert_eq!(statuses(&client.batch("/users/batch", &operations, true).await), [200; 20]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_never_answers_more_than_lambda_passes_on() {
    let client = over_http().await;
    let notes = "\"".repeat(9_900);
    let fields = json!({"text": "\\".repeat(15_000)});
    let mut ids = Vec::new();
    for _ in 0..4 {
        let create = json!({"op": "create", "body": {"name": "large", "notes": notes, "custom_fields": fields}});
        let made = client.batch("/assets/batch", &vec![create; 16], false).await.data();
        ids.extend(made.as_array().unwrap().iter().map(|entry| entry["data"]["id"].as_str().unwrap().to_owned()));
    }
    let update: Vec<Value> = ids.iter().map(|id| json!({"op": "update", "id": id, "body": {"status": "in_use"}})).collect();
    let reply = client.batch("/assets/batch", &update, false).await;
    assert_eq!(statuses(&reply), [200; 64]);
    let escaped = serde_json::to_string(reply.text()).unwrap().len();
    assert!((3_000_000..6_000_000).contains(&escaped), "{escaped} bytes");
    let data = reply.data();
    assert_eq!((data[0]["data"]["notes"].as_str(), &data[63]["data"]), (Some(notes.as_str()), &json!({"id": ids[63]})));
}
