//! Assets, and users' assets, at earlier times: a GET with `as_of` returns what a GET returned at that time.

use crate::support::prelude::*;
use proptest::prelude::*;
use tokio::runtime::Runtime;

/// A write, with the indexes of existing records, or a wait in milliseconds.
#[derive(Debug, Clone)]
enum Step {
    Create(Value),
    Change(usize, Value),
    Delete(usize),
    Assign(usize, Option<usize>),
    Link(usize, Option<usize>),
    RenameType(usize, String),
    RenameModel(usize, String),
    RenameManufacturer(String),
    Process(usize, bool),
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (asset, some) = (0..4usize, 0..2usize);
    let name = || "[a-c]{1,2}";
    let change = prop_oneof![
        name().prop_map(|name| json!({"name": name})),
        proptest::option::of("[ab]{1,2}").prop_map(|text| json!({"serial_number": text, "notes": text})),
        prop_oneof![Just("in_stock"), Just("in_use"), Just("scrapped")].prop_map(|status| json!({"status": status})),
        (1..9_999u32).prop_map(|cents| json!({"purchase_price": f64::from(cents) / 100.0})),
        (1..28u32).prop_map(|day| json!({"warranty_until": format!("2028-01-{day:02}"), "purchase_date": "2026-01-02"})),
        "[ab]{1,2}".prop_map(|value| json!({"custom_fields": {"a": value, "b": [1, 2.5, null]}})),
    ];
    let step = prop_oneof![
        3 => change.clone().prop_map(Step::Create),
        6 => (asset.clone(), change).prop_map(|(asset, change)| Step::Change(asset, change)),
        1 => asset.clone().prop_map(Step::Delete),
        5 => (asset.clone(), proptest::option::of(some.clone())).prop_map(|(asset, user)| Step::Assign(asset, user)),
        3 => (asset.clone(), proptest::option::of(some.clone())).prop_map(|(asset, model)| Step::Link(asset, model)),
        1 => (some.clone(), name()).prop_map(|(which, name)| Step::RenameType(which, name)),
        1 => (some, name()).prop_map(|(which, name)| Step::RenameModel(which, name)),
        1 => name().prop_map(Step::RenameManufacturer),
        2 => (asset, any::<bool>()).prop_map(|(asset, completes)| Step::Process(asset, completes)),
        2 => prop_oneof![1..50i64, Just(20_000i64), Just(90_000i64)].prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 3..20)
}

/// Recorded responses to GETs: path, status and data.
struct Moment {
    at: String,
    answers: Vec<(String, u16, Value)>,
}

struct World {
    api: Api,
    /// How long the table's indexes lag, by the runtime's clock, which is independent of the service's.
    lag: Duration,
    client: Client,
    users: Vec<String>,
    types: Vec<String>,
    models: Vec<String>,
    manufacturer: String,
    process: String,
    assets: Vec<String>,
    moments: Vec<Moment>,
}

impl World {
    async fn new(api: Api, lag: Duration) -> Self {
        let client = api.tenant().await;
        let users = vec![client.user("Ada").await, client.user("Grace").await];
        let types = vec![client.asset_type("T1", "TA", "physical").await, client.asset_type("T2", "TB", "logical").await];
        let mut models = vec![client.model("Dell", "M1", &types[0]).await];
        let manufacturer = client.get("/catalog/manufacturers").await.data()[0]["id"].as_str().unwrap().to_owned();
        let second = json!({"name": "M2", "manufacturer_id": manufacturer, "asset_type_id": types[1]});
        models.push(client.post("/catalog/models", second).await.id());
        let process = create_process(&client, json!([{"type": "user_picker", "key": "who", "label": "Who"}])).await;
        Self { api, lag, client, users, types, models, manufacturer, process, assets: Vec::new(), moments: Vec::new() }
    }

