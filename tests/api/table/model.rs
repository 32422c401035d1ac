//! Random requests, sequential and concurrent, compared with an in-memory model. A single request gets the status that the
//! model predicts. Successful concurrent requests must be possible in some order that leads to the stored state. In the end,
//! all assets, process instances and events match the model.

use crate::support::prelude::*;
use proptest::prelude::*;
use tokio::runtime::Runtime;

const ASSETS: usize = 3;
const STEPS: u64 = 3;

#[derive(Debug, Clone, Copy)]
enum Action {
    Start,
    StartWithStep,
    Advance,
    /// Submits all remaining steps.
    Finish,
    Cancel,
    Scrap,
    Restock,
    Rename,
    Delete,
}

#[derive(Debug, Clone)]
struct ModelAsset {
    id: String,
    status: &'static str,
    exists: bool,
    running: Option<(String, u64)>,
    closed: Vec<(String, &'static str)>,
    events: usize,
}

/// Generates rounds: an asset, and one or more concurrent actions on it.
fn rounds() -> impl Strategy<Value = Vec<(usize, Vec<Action>)>> {
    let action = prop_oneof![
        4 => Just(Action::Start), 2 => Just(Action::StartWithStep), 6 => Just(Action::Advance), 2 => Just(Action::Finish), 2 => Just(Action::Cancel), 1 => Just(Action::Scrap),
        3 => Just(Action::Restock), 1 => Just(Action::Rename), 1 => Just(Action::Delete)
    ];
    let at_once = prop_oneof![3 => 1..2usize, 1 => 2..4usize];
    let actions = at_once.prop_flat_map(move |count| proptest::collection::vec(action.clone(), count));
    proptest::collection::vec((0..ASSETS, actions), 1..30)
}

async fn send(client: &Client, process: &str, asset: &ModelAsset, action: Action, n: usize) -> (u16, Value) {
    let path = format!("/assets/{}", asset.id);
    let running = asset.running.as_ref().map(|(id, _)| id);
    let instance = running.or(asset.closed.last().map(|(id, _)| id)).unwrap_or(&asset.id);
    let reply = match action {
        Action::Start => client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset.id})).await,
        Action::StartWithStep => {
            client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset.id, "through": "k0"})).await
        }
        Action::Finish => {
            let body = json!({"step_data": {}, "through": format!("k{}", STEPS - 1)});
            client.post(&format!("/processes/instances/{instance}/advance"), body).await
        }
        Action::Advance => client.post(&format!("/processes/instances/{instance}/advance"), json!({"step_data": {}})).await,
        Action::Cancel => client.post(&format!("/processes/instances/{instance}/cancel"), json!({})).await,
        Action::Scrap => client.patch(&path, json!({"status": "scrapped"})).await,
        Action::Restock => client.patch(&path, json!({"status": "in_stock"})).await,
        Action::Rename => client.patch(&path, json!({"name": format!("n{n}")})).await,
        Action::Delete => client.delete(&path).await,
    };
    (reply.status.as_u16(), reply.json())
}

fn expected(asset: &ModelAsset, action: Action) -> (u16, ModelAsset) {
    let mut next = asset.clone();
    let status = match (action, &asset.running) {
        (Action::Advance | Action::Finish | Action::Cancel, None) if asset.closed.is_empty() => 404,
        (Action::Advance | Action::Finish | Action::Cancel, None) => 409,
        (Action::Start | Action::StartWithStep, _) if !asset.exists => 422,
        (_, _) if !asset.exists => 404,
        (Action::Start | Action::StartWithStep, None) if asset.status == "in_stock" => {
            next.running = Some((String::new(), u64::from(matches!(action, Action::StartWithStep))));
            next.events += 1;
            201
        }
        (Action::Start | Action::StartWithStep, _) => 409,
        (Action::Advance | Action::Finish, Some((instance, step))) => {
            next.running = Some((instance.clone(), step + 1));
            if step + 1 == STEPS || matches!(action, Action::Finish) {
                next.running = None;
                next.closed.push((instance.clone(), "completed"));
                next.status = "in_use";
                next.events += 1;
            }
            200
        }
        (Action::Cancel, Some((instance, _))) => {
            next.running = None;
            next.closed.push((instance.clone(), "cancelled"));
            next.events += 1;
            200
        }
        (Action::Scrap | Action::Restock, running) => {
            let target = if matches!(action, Action::Scrap) { "scrapped" } else { "in_stock" };
            if target == asset.status {
                200
            } else if running.is_some() {
                409
            } else {
                next.status = target;
                next.events += 1;
                200
            }
        }
        (Action::Rename, _) => {
            next.events += 1;
            200
        }
        (Action::Delete, Some(_)) => 409,
        (Action::Delete, None) => {
            next.exists = false;
            next.events += 1;
            200
        }
    };
    (status, next)
}

