//! Snapshots of list indexes: the reads of cold lists, and the refusal of wrong snapshots.

use crate::support::processes::{create_process, start};
use crate::support::table::history::delete_item;
use crate::support::{Api, Client, Replica};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use dev_server::faulty_table::FaultyObjects;
use dev_server::faulty_table::planned::CallFailure;
use serde_json::json;
use shared::domain::record::Kind;
use shared::domain::values::id::{AssetId, EventId, Id};
use shared::store::SnapshotReport;
use shared::store::keys::Keys;

/// The service with snapshots: one copy of the functions writes them, another reads them.
pub struct Snapshots {
    pub api: Api,
    pub client: Client,
    pub objects: FaultyObjects,
    pub replica: Replica,
}

impl Snapshots {
    /// Starts the service with a tenant that has the assets `a` and `b`, and writes its snapshots.
    pub async fn start() -> Self {
        let (api, client) = Api::with_tenant().await;
        let objects = FaultyObjects::default();
        let replica = api.replica_with(0, usize::MAX, objects.store());
        let model = client.model("Dell", "XPS", &client.asset_type("Laptop", "LAP", "physical").await).await;
        client.asset(json!({"name": "a", "model_id": model, "warranty_until": "2028-02-29"})).await;
        client.asset(json!({"name": "b"})).await;
        // Lists read the events of the last seconds anyway; those of the creation must not count.
        api.advance_clock(120);
        let snapshots = Self { api, client, objects, replica };
        assert_eq!(snapshots.write().await, SnapshotReport { written: 4, ..SnapshotReport::default() });
        snapshots.api.advance_clock(120);
        snapshots
    }

    pub async fn write(&self) -> SnapshotReport {
        self.replica.store.write_snapshots(self.api.now().plus(TimeDelta::minutes(10))).await.unwrap()
    }

    pub fn key(&self, kind: &str) -> String {
        format!("list-index/{}/{}/{kind}", self.api.table, self.client.tenant)
    }

    /// The names of the tenant's assets and their models from a new function instance, and whether it read the index
    /// `list_index`.
    pub async fn cold_list(&self) -> (Vec<String>, bool) {
        self.replica.store.forget_list_indexes();
        self.warm_list().await
    }

    async fn warm_list(&self) -> (Vec<String>, bool) {
        self.api.faults.take_requests();
        let listed = self.replica.client(&self.client).get("/assets?sort=name").await;
        let listed = listed.data();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
        let names =
            listed.as_array().unwrap().iter().map(|asset| text(&asset["name"]) + "/" + &text(&asset["catalog_model_name"]));
        let requests = self.api.faults.take_requests();
        (names.collect(), requests.iter().any(|(_, request)| request["IndexName"] == "list_index"))
    }