    async fn execute(&mut self, step: Step) {
        let (client, asset) = (&self.client, |which: usize| self.assets.get(which).map(|id| format!("/assets/{id}")));
        match step {
            Step::Create(mut body) => {
                body["name"] = json!("new");
                let id = client.asset(body).await;
                self.assets.push(id);
            }
            Step::Change(which, change) => {
                let Some(path) = asset(which) else { return };
                client.patch(&path, change).await;
            }
            Step::Delete(which) => {
                let Some(path) = asset(which) else { return };
                client.delete(&path).await;
            }
            Step::Assign(which, user) => {
                let Some(path) = asset(which) else { return };
                client.patch(&path, json!({"assigned_to": user.map(|user| &self.users[user])})).await;
            }
            Step::Link(which, model) => {
                let Some(path) = asset(which) else { return };
                client.patch(&path, json!({"model_id": model.map(|model| &self.models[model])})).await;
            }
            Step::RenameType(which, name) => {
                client.patch(&format!("/catalog/asset-types/{}", self.types[which]), json!({"name": name})).await;
            }
            Step::RenameModel(which, name) => {
                client.patch(&format!("/catalog/models/{}", self.models[which]), json!({"name": name})).await;
            }
            Step::RenameManufacturer(name) => {
                client.patch(&format!("/catalog/manufacturers/{}", self.manufacturer), json!({"name": name})).await;
            }
            Step::Process(which, completes) => {
                let Some(id) = self.assets.get(which) else { return };
                let path = format!("/processes/{}/start", self.process);
                let started = client.post(&path, json!({"asset_id": id})).await;
                if !started.status.is_success() {
                    return;
                }
                let reply = match completes {
                    true => advance(client, &started.id(), json!({"who": self.users[which % 2]})).await,
                    false => cancel(client, &started.id()).await,
                };
                reply.data();
            }
            Step::Wait(millis) => {
                tokio::time::sleep(self.lag).await;
                self.api.advance_clock_millis(millis);
            }
        }
    }

    async fn remember(&mut self) {
        let assets = self.assets.iter().map(|id| format!("/assets/{id}"));
        let users = self.users.iter().map(|id| format!("/users/{id}/assets"));
        let mut answers = Vec::new();
        for path in assets.chain(users) {
            let reply = self.client.get(&path).await;
            let (status, json) = (reply.status.as_u16(), reply.json());
            answers.push((path, status, json["data"].clone()));
        }
        let at = self.api.now().to_string();
        self.moments.push(Moment { at, answers });
        self.api.advance_clock_millis(1);
    }

    async fn compare(&self) {
        for Moment { at, answers } in &self.moments {
            for (path, status, data) in answers {
                let path_then = format!("{path}?as_of={at}");
                let mut then = self.client.get(&path_then).await;
                // While the last change may not be visible yet, the response is a 503.
                for _ in 0..3 {
                    if then.status != 503 {
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(then.header("retry-after").parse().unwrap())).await;
                    then = self.client.get(&path_then).await;
                }
                let (then_status, json) = (then.status.as_u16(), then.json());
                assert_eq!((then_status, &json["data"]), (*status, data), "{path} at {at}");
            }
        }
    }
}

fn check(runtime: &Runtime, cases: u32, lag: Duration, start: impl AsyncFn() -> Api) {
    property::check(runtime, cases, &steps(), async |steps| {
        let mut world = World::new(start().await, lag).await;
        for step in steps {
            world.execute(step).await;
            world.remember().await;
        }
        world.compare().await;
        Ok(())
    });
}

#[test]
fn every_moment_is_what_a_get_answered_then() {
    check(&runtime(), 40, Duration::ZERO, Api::start);
}

