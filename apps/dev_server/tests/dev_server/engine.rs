//! The cost of a write in the embedded engine.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use dev_server::in_process::InProcessEngine;
use dev_server::meter::cpu_time;
use dev_server::{engine, server, table};
use std::time::Duration;

/// Returns the CPU time of 100 transactions, each with an SDK token: the minimum of ten runs, because other work on the machine
/// evicts the processor's caches.
async fn least_time(dynamo: &Client, first: u32) -> Duration {
    let mut times = Vec::new();
    for begin in (first..first + 1_000).step_by(100) {
        times.push(write(dynamo, begin..begin + 100).await);
    }
    times.into_iter().min().unwrap()
}

async fn write(dynamo: &Client, ids: std::ops::Range<u32>) -> Duration {
    let began = cpu_time();
    for id in ids {
        let key = AttributeValue::S(id.to_string());
        let put = Put::builder().table_name(server::TABLE).item("PK", key.clone()).item("SK", key).build().unwrap();
        dynamo.transact_write_items().transact_items(TransactWriteItem::builder().put(put).build()).send().await.unwrap();
    }
    cpu_time() - began
}

#[tokio::test]
#[ignore = "needs a minute: .ci/full writes"]
async fn a_write_takes_the_same_time_after_20000_others() {
    let http = SharedHttpClient::new(InProcessEngine::new().unwrap());
    let dynamo = Client::from_conf(engine::config("http://engine.invalid").http_client(http).build());
    table::create(&dynamo, server::TABLE).await.unwrap();
    let first = least_time(&dynamo, 0).await;
    write(&dynamo, 1_000..21_000).await;
    let last = least_time(&dynamo, 21_000).await;
    assert!(last < first.mul_f64(1.3), "{first:?} for 100 writes, and {last:?} after 20,000 others");
}
