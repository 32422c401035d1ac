//! The result is the same for every division of steps into requests.

use super::{KEYS, steps, values, values_of};
use crate::support::processes::create_process;
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, sample};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Removes ids, times and everything that depends on them.
fn plain(value: Value, names: &HashMap<String, &str>) -> Value {
    const DIFFERENT: [&str; 16] = [
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

/// All facts about an instance and its asset, without ids and times.
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

/// Handles an asset in calls that submit this many steps each; the first of them is the start.
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
    // A bit for each step: whether a call ends before it.
    let divisions = sample(0..32u32, 8);
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
