//! Random sequences of requests by several clients at once, against a simple model in memory: after each sequence
//! every asset, run and event is as the model says.

use crate::support::{Api, Client};
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// How many assets the clients quarrel over.
const ASSETS: usize = 3;
/// How many steps the definition has.
const STEPS: u64 = 3;

#[derive(Debug, Clone, Copy)]
enum Act {
    Start,
    Advance,
    Cancel,
    Scrap,
    Restock,
    Rename,
    Delete,
}

/// What the model knows of an asset.
#[derive(Debug, Clone)]
struct Known {
    id: String,
    status: &'static str,
    alive: bool,
    /// The run on it and its open step.
    run: Option<(String, u64)>,
    /// Runs that have ended, and how.
    ended: Vec<(String, &'static str)>,
    /// How many changes there were.
    events: usize,
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        4 => Just(Act::Start), 6 => Just(Act::Advance), 2 => Just(Act::Cancel), 1 => Just(Act::Scrap),
        3 => Just(Act::Restock), 1 => Just(Act::Rename), 1 => Just(Act::Delete)
    ];
    proptest::collection::vec((0..ASSETS, act), 1..30)
}

async fn request(client: &Client, process: &str, asset: &Known, act: Act, n: usize) -> (u16, Value) {
    let path = format!("/assets/{}", asset.id);
    let run = asset.run.as_ref().or(None).map(|(run, _)| run.clone()).or(asset.ended.last().map(|(run, _)| run.clone()));
    let run = run.unwrap_or_else(|| asset.id.clone());
    let reply = match act {
        Act::Start => client.post(&format!("/processes/{process}/start"), json!({"asset_id": asset.id})).await,
        Act::Advance => client.post(&format!("/processes/instances/{run}/advance"), json!({"step_data": {}})).await,
        Act::Cancel => client.post(&format!("/processes/instances/{run}/cancel"), json!({})).await,
        Act::Scrap => client.patch(&path, json!({"status": "scrapped"})).await,
        Act::Restock => client.patch(&path, json!({"status": "in_stock"})).await,
        Act::Rename => client.patch(&path, json!({"name": format!("n{n}")})).await,
        Act::Delete => client.delete(&path).await,
    };
    (reply.status.as_u16(), reply.json())
}

/// What the model expects: status, and the asset afterwards.
fn expected(asset: &Known, act: Act) -> (u16, Known) {
    let mut next = asset.clone();
    let status = match (act, &asset.run) {
        (Act::Advance | Act::Cancel, None) if asset.ended.is_empty() => 404,
        (Act::Advance | Act::Cancel, None) => 409,
        (Act::Start, _) if !asset.alive => 422,
        (_, _) if !asset.alive => 404,
        (Act::Start, None) if asset.status == "in_stock" => {
            next.run = Some((String::new(), 0));
            next.events += 1;
            201
        }
        (Act::Start, _) => 409,
        (Act::Advance, Some((run, step))) => {
            next.run = Some((run.clone(), step + 1));
            if step + 1 == STEPS {
                next.run = None;
                next.ended.push((run.clone(), "completed"));
                next.status = "in_use";
                next.events += 1;
            }
            200
        }
        (Act::Cancel, Some((run, _))) => {
            next.run = None;
            next.ended.push((run.clone(), "cancelled"));
            next.events += 1;
            200
        }
        (Act::Scrap | Act::Restock, run) => {
            let wanted = if matches!(act, Act::Scrap) { "scrapped" } else { "in_stock" };
            if wanted == asset.status {
                200
            } else if run.is_some() {
                409
            } else {
                next.status = wanted;
                next.events += 1;
                200
            }
        }
        (Act::Rename, _) => {
            next.events += 1;
            200
        }
        (Act::Delete, Some(_)) => 409,
        (Act::Delete, None) => {
            next.alive = false;
            next.events += 1;
            200
        }
    };
    (status, next)
}

async fn check(api: &Api, client: &Client, asset: &Known) {
    let shown = client.get(&format!("/assets/{}", asset.id)).await;
    if asset.alive {
        assert_eq!(shown.data()["status"], asset.status, "{asset:?}");
    } else {
        assert_eq!(shown.status, 404);
    }
    for (run, status) in &asset.ended {
        assert_eq!(client.get(&format!("/processes/instances/{run}")).await.data()["status"], *status);
    }
    if let Some((run, step)) = &asset.run {
        let run = client.get(&format!("/processes/instances/{run}")).await.data();
        assert_eq!((&run["status"], run["current_step"].as_u64()), (&json!("in_progress"), Some(*step)));
    }
    let events = crate::events::chain(api, client, &asset.id).await;
    assert_eq!(events.len(), asset.events, "{asset:?}");
    let running = client.get(&format!("/processes/instances?status=in_progress&asset_id={}", asset.id)).await;
    assert_eq!(running.json()["meta"]["total"], usize::from(asset.run.is_some()));
}

