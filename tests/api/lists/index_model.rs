//! Random writes by two replicas with different clocks, delayed writes and a lagging index: every list and all statistics equal
//! a plain filter over the table.

use crate::lists::index_races::{MAX_LAG_MILLIS, MAX_WRITE_MILLIS};
use crate::support::prelude::*;
use dev_server::faulty_table::planned::Held;
use proptest::prelude::*;
use tokio::task::JoinHandle;

/// The next action and the replica that executes it.
#[derive(Debug, Clone)]
enum Step {
    Create(usize, String, bool),
    Change(usize, usize, Value),
    Delete(usize, usize),
    /// A change that is sent now, but takes effect later.
    ChangeLate(usize, usize, Value),
    ReleaseLate,
    /// Includes the location if the scan moves the asset.
    Scan(usize, usize, Option<String>),
    NewUser(usize, String),
    ChangeUser(usize, usize, bool),
    /// Starts a process, and completes it at once if the flag is set.
    Start(usize, usize, bool),
    Cancel(usize, usize),
    Rename(usize, String),
    Wait(i64),
    FreezeIndex,
    ThawIndex,
    ForgetIndex(usize),
    /// A replica writes the due snapshots, or all snapshots.
    WriteSnapshots(usize, bool),
    List(usize),
}

/// Sets one of a few custom fields to one of a few values; numbers have several forms.
fn custom_fields() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        Just(json!(null)),
        (0..3u32).prop_map(|n| json!(n)),
        (0..3u32).prop_map(|n| json!(f64::from(n))),
        "[aÄ]?[019]{0,2}".prop_map(|text| json!(text)),
    ];
    ("[xy]", value).prop_map(|(name, value)| json!({"custom_fields_patch": {name: value}}))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (on, which) = (0..2usize, 0..6usize);
    let change = prop_oneof![
        "[abÄß ]{1,3}".prop_map(|name| json!({"name": format!("n{name}")})),
        proptest::option::of("[ab]{0,2}").prop_map(|serial| json!({"serial_number": serial})),
        prop_oneof![Just("in_stock"), Just("in_use"), Just("scrapped")].prop_map(|status| json!({"status": status})),
        proptest::option::of(1..28u32).prop_map(|day| json!({"warranty_until": day.map(|day| format!("2028-01-{day:02}"))})),
        Just(json!({"notes": "n"})),
        (1..99_999u32).prop_map(|cents| json!({"purchase_price": f64::from(cents) / 100.0})),
        proptest::option::of("[ab]{1,2}").prop_map(|manufacturer| json!({"manufacturer": manufacturer})),
        proptest::option::of("[aÄ](/[bB]){0,2}").prop_map(|place| json!({"location": place})),
        proptest::option::of(1..28u32).prop_map(|day| json!({"purchase_date": day.map(|day| format!("2026-01-{day:02}"))})),
        custom_fields(),
        any::<bool>().prop_map(|typed| json!({"asset_type_id": typed})),
        any::<bool>().prop_map(|assigned| json!({"assigned_to": assigned})),
    ];
    let step = prop_oneof![
        6 => (on.clone(), "[abÄß]{1,3}", any::<bool>()).prop_map(|(on, name, typed)| Step::Create(on, name, typed)),
        6 => (on.clone(), which.clone(), change.clone()).prop_map(|(on, which, change)| Step::Change(on, which, change)),
        2 => (on.clone(), which.clone()).prop_map(|(on, which)| Step::Delete(on, which)),
        3 => (on.clone(), which.clone(), change).prop_map(|(on, which, change)| Step::ChangeLate(on, which, change)),
        2 => Just(Step::ReleaseLate),
        2 => (on.clone(), which.clone(), proptest::option::of("[aÄ]")).prop_map(|(on, which, place)| Step::Scan(on, which, place)),
        2 => (on.clone(), "[ab]{1,2}").prop_map(|(on, name)| Step::NewUser(on, name)),
        2 => (on.clone(), which.clone(), any::<bool>()).prop_map(|(on, which, active)| Step::ChangeUser(on, which, active)),
        3 => (on.clone(), which.clone(), any::<bool>()).prop_map(|(on, which, completes)| Step::Start(on, which, completes)),
        1 => (on.clone(), which).prop_map(|(on, which)| Step::Cancel(on, which)),
        1 => (on.clone(), "[ab]{1,2}").prop_map(|(on, name)| Step::Rename(on, name)),
        3 => prop_oneof![1..3_000i64, 3_000..12_000i64, Just(90_000i64)].prop_map(Step::Wait),
        1 => Just(Step::FreezeIndex),
        1 => Just(Step::ThawIndex),
        1 => on.clone().prop_map(Step::ForgetIndex),
        1 => (on.clone(), any::<bool>()).prop_map(|(on, again)| Step::WriteSnapshots(on, again)),
        8 => on.prop_map(Step::List),
    ];
    proptest::collection::vec(step, 4..40)
}

