//! Every write endpoint with every call to the table failing in every way: whoever sends the request again, under its
//! idempotency key, has it done once, and nothing is left half done.

use crate::coverage::operations;
use crate::support::samples::Samples;
use crate::support::{Api, Client};
use local::invariants::violations;
use std::io::Write;

/// What can happen to a call: refused before it was done, in conflict, unanswered before and after it was done.
const WAYS: [&str; 4] = ["throttled", "conflict", "timed out before", "timed out after"];

#[tokio::test]
async fn every_write_survives_the_failure_of_each_of_its_calls() {
    let (api, first) = Api::with_tenant().await;
    let (_, operations) = operations(&first).await;
    let mut injected = 0;
    for operation in operations.iter().filter(|operation| ["POST", "PATCH", "DELETE"].contains(&operation.method.as_str())) {
        for way in WAYS {
            for place in 0.. {
                let client = api.tenant().await;
                if !survives(&api, &client, &operation.method, &operation.path, place, way).await {
                    break;
                }
                injected += 1;
            }
        }
    }
    assert!(injected >= 300, "only {injected} faults");
    writeln!(std::io::stdout().lock(), "\n{injected} faults injected and survived, invariants hold").unwrap();
}

/// Sends a request while its call number `place` fails, and again until it succeeds; tells whether there was a call to
/// fail.
async fn survives(api: &Api, client: &Client, method: &str, path: &str, place: usize, way: &'static str) -> bool {
    let samples = Samples::of(client).await;
    let (filled, body) = (samples.fill(path), samples.body(method, path));
    let filled = filled.strip_prefix("/v1").unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let name = format!("{method} {path}, call {place} {way}");
    let events = events_of(api, client).await;
    api.faults.fail_call(place, way);
    let mut reply;
    let mut tries = 0;
    loop {
        let headers = [("idempotency-key", "the request")];
        reply = client.send_with(method, filled, Some("application/json"), body.clone(), &headers).await;
        tries += 1;
        if reply.status != 503 || tries == 4 {
            break;
        }
    }
    let failed = api.faults.heal();
    // A deletion that took effect unseen is a 404 the second time: there is no key to tell it by.
    let gone = method == "DELETE" && way == "timed out after" && reply.status == 404;
    assert!(reply.status.is_success() || gone, "{name}: {} {}", reply.status, reply.text());
    assert_eq!(
        events_of(api, client).await - events,
        crate::support::samples::events(&method.to_lowercase(), path),
        "{name}: done once"
    );
    let wrong = violations(&api.store.tenant(client.tenant), &api.dynamo, &api.table).await.unwrap();
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
    failed
}

async fn events_of(api: &Api, client: &Client) -> usize {
    let query = api.dynamo.query().table_name(&api.table).key_condition_expression("PK = :pk AND begins_with(SK, :sk)");
    let query = query.expression_attribute_values(":pk", shared::store::keys::Keys::of(client.tenant).partition());
    let events = aws_sdk_dynamodb::types::AttributeValue::S("EVENT#".to_owned());
    let mut pages = query.expression_attribute_values(":sk", events).into_paginator().send();
    let mut count = 0;
    while let Some(page) = pages.next().await {
        count += page.unwrap().items().len();
    }
    count
}