    /// Checks that a cold list is right and was made without the snapshot.
    async fn assert_not_used(&self, why: &str) {
        assert_eq!(self.cold_list().await, (vec!["a/XPS".to_owned(), "b/-".to_owned()], true), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cold_list_reads_the_snapshot_and_the_events_since_then() {
    let snapshots = Snapshots::start().await;
    snapshots.replica.store.forget_list_indexes();
    snapshots.api.meter.take();
    assert_eq!(snapshots.cold_list().await, (vec!["a/XPS".to_owned(), "b/-".to_owned()], false));
    let cost = snapshots.api.meter.take();
    // The key, its count, the tenant's limit, the latest event of the snapshot, the events since then, and two assets.
    assert!(cost.read_units <= 5.5 && cost.round_trips <= 5, "{cost:?}");
}

#[tokio::test(start_paused = true)]
async fn changes_after_the_snapshot_are_in_the_list() {
    let snapshots = Snapshots::start().await;
    let client = &snapshots.client;
    let assets = client.get("/assets?sort=name").await.data();
    let path = |place: usize| format!("/assets/{}", assets[place]["id"].as_str().unwrap());
    client.patch(&path(0), json!({"name": "A, renamed"})).await.data();
    assert_eq!(client.delete(&path(1)).await.status, 200);
    client.asset(json!({"name": "c"})).await;
    let short_lived = client.asset(json!({"name": "d"})).await;
    assert_eq!(client.delete(&format!("/assets/{short_lived}")).await.status, 200);
    let model = assets[0]["model_id"].as_str().unwrap();
    client.patch(&format!("/catalog/models/{model}"), json!({"name": "XPS 2"})).await.data();
    let expected = vec!["A, renamed/XPS 2".to_owned(), "c/-".to_owned()];
    assert_eq!(snapshots.cold_list().await, (expected.clone(), false));
    assert_eq!(snapshots.warm_list().await, (expected, false));
}

#[tokio::test(start_paused = true)]
async fn users_and_process_instances_are_listed_from_snapshots_too() {
    let snapshots = Snapshots::start().await;
    let client = &snapshots.client;
    client.user("Ada").await;
    client.user("Grace").await;
    let asset = client.asset(json!({"name": "c"})).await;
    let steps = json!([{"key": "c", "type": "complete", "label": "C"}]);
    start(client, &create_process(client, steps).await, &asset).await;
    snapshots.api.advance_clock(25 * 3600);
    assert_eq!(snapshots.write().await.written, 4);
    snapshots.replica.store.forget_list_indexes();
    let reader = snapshots.replica.client(client);
    snapshots.api.faults.take_requests();
    assert_eq!(reader.get("/users?q=gRACE").await.data()[0]["display_name"], "Grace");
    assert_eq!(reader.get(&format!("/processes/instances?asset_id={asset}")).await.data().as_array().unwrap().len(), 1);
    assert_eq!(reader.get("/movements").await.data(), json!([]));
    let requests = snapshots.api.faults.take_requests();
    assert!(requests.iter().all(|(_, request)| request["IndexName"] != "list_index"));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_snapshot_is_ignored() {
    let snapshots = Snapshots::start().await;
    let key = snapshots.key("asset");
    let whole = snapshots.objects.object(&key).unwrap();
    for length in [0, 1, 8, 12, 100, whole.len() / 2, whole.len() - 1] {
        snapshots.objects.set(&key, whole[..length].to_vec());
        snapshots.assert_not_used(&format!("{length} bytes")).await;
    }
    for place in (0..whole.len()).step_by(whole.len() / 16) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x20;
        snapshots.objects.set(&key, damaged);
        snapshots.assert_not_used(&format!("byte {place}")).await;
    }
    snapshots.objects.set(&key, [whole.as_slice(), b"more"].concat());
    snapshots.assert_not_used("longer").await;
    snapshots.objects.set(&key, whole);
    assert!(!snapshots.cold_list().await.1);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_something_else_is_ignored() {
    let snapshots = Snapshots::start().await;
    let key = snapshots.key("asset");
    let other_tenant = snapshots.api.tenant().await;
    other_tenant.asset(json!({"name": "secret"})).await;
    snapshots.write().await;
    let foreign =
        snapshots.objects.object(&key.replace(&snapshots.client.tenant.to_string(), &other_tenant.tenant.to_string())).unwrap();
    snapshots.objects.set(&key, foreign);
    snapshots.assert_not_used("of another tenant").await;
    snapshots.objects.set(&key, snapshots.objects.object(&snapshots.key("user")).unwrap());
    snapshots.assert_not_used("of another kind").await;
    let other = Snapshots::start().await;
    snapshots.objects.set(&key, other.objects.object(&other.key("asset")).unwrap());
    snapshots.assert_not_used("of another table").await;
}

#[tokio::test(start_paused = true)]
async fn without_its_object_store_a_list_is_made_from_the_table() {
    let snapshots = Snapshots::start().await;
    snapshots.objects.set_down(true);
    snapshots.assert_not_used("down").await;
    let report = snapshots.write().await;
    assert_eq!(report, SnapshotReport { failed: 4, ..SnapshotReport::default() });
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_from_the_future_is_ignored() {
    let snapshots = Snapshots::start().await;
    snapshots.api.advance_clock(-3600);
    snapshots.assert_not_used("from the future").await;
}

/// A table that was restored to a time before the snapshot lacks the snapshot's latest event.
#[tokio::test(start_paused = true)]
async fn a_snapshot_of_what_a_restored_table_does_not_have_is_ignored() {
    let snapshots = Snapshots::start().await;
    let id = snapshots.client.asset(json!({"name": "c"})).await;
    snapshots.api.advance_clock(25 * 3600);
    assert_eq!(snapshots.write().await.written, 4);
    let feed = snapshots.client.get("/events?limit=100").await.data();
    let event = feed.as_array().unwrap().iter().find(|event| event["entity_id"] == id.as_str()).unwrap();
    let keys = Keys::of(snapshots.client.tenant);
    delete_item(&snapshots.api, &keys.event(event["id"].as_str().unwrap().parse().unwrap()).item()).await;
    delete_item(&snapshots.api, &keys.record(Kind::Asset, id.parse::<AssetId>().unwrap().uuid()).item()).await;
    snapshots.assert_not_used("of a later state").await;
}

/// An event is missing, so the snapshot contradicts the table; loading the same snapshot again would not help.
#[tokio::test(start_paused = true)]
async fn a_snapshot_that_contradicts_the_table_is_replaced_by_a_load() {
    let snapshots = Snapshots::start().await;
    let assets = snapshots.client.get("/assets?sort=name").await.data();
    let id = assets[1]["id"].as_str().unwrap().parse::<AssetId>().unwrap().uuid();
    delete_item(&snapshots.api, &Keys::of(snapshots.client.tenant).record(Kind::Asset, id).item()).await;
    assert_eq!(snapshots.cold_list().await, (vec!["a/XPS".to_owned()], true));
}

#[tokio::test(start_paused = true)]
async fn more_events_than_a_load_costs_make_a_snapshot_useless() {
    let snapshots = Snapshots::start().await;
    let id = snapshots.client.asset(json!({"name": "c"})).await;
    for n in 0..60 {
        let notes = format!("ä{n}").repeat(3_000);
        snapshots.client.patch(&format!("/assets/{id}"), json!({"notes": notes})).await.data();
    }
    snapshots.api.advance_clock(700);
    let (names, has_loaded) = snapshots.cold_list().await;
    assert_eq!((names.len(), has_loaded), (3, true));
}

#[tokio::test(start_paused = true)]
async fn an_index_that_is_an_hour_old_is_loaded_from_the_snapshot() {
    let snapshots = Snapshots::start().await;
    assert!(!snapshots.cold_list().await.1);
    snapshots.client.asset(json!({"name": "c"})).await;
    snapshots.api.advance_clock(3_601);
    let expected = ["a/XPS", "b/-", "c/-"].map(str::to_owned);
    assert_eq!(snapshots.warm_list().await, (expected.to_vec(), false));
}

/// The snapshot is made while the index `list_index` lags most of an hour behind.
#[tokio::test(start_paused = true)]
async fn a_snapshot_has_what_the_index_lacks() {
    let snapshots = Snapshots::start().await;
    let (api, client) = (&snapshots.api, &snapshots.client);
    let rows = api.list_index_rows(client.tenant).await;
    let assets = client.get("/assets?sort=name").await.data();
    let path = |place: usize| format!("/assets/{}", assets[place]["id"].as_str().unwrap());
    client.patch(&path(0), json!({"name": "z"})).await.data();
    assert_eq!(client.delete(&path(1)).await.status, 200);
    client.asset(json!({"name": "c"})).await;
    api.advance_clock(59 * 60);
    snapshots.objects.set(&snapshots.key("asset"), Vec::new());
    api.faults.freeze_list_index(Some(rows));
    assert_eq!(snapshots.write().await.written, 1);
    api.faults.freeze_list_index(None);
    api.advance_clock(3600);
    assert_eq!(snapshots.cold_list().await, (vec!["c/-".to_owned(), "z/XPS".to_owned()], false));
}

#[tokio::test(start_paused = true)]
async fn an_index_that_is_too_large_is_not_loaded_in_vain() {
    let snapshots = Snapshots::start().await;
    let small = snapshots.api.replica_with(0, 100, snapshots.objects.store());
    snapshots.api.faults.take_requests();
    small.client(&snapshots.client).get("/assets?sort=name").await.problem(503, "UNAVAILABLE");
    let loads =
        |requests: Vec<(String, serde_json::Value)>| requests.iter().filter(|it| it.1["IndexName"] == "list_index").count();
    assert_eq!(loads(snapshots.api.faults.take_requests()), 0);
}

/// The index is an hour old, and the table fails while its snapshot is loaded.
#[tokio::test(start_paused = true)]
async fn an_index_that_is_gone_takes_no_room() {
    let snapshots = Snapshots::start().await;
    let (store, faults) = (&snapshots.replica.store, &snapshots.api.faults);
    let mut emptied = 0;
    for place in 0..6 {
        snapshots.warm_list().await;
        assert!(store.list_index_bytes() > 0);
        snapshots.api.advance_clock(3_601);
        faults.fail_call(place, CallFailure::Throttled);
        let status = snapshots.replica.client(&snapshots.client).get("/assets").await.status;
        faults.stop_failing();
        emptied += usize::from(status == 503 && store.list_index_bytes() == 0);
    }
    assert!(emptied > 0);
}

/// An event of a kind that this version doesn't know causes one load, and not one for every cold list.
#[tokio::test(start_paused = true)]
async fn unknown_events_are_kept_in_the_snapshot() {
    let snapshots = Snapshots::start().await;
    snapshots.api.advance_clock(25 * 3600);
    put_unknown_event(&snapshots).await;
    snapshots.assert_not_used("an unknown event").await;
    assert_eq!(snapshots.write().await.written, 4);
    assert!(!snapshots.cold_list().await.1);
}

async fn put_unknown_event(snapshots: &Snapshots) {
    let id = EventId::new(snapshots.api.now(), [7; 10]);
    let feed = snapshots.client.get("/events?limit=1").await.data();
    let mut entry = feed[0].clone();
    (entry["id"], entry["type"]) = (json!(id), json!("reservation.created"));
    let mut item = Keys::of(snapshots.client.tenant).event(id).item();
    item.insert("entry".into(), AttributeValue::S(entry.to_string()));
    snapshots.api.dynamo.put_item().table_name(&snapshots.api.table).set_item(Some(item)).send().await.unwrap();
}
