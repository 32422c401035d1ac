//! Measures the speed of imports into a table that allows 1,000 write units per second.

use crate::statistics::{millis, percentile};
use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodb::Client;
use dev_server::api::ApiClient;
use dev_server::engine::{self, Engine};
use dev_server::faulty_table::{CapacityLimit, Usage};
use dev_server::server::{self, TABLE};
use dev_server::table;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use shared::app::{App, system_clock};
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::store::Store;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Write units of a partition per second ("Burst and adaptive capacity" in the DynamoDB developer guide).
const UNITS_PER_SECOND: f64 = 1_000.0;
const ROWS: usize = 200;
const REQUESTS: usize = 2;
const GET_PAUSE: Duration = Duration::from_millis(20);
/// Minimum share of the table's write units that an import must use.
const LEAST_USE: f64 = 0.9;
/// Maximum share of GETs that may take more than twice their usual 99th percentile.
const MOST_SLOW: f64 = 0.01;

#[derive(clap::Args)]
pub struct Options {
    /// Number of rows.
    #[arg(long, default_value_t = 2_000, value_name = "N")]
    rows: usize,
    /// Only print the figures; don't fail if a goal is missed.
    #[arg(long)]
    report: bool,
}

struct Target {
    store: Store,
    key: String,
    limit: CapacityLimit,
    _engine: Engine,
}

impl Target {
    async fn start() -> Result<Self> {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
        let http = aws_smithy_http_client::Builder::new().build_http();
        let limit = CapacityLimit::new(http, Usage::Write, UNITS_PER_SECOND);
        let config = engine::config(&engine.url).http_client(limit.clone()).interceptor(dev_server::meter::Meter::default());
        let client = Client::from_conf(config.build());
        table::create(&client, TABLE).await?;
        let store = Store::new(client, TABLE, system_clock());
        let created = store.create_tenant("Bench".parse()?, None, MAX_RATE_LIMIT).await?;
        Ok(Self { store, key: created.api_key.expose(), limit, _engine: engine })
    }

    async fn send(&self, method: &str, path: &str, body: &str, idempotency_key: &str) -> Result<Value> {
        let headers = [("content-type", "text/csv"), ("idempotency-key", idempotency_key)];
        let headers = if idempotency_key.is_empty() { &headers[..1] } else { &headers[..] };
        let client = ApiClient { router: server::router(App::new(self.store.clone())), api_key: self.key.clone() };
        Ok(client.send(method, path, headers, body).await?.1)
    }

    /// Imports rows, with retries until every row has a final result. Returns the number of refused rows.
    async fn import(&self, first: usize, count: usize) -> Result<usize> {
        let (csv, key) = (rows(first, count)?, format!("rows-{first}"));
        loop {
            let response = self.send("POST", "/assets/import", &csv, &key).await?;
            let outcomes = response["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_temporary = |row: &&Value| row["errors"][0]["code"] == "UNAVAILABLE";
            if response["status"] == 503 || outcomes.iter().any(|row| is_temporary(&row)) {
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
            ensure!(outcomes.len() == count, "an import of {count} rows returned {response}");
            return Ok(outcomes.iter().filter(|row| row["outcome"] != "created").count());
        }
    }

    async fn import_all(&self, count: usize) -> Result<usize> {
        let starts = stream::iter((0..count).step_by(ROWS));
        let refused: Vec<usize> =
            starts.map(|start| self.import(start, ROWS.min(count - start))).buffer_unordered(REQUESTS).try_collect().await?;
        Ok(refused.into_iter().sum())
    }
}

fn rows(first: usize, count: usize) -> Result<String> {
    let mut csv =
        "name,serial_number,manufacturer,model,purchase_date,purchase_price,warranty_until,custom_fields.ram\n".to_owned();
    for n in first..first + count {
        writeln!(csv, "Laptop {n},SN-{n:08},Dell,Latitude 7450,2026-03-04,1249.00,2029-03-03,16")?;
    }
    Ok(csv)
}

pub fn run(options: &Options) -> Result<()> {
    let (used, slow) = against_limit(options.rows)?;
    if !options.report {
        ensure!(used >= LEAST_USE, "the import uses less than {LEAST_USE} of what the table allows");
        ensure!(slow <= MOST_SLOW, "more than {MOST_SLOW} of the GETs during the import are slow");
    }
    Ok(())
}

/// Returns the share of the write units that an import uses, and the share of slow GETs during the import.
fn against_limit(count: usize) -> Result<(f64, f64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    std::thread::spawn(move || runtime.block_on(against_limit_in_runtime(count)))
        .join()
        .map_err(|_| anyhow::anyhow!("the benchmark panicked"))?
}

async fn against_limit_in_runtime(count: usize) -> Result<(f64, f64)> {
    let target = Arc::new(Target::start().await?);
    let created = target.send("POST", "/assets/import", "name\nseen\n", "").await?;
    let path = format!("/assets/{}", created["data"][0]["id"].as_str().context("no id")?);
    let mut usual = gets(&target, &path, || false, 250).await?;
    usual.sort_unstable();
    let usual = percentile(&usual, 99);
    target.limit.set(true);
    let is_done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (target, path, is_done) = (Arc::clone(&target), path.clone(), Arc::clone(&is_done));
        tokio::spawn(async move { gets(&target, &path, || is_done.load(Ordering::Relaxed), usize::MAX).await })
    };
    let start = Instant::now();
    let refused = target.import_all(count).await?;
    let seconds = start.elapsed().as_secs_f64();
    is_done.store(true, Ordering::Relaxed);
    let times = reader.await??;
    ensure!(refused == 0, "{refused} rows were refused by a table that throttles");
    let (units, throttled) = target.limit.counts();
    let used = units / (seconds * UNITS_PER_SECOND);
    let slow = times.iter().filter(|time| **time > usual * 2).count() as f64 / times.len() as f64;
    writeln!(
        std::io::stdout(),
        "{count} rows into a table with {UNITS_PER_SECOND} write units per second: {:.0} rows/s, {:.0} units/s, {throttled} calls \
         throttled; {} GETs during the import, {:.2} % of them slower than twice their usual p99 of {:.1} ms",
        count as f64 / seconds,
        units / seconds,
        times.len(),
        slow * 100.0,
        millis(usual)
    )?;
    Ok((used, slow))
}

async fn gets(target: &Target, path: &str, is_done: impl Fn() -> bool, most: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !is_done() && times.len() < most {
        let start = Instant::now();
        let response = target.send("GET", path, "", "").await?;
        ensure!(response["data"].is_object(), "a GET returned {response}");
        times.push(start.elapsed());
        tokio::time::sleep(GET_PAUSE).await;
    }
    Ok(times)
}
