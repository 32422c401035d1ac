//! Lists of several instances at once, on clocks that differ, with writes that come late and an index that lags.

use crate::support::fault_injection::Held;
use crate::support::{Api, Client, Instance, Reply};
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// How long a write may be on its way and an index behind, in milliseconds; docs/adr/0008 has the sums.
const LATE: i64 = 8_000;
const LAG: i64 = 60_000;

/// What happens next, and on which of the two instances.
#[derive(Debug, Clone)]
enum Step {
    Create(usize, String, bool),
    Change(usize, usize, Value),
    Delete(usize, usize),
    /// A change that is sent now and takes effect later.
    Late(usize, usize, Value),
    Land,
    NewUser(usize, String),
    ChangeUser(usize, usize, bool),
    Start(usize, usize),
    Cancel(usize, usize),
    Rename(usize, String),
    Wait(i64),
    Freeze,
    Thaw,
    Forget(usize),
    List(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (on, which) = (0..2usize, 0..6usize);
    let change = prop_oneof![
        "[abÄß ]{1,3}".prop_map(|name| json!({"name": format!("n{name}")})),
        proptest::option::of("[ab]{0,2}").prop_map(|serial| json!({"serial_number": serial})),
        prop_oneof![Just("in_stock"), Just("in_use"), Just("scrapped")].prop_map(|status| json!({"status": status})),
        proptest::option::of(1..28u32).prop_map(|day| json!({"warranty_until": day.map(|day| format!("2028-01-{day:02}"))})),
        Just(json!({"notes": "n"})),
        any::<bool>().prop_map(|typed| json!({"asset_type_id": typed})),
        any::<bool>().prop_map(|assigned| json!({"assigned_to": assigned})),
    ];
    let step = prop_oneof![
        6 => (on.clone(), "[abÄß]{1,3}", any::<bool>()).prop_map(|(on, name, typed)| Step::Create(on, name, typed)),
        6 => (on.clone(), which.clone(), change.clone()).prop_map(|(on, which, change)| Step::Change(on, which, change)),
        2 => (on.clone(), which.clone()).prop_map(|(on, which)| Step::Delete(on, which)),
        3 => (on.clone(), which.clone(), change).prop_map(|(on, which, change)| Step::Late(on, which, change)),
        2 => Just(Step::Land),
        2 => (on.clone(), "[ab]{1,2}").prop_map(|(on, name)| Step::NewUser(on, name)),
        2 => (on.clone(), which.clone(), any::<bool>()).prop_map(|(on, which, active)| Step::ChangeUser(on, which, active)),
        3 => (on.clone(), which.clone()).prop_map(|(on, which)| Step::Start(on, which)),
        1 => (on.clone(), which).prop_map(|(on, which)| Step::Cancel(on, which)),
        1 => (on.clone(), "[ab]{1,2}").prop_map(|(on, name)| Step::Rename(on, name)),
        3 => prop_oneof![1..3_000i64, 3_000..12_000i64, Just(90_000i64)].prop_map(Step::Wait),
        1 => Just(Step::Freeze),
        1 => Just(Step::Thaw),
        1 => on.clone().prop_map(Step::Forget),
        8 => on.prop_map(Step::List),
    ];
    proptest::collection::vec(step, 4..40)
}

/// A world of two instances, and a third that keeps no directory.
struct World {
    api: Api,
    instances: [Instance; 2],
    clients: [Client; 2],
    plain: Client,
    types: [String; 2],
    user: String,
    process: String,
    assets: Vec<String>,
    users: Vec<String>,
    runs: Vec<String>,
    late: Option<(JoinHandle<Reply>, Held)>,
    /// For how much longer the write on its way and the index may be behind.
    patience: (i64, i64),
}

impl World {
    async fn new(skew: i64) -> Self {
        let (api, client) = Api::with_tenant().await;
        let instances = [api.instance(0, usize::MAX), api.instance(skew, usize::MAX)];
        let clients = [instances[0].client(&client), instances[1].client(&client)];
        let types = [client.asset_type("Hard", "HRD", "physical").await, client.asset_type("Soft", "SFT", "logical").await];
        let user = client.user("Ada").await;
        let steps = json!([{"type": "complete", "key": "c", "label": "C"}]);
        let body = json!({"name": "Own", "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
        let process = client.post("/processes", body).await.id();
        let plain = api.instance(0, 0).client(&client);
        // What comes before is old by now.
        api.wait(600);
        Self {
            api,
            instances,
            clients,
            plain,
            types,
            user,
            process,
            assets: Vec::new(),
            users: Vec::new(),
            runs: Vec::new(),
            late: None,
            patience: (0, 0),
        }
    }

    /// A change with the placeholders of the strategy filled in.
    fn filled(&self, mut change: Value) -> Value {
        if let Some(typed) = change["asset_type_id"].as_bool() {
            change["asset_type_id"] = json!(self.types[usize::from(typed)]);
        }
        if let Some(assigned) = change["assigned_to"].as_bool() {
            change["assigned_to"] = if assigned { json!(self.user) } else { Value::Null };
        }
        change
    }

    async fn land(&mut self) {
        if let Some((task, held)) = self.late.take() {
            held.release();
            task.await.unwrap();
        }
    }

    fn thaw(&self) {
        self.api.faults.freeze_index(None);
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Create(on, name, typed) => {
                let body = json!({"name": name, "asset_type_id": self.types[usize::from(typed)]});
                let made = self.clients[on].post("/assets", body).await;
                self.assets.push(made.id());
            }
            Step::Change(on, which, change) => {
                let Some(id) = self.assets.get(which) else { return };
                self.clients[on].patch(&format!("/assets/{id}"), self.filled(change)).await;
            }
            Step::Delete(on, which) => {
                let Some(id) = self.assets.get(which) else { return };
                self.clients[on].delete(&format!("/assets/{id}")).await;
            }
            Step::Late(on, which, change) => {
                self.land().await;
                let Some(id) = self.assets.get(which) else { return };
                let (client, path, change) = (self.clients[on].clone(), format!("/assets/{id}"), self.filled(change));
                let mut held = self.api.faults.hold("TransactWriteItems");
                let mut task = tokio::spawn(async move { client.patch(&path, change).await });
                let sent = tokio::select! {
                    () = held.arrived() => true,
                    _ = &mut task => false,
                };
                if sent {
                    (self.late, self.patience.0) = (Some((task, held)), LATE);
                } else {
                    self.api.faults.hold_nothing();
                }
            }
            Step::Land => self.land().await,
            Step::NewUser(on, name) => {
                let email = format!("u{}@example.com", self.users.len());
                let made = self.clients[on].post("/users", json!({"email": email, "display_name": name})).await;
                self.users.push(made.id());
            }
            Step::ChangeUser(on, which, active) => {
                let Some(id) = self.users.get(which) else { return };
                self.clients[on].patch(&format!("/users/{id}"), json!({"is_active": active})).await.data();
            }
            Step::Start(on, which) => {
                let Some(id) = self.assets.get(which) else { return };
                let path = format!("/processes/{}/start", self.process);
                let started = self.clients[on].post(&path, json!({"asset_id": id})).await;
                self.runs.extend(started.status.is_success().then(|| started.id()));
            }
            Step::Cancel(on, which) => {
                let Some(id) = self.runs.get(which) else { return };
                self.clients[on].post(&format!("/processes/instances/{id}/cancel"), json!({})).await;
            }
            Step::Rename(on, name) => {
                self.clients[on].patch(&format!("/catalog/asset-types/{}", self.types[1]), json!({"name": name})).await.data();
            }
            Step::Wait(millis) => {
                self.api.wait_millis(millis);
                self.patience = (self.patience.0 - millis, self.patience.1 - millis);
                // Nothing comes later than it may, and no index stays further behind.
                if self.patience.0 < 0 && self.late.is_some() {
                    self.api.wait_millis(self.patience.0);
                    self.land().await;
                    self.api.wait_millis(-self.patience.0);
                }
                if self.patience.1 < 0 {
                    self.thaw();
                }
            }
            Step::Freeze => {
                self.thaw();
                let index = self.api.index(self.plain.tenant).await;
                self.api.faults.freeze_index(Some(index));
                self.patience.1 = LAG;
            }
            Step::Thaw => self.thaw(),
            Step::Forget(on) => self.instances[on].store.forget_list_indexes(),
            Step::List(on) => {
                for path in [
                    "/assets",
                    "/assets?limit=2&page=2",
                    "/assets?q=%C3%84+n",
                    "/assets?status=in_use&kind=logical",
                    "/assets?sort=name&limit=3",
                    "/assets?sort=-updated_at&page=2&limit=2",
                    "/assets?sort=created_at&warranty_before=2028-01-15",
                    "/assets?serial_number=a",
                    "/users?is_active=true",
                    "/users?q=b",
                    "/processes/instances",
                    "/processes/instances?status=cancelled",
                ] {
                    let (listed, plain) = (self.clients[on].get(path).await, self.plain.get(path).await);
                    assert_eq!(listed.status, 200, "{}", listed.text());
                    assert_eq!(listed.json(), plain.json(), "{path} on instance {on}");
                }
            }
        }
    }
}

/// After any mix of writes by two instances, every list of either equals a plain filter over the table: `lists.rs`
/// compares the instance that keeps no directory with one.
#[test]
fn lists_of_two_instances_equal_the_table() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 32, max_shrink_iters: 200, ..Config::default() });
    let result = runner.run(&(steps(), -2_000..=2_000i64), |(steps, skew)| {
        runtime.block_on(async {
            let mut world = World::new(skew).await;
            for step in steps {
                world.take(step).await;
            }
            world.land().await;
            world.take(Step::List(0)).await;
            world.take(Step::List(1)).await;
        });
        Ok(())
    });
    result.unwrap();
}

