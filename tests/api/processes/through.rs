//! Several steps in one request: `through` leads to the same state and history as single steps.

use crate::support::prelude::*;

/// The keys of the steps of [`steps`], in order.
const KEYS: [&str; 5] = ["who", "list", "sign", "note", "done"];

fn steps() -> Value {
    json!([
        {"type": "user_picker", "key": "who", "label": "Who", "required": true},
        {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
        {"type": "signature", "key": "sign", "label": "Sign", "required": true},
        {"type": "text", "key": "note", "label": "Note"},
        {"type": "complete", "key": "done", "label": "Done"}
    ])
}

fn values(user: &str) -> Value {
    json!({"who": user, "list": ["b"], "sign": SIGNATURE, "note": "fine", "done": true})
}

fn values_of(values: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|key| ((*key).to_owned(), values[*key].clone())).collect::<Map<_, _>>().into()
}

#[tokio::test(start_paused = true)]
async fn a_start_without_through_keeps_values_and_submits_nothing() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let path = format!("/processes/{process}/start");
    let asset = client.asset(json!({"name": "x"})).await;
    let before = api.dump().await;
    let wrong = json!({"asset_id": asset, "step_data": {"who": "nobody", "list": ["z"], "other": 1}});
    assert_eq!(client.post(&path, wrong).await.field_errors(), ["/step_data/list", "/step_data/other", "/step_data/who"]);
    assert_eq!(api.dump().await, before);
    let started = client.post(&path, json!({"asset_id": asset, "step_data": values(&user)})).await.data();
    assert_eq!((&started["status"], &started["current_step"]), (&json!("in_progress"), &json!(0)));
    assert_eq!(started["step_data"], values(&user));
    let instance = started["id"].as_str().unwrap();
    let chain = event_chain(&api, &client, instance).await;
    assert_eq!((chain.len(), &chain[0]["changes"]["step_data"]["new"]["note"]), (1, &json!("fine")));
    assert_eq!(client.delete(&format!("/users/{user}")).await.problem(409, "IN_USE")["count"], 1);
    assert_eq!(advance(&client, instance, json!({})).await.data()["current_step"], 1);
    let done =
        client.post(&format!("/processes/instances/{instance}/advance"), json!({"step_data": {}, "through": "done"})).await;
    assert_eq!(done.data()["status"], "completed");
    assert_eq!(client.get(&format!("/assets/{asset}")).await.data()["assigned_to"], user.as_str());
    let history = client.get(&format!("/processes/instances/{instance}/history?verify=true")).await.json();
    assert_eq!(history["verification"]["valid"], true);
    // Values can also be stored for several assets.
    let assets = client.assets(2).await;
    let movement = client.post(&path, json!({"asset_ids": assets, "step_data": values(&user)})).await.data();
    for instance in movement["instances"].as_array().unwrap() {
        assert_eq!((&instance["current_step"], &instance["step_data"]), (&json!(0), &values(&user)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handover_in_one_call_happens_once_whatever_fails() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let path = format!("/processes/{process}/start");
    let asset = client.asset(json!({"name": "x"})).await;
    let body = json!({"asset_id": asset, "step_data": values(&user), "through": "done"}).to_string();
    let send = async |path: &str| {
        client.send_with("POST", path, Some("application/json"), body.clone(), &[("idempotency-key", "k")]).await
    };
    let before = api.dump().await;
    let dry = client.post(&format!("{path}?dry_run=true"), serde_json::from_str(&body).unwrap()).await.data();
    assert_eq!((&dry["status"], &dry["id"], &dry["current_step"]), (&json!("completed"), &Value::Null, &json!(4)));
    api.faults.throttle("TransactWriteItems", 3);
    send(&path).await.problem(503, "UNAVAILABLE");
    assert_eq!(api.dump().await, before);
    api.faults.lose_response("TransactWriteItems");
    let made = send(&path).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let again = send(&path).await;
    assert_eq!((again.header("idempotent-replayed"), again.data()), ("true", made.data()));
    assert_eq!(made.data()["step_data"]["sign"], SIGNATURE);
    assert_eq!(event_chain(&api, &client, &made.id()).await.len(), 6);
    assert_eq!(event_chain(&api, &client, &asset).await.len(), 3);
    // The feed returns a record's events in the order of their versions.
    api.advance_clock(60);
    let feed = client.get("/events?limit=100").await.data();
    let of_instance = feed.as_array().unwrap().iter().filter(|event| event["entity_id"] == made.id());
    let versions: Vec<u64> = of_instance.map(|event| event["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, [1, 2, 3, 4, 5, 6]);
    let verified = client.get(&format!("/assets/{asset}/history?verify=true")).await;
    assert_eq!(verified.status, 200, "{}", verified.text());
}

/// Removes IDs, times and everything that depends on them.
fn plain(value: Value, names: &HashMap<String, &str>) -> Value {
    const DIFFERENT: [&str; 17] = [
        "id",
        "at",
        "event_id",
        "instance_id",
        "hash",
        "previous_hash",
        "started_at",
        "submitted_at",
        "closed_at",
        "completed_at",
        "created_at",
        "updated_at",
        "status_changed_at",
        "asset_tag",
        "signature",
        "asset_id",
        "movement_id",
    ];
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(name, _)| !DIFFERENT.contains(&name.as_str()));
            members.map(|(name, value)| (name, plain(value, names))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(|item| plain(item, names)).collect(),
        Value::String(text) => names.iter().fold(text, |text, (id, name)| text.replace(id, name)).into(),
        other => other,
    }
}

/// Returns all data of an instance and its asset, without IDs and times.
async fn account(api: &Api, client: &Client, asset: &str, instance: &str) -> Value {
    let names = HashMap::from([(asset.to_owned(), "the asset"), (instance.to_owned(), "the instance")]);
    let receipt = client.get(&format!("/processes/instances/{instance}/receipt")).await.json()["receipt"].clone();
    let account = json!({
        "asset": client.get(&format!("/assets/{asset}")).await.data(),
        "instance": client.get(&format!("/processes/instances/{instance}")).await.data(),
        "asset's history": event_chain(api, client, asset).await,
        "instance's history": event_chain(api, client, instance).await,
        "receipt": receipt,
    });
    plain(account, &names)
}

/// Runs a process on an asset in calls that submit this many steps each. The first call is the start.
async fn handle(client: &Client, process: &str, values: &Value, counts: &[usize]) -> (String, String) {
    let asset = client.asset(json!({"name": "Laptop"})).await;
    let (mut instance, mut next) = (String::new(), 0);
    for count in counts {
        let keys = &KEYS[next..next + count];
        next += count;
        let mut body = json!({"step_data": values_of(values, keys)});
        if *count > 1 || (*count == 1 && instance.is_empty()) {
            body["through"] = json!(keys.last().unwrap());
        }
        if instance.is_empty() {
            body["asset_id"] = json!(asset);
            instance = client.post(&format!("/processes/{process}/start"), body).await.id();
        } else {
            client.post(&format!("/processes/instances/{instance}/advance"), body).await.data();
        }
    }
    (asset, instance)
}

#[tokio::test(start_paused = true)]
async fn however_the_steps_are_divided_the_state_and_the_history_are_the_same() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (process, values) = (create_process(&client, steps()).await, values(&user));
    let (asset, instance) = handle(&client, &process, &values, &[0, 1, 1, 1, 1, 1]).await;
    let expected = account(&api, &client, &asset, &instance).await;
    assert_eq!(expected["instance"]["status"], "completed");
    assert_eq!(expected["instance's history"].as_array().unwrap().len(), 6);
    // Each bit says whether a call ends before that step.
    let divisions = sample(0..32u32, 4);
    for ends in &divisions {
        let mut counts = vec![0];
        for step in 0..KEYS.len() {
            if ends >> step & 1 == 1 {
                counts.push(0);
            }
            *counts.last_mut().unwrap() += 1;
        }
        let (asset, instance) = handle(&client, &process, &values, &counts).await;
        assert_eq!(account(&api, &client, &asset, &instance).await, expected, "{counts:?}");
    }
    let completed = client.total("/processes/instances?status=completed").await;
    assert_eq!(completed, divisions.len() as u64 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_whole_movement_in_one_call_is_as_one_step_after_another() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let (process, values) = (create_process(&client, steps()).await, values(&user));
    let path = format!("/processes/{process}/start");
    let mut accounts = Vec::new();
    for counts in [vec![0, 1, 1, 1, 1, 1], vec![5], vec![0, 5], vec![2, 3]] {
        let (assets, mut next, mut movement) = (client.assets(3).await, 0, Value::Null);
        for count in counts {
            let keys = &KEYS[next..next + count];
            next += count;
            let mut body = json!({"step_data": values_of(&values, keys), "through": keys.last()});
            if keys.is_empty() {
                body = json!({});
            }
            movement = if movement.is_null() {
                body["asset_ids"] = json!(assets);
                client.post(&path, body).await.data()
            } else {
                client.post(&format!("/movements/{}/advance", movement["id"].as_str().unwrap()), body).await.data()
            };
        }
        assert_eq!(movement["status"], "completed");
        let mut all = Vec::new();
        for instance in movement["instances"].as_array().unwrap() {
            let (asset, id) = (instance["asset_id"].as_str().unwrap(), instance["id"].as_str().unwrap());
            let text = account(&api, &client, asset, id).await.to_string();
            all.push(text.replace(movement["id"].as_str().unwrap(), "the movement"));
        }
        accounts.push(all);
    }
    for other in &accounts[1..] {
        assert_eq!(other, &accounts[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_step_that_cannot_be_submitted_says_why_and_nothing_is_written() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let asset = client.asset(json!({"name": "x"})).await;
    let instance = start(&client, &process, &asset).await;
    let path = format!("/processes/instances/{instance}/advance");
    let rest = client.asset(json!({"name": "y"})).await;
    let other = client.assets(2).await;
    // If a movement doesn't start, its number is lost.
    let without_number = async || api.dump().await.without("NUMBER#MOVEMENT");
    let before = without_number().await;
    for (data, through, expected) in [
        (json!({"who": user}), "done", vec!["/step_data/sign"]),
        (json!({"list": ["z"], "note": 1}), "done", vec!["/step_data/who"]),
        (json!({"who": user, "list": ["z"], "sign": "x"}), "note", vec!["/step_data/list"]),
        (json!({"who": 1, "what": 1}), "sign", vec!["/step_data/what", "/step_data/who"]),
        (json!({"who": user, "list": [], "sign": SIGNATURE, "note": 1}), "sign", vec!["/step_data/note"]),
        (json!({"who": user}), "nothing", vec!["/through"]),
    ] {
        let advanced = client.post(&path, json!({"step_data": data, "through": through})).await;
        assert_eq!(advanced.field_errors(), expected, "{through}");
        for assets in [("asset_id", json!(rest)), ("asset_ids", json!(other))] {
            let body = json!({assets.0: assets.1, "step_data": data, "through": through});
            assert_eq!(client.post(&format!("/processes/{process}/start"), body).await.field_errors(), expected, "{through}");
        }
        assert_eq!(without_number().await, before);
    }
    let unknown = client.post(&path, json!({"step_data": {}, "through": "nothing"})).await.json();
    assert_eq!(unknown["errors"][0]["detail"], "must be the key of a step: who, list, sign, note, done");
    advance(&client, &instance, json!({"who": user})).await.data();
    let before = api.dump().await;
    let early = client.post(&path, json!({"step_data": {}, "through": "who"})).await.problem(409, "STEP_SUBMITTED");
    assert_eq!(early["step"], "who");
    client.post(&path, json!({"step_data": {"who": null}, "through": "list"})).await.problem(409, "STEP_SUBMITTED");
    let moved = client.post(&path, json!({"step_data": {}, "through": "who", "current_step": 0})).await;
    assert_eq!(moved.problem(409, "STEP_MOVED")["current_step"], 1);
    assert_eq!(api.dump().await, before);
    cancel(&client, &instance).await.data();
    client.post(&path, json!({"step_data": {}, "through": "who"})).await.problem(409, "INSTANCE_CLOSED");
}

#[tokio::test(start_paused = true)]
async fn more_steps_than_a_transaction_holds_are_refused_with_the_number_that_fits() {
    let client = over_http().await;
    let user = client.user("Ada").await;
    let process = create_process(&client, steps()).await;
    let path = format!("/processes/{process}/start");
    let detail = |reply: &Reply| {
        assert_eq!(reply.field_errors(), ["/through"]);
        // For this code, the inventory page submits the steps one by one.
        assert_eq!(reply.json()["errors"][0]["code"], "too_much");
        reply.json()["errors"][0]["detail"].as_str().unwrap().to_owned()
    };
    let assets = client.assets(12).await;
    let all = json!({"asset_ids": assets, "step_data": values(&user), "through": "done"});
    let refused = client.post(&path, all.clone()).await;
    assert_eq!(
        detail(&refused),
        "makes 5 steps, which are too many changes for one transaction; the first 3 fit, up to sign; \
         with all steps, the first 9 of the assets fit"
    );
    assert_eq!(client.post(&format!("{path}?dry_run=true"), all).await.field_errors(), ["/through"]);
    let started = client.post(&path, json!({"asset_ids": assets, "step_data": values(&user), "through": "sign"})).await.data();
    let movement = format!("/movements/{}/advance", started["id"].as_str().unwrap());
    assert_eq!(started["current_step"], 3);
    let done = client.post(&movement, json!({"step_data": {}, "through": "done"})).await.data();
    assert_eq!(done["status"], "completed");
    let nine = client.assets(9).await;
    let body = json!({"asset_ids": nine, "step_data": values(&user), "through": "done"});
    assert_eq!(client.post(&path, body).await.data()["status"], "completed");

    // An image in every step, for one asset.
    let keys: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let signatures: Vec<Value> = keys.iter().map(|key| json!({"type": "signature", "key": key, "label": "S"})).collect();
    let process = create_process(&client, json!(signatures)).await;
    let path = format!("/processes/{process}/start");
    let data: Map<String, Value> = keys.iter().map(|key| (key.clone(), json!(SIGNATURE))).collect();
    let asset = client.asset(json!({"name": "x"})).await;
    let refused = client.post(&path, json!({"asset_id": asset, "step_data": data, "through": "s49"})).await;
    assert!(detail(&refused).starts_with("makes 50 steps"), "{}", refused.text());
    let instance = start(&client, &process, &asset).await;
    let advance = async |through: &str| {
        let body = json!({"step_data": data, "through": through});
        client.post(&format!("/processes/instances/{instance}/advance"), body).await
    };
    let said = detail(&advance("s49").await);
    let fitting = said.rsplit_once("up to ").unwrap().1.to_owned();
    let beyond = format!("s{}", fitting[1..].parse::<usize>().unwrap() + 1);
    assert_eq!(detail(&advance(&beyond).await).rsplit_once("up to ").unwrap().1, fitting);
    assert!(advance(&fitting).await.data()["current_step"].as_u64().unwrap() > 20);
    assert_eq!(advance("s49").await.data()["status"], "completed");
}
