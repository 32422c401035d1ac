//! Measures the cost, latency and memory of lists and statistics, by the number of assets in a tenant. Also measures cold lists
//! with snapshots, on one instance and on many instances that start at once. Prints the measurements, and compares them with
//! goals.

mod fill;

pub use fill::Generator;

use crate::service::Service;
use anyhow::{Context, Result, bail, ensure};
use aws_sdk_dynamodb::types::AttributeValue;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use chrono::TimeDelta;
use dev_server::SnapshotFolder;
use dev_server::meter::{Cost, cpu_time};
use dev_server::server::TABLE;
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value;
use shared::aws::environment;
use shared::aws::object_store::{ObjectStore, S3};
use shared::services::system_clock;
use shared::store::keys::{Keys, LIST_INDEX};
use shared::store::{AssetFilter, PageRequest, Store};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower::ServiceExt;

#[derive(clap::Args)]
pub struct Options {
    /// Numbers of assets to measure, each in a separate tenant. Default without --generated: 1000 and 100000.
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    sizes: Vec<usize>,
    /// Measure tenants with this many assets. Only the newest assets are in the table; the others are generated when they are
    /// read. A million takes minutes instead of hours, and about 4 GB of memory.
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    generated: Vec<usize>,
    /// URL of a bucket for the snapshots, on a server with S3's API, such as the one that .ci/aws/snapshots starts. Default: a
    /// folder.
    #[arg(long, env = "SNAPSHOTS_TEST_URL", value_name = "URL")]
    snapshots_url: Option<String>,
    /// Number of requests per warm list.
    #[arg(long, default_value_t = 300, value_name = "N")]
    samples: usize,
    /// Also write the measurements to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const INSTANCES: usize = 13;
/// The baseline: reading every row of the GSI, with no list index in memory.
const FULL_QUERY: &str = "full index query";
/// The first list of a function instance, which loads the list index.
const COLD: &str = "first list of an instance";
/// Like [`COLD`], with the list index from a snapshot.
const COLD_SNAPSHOT: &str = "first list, from a snapshot";
/// Like [`COLD_SNAPSHOT`], without enough memory for custom fields.
const COLD_WITHOUT_FIELDS: &str = "first list, without custom fields";

/// A list or statistics, with the list index in memory.
struct Scenario {
    name: &'static str,
    path: String,
    /// Minimum and maximum number of assets that the scenario should find.
    totals: (u64, u64),
    /// Maximum CPU time in milliseconds with a million assets.
    goal_ms: Option<f64>,
    /// Whether the scenario takes longer with more assets.
    grows: bool,
}

impl Scenario {
    fn new(name: &'static str, path: impl Into<String>, totals: (u64, u64)) -> Self {
        Self { name, path: path.into(), totals, goal_ms: None, grows: false }
    }

    fn within(self, goal_ms: f64) -> Self {
        Self { goal_ms: Some(goal_ms), ..self }
    }

    fn growing(self) -> Self {
        Self { grows: true, ..self }
    }

    fn first_page(size: usize) -> Self {
        Self::new("page 1", "/assets", (size as u64, size as u64))
    }

