//! Compares two builds of a function, or of the dev server: what did a change cost?
//!
//! Both run at the same time and take turns, so that other load on the machine affects both alike. Each round starts both anew.

mod dollars;
mod report;
mod target;

use crate::coldstart::FUNCTIONS;
use crate::statistics::millis;
use anyhow::{Context, Result, bail, ensure};
use dollars::Work;
use report::Figures;
use rig::environment::Environment;
use std::path::PathBuf;
use std::time::Duration;
use target::Target;

const ASSETS: &str = "assets";
const ROWS: usize = 50;
const PAGE: &str = "page of 20";
/// Lists read the events of the last 12 s again. Without this pause, a page would be measured with those of the imports before.
const QUIET: Duration = Duration::from_secs(13);

#[derive(clap::Args)]
pub struct Options {
    /// The binary to compare with.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The binary that has changed. Both have the name of a function, or of the dev server.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Number of rounds. In each, both binaries are started anew.
    #[arg(long, default_value_t = 10, value_name = "N")]
    rounds: usize,
    /// Number of requests of each kind per round.
    #[arg(long, default_value_t = 50, value_name = "N")]
    requests: usize,
    /// Send only the kinds of requests whose names contain this, such as `page`: for a profiler.
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
    /// The weight of one request: the rows of an import.
    weight: usize,
    /// Of the table, one after another; tests count them. For a row of an import, its share.
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
        // The second one finds warmer caches.
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
    // Of other functions, nobody counts the round trips here, and the dev server's processor time is also the engine's.
    if name == ASSETS { dollars::print(&kinds.iter().filter_map(work).collect::<Vec<_>>()) } else { Ok(()) }
}

/// Starts both builds, sends them the same requests in turns, and ends them.
async fn round(
    options: &Options,
    kinds: &[Kind],
    environment: &Environment,
    order: [usize; 2],
    figures: &mut Figures,
) -> Result<()> {
    let mut targets = [None, None];
    for side in order {
        let target = Target::start([&options.old, &options.new][side], environment).await?;
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