const LISTS: [&str; 28] = [
    "/assets",
    "/assets?limit=2&page=2",
    "/assets?q=%C3%84+n",
    "/assets?status=in_use&kind=logical",
    "/assets?sort=name&limit=3",
    "/assets?sort=-updated_at&page=2&limit=2",
    "/assets?sort=created_at&warranty_before=2028-01-15",
    "/assets?serial_number=a",
    "/assets?location=%C3%A4&sort=-location",
    "/assets?location=none&sort=custom_fields.x&limit=3",
    "/assets?custom_fields.x=1,a9,none&sort=-custom_fields.y",
    "/assets?custom_fields.y=0&purchase_date_from=2026-01-05&purchase_date_before=2026-01-20",
    "/assets?last_seen_before=2027-01-01T00:00:00Z&purchase_price_min=300&sort=last_seen_at",
    "/assets?asset_type_code=SFT&manufacturer=A&sort=purchase_price&q=n",
    "/assets?sort=-status_changed_at&limit=3",
    "/assets?status_changed_from=2026-01-05&status_changed_before=today%2B1d&created_from=today-1y",
    "/assets?unlisted_field=x",
    "/stats?group_by=purchase_month&custom_fields_from.y=0&custom_fields_before.y=today",
    "/stats?group_by=location&depth=2",
    "/stats?group_by=custom_fields.x&status=in_use,in_stock",
    "/stats?group_by=manufacturer&location=a",
    "/stats?location=a&custom_fields.x=1",
    "/users?is_active=true",
    "/users?q=b",
    "/processes/instances",
    "/processes/instances?status=cancelled",
    "/processes/instances?status=in_progress",
    "/stats",
];

/// Two replicas, and a third without a list index to compare them with.
struct World {
    api: Api,
    replicas: [Replica; 2],
    clients: [Client; 2],
    without_index: Client,
    objects: FaultyObjects,
    types: [String; 2],
    user: String,
    process: String,
    assets: Vec<String>,
    users: Vec<String>,
    instances: Vec<String>,
    late: Option<(JoinHandle<Reply>, Held)>,
    write_millis: i64,
    lag_millis: i64,
}

impl World {
    async fn new(mut api: Api, skew: i64) -> Self {
        // In half of the cases, indexes are refreshed as after a burst of events.
        api.counted_events = (skew % 2 == 0).then_some(1);
        let client = api.tenant().await;
        let objects = FaultyObjects::default();
        let replicas = [0, skew].map(|skew| api.replica_with(skew, usize::MAX, objects.store()));
        let clients = [replicas[0].client(&client), replicas[1].client(&client)];
        let types = [client.asset_type("Hard", "HRD", "physical").await, client.asset_type("Soft", "SFT", "logical").await];
        let user = client.user("Ada").await;
        let steps = json!([{"type": "complete", "key": "c", "label": "C"}]);
        let process = create_process(&client, steps).await;
        let without_index = api.replica(0, 0).client(&client);
        api.advance_clock(600);
        Self {
            api,
            replicas,
            clients,
            without_index,
            objects,
            types,
            user,
            process,
            assets: Vec::new(),
            users: Vec::new(),
            instances: Vec::new(),
            late: None,
            write_millis: 0,
            lag_millis: 0,
        }
    }

    /// Replaces the strategy's placeholders with IDs.
    fn resolved(&self, mut change: Value) -> Value {
        if let Some(typed) = change["asset_type_id"].as_bool() {
            change["asset_type_id"] = json!(self.types[usize::from(typed)]);
        }
        if let Some(assigned) = change["assigned_to"].as_bool() {
            change["assigned_to"] = if assigned { json!(self.user) } else { Value::Null };
        }
        change
    }

    async fn release_late(&mut self) {
        if let Some((task, held)) = self.late.take() {
            held.release();
            task.await.unwrap();
        }
    }

    fn thaw(&self) {
        self.api.faults.freeze_list_index(None);
    }

