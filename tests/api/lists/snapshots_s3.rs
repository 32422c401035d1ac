//! Snapshots in something with S3's API, which `.ci/aws/snapshots` starts: `SNAPSHOTS_TEST_URL` is the URL of an empty bucket.

use crate::support::Api;
use aws_sdk_dynamodb::config::{Credentials, Region};
use chrono::TimeDelta;
use serde_json::json;
use shared::app::system_clock;
use shared::aws::environment::operator_environment;
use shared::aws::object_store::ObjectStore;
use shared::aws::s3::S3;
use std::sync::Arc;

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

/// The S3 API checks signatures, or this would prove nothing.
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
        let requests = api.faults.take_requests();
        (total, requests.iter().any(|(_, request)| request["IndexName"] == "list_index"))
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
    // An object that has expired is missing.
    let key = format!("list-index/{}/last-tenant", api.table);
    assert!(bucket.get(&key, 100).await.unwrap().is_some());
    assert_eq!(bucket.get(&format!("{key}-expired"), 100).await.unwrap(), None);
    let newcomer = api.tenant().await;
    newcomer.asset(json!({"name": "c"})).await;
    api.faults.take_requests();
    assert_eq!(replica.client(&newcomer).total("/assets").await, 1);
    assert!(api.faults.take_requests().iter().any(|(_, request)| request["IndexName"] == "list_index"));
}
