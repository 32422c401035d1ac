//! Snapshots of list indexes: reads of cold lists, invalid snapshots, the writer, and its permissions. Tests with an S3 API
//! need `.ci/aws/snapshots`: `SNAPSHOTS_TEST_URL` is the URL of an empty bucket.

use super::index_reads;
use crate::deployment::{allows_partition, granted, needed, statements, texts};
use crate::support::prelude::*;
use aws_sdk_dynamodb::config::{Credentials, Region};
use shared::aws::environment::operator_environment;
use shared::aws::object_store::{ObjectStore, S3};
use shared::services::system_clock;
use shared::store::SnapshotReport;

/// A service with snapshots: one replica writes them, and another reads them.
pub struct Snapshots {
    pub api: Api,
    pub client: Client,
    pub objects: FaultyObjects,
    pub replica: Replica,
}

impl Snapshots {
    /// Starts a service with a tenant that has the assets `a` and `b`, and writes its snapshots.
    pub async fn start() -> Self {
        let (api, client) = Api::with_tenant().await;
        let objects = FaultyObjects::default();
        let replica = api.replica_with(0, usize::MAX, objects.store());
        let model = client.model("Dell", "XPS", &client.asset_type("Laptop", "LAP", "physical").await).await;
        client.asset(json!({"name": "a", "model_id": model, "warranty_until": "2028-02-29"})).await;
        client.asset(json!({"name": "b"})).await;
        // Lists always read the latest events, so the creations must be older.
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

    /// Lists names and models of the tenant's assets on a new function instance. Returns the list, and whether the instance read
    /// the index `list_index`.
    pub async fn cold_list(&self) -> (Vec<String>, bool) {
        self.replica.store.forget_list_indexes();
        self.warm_list().await
    }

    async fn warm_list(&self) -> (Vec<String>, bool) {
        self.api.faults.take_requests();
        let listed = self.replica.client(&self.client).get("/assets?sort=name").await;
        let listed = listed.data();
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let names =
            listed.as_array().unwrap().iter().map(|asset| text(&asset["name"]) + "/" + &text(&asset["catalog_model_name"]));
        (names.collect(), index_reads(&self.api) > 0)
    }

    /// Checks that a cold list is correct and didn't use the snapshot.
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
    // Reads: the key, its count, the tenant's limit, the snapshot's latest event, later events, and two assets.
    assert!(cost.read_units <= 5.5 && cost.round_trips <= 5, "{cost:?}");

    // Above the memory limit, the list is refused without reading the index `list_index`.
    let small = snapshots.api.replica_with(0, 100, snapshots.objects.store());
    snapshots.api.faults.take_requests();
    small.client(&snapshots.client).get("/assets?sort=name").await.problem(503, "UNAVAILABLE");
    assert_eq!(index_reads(&snapshots.api), 0);

    // An index that is an hour old is loaded from the snapshot.
    assert!(!snapshots.cold_list().await.1);
    snapshots.client.asset(json!({"name": "c"})).await;
    snapshots.api.advance_clock(3_601);
    let expected = ["a/XPS", "b/-", "c/-"].map(str::to_owned);
    assert_eq!(snapshots.warm_list().await, (expected.to_vec(), false));
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
    assert_eq!(index_reads(&snapshots.api), 0);
}

#[tokio::test(start_paused = true)]
async fn without_its_object_store_a_list_is_made_from_the_table() {
    let snapshots = Snapshots::start().await;
    snapshots.objects.set_down(true);
    snapshots.assert_not_used("down").await;
    let report = snapshots.write().await;
    assert_eq!(report, SnapshotReport { failed: 4, ..SnapshotReport::default() });
    assert_eq!(index_reads(&snapshots.api), 0, "nothing is loaded for unreadable snapshots");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_damaged_of_another_tenant_or_from_the_future_is_ignored() {
    let snapshots = Snapshots::start().await;
    let key = snapshots.key("asset");
    let other_tenant = snapshots.api.tenant().await;
    other_tenant.asset(json!({"name": "secret"})).await;
    snapshots.write().await;
    let whole = snapshots.objects.object(&key).unwrap();
    let foreign = key.replace(&snapshots.client.tenant.to_string(), &other_tenant.tenant.to_string());
    let foreign = snapshots.objects.object(&foreign).unwrap();
    for (what, object) in [("cut off", whole[..whole.len() / 2].to_vec()), ("of another tenant", foreign)] {
        snapshots.objects.set(&key, object);
        snapshots.assert_not_used(what).await;
    }
    snapshots.objects.set(&key, whole);
    assert!(!snapshots.cold_list().await.1);
    snapshots.api.advance_clock(-3600);
    snapshots.assert_not_used("from the future").await;
}

/// A table restored to a time before the snapshot lacks the snapshot's latest event.
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

/// An event is missing, so the snapshot contradicts the table, and loading it again doesn't help.
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

/// The snapshot is written while the index `list_index` lags by almost an hour.
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

/// The index in memory is an hour old, and the table fails while the index's snapshot is loaded.
#[tokio::test(start_paused = true)]
async fn failed_load_frees_the_memory_of_the_list_index() {
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

/// An event of an unknown kind causes a single load, not one for every cold list.
#[tokio::test(start_paused = true)]
async fn unknown_events_are_kept_in_the_snapshot() {
    let snapshots = Snapshots::start().await;
    snapshots.api.advance_clock(25 * 3600);
    let mut entry = snapshots.client.get("/events?limit=1").await.data()[0].clone();
    entry["type"] = json!("reservation.created");
    put_event(&snapshots.api, &snapshots.client, entry).await;
    snapshots.assert_not_used("an unknown event").await;
    assert_eq!(snapshots.write().await.written, 4);
    assert!(!snapshots.cold_list().await.1);
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_written_when_they_are_behind_or_old() {
    let snapshots = Snapshots::start().await;
    let current = SnapshotReport { current: 4, ..SnapshotReport::default() };
    let written = SnapshotReport { written: 4, ..SnapshotReport::default() };
    assert_eq!(snapshots.write().await, current);
    let id = snapshots.client.asset(json!({"name": "c"})).await;
    assert_eq!(snapshots.write().await, current, "reading one event is cheaper than writing a snapshot");
    for n in 0..250 {
        snapshots.client.patch(&format!("/assets/{id}"), json!({"notes": n.to_string()})).await.data();
    }
    snapshots.api.faults.take_requests();
    let before = snapshots.objects.object(&snapshots.key("asset"));
    assert!(before.is_some());
    assert_eq!(snapshots.write().await, written);
    assert_ne!(snapshots.objects.object(&snapshots.key("asset")), before);
    assert_eq!(index_reads(&snapshots.api), 0, "the snapshots contain the latest events");
    snapshots.api.advance_clock(25 * 3600);
    assert_eq!(snapshots.write().await, written);
    assert_eq!(index_reads(&snapshots.api), 4, "after a day, each is loaded again");
    assert_eq!(snapshots.cold_list().await.0.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_continues_where_the_last_one_ended() {
    let snapshots = Snapshots::start().await;
    for _ in 0..11 {
        snapshots.api.tenant().await;
    }
    let begin = snapshots.api.now();
    // Each reading of the clock takes a millisecond, so the first run stops early.
    let first = snapshots.replica.store.write_snapshots(begin.plus(TimeDelta::milliseconds(60))).await.unwrap();
    assert!(first.postponed > 0 && first.written > 0, "{first:?}");
    let second = snapshots.write().await;
    assert_eq!((second.postponed, first.written + second.written), (0, 11 * 4), "{first:?} {second:?}");
    assert!(second.current >= first.written, "{first:?} {second:?}");
    let none = snapshots.replica.store.write_snapshots(begin).await.unwrap();
    assert_eq!(none, SnapshotReport { postponed: 12, ..SnapshotReport::default() });
}

/// A small list loads equally fast without a snapshot, which would contain names of people.
#[tokio::test(start_paused = true)]
async fn a_small_list_has_no_snapshot() {
    let snapshots = Snapshots::start().await;
    snapshots.client.assets(400).await;
    snapshots.api.advance_clock(120);
    let objects = FaultyObjects::default();
    let write = async |smallest: usize| {
        let store = snapshots.api.replica_with(0, usize::MAX, objects.store()).store.with_smallest_snapshot(smallest);
        store.write_snapshots(snapshots.api.now().plus(TimeDelta::minutes(10))).await.unwrap()
    };
    let asset = || objects.object(&snapshots.key("asset"));
    assert_eq!(write(10_000).await, SnapshotReport { current: 4, ..SnapshotReport::default() });
    assert!(asset().is_none());
    assert!(write(16).await.written > 0);
    assert!(asset().is_some());
}

/// If a tenant's snapshots crash the function, the next run starts with other tenants.
#[tokio::test(start_paused = true)]
async fn tenant_that_crashes_the_snapshot_writer_does_not_block_others() {
    let snapshots = Snapshots::start().await;
    for _ in 0..11 {
        snapshots.api.tenant().await;
    }
    let store = &snapshots.replica.store;
    let begun = snapshots.objects.keys_put().len();
    let until = snapshots.api.now().plus(TimeDelta::minutes(10));
    tokio::select! {
        biased;
        () = snapshots.objects.wait_for_puts(begun + 2) => {}
        _ = store.write_snapshots(until) => panic!("the run was not interrupted"),
    }
    let report = snapshots.write().await;
    assert_eq!(report.postponed, 0);
    let order = snapshots.objects.keys_put();
    // The crashed run had started with eight tenants. The remaining three new tenants come before them.
    let first = order[begun + 1].clone();
    let again = order[begun + 2..].iter().position(|key| key.rsplit_once('/').unwrap().0 == first.rsplit_once('/').unwrap().0);
    let before = order[begun + 2..][..again.unwrap()].iter().filter(|key| !key.ends_with("last-tenant")).count();
    assert_eq!(before, 3 * 4, "{order:?}");
}

/// Lists read the events since a snapshot, or of the last hour after a load. Only events of the last minute are read
/// consistently.
#[tokio::test(start_paused = true)]
async fn old_events_are_read_at_half_the_price() {
    let snapshots = Snapshots::start().await;
    let id = snapshots.client.asset(json!({"name": "c"})).await;
    for n in 0..300 {
        snapshots.client.patch(&format!("/assets/{id}"), json!({"notes": format!("{n}").repeat(500)})).await.data();
    }
    let deleted = snapshots.client.asset(json!({"name": "d"})).await;
    snapshots.client.delete(&format!("/assets/{deleted}")).await;
    snapshots.api.advance_clock(600);
    // For 1,050 KB of events, counting takes 110 read units per kind of record.
    for (is_followed, most) in [(true, 900.0), (false, 520.0)] {
        if !is_followed {
            snapshots.objects.clear();
        }
        snapshots.api.faults.take_requests();
        snapshots.api.meter.take();
        assert_eq!(snapshots.write().await.written, 4);
        let units = snapshots.api.meter.take().read_units;
        assert!(units < most, "{units} units, followed: {is_followed}");
        let seen = snapshots.api.faults.take_requests();
        assert_eq!(seen.iter().all(|(_, request)| request["IndexName"] != "list_index"), is_followed);
        let recent = EventId::new(snapshots.api.now().plus(TimeDelta::seconds(-75)), [0; 10]).short();
        for (_, request) in seen.iter().filter(|(_, request)| request["ConsistentRead"] == true && request["Limit"] != 1) {
            let from = request["ExpressionAttributeValues"][":from"]["S"].as_str().unwrap_or("~");
            assert!(!from.starts_with("EVENT#") || *from > *format!("EVENT#{recent}"), "{request}");
        }
    }
    assert_eq!(snapshots.cold_list().await.0.len(), 3);
}

#[test]
fn the_bucket_is_encrypted_private_and_forgets() {
    let bucket = resource("SnapshotBucket");
    assert_eq!(bucket["DeletionPolicy"], "RetainExceptOnCreate");
    let properties = &bucket["Properties"];
    let encryption = &properties["BucketEncryption"]["ServerSideEncryptionConfiguration"][0];
    assert_eq!(encryption["ServerSideEncryptionByDefault"]["SSEAlgorithm"], "AES256");
    let access = properties["PublicAccessBlockConfiguration"].as_mapping().unwrap();
    assert!(access.len() == 4 && access.values().all(|blocked| *blocked == true));
    assert_eq!(properties["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"], 7);
    assert!(properties.get("VersioningConfiguration").is_none());
    let statement = &resource("SnapshotBucketPolicy")["Properties"]["PolicyDocument"]["Statement"][0];
    assert_eq!((&statement["Effect"], &statement["Action"]), (&"Deny".into(), &"s3:*".into()));
    assert_eq!(statement["Condition"]["Bool"]["aws:SecureTransport"], "false");
}

#[tokio::test]
async fn the_role_of_the_writer_of_snapshots_allows_its_calls_and_no_others() {
    let (api, client) = Api::with_tenant().await;
    let store = api.replica_with(0, usize::MAX, FaultyObjects::default().store()).store;
    let mut requests = Vec::new();
    for _ in 0..2 {
        client.assets(251).await;
        let asset = client.asset(json!({"name": "a"})).await;
        api.advance_clock(3600);
        // If an event mentions an asset missing in the index, the asset is read separately.
        client.patch(&format!("/assets/{asset}"), json!({"name": "b"})).await.data();
        let key = Keys::of(client.tenant).record(Kind::Asset, asset.parse().unwrap()).item();
        let update = api.dynamo.update_item().table_name(&api.table).set_key(Some(key));
        update.update_expression("REMOVE LS").send().await.unwrap();
        api.faults.take_requests();
        assert_eq!(store.write_snapshots(api.now().plus_seconds(600)).await.unwrap().written, 4);
        requests.extend(api.faults.take_requests());
    }
    let (needed, partitions) = needed(requests);
    assert_eq!(needed, granted("Snapshots"));
    for partition in partitions {
        assert!(allows_partition("Snapshots", &partition).contains(&true), "{partition}");
    }
    assert!(allows_partition("Snapshots", "REGISTRY").contains(&true));
}

/// A role's permissions on the snapshot bucket.
#[test]
fn functions_that_list_may_read_snapshots_and_only_the_writer_writes_them() {
    for (function, expected) in resources().map(|name| {
        let expected: &[&str] = match name {
            "Assets" | "Processes" => &["s3:GetObject", "s3:ListBucket"],
            // Snapshots contain names of erased people.
            "Users" => &["s3:GetObject", "s3:ListBucket", "s3:DeleteObject"],
            "Snapshots" => &["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"],
            _ => &[],
        };
        (name, expected)
    }) {
        let mut allowed = Vec::new();
        for statement in statements(function) {
            let of_s3 = texts(&statement["Action"]).into_iter().filter(|action| action.starts_with("s3:"));
            for action in of_s3 {
                let place = if action == "s3:ListBucket" { "SnapshotBucket.Arn" } else { "${SnapshotBucket.Arn}/list-index/*" };
                assert_eq!(texts(&statement["Resource"]), [place], "{function} {action}");
                allowed.push(action);
            }
        }
        assert_eq!(allowed, expected, "{function}");
        let variables = &resource(&format!("{function}Function"))["Properties"]["Environment"]["Variables"];
        assert_eq!(variables.get("SNAPSHOTS_URL").is_some(), !expected.is_empty(), "{function}");
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("set {name}, as .ci/aws/snapshots does"))
}

fn bucket(secret: &str) -> S3 {
    let credentials = Credentials::new(variable("AWS_ACCESS_KEY_ID"), secret, None, None, "test");
    let environment = operator_environment(Region::new("us-east-1"), credentials);
    S3::new(&variable("SNAPSHOTS_TEST_URL"), &environment, system_clock())
}

#[tokio::test]
#[ignore = "needs an S3 API: .ci/aws/snapshots"]
async fn objects_are_read_as_they_were_written() {
    let bucket = bucket(&variable("AWS_SECRET_ACCESS_KEY"));
    let key = "list-index/objects/0190163d-8694-739b-aea5-966c26f8ad90/asset";
    assert_eq!(bucket.get(key, 10).await.unwrap(), None);
    let object: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    bucket.put(key, object.clone()).await.unwrap();
    assert!(bucket.get(key, usize::MAX).await.unwrap().unwrap() == object);
    assert_eq!(bucket.get(key, 5).await.unwrap().unwrap(), object[..5]);
    bucket.put(key, b"other".to_vec()).await.unwrap();
    assert_eq!(bucket.get(key, 100).await.unwrap().unwrap(), b"other");
    for _ in 0..2 {
        bucket.delete(key).await.unwrap();
        assert_eq!(bucket.get(key, 100).await.unwrap(), None);
    }
}

/// The S3 API must check signatures, because otherwise this test would prove nothing.
#[tokio::test]
#[ignore = "needs an S3 API: .ci/aws/snapshots"]
async fn a_wrong_signature_is_an_error_and_not_a_missing_object() {
    let stranger = bucket("not the secret");
    let error = stranger.get("list-index/nothing", 10).await.unwrap_err().to_string();
    assert_eq!(error, "the object store responded with 403");
    assert!(stranger.put("list-index/nothing", Vec::new()).await.is_err());
}

#[tokio::test]
#[ignore = "needs an S3 API: .ci/aws/snapshots"]
async fn a_cold_list_takes_its_index_from_the_bucket() {
    let (api, client) = Api::with_tenant().await;
    let bucket: Arc<dyn ObjectStore> = Arc::new(bucket(&variable("AWS_SECRET_ACCESS_KEY")));
    let replica = api.replica_with(0, usize::MAX, Some(Arc::clone(&bucket)));
    let stranger = api.tenant().await;
    stranger.asset(json!({"name": "secret"})).await;
    client.asset(json!({"name": "a"})).await;
    let report = replica.store.write_snapshots(api.now().plus(TimeDelta::minutes(10))).await.unwrap();
    assert_eq!((report.written, report.failed), (8, 0));
    client.asset(json!({"name": "b"})).await;
    // Returns the number of assets in a cold list, and whether it read the index `list_index`.
    let cold_list = async || {
        replica.store.forget_list_indexes();
        api.faults.take_requests();
        let total = replica.client(&client).total("/assets").await;
        (total, index_reads(&api) > 0)
    };
    assert_eq!(cold_list().await, (2, false));
    let key = |tenant| format!("list-index/{}/{tenant}/asset", api.table);
    let own = bucket.get(&key(client.tenant), usize::MAX).await.unwrap().unwrap();
    let foreign = bucket.get(&key(stranger.tenant), usize::MAX).await.unwrap().unwrap();
    for (what, object) in [("foreign", foreign), ("torn", own[..own.len() / 2].to_vec()), ("empty", Vec::new())] {
        bucket.put(&key(client.tenant), object).await.unwrap();
        assert_eq!(cold_list().await, (2, true), "{what}");
    }
    bucket.put(&key(client.tenant), own).await.unwrap();
    assert_eq!(cold_list().await, (2, false));
    let key = format!("list-index/{}/last-tenant", api.table);
    assert!(bucket.get(&key, 100).await.unwrap().is_some());
    assert_eq!(bucket.get(&format!("{key}-expired"), 100).await.unwrap(), None);
    let newcomer = api.tenant().await;
    newcomer.asset(json!({"name": "c"})).await;
    api.faults.take_requests();
    assert_eq!(replica.client(&newcomer).total("/assets").await, 1);
    assert!(index_reads(&api) > 0);
}