    async fn execute(&mut self, step: Step) {
        match step {
            Step::Create(on, name, typed) => {
                let body = json!({"name": name, "asset_type_id": self.types[usize::from(typed)]});
                let made = self.clients[on].post("/assets", body).await;
                self.assets.push(made.id());
            }
            Step::Change(on, which, change) => {
                let Some(id) = self.assets.get(which) else { return };
                self.clients[on].patch(&format!("/assets/{id}"), self.resolved(change)).await;
            }
            Step::Delete(on, which) => {
                let Some(id) = self.assets.get(which) else { return };
                self.clients[on].delete(&format!("/assets/{id}")).await;
            }
            Step::ChangeLate(on, which, change) => {
                self.release_late().await;
                let Some(id) = self.assets.get(which) else { return };
                let (client, path, change) = (self.clients[on].clone(), format!("/assets/{id}"), self.resolved(change));
                let mut held = self.api.faults.hold("TransactWriteItems");
                let mut task = tokio::spawn(async move { client.patch(&path, change).await });
                let sent = tokio::select! {
                    () = held.arrived() => true,
                    _ = &mut task => false,
                };
                if sent {
                    (self.late, self.write_millis) = (Some((task, held)), MAX_WRITE_MILLIS);
                } else {
                    self.api.faults.clear_holds();
                }
            }
            Step::ReleaseLate => self.release_late().await,
            Step::Scan(on, which, place) => {
                let Some(id) = self.assets.get(which) else { return };
                let mut body = json!({"items": [{"id": id}], "move": place.is_some()});
                body.as_object_mut().unwrap().extend(place.map(|place| ("location".to_owned(), json!(place))));
                self.clients[on].post("/assets/seen", body).await.data();
            }
            Step::NewUser(on, name) => {
                let email = format!("u{}@example.com", self.users.len());
                let made = self.clients[on].post("/users", json!({"email": email, "display_name": name})).await;
                self.users.push(made.id());
            }
            Step::ChangeUser(on, which, active) => {
                let Some(id) = self.users.get(which) else { return };
                self.clients[on].patch(&format!("/users/{id}"), json!({"is_active": active})).await.data();
            }
            Step::Start(on, which, completes) => {
                let Some(id) = self.assets.get(which) else { return };
                let path = format!("/processes/{}/start", self.process);
                let through = completes.then_some("c");
                let mut body = json!({"asset_id": id});
                body.as_object_mut().unwrap().extend(through.map(|through| ("through".to_owned(), json!(through))));
                let started = self.clients[on].post(&path, body).await;
                self.instances.extend(started.status.is_success().then(|| started.id()));
            }
            Step::Cancel(on, which) => {
                let Some(id) = self.instances.get(which) else { return };
                cancel(&self.clients[on], id).await;
            }
            Step::Rename(on, name) => {
                self.clients[on].patch(&format!("/catalog/asset-types/{}", self.types[1]), json!({"name": name})).await.data();
            }
            Step::Wait(millis) => {
                self.api.advance_clock_millis(millis);
                self.write_millis -= millis;
                self.lag_millis -= millis;
                // Writes and indexes reach their maximum delay.
                if self.write_millis < 0 && self.late.is_some() {
                    self.api.advance_clock_millis(self.write_millis);
                    self.release_late().await;
                    self.api.advance_clock_millis(-self.write_millis);
                }
                if self.lag_millis < 0 {
                    self.thaw();
                }
            }
            Step::FreezeIndex => {
                self.thaw();
                let index = self.api.list_index_rows(self.without_index.tenant).await;
                self.api.faults.freeze_list_index(Some(index));
                self.lag_millis = MAX_LAG_MILLIS;
            }
            Step::ThawIndex => self.thaw(),
            Step::ForgetIndex(on) => self.replicas[on].store.forget_list_indexes(),
            Step::WriteSnapshots(on, again) => {
                if again {
                    self.objects.clear();
                }
                let until = self.api.now().plus(TimeDelta::minutes(10));
                assert_eq!(self.replicas[on].store.write_snapshots(until).await.unwrap().failed, 0);
            }
            Step::List(on) => self.compare(on, &sample(LISTS, 8)).await,
        }
    }

    /// Compares the replica's lists with those of the replica without a list index.
    async fn compare(&self, on: usize, lists: &[&str]) {
        for path in lists {
            let (listed, expected) = (self.clients[on].get(path).await, self.without_index.get(path).await);
            assert_eq!(listed.status, 200, "{}", listed.text());
            assert_eq!(listed.json(), expected.json(), "{path} on replica {on}");
        }
    }
}

/// After any mix of writes, the lists of both replicas equal the lists of the replica without a list index, which `lists::pages`
/// compares with a plain filter. The faulty table's indexes don't lag here: the steps freeze the index by the tests' clock.
#[test]
fn lists_of_two_replicas_equal_the_table_also_if_it_is_weak() {
    let weaknesses = || Weaknesses { list_index_lag_millis: 0, unprocessed_per_mille: 100, ..Weaknesses::ordinary() };
    property::check(&paused_runtime(), 32, &(steps(), -2_000..=2_000i64), async |(steps, skew)| {
        let mut world = World::new(Api::on_faulty_table(3, weaknesses()).await, skew).await;
        for step in steps {
            world.execute(step).await;
        }
        world.release_late().await;
        for on in [0, 1] {
            world.compare(on, &LISTS).await;
        }
        Ok(())
    });
}