/// Four writers and as many readers at once: whoever has written sees it on the other instance.
#[tokio::test]
async fn a_list_right_after_a_write_shows_it_on_any_instance() {
    let (api, client) = Api::with_tenant().await;
    let instances = [api.instance(-1_000, usize::MAX), api.instance(1_000, usize::MAX)];
    let write = async |n: usize| {
        let (here, there) = (instances[n % 2].client(&client), instances[(n + 1) % 2].client(&client));
        for round in 0..12 {
            let name = format!("w{n}r{round}");
            let id = here.asset(json!({"name": name})).await;
            let found = there.get(&format!("/assets?q={name}")).await.json();
            assert_eq!((&found["meta"]["total"], &found["data"][0]["id"]), (&json!(1), &json!(id)));
            here.patch(&format!("/assets/{id}"), json!({"name": format!("z{name}"), "status": "in_use"})).await.data();
            let found = there.get(&format!("/assets?q=z{name}&status=in_use")).await.json();
            assert_eq!(found["meta"]["total"], 1);
            there.delete(&format!("/assets/{id}")).await;
            assert_eq!(here.get(&format!("/assets?q={name}")).await.json()["meta"]["total"], 0);
        }
    };
    join_all((0..4).map(write)).await;
}

/// Between the count and the page somebody changes a thing of the page.
#[tokio::test]
async fn a_thing_that_changes_under_a_list_is_listed_as_it_is() {
    let (api, client) = Api::with_tenant().await;
    let [first, second] = [client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await];
    let reader = api.instance(0, usize::MAX).client(&client);
    reader.get("/assets?status=in_stock").await.data();
    for (id, change) in [(first, Some(json!({"status": "in_use"}))), (second, None)] {
        let mut held = api.faults.hold("BatchGetItem");
        let reading = tokio::spawn({
            let reader = reader.clone();
            async move { reader.get("/assets?status=in_stock").await.json() }
        });
        held.arrived().await;
        match change {
            Some(change) => client.patch(&format!("/assets/{id}"), change).await.data(),
            None => client.delete(&format!("/assets/{id}")).await.json(),
        };
        held.release();
        let listed = reading.await.unwrap();
        let total = listed["data"].as_array().unwrap().len();
        assert_eq!(listed["meta"]["total"], total, "{listed}");
        assert!(listed["data"].as_array().unwrap().iter().all(|asset| asset["id"] != json!(id)), "{listed}");
    }
}