    async fn request(&self, service: &Service) -> Result<()> {
        let (path, (least, most)) = (&self.path, self.totals);
        let response = service.send("GET", path, "").await?;
        let total = total(&response).with_context(|| format!("{path} has no total"))?;
        ensure!((least..=most).contains(&total), "{path} found {total} assets, not {least} to {most}");
        let is_empty = response["data"].as_array().is_some_and(Vec::is_empty);
        ensure!(is_empty == (total == 0), "{path} found {total} assets, and its page is empty: {is_empty}");
        Ok(())
    }
}

fn total(response: &Value) -> Option<u64> {
    let data = &response["data"];
    let total = response["meta"]["total"].as_u64().or_else(|| data["assets"]["total"].as_u64());
    let count = |group: &Value| group["count"].as_u64();
    let of_groups = || Some(data["groups"].as_array()?.iter().chain([&data["rest"]]).filter_map(count).sum::<u64>());
    total.or_else(of_groups)
}

/// Returns the scenarios for a tenant with `size` assets. The custom field `os` has few values, `leased_until` has dates and
/// `weight_g` numbers. A `hostname` is unique.
fn scenarios(size: usize) -> Vec<Scenario> {
    let (all, some, none) = ((size as u64, size as u64), (1, size as u64), (0, 0));
    let last_page = size.div_ceil(20);
    let last_name = if last_page >= 5000 { "page 5,000" } else { "last page" };
    let filter = |name, query: &str, totals| Scenario::new(name, format!("/assets?{query}"), totals).within(5.0);
    let sort = |name, query: &str, totals, goal_ms| Scenario::new(name, format!("/assets?{query}"), totals).within(goal_ms);
    let of_one = format!("custom_fields.hostname={}", fill::hostname(size / 2));
    let serial = format!("serial_number={}", fill::serial_number(size / 2));
    vec![
        Scenario::first_page(size),
        Scenario::new(last_name, format!("/assets?page={}", last_page.min(5000)), all),
        filter("search without matches", "q=nosuchthing", none),
        filter("filter by status and kind", "status=in_use&kind=physical", some),
        filter("filter without matches", "status=in_use&kind=logical", none),
        filter("filter by a place and everything below", "location=Berlin%20/%203", some).growing(),
        filter("filter by a year of purchase", "purchase_date_from=2021-01-01&purchase_date_before=2022-01-01", some).growing(),
        filter("filter by a custom field with few values", "custom_fields.os=macOS%2015", some).growing(),
        filter("filter by a custom field without a value", "custom_fields.os=none", some).growing(),
        filter("filter by a unique custom field", &of_one, (1, 1)).growing(),
        filter("filter by a serial number", &serial, (1, 1)).growing(),
        sort("a third of all, sorted by name", "q=latitude%20room&sort=name", some, 20.0).growing(),
        sort("a status, sorted by name", "status=in_use&sort=name", some, 20.0),
        sort("oldest first", "sort=created_at", all, 25.0).growing(),
        sort("sort by status", "sort=status", all, 25.0).growing(),
        sort("sort by date of purchase, latest first", "sort=-purchase_date", all, 25.0).growing(),
        sort("sort by a custom field with few values", "sort=custom_fields.os", all, 25.0).growing(),
        sort("sort by a custom field with dates", "sort=custom_fields.leased_until", all, 25.0).growing(),
        sort("sort by a custom field with numbers", "sort=custom_fields.weight_g", all, 25.0).growing(),
        sort("sort by a unique custom field", "sort=custom_fields.hostname", all, 25.0).growing(),
        sort("a status, sorted by a unique custom field", "status=in_use&sort=custom_fields.hostname", some, 25.0).growing(),
        Scenario::new("statistics", "/stats", all).within(20.0).growing(),
        Scenario::new("groups by a custom field with few values", "/stats?group_by=custom_fields.os", all).growing(),
    ]
}

/// Runs the benchmark. Fails if a required goal was missed.
pub async fn run(options: Options) -> Result<()> {
    let mut report = Report::default();
    report.print_header()?;
    let is_default = options.sizes.is_empty() && options.generated.is_empty();
    let sizes: &[usize] = if is_default { &[1_000, 100_000] } else { options.sizes.as_slice() };
    for size in sizes.iter().copied() {
        ensure!(size >= 100, "--sizes must be at least 100");
        measure(&mut report, size, &options).await?;
    }
    for size in options.generated.iter().copied() {
        ensure!(size >= 10_000, "--generated must be at least 10,000");
        measure_generated(&mut report, size, &options).await?;
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
    fill::fill(&service, size).await?;
    // Lists reread the events of the last seconds. The events of the new catalog must not be among them.
    service.advance_clock(120_000);
    let cold_count = (200_000 / size).clamp(2, 20);

    let baseline = sample(&service, cold_count, async || query_full_index(&service, size).await).await?;
    report.add(Measurement::new(size, FULL_QUERY, &baseline, &baseline, None))?;

    let cold = cold_lists(&service, size, cold_count).await?;
    report.add(Measurement::new(size, COLD, &cold, &baseline, Some(&service.store)))?;

    write_snapshots(&service).await?;
    service.advance_clock(120_000);
    measure_snapshot(report, &service, size, cold_count.max(5), Some(&baseline)).await?;
    let last = many_at_once(&service).await?;
    report.many_at_once.push((size, last));

    measure_warm(report, &service, size, sample_count, &baseline).await
}

/// Measures cold lists with snapshots. Returns the samples, which replace a missing baseline.
async fn measure_snapshot(
    report: &mut Report,
    service: &Service,
    size: usize,
    count: usize,
    baseline: Option<&Samples>,
) -> Result<Samples> {
    let cold = cold_lists(service, size, count).await?;
    let baseline = baseline.unwrap_or(&cold);
    report.add(Measurement::new(size, COLD_SNAPSHOT, &cold, baseline, Some(&service.store)))?;
    // In 90 % of the memory that the list index takes, custom fields don't fit.
    let store = service.store.clone().with_list_index_bytes(service.store.list_index_bytes() / 10 * 9);
    let list = async || {
        let page = PageRequest { number: 1, limit: 20 };
        let page = store.reader(service.tenant).list_assets(&AssetFilter::default(), page).await?;
        ensure!(page.total == size, "the list has {} of {size} assets", page.total);
        Ok::<_, anyhow::Error>(())
    };
    let samples = sample_after(service, count, || store.forget_list_indexes(), list).await?;
    report.add(Measurement::new(size, COLD_WITHOUT_FIELDS, &samples, baseline, Some(&store)))?;
    Ok(cold)
}

async fn measure_warm(report: &mut Report, service: &Service, size: usize, count: usize, baseline: &Samples) -> Result<()> {
    // The first statistics load the index of process instances.
    service.send("GET", "/stats", "").await?;
    for scenario in scenarios(size) {
        let warm = sample(service, count, async || scenario.request(service).await).await?;
        report.add(Measurement::new(size, scenario.name, &warm, baseline, None))?;
    }
    Ok(())
}

/// Measures lists with an index from a snapshot. The snapshot is written from generated rows.
async fn measure_generated(report: &mut Report, size: usize, options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let service = Service::start(Some(snapshot_store(options.snapshots_url.as_deref(), folder.path())?)).await?;
    // The sample that the generator copies is an asset, too: its event puts it on the list.
    let generator = fill::fill_newest(&service, size - 1).await?;
    service.generated_index.set(generator, size - 1)?;
    service.advance_clock(120_000);
    write_snapshots(&service).await?;
    service.advance_clock(120_000);
    let cold = measure_snapshot(report, &service, size, 5, None).await?;
    measure_warm(report, &service, size, options.samples.max(1), &cold).await
}

struct Samples {
    /// In ascending order.
    durations: Vec<Duration>,
    /// CPU times without the engine and the generator, in ascending order.
    cpu_times: Vec<Duration>,
    /// Maximum round trips and read units of any sample.
    max_cost: Cost,
}

async fn sample(service: &Service, count: usize, action: impl AsyncFn() -> Result<()>) -> Result<Samples> {
    sample_after(service, count, || {}, action).await
}

/// Takes samples of a list. Calls `prepare` before each sample, and excludes its time.
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
        service.generated_index.take_cpu_time();
        let (start, cpu_before) = (Instant::now(), cpu_time());
        action().await?;
        samples.durations.push(start.elapsed());
        samples.cpu_times.push((cpu_time() - cpu_before).saturating_sub(service.generated_index.take_cpu_time()));
        let cost = service.meter.take();
        samples.max_cost.round_trips = samples.max_cost.round_trips.max(cost.round_trips);
        samples.max_cost.read_units = samples.max_cost.read_units.max(cost.read_units);
    }
    samples.durations.sort_unstable();
    samples.cpu_times.sort_unstable();
    Ok(samples)
}

