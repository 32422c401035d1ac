//! The permissions for snapshots, and the protection of their bucket.

use crate::deployment::policies::{allows_partition, granted, needed, statements, texts};
use crate::support::Api;
use crate::support::functions::{resource, resources};
use dev_server::faulty_table::FaultyObjects;
use serde_json::json;
use shared::domain::record::Kind;
use shared::store::keys::Keys;

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
        // An asset that the index lacks, although an event says that it was changed, is read by itself.
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

/// The permissions of a role in the bucket of snapshots.
#[test]
fn functions_that_list_may_read_snapshots_and_only_the_writer_writes_them() {
    for (function, expected) in resources().map(|name| {
        let expected: &[&str] = match name {
            "Assets" | "Processes" => &["s3:GetObject", "s3:ListBucket"],
            // Snapshots name people who are erased.
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
