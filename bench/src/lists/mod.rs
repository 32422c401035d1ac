//! Measures the cost and latency of lists, by the number of assets in a tenant.

mod fill;
mod report;
mod snapshots;

use crate::service::Service;
use anyhow::{Result, ensure};
use aws_sdk_dynamodb::types::AttributeValue;
use dev_server::SnapshotFolder;
use dev_server::cpu_time::cpu_time;
use dev_server::meter::Cost;
use dev_server::server::TABLE;
use report::{Measurement, Report};
use shared::app::system_clock;
use shared::aws::environment;
use shared::aws::object_store::ObjectStore;
use shared::aws::s3::S3;
use shared::store::keys::{Keys, LIST_INDEX};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Options {
    /// Numbers of assets to measure with, one tenant each.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000", value_name = "N,…")]
    sizes: Vec<usize>,
    /// Also measure tenants with this many assets, of which only the newest are in the table. The others are generated when
    /// they are read, which takes minutes instead of hours.
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    generated: Vec<usize>,
    /// Also measure a tenant with 1,000,000 assets. Takes minutes and about 4 GB of memory.
    #[arg(long)]
    million: bool,
    /// Bucket for the snapshots, with S3's API, as .ci/aws/snapshots starts one. Without it, they are in a folder.
    #[arg(long, env = "SNAPSHOTS_TEST_URL", value_name = "URL")]
    snapshots_url: Option<String>,
    /// Number of requests per warm list.
    #[arg(long, default_value_t = 300, value_name = "N")]
    samples: usize,
    /// Also write the measurements to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Reading every row of the GSI with no list index in memory: the baseline.
pub const FULL_QUERY: &str = "full index query";
/// The first list of a function instance, which loads the list index.
pub const COLD: &str = "first list of an instance";
/// The first list of a function instance that takes the list index from a snapshot.
pub const COLD_SNAPSHOT: &str = "first list, from a snapshot";
/// A search that no asset matches.
pub const SEARCH: &str = "search without matches";
pub const FILTER: &str = "filter by status and kind";
pub const EMPTY_FILTER: &str = "filter without matches";
/// A search that matches a third of all assets and must compare their names: it gets slower with their number.
pub const BROAD: &str = "a third of all, sorted by name";
pub const SORTED: &str = "a status, sorted by name";

pub const STATS: &str = "statistics";

fn lists(size: usize) -> Vec<(&'static str, String)> {
    let last_page = size.div_ceil(20);
    vec![
        ("page 1", String::new()),
        (if last_page >= 5000 { "page 5,000" } else { "last page" }, format!("?page={}", last_page.min(5000))),
        (SEARCH, "?q=nosuchthing".to_owned()),
        (FILTER, "?status=in_use&kind=physical".to_owned()),
        (EMPTY_FILTER, "?status=in_use&kind=logical".to_owned()),
        (BROAD, "?q=latitude%20room&sort=name".to_owned()),
        (SORTED, "?status=in_use&sort=name".to_owned()),
    ]
}

/// Fails if a list took more round trips or read units than it may.
pub async fn run(options: Options) -> Result<()> {
    let mut report = Report::default();
    report.print_header()?;
    let million = options.million.then_some(1_000_000);
    for size in options.sizes.iter().copied().chain(million) {
        ensure!(size >= 100, "--sizes must be at least 100");
        measure(&mut report, size, &options).await?;
    }
    for size in &options.generated {
        ensure!(*size >= 10_000, "--generated must be at least 10,000");
        measure_generated(&mut report, *size, &options).await?;
    }
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(&report.measurements)?)?;
    }
    report.check_goals()
}

fn snapshot_store(url: Option<&str>, folder: &std::path::Path) -> Result<Arc<dyn ObjectStore>> {
    Ok(match url {
        Some(url) => Arc::new(S3::new(url, &environment::function_environment()?, system_clock())),
        None => Arc::new(SnapshotFolder::new(folder.to_owned())),
    })
}

async fn measure(report: &mut Report, size: usize, options: &Options) -> Result<()> {
    let sample_count = options.samples.max(1);
    let folder = tempfile::tempdir()?;
    let service = Service::start(Some(snapshot_store(options.snapshots_url.as_deref(), folder.path())?)).await?;
    let text_bytes = fill::fill(&service, size).await?;
    // Lists read the events of the last seconds again; those of the catalog, which is new, must not count.
    service.advance_clock(120_000);
    let cold_count = (200_000 / size).clamp(2, 20);

    let baseline = sample(&service, cold_count, async || query_full_index(&service, size).await).await?;
    report.add(Measurement::new(size, FULL_QUERY, &baseline, &baseline, None))?;

    let forget = || service.store.forget_list_indexes();
    let cold = sample_after(&service, cold_count, forget, async || request_page(&service, "", size).await).await?;
    let overhead = service.store.list_index_bytes().saturating_sub(text_bytes) as f64 / size as f64;
    report.add(Measurement::new(size, COLD, &cold, &baseline, Some(overhead)))?;
    report.add_index_bytes(size, service.store.list_index_bytes());

    snapshots::write(&service).await?;
    service.advance_clock(120_000);
    let cold = snapshots::cold_lists(&service, size, cold_count.max(5)).await?;
    report.add(Measurement::new(size, COLD_SNAPSHOT, &cold, &baseline, None))?;
    let last = snapshots::many_at_once(&service).await?;
    report.add_many_at_once(size, last);

    measure_warm(report, &service, size, sample_count, &baseline).await
}

