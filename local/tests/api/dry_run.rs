//! Dry runs: every write of the OpenAPI document decides as in earnest and writes nothing.

use crate::support::Api;
use crate::support::operations::{Operation, operations};
use crate::support::samples::Samples;
use serde_json::Value;
use shared::domain::time::Timestamp;

/// The writes in an order in which each still finds the sample resources: deletions come last.
fn writes(operations: &[Operation]) -> Vec<&Operation> {
    let (deletions, others): (Vec<&Operation>, Vec<&Operation>) =
        operations.iter().filter(|operation| operation.is_write()).partition(|operation| operation.method == "DELETE");
    let (changes, creations): (Vec<_>, Vec<_>) = others.into_iter().partition(|operation| operation.method != "POST");
    [changes, creations, deletions].concat()
}

/// Compares the body of a dry run with the one in earnest. They may differ in times, and the dry run has null where the
/// request in earnest assigns something. Returns the paths of these.
fn assigned(place: &str, dry: &Value, earnest: &Value) -> Vec<String> {
    match (dry, earnest) {
        (Value::Object(dry), Value::Object(earnest)) => {
            assert!(dry.keys().eq(earnest.keys()), "{place}: {dry:?}, but {earnest:?}");
            dry.iter().flat_map(|(name, value)| assigned(&format!("{place}/{name}"), value, &earnest[name])).collect()
        }
        (Value::Array(dry), Value::Array(earnest)) => {
            assert_eq!(dry.len(), earnest.len(), "{place}");
            let members = dry.iter().zip(earnest).enumerate();
            members.flat_map(|(n, (dry, earnest))| assigned(&format!("{place}/{n}"), dry, earnest)).collect()
        }
        (Value::Null, Value::String(_)) => vec![place.to_owned()],
        (Value::String(dry), Value::String(earnest)) if dry != earnest => {
            let is_time = |text: &str| text.parse::<Timestamp>().is_ok();
            assert!(is_time(dry) && is_time(earnest), "{place}: {dry}, but {earnest}");
            Vec::new()
        }
        _ => {
            assert_eq!(dry, earnest, "{place}");
            Vec::new()
        }
    }
}

#[tokio::test]
async fn every_write_can_be_tried_without_a_trace_and_says_what_it_would_do() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let (_, operations) = operations(&client).await;
    let mut tried = 0;
    for operation in writes(&operations) {
        let before = api.dump().await;
        let dry = operation.send_dry_run(&client, &samples).await;
        assert_eq!(dry.status, 200, "{operation}: {}", dry.text());
        assert_eq!((dry.header("dry-run"), dry.header("etag"), dry.header("location")), ("true", "", ""), "{operation}");
        assert_eq!(api.dump().await, before, "a dry run of {operation} changed the table");

        let earnest = operation.send(&client, &samples).await;
        assert!(earnest.status.is_success(), "{operation}: {}", earnest.text());
        assert_eq!(earnest.header("dry-run"), "", "{operation}");
        let left = |reply: &crate::support::Reply| reply.header("x-ratelimit-remaining").parse::<u64>().unwrap();
        assert_eq!(left(&earnest) + 1, left(&dry), "{operation} was not counted");
        let nulls = assigned("", &dry.json(), &earnest.json());
        let is_creation = earnest.status == 201;
        assert_eq!(is_creation, nulls.contains(&"/data/id".to_owned()), "{operation}: {nulls:?}");
        tried += 1;
    }
    assert!(tried >= 27, "only {tried} writes");
}
