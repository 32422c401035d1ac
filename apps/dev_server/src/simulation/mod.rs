//! A simulation of clients that use the service on a faulty table, from one seed.
//!
//! Several tenants' clients send mixed traffic to instances of the service whose clocks differ, that freeze between requests and
//! are killed during them, while phases with faults and phases without alternate. A model has the possible contents of each
//! response; a contradiction is a violation. One more tenant is attacked with hostile requests. A simulation needs a runtime of
//! one thread whose clock is paused, so that its minutes take seconds and the same seed repeats it.

mod assets;
mod check;
mod hostile;
mod lists;
mod phases;
mod processes;
mod service;
mod tenant;
mod users;

use crate::faulty_table::{FaultyTable, SeededRandom};
use crate::server::TABLE;
use crate::table;
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use futures_util::future::join_all;
pub use phases::Length;
use service::Service;
use std::collections::BTreeMap;
use tenant::{MARKER, Tenant};

const TENANTS: usize = 2;
const CLIENTS: usize = 3;

#[derive(Debug, Default)]
pub struct Report {
    pub requests: u64,
    /// Numbers of responses by status; 0 stands for no response.
    pub responses: BTreeMap<u16, u64>,
    pub accepted_attacks: u64,
    pub weaknesses: BTreeMap<&'static str, u64>,
    /// Snapshots of list indexes that were read as a whole.
    pub snapshots: u64,
    pub violations: Vec<String>,
}

/// The seed decides about the whole run.
///
/// # Errors
///
/// Returns an error when the simulation itself can't go on, for example because the engine fails.
pub async fn run(seed: u64, length: Length) -> Result<Report> {
    // The SDK's pauses between attempts.
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
        let readers = tenants.iter().map(|tenant| check::follow(&service, tenant));
        let writer = lists::write(&service, random.fork());
        let attackers = hostile::attack(&service, &attacked, &tenants, random.fork());
        futures_util::join!(join_all(clients.collect::<Vec<_>>()), join_all(readers), writer, attackers);
    };
    futures_util::join!(phases::run(&service, random.fork(), length), traffic);
    check::check_lists(&service);
    for tenant in &tenants {
        check::check(&service, tenant, &client).await?;
    }
    hostile::check(&service, &attacked, &client).await?;
    Ok(service.report())
}
