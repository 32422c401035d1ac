//! The requests of every route to the table.

use crate::support::Api;
use crate::support::operations::{METHODS, by_method, operations};
use crate::support::samples::Samples;
use serde_json::Value;
use shared::store::keys::{HISTORY, Keys, LIST_INDEX};

/// Collects every `PK` and `:pk` in a request.
pub fn partitions(request: &Value, found: &mut Vec<String>) {
    match request {
        Value::Object(map) => {
            found.extend(["PK", ":pk"].iter().filter_map(|name| map.get(*name)?["S"].as_str()).map(str::to_owned));
            map.values().for_each(|value| partitions(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| partitions(item, found)),
        _ => {}
    }
}

/// Lists of deliveries decide nothing, and follow no write of the caller.
fn is_delivery(sort_key: &Value) -> bool {
    sort_key["S"].as_str().unwrap_or_default().starts_with("DELIVERY#")
}

/// The request reads consistently, or writes only under a condition.
pub fn is_guarded(operation: &str, request: &Value, table: &str) -> bool {
    match operation {
        // Indexes have no consistent reads. Tests in `lists::index_races` and `history::lag` show that their lag does no harm.
        "Query" if [LIST_INDEX, HISTORY].iter().any(|index| request["IndexName"] == *index) => true,
        "Query" if is_delivery(&request["ExpressionAttributeValues"][":sk"]) => true,
        "GetItem" | "Query" => request["ConsistentRead"] == true,
        "BatchGetItem" if request["RequestItems"][table]["ConsistentRead"] == true => true,
        "BatchGetItem" => request["RequestItems"][table]["Keys"].as_array().unwrap().iter().all(|key| is_delivery(&key["SK"])),
        "PutItem" | "UpdateItem" | "DeleteItem" => request["ConditionExpression"].is_string(),
        "TransactWriteItems" => {
            let items = request["TransactItems"].as_array().unwrap().iter();
            items.flat_map(|item| item.as_object().unwrap().values()).all(|item| item["ConditionExpression"].is_string())
        }
        other => panic!("{other} is not an operation that the service uses"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_stays_in_its_tenant_reads_consistently_and_writes_conditionally() {
    let (api, client) = Api::with_tenant().await;
    let samples = Samples::create(&client).await;
    let (_, operations) = operations(&client).await;
    let own = Keys::of(client.tenant).partition().as_s().unwrap().clone();
    let mut checked = 0;
    for operation in by_method(&operations, &METHODS).filter(|operation| operation.needs_key) {
        api.faults.take_requests();
        if operation.is_write() {
            operation.send_dry_run(&client, &samples).await;
        }
        operation.send(&client, &samples).await;
        for (call, request) in api.faults.take_requests() {
            let mut found = Vec::new();
            partitions(&request, &mut found);
            assert!(!found.is_empty(), "{operation}: {call} without a partition: {request}");
            let is_own = |partition: &String| {
                *partition == own || ["RATE", "HOOK"].iter().any(|kind| partition.starts_with(&format!("{own}#{kind}#")))
            };
            assert!(found.iter().all(is_own), "{operation}: {call} in {found:?}");
            assert!(is_guarded(&call, &request, &api.table), "{operation}: {call} is not guarded: {request}");
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} requests");
}
