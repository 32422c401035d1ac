//! A simulation of clients that use the service on a faulty table, from one seed.
//!
//! Several tenants' clients send mixed traffic to instances of the service whose clocks differ, that freeze between requests and
//! are killed during them, while phases with and without faults alternate. A model knows the possible contents of each response;
//! a contradiction is a violation. One more tenant is attacked with hostile requests. A simulation needs a single-threaded
//! runtime with a paused clock, so that its minutes take seconds and the same seed repeats the run.

mod check;
mod hostile;
mod processes;
mod records;
mod service;
mod tenant;

use crate::faulty_table::{FaultyTable, SeededRandom, Weaknesses};
use crate::server::TABLE;
use crate::table;
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use chrono::TimeDelta;
use futures_util::future::join_all;
use service::Service;
use std::collections::BTreeMap;
use std::time::Duration;
use tenant::{MARKER, Tenant};
use tokio::time::sleep;

const TENANTS: usize = 2;
const CLIENTS: usize = 3;
/// Maximum interval between runs of the snapshot writer.
const MAX_INTERVAL_MILLIS: u64 = 15_000;
const MAX_RUN: TimeDelta = TimeDelta::minutes(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Two phases with faults, of about two minutes each.
    Full,
    /// A phase with faults of half a minute.
    Short,
}

#[derive(Debug, Default)]
pub struct Report {
    pub requests: u64,
    /// Number of responses by status; 0 stands for no response.
    pub responses: BTreeMap<u16, u64>,
    pub accepted_attacks: u64,
    pub weaknesses: BTreeMap<&'static str, u64>,
    /// Number of list index snapshots that were read completely.
    pub snapshots: u64,
    pub violations: Vec<String>,
}

/// Runs a simulation. The seed determines the whole run.
///
/// # Errors
///
/// Returns an error if the simulation itself can't continue, for example because the engine fails.
pub async fn run(seed: u64, length: Length) -> Result<Report> {
    // Seeds the SDK's backoff.
    fastrand::seed(seed);
    let random = SeededRandom::new(seed);
    let table = FaultyTable::new(random.next())?;
    let client = Client::from_conf(table.config().build());
    table::create(&client, TABLE).await?;
    let service = Service::new(table.clone(), random.fork())?;
    let mut tenants = Vec::new();
    for n in 0..TENANTS {
        tenants.push(Tenant::create(&service, n, MARKER).await?);
    }
    let attacked = Tenant::create(&service, TENANTS, "Attacked").await?;
    let traffic = async {
        let clients = tenants.iter().flat_map(|tenant| (0..CLIENTS).map(|n| service::run(&service, tenant, random.fork(), n)));
        let readers = tenants.iter().map(|tenant| check::follow_feed(&service, tenant));
        let writer = write_snapshots(&service, random.fork());
        let attackers = hostile::attack(&service, &attacked, &tenants, random.fork());
        futures_util::join!(join_all(clients.collect::<Vec<_>>()), join_all(readers), writer, attackers);
    };
    futures_util::join!(set_weaknesses(&service, random.fork(), length), traffic);
    check::check_lists(&service);
    for tenant in &tenants {
        check::check(&service, tenant, &client).await?;
    }
    hostile::check(&service, &attacked, &client).await?;
    Ok(service.report())
}

/// Alternates phases with faults, phases without faults, and idle times of up to two hours; then ends the simulation.
async fn set_weaknesses(service: &Service, random: SeededRandom, length: Length) {
    // Behaviour that DynamoDB doesn't guarantee differs from seed to seed.
    let pick = |choices: &[u64]| choices[random.below(choices.len() as u64) as usize];
    let ordinary = Weaknesses {
        torn_millis: pick(&[0, 5, 20, 100]),
        list_index_lag_millis: pick(&[0, 200, 5_000, 60_000]),
        history_lag_millis: pick(&[0, 5_000, 60_000, 75_000, 1_800_000, 3_500_000]),
        cut_page_per_mille: pick(&[0, 200, 900]),
        ..Weaknesses::ordinary()
    };
    let (storms, share) = if length == Length::Full { (2, 1) } else { (1, 3) };
    let pause = |seconds: u64| sleep(Duration::from_secs(seconds / share));
    for _ in 0..storms {
        service.table.set(ordinary.clone().with_faults());
        service.set_kills(30);
        pause(15 + random.below(20)).await;
        service.table.set(ordinary.clone());
        service.set_kills(0);
        pause(20 + random.below(15)).await;
        // Records that haven't changed for hours are old in every comparison of times.
        service.idle(Duration::from_secs(pick(&[1, 120, 3_000, 7_200]))).await;
        pause(10).await;
    }
    service.end();
}

/// Runs the function that writes snapshots, with a random clock offset, until the simulation is over. Sometimes all objects are
/// lost before a run, which then loads the indexes from the table.
async fn write_snapshots(service: &Service, random: SeededRandom) {
    while !service.is_over() {
        service.wait_while_idle().await;
        if random.below(3) == 0 {
            service.objects.clear();
        }
        let (store, was_calm) = (service.store_with_random_clock(), service.is_calm());
        let run = store.write_snapshots(store.now().plus(MAX_RUN)).await;
        let is_right = run.as_ref().is_ok_and(|report| report.failed == 0);
        if !is_right && was_calm && service.is_calm() {
            service.add_violation(format!("the snapshot writer failed: {run:?}"));
        }
        sleep(Duration::from_millis(random.below(MAX_INTERVAL_MILLIS))).await;
    }
}
