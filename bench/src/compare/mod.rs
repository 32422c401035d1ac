//! Compares two builds of a function, or of the dev server, to measure what a change costs. Both builds run at the same time and
//! take turns, so that other load on the machine affects both equally, and each round starts new copies of both. For the function
//! `assets`, the benchmark estimates the duration and the cost of requests on Lambda from the CPU time, by the function's memory.

use crate::coldstart::{FUNCTIONS, copied};
use crate::service::ServerProcess;
use crate::statistics::millis;
use anyhow::{Context, Result, bail, ensure};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rig::environment::Environment;
use rig::events::request_with_query;
use rig::function::{Function, cpu_time, memory_kilobytes};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ASSETS: &str = "assets";
const ROWS: usize = 50;
const PAGE: &str = "page of 20";
/// Lists reread the events of the last 12 s. Without this pause, the measurement of a page would include the events of earlier
/// imports.
const QUIET: Duration = Duration::from_secs(13);

#[derive(clap::Args)]
pub struct Options {
    /// The binary to compare with.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The changed binary. Both binaries must have the same file name: the name of a function or of the dev server.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Number of rounds. Each round restarts both binaries.
    #[arg(long, default_value_t = 10, value_name = "N")]
    rounds: usize,
    /// Number of requests of each kind per round.
    #[arg(long, default_value_t = 50, value_name = "N")]
    requests: usize,
    /// Send only the kinds of requests whose names contain this text, such as `page`. Useful with a profiler.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    only: String,
}

struct Kind {
    label: &'static str,
    method: &'static str,
    /// `ASSET` stands for the ID of an asset.
    path: &'static str,
    content_type: &'static str,
    /// `NUMBER` stands for the number of the request in its round.
    body: Option<String>,
    /// Weight of a request: the number of rows for an import, otherwise 1.
    weight: usize,
    /// Consecutive round trips to the table, as counted by tests. For an import, the share of one row.
    round_trips: f64,
}

impl Kind {
    const fn new(label: &'static str, method: &'static str, path: &'static str, round_trips: f64) -> Self {
        Self { label, method, path, content_type: "application/json", body: None, weight: 1, round_trips }
    }

    fn cpu_label(&self) -> String {
        format!("{}, CPU ms", self.label)
    }

    fn with_body(self, body: impl Into<String>) -> Self {
        Self { body: Some(body.into()), ..self }
    }
}