/// Reads every row of the GSI, page by page, and ignores the rows: the cheapest possible list without a list index.
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

const MILLION: usize = 1_000_000;
const MAX_BYTES_PER_ASSET: f64 = 500.0;
/// Maximum memory per asset without custom fields: allows for 2,000,000 assets in the third of 1,769 MB that list indexes get
/// (template.yaml).
const MAX_BYTES_WITHOUT_FIELDS: f64 = 309.0;

#[derive(Serialize)]
struct Measurement {
    assets: usize,
    scenario: &'static str,
    round_trips: usize,
    read_units: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Speed relative to the full index query.
    ratio: f64,
    /// CPU time without the engine and the generator.
    cpu_p50_ms: f64,
    cpu_max_ms: f64,
    /// Memory of the list index.
    bytes_per_asset: Option<f64>,
}

impl Measurement {
    /// Summarizes samples. `baseline` contains the samples of the full index query. `store` must have nothing but the list index
    /// in memory.
    fn new(assets: usize, scenario: &'static str, samples: &Samples, baseline: &Samples, store: Option<&Store>) -> Self {
        let (p50_ms, baseline_ms) = (quantile_ms(&samples.durations, 0.5), quantile_ms(&baseline.durations, 0.5));
        Self {
            assets,
            scenario,
            round_trips: samples.max_cost.round_trips,
            read_units: samples.max_cost.read_units,
            p50_ms,
            p99_ms: quantile_ms(&samples.durations, 0.99),
            ratio: baseline_ms / p50_ms,
            cpu_p50_ms: quantile_ms(&samples.cpu_times, 0.5),
            cpu_max_ms: quantile_ms(&samples.cpu_times, 1.0),
            bytes_per_asset: store.map(|store| store.list_index_bytes() as f64 / assets as f64),
        }
    }

