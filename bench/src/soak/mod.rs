//! A soak test: mixed traffic of several tenants and API keys through two instances of the service whose clocks differ,
//! while calls to the table fail. At the end, all invariants are checked.

mod fault_injection;
mod tally;
mod traffic;
mod weak;

use crate::service::ApiClient;
use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use axum::Router;
use fault_injection::FaultInjector;
use local::engine::{self, Engine};
use local::invariants::violations;
use local::server::{self, TABLE};
use local::table;
use shared::app::{App, system_clock};
use shared::domain::api_key::MAX_RATE_LIMIT;
use shared::domain::asset::Asset;
use shared::domain::id::TenantId;
use shared::domain::time::Timestamp;
use shared::store::Store;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::{SharedTally, Tally};
use traffic::Tenant;

#[derive(clap::Args)]
pub struct Options {
    /// Duration of the traffic, in seconds.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u64,
    /// Number of tenants.
    #[arg(long, default_value_t = 3, value_name = "N")]
    tenants: usize,
    /// Number of concurrent clients per tenant.
    #[arg(long, default_value_t = 4, value_name = "N")]
    clients: usize,
    /// Number of calls to the table that fail, of a thousand.
    #[arg(long, default_value_t = 20, value_name = "N")]
    faults: u64,
    /// Simulate clients on a table that is as weak as AWS permits, instead. Only --seed and --seeds apply then.
    #[arg(long)]
    weak: bool,
    /// Seed of the first simulation.
    #[arg(long, default_value_t = 1, value_name = "N", requires = "weak")]
    seed: u64,
    /// Number of simulations, with consecutive seeds.
    #[arg(long, default_value_t = 1, value_name = "K", requires = "weak")]
    seeds: u64,
}

/// How far the clock of each instance of the service is off, in milliseconds.
const CLOCK_OFFSETS_MILLIS: [i64; 2] = [0, -1500];
/// Requests per minute of the one key of each tenant that is meant to reach its limit.
const LOW_RATE_LIMIT: u32 = 100;

/// A tenant, and what the test needs beside its traffic.
struct TestTenant {
    id: TenantId,
    tenant: Tenant,
    /// A client whose key has the low rate limit and can only read.
    limited_client: ApiClient,
}

/// Runs the soak test and prints a report.
///
/// # Errors
///
/// Returns an error when a request failed in a way that it must not, or when an invariant is violated.
pub async fn run(options: Options) -> Result<()> {
    if options.weak {
        return weak::run(options.seed, options.seeds);
    }
    ensure!(options.tenants > 0 && options.clients > 0, "--tenants and --clients must be at least 1");
    let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
    let injector = FaultInjector::new(aws_smithy_http_client::Builder::new().build_http());
    let client = Client::from_conf(engine::config(&engine.url).http_client(injector.clone()).build());
    table::create(&client, TABLE).await?;
    let stores = CLOCK_OFFSETS_MILLIS.map(|offset| {
        let clock = system_clock();
        Store::new(client.clone(), TABLE, Arc::new(move || Timestamp::from_millis(clock().millis() + offset)))
    });
    let routers = stores.clone().map(|store| server::router(App::new(store)));
    let mut tenants = Vec::new();
    for n in 0..options.tenants {
        tenants.push(create_tenant(&stores[0], &routers, format!("Tenant {n}")).await?);
    }

    let tally = SharedTally::default();
    let end = Instant::now() + Duration::from_secs(options.seconds);
    injector.set_rate(options.faults);
    let clients = tenants.iter().flat_map(|tenant| (0..options.clients).map(|n| run_client(tenant, n == 0, end, &tally)));
    futures_util::future::try_join_all(clients).await?;
    injector.set_rate(0);

    let mut tally = tally.take();
    for tenant in &tenants {
        tally.violations.extend(check(tenant, &stores[0], &client).await?);
    }
    report(&tally, injector.injected(), options.seconds)
}

async fn create_tenant(store: &Store, routers: &[Router; 2], name: String) -> Result<TestTenant> {
    let created = store.create_tenant(name.parse()?, None, MAX_RATE_LIMIT).await?;
    let clients = routers.clone().map(|router| ApiClient { router, api_key: created.api_key.expose() });
    let body = serde_json::json!({"name": "low", "scopes": ["assets:read"], "rate_limit_per_minute": LOW_RATE_LIMIT});
    let (_, key) = clients[0].send("POST", "/keys", &body.to_string(), None).await?;
    let api_key = key["data"]["api_key"].as_str().unwrap_or_default().to_owned();
    let limited_client = ApiClient { router: routers[0].clone(), api_key };
    Ok(TestTenant { id: created.tenant_id, tenant: Tenant::new(name, clients.into()).await?, limited_client })
}

/// Sends requests until `end`; with `also_limited`, also reads with the key that has the low rate limit.
async fn run_client(test: &TestTenant, also_limited: bool, end: Instant, tally: &SharedTally) -> Result<()> {
    while Instant::now() < end {
        test.tenant.act(tally).await?;
        if also_limited {
            let (status, response) = test.limited_client.send("GET", "/assets?limit=1", "", None).await?;
            tally.lock().count(&response);
            ensure!(status.as_u16() != 500, "{}: a list returned 500: {response}", test.tenant.name);
        }
    }
    Ok(())
}

/// Returns the violated invariants of a tenant.
async fn check(test: &TestTenant, store: &Store, client: &Client) -> Result<Vec<String>> {
    let (name, store) = (&test.tenant.name, store.tenant(test.id));
    let violations = violations(&store, client, TABLE).await?;
    let mut violations: Vec<String> = violations.into_iter().map(|violation| format!("{name}: {violation}")).collect();
    let stored = store.all::<Asset>().await?.len();
    for client in &test.tenant.clients {
        let (_, list) = client.send("GET", "/assets?limit=1", "", None).await?;
        let total = &list["meta"]["total"];
        if *total != stored {
            violations.push(format!("{name}: the list has {total} of {stored} assets"));
        }
    }
    Ok(violations)
}

fn report(tally: &Tally, faults: u64, seconds: u64) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} requests in {seconds} s, {faults} faults injected", tally.requests)?;
    for (code, count) in &tally.responses {
        writeln!(out, "{count:>10}  {code}")?;
    }
    for violation in tally.violations.iter().take(20) {
        writeln!(out, "VIOLATION: {violation}")?;
    }
    if !tally.violations.is_empty() {
        bail!("{} invariants are violated", tally.violations.len());
    }
    writeln!(out, "all invariants hold")?;
    Ok(())
}