/// Compares asset, instances and events with the model.
async fn check(api: &Api, client: &Client, asset: &ModelAsset) {
    let shown = client.get(&format!("/assets/{}", asset.id)).await;
    if asset.exists {
        assert_eq!(shown.data()["status"], asset.status, "{asset:?}");
    } else {
        assert_eq!(shown.status, 404);
    }
    for (instance, status) in &asset.closed {
        assert_eq!(client.get(&format!("/processes/instances/{instance}")).await.data()["status"], *status);
    }
    if let Some((instance, step)) = &asset.running {
        let shown = client.get(&format!("/processes/instances/{instance}")).await.data();
        assert_eq!((&shown["status"], shown["current_step"].as_u64()), (&json!("in_progress"), Some(*step)));
    }
    assert_eq!(event_chain(api, client, &asset.id).await.len(), asset.events, "{asset:?}");
    let running = client.total(&format!("/processes/instances?status=in_progress&asset_id={}", asset.id)).await;
    assert_eq!(running, u64::from(asset.running.is_some()));
}

/// Creates a process and assets. Returns their IDs.
async fn create(client: &Client) -> (String, Vec<ModelAsset>) {
    let steps: Vec<Value> = (0..STEPS).map(|n| json!({"type": "text", "key": format!("k{n}"), "label": "K"})).collect();
    let process = create_process(client, json!(steps)).await;
    let mut assets = Vec::new();
    for id in client.assets(ASSETS).await {
        assets.push(ModelAsset { id, status: "in_stock", exists: true, running: None, closed: Vec::new(), events: 1 });
    }
    (process, assets)
}

#[test]
fn requests_get_the_responses_of_the_model() {
    check_rounds(&runtime(), Api::start());
}

#[test]
fn requests_get_the_responses_of_the_model_on_a_faulty_table() {
    check_rounds(&paused_runtime(), Api::on_faulty_table(1, Weaknesses::ordinary()));
}

fn check_rounds(runtime: &Runtime, start: impl Future<Output = Api>) {
    let api = runtime.block_on(start);
    property::check(runtime, 30, &rounds(), async |rounds| {
        let client = api.tenant().await;
        let (process, mut assets) = create(&client).await;
        for (n, (place, actions)) in rounds.into_iter().enumerate() {
            let asset = &assets[place];
            let requests = actions.iter().enumerate();
            let requests = requests.map(|(number, action)| send(&client, &process, asset, *action, 10 * n + number));
            let responses = join_all(requests).await;
            if let ([action], [(status, body)]) = (actions.as_slice(), responses.as_slice()) {
                assert_eq!(*status, expected(asset, *action).0, "{action:?} on {asset:?}: {body}");
            }
            let mut succeeded = Vec::new();
            for (action, (status, body)) in actions.iter().zip(responses) {
                assert!(status < 500, "{action:?}: {body}");
                if status < 300 {
                    succeeded.push((*action, body));
                }
            }
            let stored = stored(&api, &client, asset).await;
            assets[place] = in_some_order(asset, &succeeded, &stored)
                .unwrap_or_else(|| panic!("{succeeded:?} can't all have succeeded on {asset:?}"));
        }
        for asset in &assets {
            check(&api, &client, asset).await;
        }
        Ok(())
    });
}

/// Returns the asset's stored status, or `None` without an asset, and the asset's number of events.
async fn stored(api: &Api, client: &Client, asset: &ModelAsset) -> (Option<String>, usize) {
    let shown = client.get(&format!("/assets/{}", asset.id)).await;
    let status = (shown.status == 200).then(|| shown.data()["status"].as_str().unwrap().to_owned());
    (status, event_chain(api, client, &asset.id).await.len())
}

/// Returns the asset after these actions, in an order that the model permits and that leads to `stored`.
fn in_some_order(asset: &ModelAsset, succeeded: &[(Action, Value)], stored: &(Option<String>, usize)) -> Option<ModelAsset> {
    if succeeded.is_empty() {
        let reached = (asset.exists.then(|| asset.status.to_owned()), asset.events);
        return (reached == *stored).then(|| asset.clone());
    }
    (0..succeeded.len()).find_map(|first| {
        let (action, body) = &succeeded[first];
        let (status, mut next) = expected(asset, *action);
        if status >= 300 {
            return None;
        }
        if status == 201 {
            let id = body["data"]["id"].as_str()?;
            next.running = next.running.map(|(_, step)| (id.to_owned(), step));
        }
        // The response to an advance has the next step, and the response to a change has the asset's status at that time.
        let data = &body["data"];
        let fits = match action {
            Action::Advance => {
                let step = next.running.as_ref().map(|(_, step)| *step);
                data["status"] != "in_progress" || data["current_step"].as_u64() == step
            }
            Action::Rename => data["status"] == next.status,
            _ => true,
        };
        let others = succeeded.iter().enumerate().filter(|(n, _)| *n != first);
        let others: Vec<(Action, Value)> = others.map(|(_, success)| success.clone()).collect();
        fits.then(|| in_some_order(&next, &others, stored)).flatten()
    })
}
