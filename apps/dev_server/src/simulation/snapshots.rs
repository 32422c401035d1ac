//! The writer of snapshots: a function of its own, whose clock differs from the others'.

use super::service::Service;
use crate::faulty_table::SeededRandom;
use chrono::TimeDelta;
use std::time::Duration;
use tokio::time::sleep;

const MAX_INTERVAL_MILLIS: u64 = 15_000;
const MAX_RUN: TimeDelta = TimeDelta::minutes(10);

/// Writes snapshots until the simulation is over. Sometimes all objects are lost before a run, which then loads the
/// indexes from the table.
pub async fn write(service: &Service, random: SeededRandom) {
    while !service.is_over() {
        service.wait_while_idle().await;
        if random.below(3) == 0 {
            service.objects.clear();
        }
        let (store, was_calm) = (service.store_with_random_clock(), service.is_calm());
        let run = store.write_snapshots(store.now().plus(MAX_RUN)).await;
        let is_right = run.as_ref().is_ok_and(|report| report.failed == 0);
        if !is_right && was_calm && service.is_calm() {
            service.add_violation(format!("the writer of snapshots fails: {run:?}"));
        }
        sleep(Duration::from_millis(random.below(MAX_INTERVAL_MILLIS))).await;
    }
}