/// Indexes lag, transactions become visible item by item, and requests are throttled.
#[test]
fn every_moment_is_what_a_get_answered_then_on_a_faulty_table() {
    let weaknesses = Weaknesses::ordinary();
    let lag = Duration::from_millis(weaknesses.list_index_lag_millis.max(weaknesses.history_lag_millis));
    check(&paused_runtime(), 12, lag, || Api::on_faulty_table(5, weaknesses.clone()));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_yet_or_no_more_there_is_not_found_and_no_time_in_the_future_is_accepted() {
    let (api, client) = Api::with_tenant().await;
    let before = api.now().to_string();
    api.advance_clock(1);
    let user = client.user("Ada").await;
    let asset = client.asset(json!({"name": "x", "assigned_to": user})).await;
    let during = api.now().to_string();
    api.advance_clock(1);
    client.delete(&format!("/assets/{asset}")).await;
    client.delete(&format!("/users/{user}")).await.data();
    api.advance_clock(1);
    let after = api.now().to_string();
    for (at, status) in [(&before, 404), (&during, 200), (&after, 404)] {
        assert_eq!(client.get(&format!("/assets/{asset}?as_of={at}")).await.status, status, "{at}");
    }
    let had = client.get(&format!("/users/{user}/assets?as_of={during}")).await.json();
    assert_eq!((&had["meta"]["total"], &had["data"][0]["id"]), (&json!(1), &json!(asset)));
    assert_eq!(client.get(&format!("/users/{user}/assets")).await.status, 404, "the user is deleted");
    assert_eq!(client.get(&format!("/users/{user}/assets?as_of={after}")).await.json()["meta"]["total"], 0);
    for path in [format!("/assets/{UNKNOWN_ID}"), format!("/users/{UNKNOWN_ID}/assets"), format!("/assets/{user}")] {
        assert_eq!(client.get(&format!("{path}?as_of={during}")).await.status, 404, "{path}");
    }
    let stranger = api.tenant().await;
    assert_eq!(stranger.get(&format!("/assets/{asset}?as_of={during}")).await.status, 404);
    assert_eq!(stranger.get(&format!("/users/{user}/assets?as_of={during}")).await.status, 404);

    let asset = client.asset(json!({"name": "x"})).await;
    let later = api.now().plus_seconds(120).to_string();
    for at in [later.as_str(), "yesterday", "2026-01-01"] {
        let reply = client.get(&format!("/assets/{asset}?as_of={at}")).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["errors"][0]["parameter"]), (422, &json!("as_of")), "{at}");
    }
    // `as_of` can be slightly in the future.
    let soon = api.now().plus_seconds(30).to_string();
    client.get(&format!("/assets/{asset}?as_of={soon}")).await.data();
}

#[tokio::test(start_paused = true)]
async fn assets_that_the_index_does_not_have_yet_are_found() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    api.faults.freeze_list_index(Some(api.list_index_rows(client.tenant).await));
    let asset = client.asset(json!({"name": "x", "assigned_to": user})).await;
    let now = api.now().to_string();
    let had = client.get(&format!("/users/{user}/assets?as_of={now}")).await.data();
    assert_eq!(had[0]["id"], json!(asset));
}

#[tokio::test(start_paused = true)]
async fn a_page_of_what_a_user_had_is_cut_from_all_of_it() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Ada").await;
    for n in 0..5 {
        client.assigned_asset(&format!("n{n}"), &user).await;
    }
    let process = create_process(&client, json!([{"type": "complete", "key": "c", "label": "C"}])).await;
    let listed = client.get(&format!("/users/{user}/assets?limit=2&page=2")).await.json();
    start(&client, &process, listed["data"][0]["id"].as_str().unwrap()).await;
    let now = api.now().to_string();
    let then = client.get(&format!("/users/{user}/assets?limit=2&page=2&as_of={now}")).await.json();
    assert_eq!(then, listed);
    assert_eq!(then["meta"], json!({"total": 5, "page": 2, "limit": 2, "total_pages": 3}));
}

#[tokio::test(start_paused = true)]
async fn a_user_who_was_assigned_too_many_assets_is_refused_cheaply() {
    let (api, client) = Api::with_tenant().await;
    let user = client.user("Warehouse").await;
    let (keys, assigned) = (Keys::of(client.tenant), user.parse().unwrap());
    let assignments = (0..3_000u64).map(|n| {
        let at = Timestamp::from_millis(api.now().millis() - 60_000_000 + n as i64);
        let mut item = keys.event(EventId::new(at, [n as u8; 10])).item();
        item.insert("LS".into(), Keys::assignment(assigned, AssetId::new(at, [n as u8; 10])));
        item
    });
    put_all(&api, assignments).await;
    api.meter.take();
    let refused = client.get(&format!("/users/{user}/assets?as_of={}", api.now())).await;
    assert_eq!(refused.field_errors(), ["as_of"]);
    let cost = api.meter.take();
    assert!(cost.read_units <= 100.0, "{cost:?}");
}