/// A write that is on its way for as long as it may be, from an instance whose clock is as far behind as it may be.
#[tokio::test]
async fn the_latest_of_late_writes_is_listed() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "a"})).await;
    let reader = api.instance(0, usize::MAX).client(&client);
    let writer = api.instance(-2_000, usize::MAX).client(&client);
    api.wait(600);
    reader.get("/assets").await.data();
    let mut held = api.faults.hold("TransactWriteItems");
    let writing = tokio::spawn(async move { writer.patch(&format!("/assets/{id}"), json!({"name": "late"})).await });
    held.arrived().await;
    api.wait_millis(LATE - 100);
    assert_eq!(reader.get("/assets?q=late").await.json()["meta"]["total"], 0);
    held.release();
    writing.await.unwrap().data();
    assert_eq!(reader.get("/assets?q=late").await.json()["meta"]["total"], 1);
}

/// An index that is as far behind as it may be: what was created, changed and deleted since comes from the events.
#[tokio::test]
async fn an_index_that_lags_misleads_nobody() {
    let (api, client) = Api::with_tenant().await;
    let [changed, deleted] = [client.asset(json!({"name": "a"})).await, client.asset(json!({"name": "b"})).await];
    let writer = api.instance(-2_000, usize::MAX).client(&client);
    api.wait(600);
    api.faults.freeze_index(Some(api.index(client.tenant).await));
    writer.patch(&format!("/assets/{changed}"), json!({"name": "c"})).await.data();
    writer.delete(&format!("/assets/{deleted}")).await;
    writer.asset(json!({"name": "d"})).await;
    api.wait_millis(LAG - 100);
    api.faults.take_seen();
    let listed = api.instance(0, usize::MAX).client(&client).get("/assets?sort=name").await.data();
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|asset| &asset["name"]).collect();
    assert_eq!(names, ["c", "d"]);
    let loads = api.faults.take_seen().iter().filter(|(_, request)| request["IndexName"] == "list_index").count();
    assert_eq!(loads, 1, "and at the first try");
}