async fn prepare(client: &Client) -> (String, Vec<Known>) {
    let steps: Vec<Value> = (0..STEPS).map(|n| json!({"type": "text", "key": format!("k{n}"), "label": "K"})).collect();
    let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
    let process = client.post("/processes", body).await.id();
    let mut assets = Vec::new();
    for _ in 0..ASSETS {
        let id = client.asset(json!({"name": "x"})).await;
        assets.push(Known { id, status: "in_stock", alive: true, run: None, ended: Vec::new(), events: 1 });
    }
    (process, assets)
}

#[test]
fn one_after_the_other_every_answer_is_the_models() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let api = runtime.block_on(Api::start());
    let mut runner = TestRunner::new(Config { cases: 20, ..Config::default() });
    let result = runner.run(&acts(), |acts| {
        runtime.block_on(async {
            let client = api.tenant().await;
            let (process, mut assets) = prepare(&client).await;
            for (n, (place, act)) in acts.into_iter().enumerate() {
                let (wanted, mut next) = expected(&assets[place], act);
                let (status, answer) = request(&client, &process, &assets[place], act, n).await;
                assert_eq!(status, wanted, "{act:?} on {:?}: {answer}", assets[place]);
                if status == 201 {
                    next.run = Some((answer["data"]["id"].as_str().unwrap().to_owned(), 0));
                }
                assets[place] = next;
            }
            for asset in &assets {
                check(&api, &client, asset).await;
            }
            Ok(())
        })
    });
    result.unwrap();
}

/// Several clients act on the same asset at the same moment: whoever got a success must have been able to, one after
/// the other in some order, and what is left fits their successes.
#[test]
fn at_the_same_moment_the_successes_fit_together() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let api = runtime.block_on(Api::start());
    let mut runner = TestRunner::new(Config { cases: 20, ..Config::default() });
    let rounds = proptest::collection::vec(proptest::collection::vec(acts().prop_map(|acts| acts[0].1), 2..4), 1..6);
    let result = runner.run(&rounds, |rounds| {
        runtime.block_on(async {
            let client = api.tenant().await;
            let (process, assets) = prepare(&client).await;
            let mut asset = assets[0].clone();
            for (n, acts) in rounds.into_iter().enumerate() {
                let answers = join_all(
                    acts.iter().enumerate().map(|(place, act)| request(&client, &process, &asset, *act, 10 * n + place)),
                )
                .await;
                let won: Vec<(Act, Value)> = acts
                    .iter()
                    .zip(answers)
                    .filter(|(act, (status, answer))| {
                        assert!(*status < 500, "{act:?}: {answer}");
                        *status < 300
                    })
                    .map(|(act, (_, answer))| (*act, answer))
                    .collect();
                let seen = seen(&api, &client, &asset).await;
                asset = in_some_order(&asset, &won, &seen)
                    .unwrap_or_else(|| panic!("{won:?} can not all have succeeded on {asset:?}"));
            }
            check(&api, &client, &asset).await;
            Ok(())
        })
    });
    result.unwrap();
}

/// What the table holds of an asset: its status, if it is there, and how many changes there were.
async fn seen(api: &Api, client: &Client, asset: &Known) -> (Option<String>, usize) {
    let shown = client.get(&format!("/assets/{}", asset.id)).await;
    let status = (shown.status == 200).then(|| shown.data()["status"].as_str().unwrap().to_owned());
    (status, crate::events::chain(api, client, &asset.id).await.len())
}

/// The asset after these successes in an order that the model allows and that fits what the table holds.
fn in_some_order(asset: &Known, won: &[(Act, Value)], seen: &(Option<String>, usize)) -> Option<Known> {
    if won.is_empty() {
        let held = (asset.alive.then(|| asset.status.to_owned()), asset.events);
        return (held == *seen).then(|| asset.clone());
    }
    (0..won.len()).find_map(|first| {
        let (act, answer) = &won[first];
        let (status, mut next) = expected(asset, *act);
        if status >= 300 {
            return None;
        }
        if status == 201 {
            next.run = Some((answer["data"]["id"].as_str()?.to_owned(), 0));
        }
        // An advance's answer says which step it opened; an asset's, which status it had then.
        let data = &answer["data"];
        let fits = match act {
            Act::Advance => {
                data["status"] != "in_progress" || data["current_step"].as_u64() == next.run.as_ref().map(|(_, step)| *step)
            }
            Act::Rename => data["status"] == next.status,
            _ => true,
        };
        let rest: Vec<(Act, Value)> = won.iter().enumerate().filter(|(n, _)| *n != first).map(|(_, act)| act.clone()).collect();
        fits.then(|| in_some_order(&next, &rest, seen)).flatten()
    })
}