async fn measure_warm(report: &mut Report, service: &Service, size: usize, count: usize, baseline: &Samples) -> Result<()> {
    for (name, query) in lists(size) {
        let warm = sample(service, count, async || request_page(service, &query, size).await).await?;
        report.add(Measurement::new(size, name, &warm, baseline, None))?;
    }
    // The first one loads the index of process instances.
    request_stats(service, size).await?;
    let stats = sample(service, count, async || request_stats(service, size).await).await?;
    report.add(Measurement::new(size, STATS, &stats, baseline, None))
}

/// Measures lists with an index from a snapshot that is written from generated rows.
async fn measure_generated(report: &mut Report, size: usize, options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let service = Service::start(Some(snapshot_store(options.snapshots_url.as_deref(), folder.path())?)).await?;
    // The sample that the generator copies is an asset as well: its event puts it on the list.
    let generator = fill::fill_newest(&service, size - 1).await?;
    service.generated_index.set(generator, size - 1);
    service.advance_clock(120_000);
    snapshots::write(&service).await?;
    service.advance_clock(120_000);
    let cold = snapshots::cold_lists(&service, size, 5).await?;
    report.add(Measurement::new(size, COLD_SNAPSHOT, &cold, &cold, None))?;
    measure_warm(report, &service, size, options.samples.max(1), &cold).await?;
    report.add_index_bytes(size, service.store.list_index_bytes());
    Ok(())
}

pub struct Samples {
    /// In ascending order.
    pub durations: Vec<Duration>,
    /// Processor times without the engine's, in ascending order.
    pub cpu_times: Vec<Duration>,
    /// The most round trips and read units of any sample.
    pub max_cost: Cost,
}

async fn sample(service: &Service, count: usize, action: impl AsyncFn() -> Result<()>) -> Result<Samples> {
    sample_after(service, count, || {}, action).await
}

/// Does not measure `prepare`.
async fn sample_after(
    service: &Service,
    count: usize,
    prepare: impl Fn(),
    action: impl AsyncFn() -> Result<()>,
) -> Result<Samples> {
    let mut samples = Samples { durations: Vec::new(), cpu_times: Vec::new(), max_cost: Cost::default() };
    for _ in 0..count {
        prepare();
        service.meter.take();
        let (start, cpu_before) = (Instant::now(), cpu_time());
        action().await?;
        samples.durations.push(start.elapsed());
        samples.cpu_times.push(cpu_time() - cpu_before);
        let cost = service.meter.take();
        samples.max_cost.round_trips = samples.max_cost.round_trips.max(cost.round_trips);
        samples.max_cost.read_units = samples.max_cost.read_units.max(cost.read_units);
    }
    samples.durations.sort_unstable();
    samples.cpu_times.sort_unstable();
    Ok(samples)
}

/// Requests a page of assets and checks that the result is plausible.
async fn request_page(service: &Service, query: &str, size: usize) -> Result<()> {
    let response = service.send("GET", &format!("/assets{query}"), "").await?;
    let total = response["meta"]["total"].as_u64().unwrap_or_default();
    if query.contains("nosuchthing") || query.contains("=logical") {
        ensure!(total == 0, "{query} found {total} assets");
    } else {
        ensure!(total > 0 && response["data"].as_array().is_some_and(|data| !data.is_empty()), "empty page: {query}");
        let is_filtered = query.contains("=in_use") || query.contains("q=");
        ensure!(is_filtered || total == size as u64, "the list has {total} of {size} assets");
    }
    Ok(())
}

/// Requests the statistics and checks that they have all assets.
async fn request_stats(service: &Service, size: usize) -> Result<()> {
    let response = service.send("GET", "/stats", "").await?;
    let total = &response["data"]["assets"]["total"];
    ensure!(*total == size, "the statistics have {total} of {size} assets");
    Ok(())
}

/// Reads every row of the GSI, page by page, without using them: the cheapest form of a list without list index.
async fn query_full_index(service: &Service, size: usize) -> Result<()> {
    let query = service.dynamo.query().table_name(TABLE).index_name(LIST_INDEX);
    let mut pages = query
        .key_condition_expression("PK = :pk AND begins_with(LS, :letter)")
        .expression_attribute_values(":pk", Keys::of(service.tenant).partition())
        .expression_attribute_values(":letter", AttributeValue::S("A".to_owned()))
        .into_paginator()
        .send();
    let mut count = 0;
    while let Some(page) = pages.next().await {
        count += page?.items().len();
    }
    ensure!(count == size, "the index has {count} of {size} assets");
    Ok(())
}