fn kinds(name: &str) -> Result<Vec<Kind>> {
    if name != ASSETS && name != dev_server::options::NAME {
        let function = FUNCTIONS.into_iter().find(|(function, _)| *function == name);
        let (_, path) =
            function.with_context(|| format!("{name} is neither a function that serves requests nor the dev server"))?;
        return Ok(vec![Kind::new("GET", "GET", path, 1.0)]);
    }
    let rows = "{\"name\": \"Laptop\"}\n".repeat(ROWS);
    let import = Kind::new("a row of an import", "POST", "/v1/assets/import", 0.3).with_body(rows);
    Ok(vec![
        Kind::new("GET of an asset", "GET", "/v1/assets/ASSET", 1.0),
        Kind::new("creation", "POST", "/v1/assets", 3.0).with_body(r#"{"name": "Laptop"}"#),
        Kind::new(PAGE, "GET", "/v1/assets?limit=20", 2.0),
        Kind::new("PATCH", "PATCH", "/v1/assets/ASSET", 2.0).with_body(r#"{"name": "Laptop NUMBER"}"#),
        Kind { content_type: "application/x-ndjson", weight: ROWS, ..import },
    ])
}

pub async fn run(options: &Options) -> Result<()> {
    let name = options.new.file_name().and_then(|name| name.to_str()).context("NEW names no file")?;
    ensure!(options.old.file_name().is_some_and(|old| old == name), "OLD and NEW must have the same file name");
    ensure!(options.rounds > 0 && options.requests > 0, "--rounds and --requests must be at least 1");
    let mut kinds = kinds(name)?;
    kinds.retain(|kind| kind.label.contains(&options.only));
    ensure!(!kinds.is_empty(), "no kind of request contains {:?}", options.only);
    let environment = Environment::start().await?;
    let mut figures = Figures::default();
    for number in 0..options.rounds {
        // Alternates the order, because the second build finds warmer caches.
        let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
        round(options, &kinds, &environment, order, &mut figures).await?;
    }
    for (side, path) in [&options.old, &options.new].into_iter().enumerate() {
        figures.add("binary, MB", side, std::fs::metadata(path)?.len() as f64 / 1e6);
    }
    figures.print(&format!("{name}: {} rounds of {} requests of each kind", options.rounds, options.requests))?;
    let work = |kind: &Kind| {
        let Kind { label, round_trips, weight, .. } = *kind;
        Some(Work { label, cpu_ms: figures.median(&kind.cpu_label(), 1)?, round_trips, weight })
    };
    // The round trips of other functions are unknown here, and the dev server's CPU time includes the engine's CPU time.
    if name == ASSETS { print(&kinds.iter().filter_map(work).collect::<Vec<_>>()) } else { Ok(()) }
}

/// Starts new copies of both builds, sends each request to both in turn, and stops them.
async fn round(
    options: &Options,
    kinds: &[Kind],
    environment: &Environment,
    order: [usize; 2],
    figures: &mut Figures,
) -> Result<()> {
    let mut targets = [None, None];
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    for side in order {
        let binary = copied([&options.old, &options.new][side], folders[side].path())?;
        let target = Target::start(&binary, environment).await?;
        figures.add("start, ms", side, millis(target.start_time()));
        let before = target.cpu_time()?;
        target.send(&kinds[0], 0).await?;
        figures.add("first answer, CPU ms", side, millis(target.cpu_time()?.saturating_sub(before)));
        targets[side] = Some(target);
    }
    let [Some(old), Some(new)] = targets else { bail!("both are started") };
    let targets = [old, new];
    for kind in kinds {
        if kind.label == PAGE {
            tokio::time::sleep(QUIET).await;
            // The first list of an instance loads the list index.
            for target in &targets {
                target.send(kind, 0).await?;
            }
        }
        let before = [targets[0].cpu_time()?, targets[1].cpu_time()?];
        let mut durations = [Duration::ZERO; 2];
        for (number, side) in std::iter::repeat_n(order, options.requests).flatten().enumerate() {
            durations[side] += targets[side].send(kind, number).await?;
        }
        let count = (options.requests * kind.weight) as f64;
        for (side, target) in targets.iter().enumerate() {
            let cpu_time = target.cpu_time()?.saturating_sub(before[side]);
            figures.add(&kind.cpu_label(), side, millis(cpu_time) / count);
            figures.add(&format!("{}, ms", kind.label), side, millis(durations[side]) / count);
        }
    }
    for (side, target) in targets.into_iter().enumerate() {
        figures.add("peak memory, MiB", side, target.peak_memory_bytes()? as f64 / f64::from(1 << 20));
        target.stop().await?;
    }
    Ok(())
}

const SIZES_MB: [f64; 3] = [512.0, 1024.0, 1769.0];
/// "At 1,769 MB, a function has the equivalent of one vCPU", and a proportional share with less memory (Lambda developer guide,
/// "Configure Lambda function memory").
const ONE_CPU_MB: f64 = 1769.0;
/// Assumed for DynamoDB in the same region.
const ROUND_TRIP_MS: f64 = 4.0;
/// Same as in docs/costs.md.
const PER_MILLION_REQUESTS: f64 = 0.20;
const PER_GB_SECOND: f64 = 0.000_016_666_7;

/// A kind of request, or a row of an import.
struct Work {
    label: &'static str,
    cpu_ms: f64,
    round_trips: f64,
    weight: usize,
}

impl Work {
    /// Returns milliseconds per request, and dollars per million requests, with this memory.
    fn on_lambda(&self, size_mb: f64) -> (f64, f64) {
        let ms = self.cpu_ms * ONE_CPU_MB / size_mb + self.round_trips * ROUND_TRIP_MS;
        (ms, PER_MILLION_REQUESTS / self.weight as f64 + ms * 1000.0 * size_mb / 1024.0 * PER_GB_SECOND)
    }
}

fn print(rows: &[Work]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nNEW on Lambda, with {ROUND_TRIP_MS} ms per round trip: milliseconds, and dollars per million (x86_64)")?;
    writeln!(out, "{:<20}{}", "", SIZES_MB.map(|size| format!("{:>18}", format!("{size} MB"))).concat())?;
    for work in rows {
        let columns = SIZES_MB.map(|size| {
            let (ms, dollars) = work.on_lambda(size);
            format!("{ms:>11.1}{dollars:>7.2}")
        });
        writeln!(out, "{:<20}{}", work.label, columns.concat())?;
    }
    Ok(())
}

/// The figures by label, in the order in which the labels were added.
#[derive(Default)]
struct Figures(Vec<(String, [Vec<f64>; 2])>);

impl Figures {
    /// Adds the figure of a round: side 0 is the old build, side 1 the new one.
    fn add(&mut self, label: &str, side: usize, value: f64) {
        let known = self.0.iter().position(|(known, _)| known == label);
        let index = known.unwrap_or_else(|| {
            self.0.push((label.to_owned(), Default::default()));
            self.0.len() - 1
        });
        self.0[index].1[side].push(value);
    }

    fn median(&self, label: &str, side: usize) -> Option<f64> {
        self.0.iter().find(|(known, _)| known == label).map(|(_, sides)| quantile(&sides[side], 0.5))
    }

    fn print(&self, title: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{title}; medians, and new divided by old with its quartiles")?;
        writeln!(out, "{:<30}{:>10}{:>10}{:>8}   quartiles", "", "old", "new", "ratio")?;
        for (label, [old, new]) in &self.0 {
            let (ratio, [first, third]) = ratios(old, new);
            let [old, new] = [old, new].map(|values| quantile(values, 0.5));
            writeln!(out, "{label:<30}{old:>10.3}{new:>10.3}{ratio:>8.2}   {first:.2}–{third:.2}")?;
        }
        Ok(())
    }
}

/// Returns the median and the quartiles of the ratios of new to old, one ratio per round.
fn ratios(old: &[f64], new: &[f64]) -> (f64, [f64; 2]) {
    let ratios: Vec<f64> = old.iter().zip(new).map(|(old, new)| new / old).collect();
    (quantile(&ratios, 0.5), [0.25, 0.75].map(|share| quantile(&ratios, share)))
}

/// Interpolates between neighbouring values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = share * sorted.len().saturating_sub(1) as f64;
    let at = |index: f64| sorted.get(index as usize).copied().unwrap_or_default();
    at(position.floor()) + (at(position.ceil()) - at(position.floor())) * position.fract()
}

const TIMEOUT: Duration = Duration::from_secs(15);

enum Target<'a> {
    Function { function: Box<Function>, environment: &'a Environment },
    Server { process: ServerProcess, client: Box<Client<HttpConnector, Body>>, asset_id: String },
}

impl<'a> Target<'a> {
    async fn start(binary: &Path, environment: &'a Environment) -> Result<Self> {
        if !binary.ends_with(dev_server::options::NAME) {
            let function = Box::new(environment.start_binary(binary).await?);
            return Ok(Self::Function { function, environment });
        }
        let process = ServerProcess::start(binary)?;
        let client = Box::new(Client::builder(TokioExecutor::new()).build_http());
        let create = http_request("POST", &process, "/assets", "application/json", r#"{"name": "Laptop"}"#.to_owned())?;
        let created: Value = serde_json::from_slice(&to_bytes(Body::new(client.request(create).await?), usize::MAX).await?)?;
        let asset_id = created["data"]["id"].as_str().with_context(|| format!("can't create the asset: {created}"))?.to_owned();
        Ok(Self::Server { process, client, asset_id })
    }

    /// Returns the time from the start until the first request for an event, or until the server is ready.
    fn start_time(&self) -> Duration {
        match self {
            Self::Function { function, .. } => function.init,
            Self::Server { process, .. } => process.start,
        }
    }

    /// Returns the CPU time of the process so far. For the server, this includes the engine's CPU time.
    fn cpu_time(&self) -> Result<Duration> {
        match self {
            Self::Function { function, .. } => function.cpu_time(),
            Self::Server { process, .. } => cpu_time(process.pid()),
        }
    }

    fn peak_memory_bytes(&self) -> Result<u64> {
        match self {
            Self::Function { function, .. } => function.peak_memory_bytes(),
            Self::Server { process, .. } => Ok(memory_kilobytes(process.pid(), "VmHWM")? * 1024),
        }
    }

    /// Sends a request, which must succeed. Returns the response time.
    async fn send(&self, kind: &Kind, number: usize) -> Result<Duration> {
        let body = kind.body.as_ref().map(|body| body.replace("NUMBER", &number.to_string()));
        let (status, duration) = match self {
            Self::Function { function, environment } => {
                let path = kind.path.replace("ASSET", &environment.asset_id);
                let (path, query) = path.split_once('?').unwrap_or((&path, ""));
                let event = request_with_query(kind.method, path, query, &environment.api_key, kind.content_type, body);
                let invocation = function.runtime_api.invoke(&event, TIMEOUT).await?;
                (invocation.response["statusCode"].as_u64().unwrap_or_default(), invocation.duration)
            }
            Self::Server { process, client, asset_id } => {
                let path = kind.path.replace("ASSET", asset_id).replacen("/v1", "", 1);
                let request = http_request(kind.method, process, &path, kind.content_type, body.unwrap_or_default())?;
                let began = Instant::now();
                let response = tokio::time::timeout(TIMEOUT, client.request(request)).await??;
                let status = response.status();
                to_bytes(Body::new(response), usize::MAX).await?;
                (status.as_u16().into(), began.elapsed())
            }
        };
        ensure!(matches!(status, 200 | 201), "{} was answered with {status}", kind.label);
        Ok(duration)
    }

    /// Stops the process, so that it doesn't slow down the next start.
    async fn stop(self) -> Result<()> {
        match self {
            Self::Function { function, .. } => function.kill().await,
            Self::Server { .. } => Ok(()),
        }
    }
}

fn http_request(method: &str, server: &ServerProcess, path: &str, content_type: &str, body: String) -> Result<Request<Body>> {
    let request = Request::builder().method(method).uri(format!("{}{path}", server.base_url));
    let request = request.header("authorization", format!("Bearer {}", server.api_key)).header("content-type", content_type);
    Ok(request.body(body.into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_memory_doubles_the_processor_time() {
        let work = Work { label: "", cpu_ms: 1.0, round_trips: 1.0, weight: 1 };
        let (ms, dollars) = work.on_lambda(1769.0);
        assert_eq!(ms, 5.0);
        assert!((dollars - 0.3440).abs() < 0.0001, "{dollars}");
        let (ms, dollars) = work.on_lambda(884.5);
        assert_eq!(ms, 6.0);
        assert!((dollars - 0.2864).abs() < 0.0001, "{dollars}");
    }

    #[test]
    fn ratios_are_those_of_the_rounds() {
        // Load on the machine slows down both builds in a round.
        let (ratio, quartiles) = ratios(&[1.0, 10.0, 2.0, 4.0, 8.0], &[2.0, 20.0, 2.0, 6.0, 16.0]);
        assert_eq!((ratio, quartiles), (2.0, [1.5, 2.0]));
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.5);
    }
}