    /// Returns the scenario; `None` for a cold list.
    fn warm(&self) -> Option<Scenario> {
        scenarios(self.assets).into_iter().find(|scenario| scenario.name == self.scenario)
    }
}

fn quantile_ms(sorted: &[Duration], quantile: f64) -> f64 {
    let index = (sorted.len() as f64 * quantile) as usize;
    sorted.get(index.min(sorted.len() - 1)).map_or(f64::NAN, |duration| duration.as_secs_f64() * 1000.0)
}

#[derive(Default)]
struct Report {
    measurements: Vec<Measurement>,
    /// Number of assets, and the time until the last of several instances that start at once has answered.
    many_at_once: Vec<(usize, Duration)>,
}

impl Report {
    fn print_header(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "| assets | scenario | round trips | read units | p50 ms | p99 ms | p50 ms of processor time | max | × full query | bytes per asset |"
        )?;
        writeln!(out, "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")?;
        Ok(())
    }

    fn add(&mut self, measurement: Measurement) -> Result<()> {
        let bytes = measurement.bytes_per_asset.map_or(String::new(), |bytes| format!("{bytes:.0}"));
        let Measurement { assets, scenario, round_trips, read_units, p50_ms, p99_ms, cpu_p50_ms, cpu_max_ms, ratio, .. } =
            &measurement;
        writeln!(
            std::io::stdout(),
            "| {assets} | {scenario} | {round_trips} | {read_units:.1} | {p50_ms:.2} | {p99_ms:.2} | {cpu_p50_ms:.2} | {cpu_max_ms:.2} | {ratio:.1} | {bytes} |"
        )?;
        self.measurements.push(measurement);
        Ok(())
    }

    /// Prints each goal and whether it was met. Goals that depend on the machine's speed are only required with a million assets.
    fn check_goals(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let mut missed = 0;
        let mut goal = |text: String, is_met: bool, is_required: bool| {
            missed += usize::from(is_required && !is_met);
            writeln!(out, "{} {text}", if is_met { "met   " } else { "MISSED" })
        };
        writeln!(std::io::stdout())?;
        let max = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let warm = || self.measurements.iter().filter(|row| row.warm().is_some());
        let (trips, units) = (max(&mut warm().map(|row| row.round_trips as f64)), max(&mut warm().map(|row| row.read_units)));
        goal(
            format!("a warm list takes at most {trips} round trips (goal: 2) and {units} read units (goal: 30)"),
            trips <= 2.0 && units <= 30.0,
            true,
        )?;
        // With few assets, most of the memory is used for other data.
        for row in self.measurements.iter().filter(|row| row.assets >= 100_000) {
            let Measurement { assets, scenario, bytes_per_asset: Some(bytes), .. } = row else { continue };
            let limit = if *scenario == COLD_WITHOUT_FIELDS { MAX_BYTES_WITHOUT_FIELDS } else { MAX_BYTES_PER_ASSET };
            goal(
                format!("{assets} assets: after \"{scenario}\", the list index takes {bytes:.0} bytes per asset (goal: {limit})"),
                *bytes <= limit,
                true,
            )?;
        }
        for (assets, last) in &self.many_at_once {
            let seconds = last.as_secs_f64();
            goal(
                format!("{assets} assets: 13 instances that start at once have answered after {seconds:.1} s (goal: 10)"),
                seconds <= 10.0,
                false,
            )?;
        }
        // Times count only with a million assets, a size that is never measured by accident.
        for (assets, max_units, max_ms, is_judged) in [(100_000, 100.0, 300.0, false), (MILLION, 100.0, 500.0, true)] {
            let mut rows = self.measurements.iter().filter(|row| row.assets == assets);
            if let Some(cold) = rows.find(|row| row.scenario == COLD_SNAPSHOT) {
                let (units, cpu_ms) = (cold.read_units, cold.cpu_max_ms);
                goal(
                    format!("{assets} assets: the first list from a snapshot takes {units} read units (goal: {max_units})"),
                    units <= max_units,
                    true,
                )?;
                goal(
                    format!("{assets} assets: this list takes {cpu_ms:.0} ms of processor time (goal: {max_ms})"),
                    cpu_ms <= max_ms,
                    is_judged,
                )?;
            }
        }
        let large = || self.measurements.iter().filter(|row| row.assets == 100_000);
        if let Some(cold) = large().find(|row| row.scenario == COLD) {
            let units = cold.read_units;
            goal(format!("100,000 assets: the first list takes {units} read units (goal: 4,500)"), units <= 4500.0, true)?;
            let ratio = large().filter(|row| row.warm().is_some()).map(|row| row.ratio).fold(f64::INFINITY, f64::min);
            goal(
                format!("100,000 assets: a warm list is {ratio:.0} times as fast as the full index query (goal: 50)"),
                ratio >= 50.0,
                false,
            )?;
        }
        // Compare the lists of both sizes by position, because the last page's name depends on the size.
        let is_comparable = |row: &&Measurement| row.warm().is_some_and(|scenario| !scenario.grows);
        let small = self.measurements.iter().filter(|row| row.assets == 1_000).filter(is_comparable);
        let pairs = large().filter(is_comparable).zip(small).map(|(large, small)| large.p50_ms / small.p50_ms);
        let slowdown = pairs.fold(0.0, f64::max);
        if slowdown > 0.0 {
            goal(
                format!("100,000 assets: a list that needs few rows takes {slowdown:.2} times as long as with 1,000 (goal: 2)"),
                slowdown <= 2.0,
                false,
            )?;
        }
        for row in self.measurements.iter().filter(|row| row.assets == MILLION) {
            let Some(max_ms) = row.warm().and_then(|scenario| scenario.goal_ms) else { continue };
            let Measurement { assets, scenario, cpu_p50_ms: cpu_ms, .. } = row;
            goal(
                format!("{assets} assets: \"{scenario}\" takes {cpu_ms:.1} ms of processor time (goal: {max_ms})"),
                *cpu_ms <= max_ms,
                true,
            )?;
        }
        if missed > 0 {
            bail!("{missed} required goals were missed");
        }
        Ok(())
    }
}

