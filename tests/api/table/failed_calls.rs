//! Every write endpoint, with every call to the table failing in every way. A client that repeats the request under its
//! idempotency key has it executed once, and nothing is left half done.

use crate::http::idempotency::stored;
use crate::support::operations::{Operation, WRITE_METHODS, by_method, operations};
use crate::support::samples::{Samples, content_type, event_count};
use crate::support::{Api, Client, Snapshot, at_each_place, full_tests, sample};
use dev_server::faulty_table::planned::CallFailure;
use dev_server::invariants::violations;
use std::io::Write;

/// A tenant with sample resources that every case begins with.
struct Cases {
    api: Api,
    client: Client,
    samples: Samples,
    start: Snapshot,
}

#[tokio::test(start_paused = true)]
async fn every_write_survives_that_any_of_its_calls_is_throttled() {
    survives_each_failure(CallFailure::Throttled).await;
}

#[tokio::test(start_paused = true)]
async fn every_write_survives_that_any_of_its_calls_is_in_conflict() {
    survives_each_failure(CallFailure::Conflict).await;
}

#[tokio::test(start_paused = true)]
async fn every_write_survives_that_any_of_its_calls_times_out_without_effect() {
    survives_each_failure(CallFailure::TimedOutBefore).await;
}

#[tokio::test(start_paused = true)]
async fn every_write_survives_that_any_of_its_calls_times_out_after_its_effect() {
    survives_each_failure(CallFailure::TimedOutAfter).await;
}

/// Lets the first call of each write fail, then the second, and so on until there is none left to fail; every day, one call of
/// three writes.
async fn survives_each_failure(failure: CallFailure) {
    let (api, client) = Api::with_tenant().await;
    let (_, operations) = operations(&client).await;
    let samples = Samples::create(&client).await;
    let start = Snapshot::of(&api, client.tenant).await;
    api.queue.take();
    let cases = Cases { api, client, samples, start };
    if full_tests() {
        let mut failures = 0;
        let writes: Vec<_> = by_method(&operations, &WRITE_METHODS).collect();
        at_each_place(&writes, 1, 1, async |place, operation| {
            let has_failed = cases.survives(operation, place, failure).await.has_failed;
            failures += usize::from(has_failed);
            has_failed
        })
        .await;
        assert!(failures >= 100, "only {failures} failures");
        writeln!(std::io::stdout().lock(), "\n{failures} calls failed as {failure:?}, and the invariants hold").unwrap();
        return;
    }
    // A sample of all calls, so they are counted first.
    for operation in sample(by_method(&operations, &WRITE_METHODS), 3) {
        // The first request reads what the function keeps in memory for the others.
        cases.survives(operation, usize::MAX, failure).await;
        let calls = cases.survives(operation, usize::MAX, failure).await.calls;
        for place in sample(0..calls, 1) {
            assert!(cases.survives(operation, place, failure).await.has_failed, "{operation} has no call {place}");
        }
    }
}

/// A request that was sent until it succeeded.
struct Survival {
    calls: usize,
    has_failed: bool,
}

impl Cases {
    /// Sends a request while its call number `place` fails, and repeats it until it succeeds.
    async fn survives(&self, operation: &Operation, place: usize, failure: CallFailure) -> Survival {
        let name = format!("{operation}, call {place} {failure:?}");
        let (path, body) = self.samples.request(&operation.method, &operation.path);
        self.api.faults.fail_call(place, failure);
        self.api.faults.take_requests();
        let (mut attempts, mut calls) = (0, 0);
        let (headers, content_type) = ([("idempotency-key", "the request")], Some(content_type(&operation.path)));
        let send = || self.client.send_with(&operation.method, &path, content_type, body.clone(), &headers);
        let reply = loop {
            let reply = send().await;
            if attempts == 0 {
                calls = self.api.faults.take_requests().len();
            }
            attempts += 1;
            // A part of a request can be unavailable, too.
            if !reply.text().contains("\"code\":\"UNAVAILABLE\"") || attempts == 4 {
                break reply;
            }
        };
        let has_failed = self.api.faults.stop_failing();
        // A deletion has no idempotency key: when it took effect unseen, the second one finds nothing.
        let is_gone = operation.method == "DELETE" && failure == CallFailure::TimedOutAfter && reply.status == 404;
        assert!(reply.status.is_success() || is_gone, "{name}: {} {}", reply.status, reply.text());
        if operation.method == "POST" {
            let again = send().await;
            assert_eq!((again.header("idempotent-replayed"), again.json()), ("true", stored(&path, &reply)), "{name}");
        }
        let now = Snapshot::of(&self.api, self.client.tenant).await;
        let expected = event_count(&operation.method, &operation.path);
        assert_eq!(now.events() - self.start.events(), expected, "{name}: it must be executed once");
        // A message may be sent twice, but not two different ones.
        let mut messages = self.api.queue.take();
        messages.dedup();
        assert_eq!(messages.len(), usize::from(expected == 0), "{name}: {messages:?}");
        let found = violations(&self.api.store.tenant(self.client.tenant), &self.api.dynamo, &self.api.table).await.unwrap();
        assert!(found.is_empty(), "{name}: {found:?}");
        self.start.restore(&self.api, &now).await;
        Survival { calls, has_failed }
    }
}
