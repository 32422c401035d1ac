//! Offboarding a user: one request starts the return of all assets of the user.

use crate::support::document::served_document;
use crate::support::processes::{create_process, system_process};
use crate::support::{Api, Client, Disturbance, UNKNOWN_ID, at_each_place, over_http};
use dev_server::faulty_table::planned::CallFailure;
use futures_util::future::join_all;
use serde_json::{Value, json};

async fn in_use(client: &Client, user: &str, count: usize) -> Vec<String> {
    join_all((0..count).map(|n| client.asset(json!({"name": format!("n{n}"), "status": "in_use", "assigned_to": user})))).await
}

async fn offboard(client: &Client, user: &str, body: Value) -> Value {
    client.post(&format!("/users/{user}/offboard"), body).await.data()
}

fn asset_ids(rows: &Value) -> Vec<String> {
    let mut ids: Vec<String> = rows.as_array().unwrap().iter().map(|row| row["asset_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn everything_that_can_be_returned_starts_together_and_the_rest_is_named() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let laptops = in_use(&client, &user, 3).await;
    let stocked = client.assigned_asset("in stock", &user).await;
    let repaired = in_use(&client, &user, 1).await.remove(0);
    let repair = system_process(&client, "repair").await;
    let repair = client.post(&format!("/processes/{repair}/start"), json!({"asset_id": repaired})).await.id();

    let plan = client.post(&format!("/users/{user}/offboard?dry_run=true"), json!({})).await;
    assert_eq!(plan.headers["dry-run"], "true");
    let document = served_document();
    let schema = json!({"$ref": "#/components/schemas/OffboardingResponse", "components": document["components"]});
    assert_eq!(jsonschema::validate(&schema, &plan.json()).err().map(|error| error.to_string()), None, "as described");
    let plan = plan.data();
    assert_eq!(client.get(&format!("/users/{user}")).await.data()["is_active"], true, "nothing is written");
    let done = offboard(&client, &user, json!({})).await;
    assert_eq!(plan["movements"][0]["id"], Value::Null);
    for field in ["user", "process", "not_started", "in_progress", "instances", "has_more"] {
        assert_eq!(plan[field], done[field], "{field} of the plan");
    }
    assert_eq!(asset_ids(&plan["movements"][0]["assets"]), asset_ids(&done["movements"][0]["assets"]));

    assert_eq!((&done["user"]["is_active"], &done["process"]["slug"]), (&json!(false), &json!("device-return")));
    assert_eq!(done["movements"].as_array().unwrap().len(), 1);
    assert_eq!(done["movements"][0]["number"], "MOV-000001");
    assert_eq!(asset_ids(&done["movements"][0]["assets"]), sorted(laptops.clone()));
    assert_eq!((&done["instances"], &done["in_progress"], &done["has_more"]), (&json!([]), &json!([]), &json!(false)));
    let left: Vec<(&Value, &Value, &Value)> =
        done["not_started"].as_array().unwrap().iter().map(|row| (&row["asset_id"], &row["code"], &row["instance_id"])).collect();
    let expected =
        [(json!(repaired), json!("PROCESS_RUNNING"), json!(repair)), (json!(stocked), json!("WRONG_ASSET_STATUS"), Value::Null)];
    assert_eq!(left, expected.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>());
    let movement = client.get(&format!("/movements/{}", done["movements"][0]["id"].as_str().unwrap())).await.data();
    assert_eq!(movement["status"], "in_progress");
    assert_eq!(client.total(&format!("/assets?assigned_to={user}")).await, 5, "the user keeps what is still assigned");

    // Again: nothing is started twice.
    let again = offboard(&client, &user, json!({})).await;
    assert_eq!((&again["movements"], &again["instances"]), (&json!([]), &json!([])));
    assert_eq!(asset_ids(&again["in_progress"]), sorted(laptops));
    assert_eq!(again["in_progress"][0]["movement_id"], done["movements"][0]["id"]);
    assert_eq!(again["not_started"], done["not_started"]);
}

#[tokio::test(start_paused = true)]
async fn a_user_with_many_assets_gets_several_movements_and_a_single_asset_an_instance() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    in_use(&client, &user, 41).await;
    let done = offboard(&client, &user, json!({"deactivate": false})).await;
    let sizes: Vec<usize> =
        done["movements"].as_array().unwrap().iter().map(|movement| movement["assets"].as_array().unwrap().len()).collect();
    assert_eq!((sizes, done["instances"].as_array().unwrap().len()), (vec![20, 20], 1));
    assert_eq!(done["user"]["is_active"], true);
    assert_eq!(client.total("/processes/instances").await, 41);

    let alone = client.user("Grace").await;
    let single = in_use(&client, &alone, 1).await;
    let done = offboard(&client, &alone, json!({})).await;
    assert_eq!((&done["movements"], asset_ids(&done["instances"])), (&json!([]), single));
    let nothing = client.user("Edith").await;
    let done = offboard(&client, &nothing, json!({})).await;
    assert_eq!((&done["instances"], &done["user"]["is_active"]), (&json!([]), &json!(false)));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_refused_before_anything_changes() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let asset = in_use(&client, &user, 1).await.remove(0);
    let path = format!("/users/{user}/offboard");
    let inactive = system_process(&client, "device-return").await;
    client.patch(&format!("/processes/{inactive}"), json!({"status": "inactive"})).await.data();
    let own = create_process(&client, json!([{"type": "complete", "key": "c", "label": "C"}])).await;
    for (body, status, code) in [
        (json!({}), 409, "PROCESS_INACTIVE"),
        (json!({"process_id": UNKNOWN_ID}), 422, "VALIDATION_ERROR"),
        (json!({"process_id": "x"}), 422, "VALIDATION_ERROR"),
        (json!({"proces_id": own}), 422, "VALIDATION_ERROR"),
    ] {
        let reply = client.post(&path, body.clone()).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(client.post(&format!("/users/{UNKNOWN_ID}/offboard"), json!({})).await.status, 404);
    for (scopes, missing) in [(["users:write"], "processes:write"), (["processes:write"], "users:write")] {
        let reply = client.scoped(&scopes).await.post(&path, json!({})).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["scope"]), (403, &json!(missing)));
    }
    assert_eq!(client.get(&format!("/users/{user}")).await.data()["is_active"], true);
    assert!(client.get(&format!("/assets/{asset}/history")).await.json()["meta"]["total"] == 1);
    // Another process, on assets in its status: this one is in use.
    let done = offboard(&client, &user, json!({"process_id": own})).await;
    assert_eq!(done["not_started"][0]["code"], "WRONG_ASSET_STATUS");
}

/// However a request is disturbed, repeating it completes the offboarding, and nothing is started twice.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_disturbed_can_be_repeated() {
    let case = async |place, way: Disturbance| {
        let (api, client) = Api::with_tenant().await;
        let user = client.user("Ada").await;
        in_use(&client, &user, 3).await;
        let path = format!("/users/{user}/offboard");
        let send = async || client.send_json("POST", &path, "{}", ("idempotency-key", "k")).await;
        let (reply, is_disturbed) = way.at(&api, place, send).await;
        let done = reply.data();
        let moved = done["movements"].as_array().unwrap().iter().flat_map(|movement| asset_ids(&movement["assets"]));
        let started = moved.count() + asset_ids(&done["in_progress"]).len();
        assert_eq!((started, &done["user"]["is_active"]), (3, &json!(false)), "{way:?} {place}");
        assert_eq!(client.total("/processes/instances").await, 3, "{way:?} {place}");
        is_disturbed
    };
    let failures = [CallFailure::TimedOutBefore, CallFailure::TimedOutAfter].map(Disturbance::Fails);
    at_each_place(&failures, 15, 4, case).await;
    at_each_place(&[Disturbance::IsDropped], 3, 1, case).await;
}