async fn write_snapshots(service: &Service) -> Result<()> {
    let report = service.store.write_snapshots(service.store.now().plus(TimeDelta::hours(1))).await?;
    ensure!(report.failed == 0 && report.written > 0, "{report:?}");
    Ok(())
}

async fn cold_lists(service: &Service, size: usize, count: usize) -> Result<Samples> {
    let forget = || service.store.forget_list_indexes();
    let page = Scenario::first_page(size);
    sample_after(service, count, forget, async || page.request(service).await).await
}

/// Starts instances at once, on a table that allows 3,000 read units per second. Returns the time until the last one has
/// answered, including all retries.
async fn many_at_once(service: &Service) -> Result<Duration> {
    let start = Instant::now();
    service.read_limit.set(true);
    let instances = (0..INSTANCES).map(async |_| {
        let router = service.instance();
        loop {
            let request = Request::builder().uri("/v1/assets").header("authorization", format!("Bearer {}", service.api_key()));
            let response = router.clone().oneshot(request.body(Body::empty())?).await?;
            let status = response.status();
            let retry_after = response.headers().get("retry-after").and_then(|seconds| seconds.to_str().ok()?.parse().ok());
            to_bytes(response.into_body(), usize::MAX).await?;
            match retry_after {
                _ if status.is_success() => return Ok::<_, anyhow::Error>(start.elapsed()),
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => bail!("status {status}"),
            }
        }
    });
    let ends: Vec<Duration> = join_all(instances).await.into_iter().collect::<Result<_>>()?;
    service.read_limit.set(false);
    Ok(ends.into_iter().max().unwrap_or_default())
}
