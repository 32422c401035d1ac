//! How functions start: each release binary against a Runtime API of our own, the table behind TLS; beside a bare one.

use anyhow::{Context, Result, bail};
use rig::events::request;
use rig::process::{Process, binaries};
use rig::world::World;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What is compared with.
const BARE: &str = "hello";
/// Each function and a request of its that reads the table.
const FUNCTIONS: [(&str, &str); 6] = [
    ("assets", "/v1/assets/ASSET"),
    ("processes", "/v1/processes"),
    ("users", "/v1/users"),
    ("catalog", "/v1/catalog/asset-types"),
    ("account", "/v1/settings"),
    ("meta", "/v1/health"),
];
const LIMIT: Duration = Duration::from_secs(15);

/// What the command line says.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often each binary is started.
    #[arg(long, default_value_t = 100)]
    starts: usize,
    /// How many requests each start serves after its first.
    #[arg(long, default_value_t = 20)]
    warm: usize,
    /// Only these functions.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Fail where the goals are missed.
    #[arg(long)]
    strict: bool,
}

/// What was measured of one binary; times in milliseconds.
#[derive(Default)]
struct Figures {
    init: Vec<f64>,
    init_cpu: Vec<f64>,
    first: Vec<f64>,
    first_cpu: Vec<f64>,
    warm: Vec<f64>,
    memory: Vec<f64>,
    bytes: u64,
    zipped: u64,
}

/// Builds the release binaries as they stand, unless `FUNCTIONS_DIR` names others.
fn build() -> Result<()> {
    if std::env::var_os("FUNCTIONS_DIR").is_some() {
        return Ok(());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let packages = FUNCTIONS.iter().map(|(name, _)| *name).chain(["probes"]).flat_map(|name| ["-p", name]);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let built = Command::new(cargo).args(["build", "--release", "--manifest-path"]).arg(manifest).args(packages).status()?;
    if !built.success() {
        bail!("cargo build --release failed");
    }
    Ok(())
}

/// Starts everything as often as asked for, in turn, so that whatever else the machine does hits all alike.
///
/// # Errors
///
/// A binary is not there or does not answer, or a goal is missed and should not be.
pub async fn run(options: Options) -> Result<()> {
    build()?;
    let world = World::start().await?;
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let chosen = FUNCTIONS.into_iter().filter(|(name, _)| wanted(name));
    let plan: Vec<(&str, &str)> = std::iter::once((BARE, "/")).chain(chosen).collect();
    let mut figures: Vec<Figures> = Vec::new();
    for (name, _) in &plan {
        let (bytes, zipped) = size(&binaries().join(name))?;
        figures.push(Figures { bytes, zipped, ..Figures::default() });
    }
    for _ in 0..options.starts {
        for ((name, path), figures) in plan.iter().zip(&mut figures) {
            let path = path.replace("ASSET", &world.asset);
            let event = request("GET", &path, &world.api_key, None);
            measure(world.run(name).await?, &event, options.warm, figures).await?;
        }
    }
    report(&plan, &figures, options.starts)?;
    let missed = missed(&plan, &figures);
    for line in &missed {
        writeln!(std::io::stdout(), "missed: {line}")?;
    }
    if options.strict && !missed.is_empty() {
        bail!("{} goals are missed", missed.len());
    }
    Ok(())
}

async fn measure(process: Process, event: &str, warm: usize, figures: &mut Figures) -> Result<()> {
    figures.init.push(millis(process.init));
    let started = process.cpu()?;
    figures.init_cpu.push(millis(started));
    let first = process.api.invoke(event, LIMIT).await?;
    if first.answer["statusCode"] != 200 {
        bail!("the first answer is {}", first.answer);
    }
    figures.first.push(millis(first.took));
    figures.first_cpu.push(millis(process.cpu()?.saturating_sub(started)));
    for _ in 0..warm {
        figures.warm.push(millis(process.api.invoke(event, LIMIT).await?.took));
    }
    figures.memory.push(process.peak_memory()? as f64 / f64::from(1 << 20));
    // Its end would fall into the next one's start.
    process.kill().await
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A file's size, and what gzip makes of it, which is what zip makes of it.
fn size(binary: &Path) -> Result<(u64, u64)> {
    let bytes = std::fs::metadata(binary).with_context(|| format!("there is no {}", binary.display()))?.len();
    let zipped = Command::new("gzip").arg("-9c").arg(binary).stdout(Stdio::piped()).output()?;
    Ok((bytes, zipped.stdout.len() as u64))
}

/// The value that so many of a hundred do not pass.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent).div_ceil(100).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or_default()
}

fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn report(plan: &[(&str, &str)], figures: &[Figures], starts: usize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{starts} starts each; times in ms, the median unless named; cpu is time on a processor")?;
    writeln!(
        out,
        "{:<10}{:>6}{:>7}{:>6}{:>6}{:>7}{:>7}{:>7}{:>7}{:>8}{:>8}{:>8}",
        "", "init", "ratio", "p90", "cpu", "first", "- warm", "cpu", "warm", "p99", "MiB", "MB zip"
    )?;
    let bare = median(&figures[0].init);
    for ((name, _), row) in plan.iter().zip(figures) {
        let (init, first, warm) = (median(&row.init), median(&row.first), median(&row.warm));
        writeln!(
            out,
            "{name:<10}{init:>6.2}{:>7.2}{:>6.2}{:>6.2}{first:>7.2}{:>7.2}{:>7.2}{warm:>7.2}{:>8.2}{:>8.1}{:>8}",
            init / bare,
            percentile(&row.init, 90),
            median(&row.init_cpu),
            first - warm,
            median(&row.first_cpu),
            percentile(&row.warm, 99),
            median(&row.memory),
            format!("{:.1}/{:.1}", megabytes(row.bytes), megabytes(row.zipped)),
        )?;
    }
    Ok(())
}

/// What is not as docs/adr/0011 wants it.
fn missed(plan: &[(&str, &str)], figures: &[Figures]) -> Vec<String> {
    let bare = median(&figures[0].init);
    let mut missed = Vec::new();
    for ((name, _), row) in plan.iter().zip(figures).skip(1) {
        let goals = [
            ("init, as a multiple of the bare one's", median(&row.init) / bare, 2.5),
            ("the first answer above a warm one, ms", median(&row.first) - median(&row.warm), 4.0),
            ("the first answer's time on a processor, ms", median(&row.first_cpu), 3.0),
            ("the zipped binary, MB", megabytes(row.zipped), 4.0),
        ];
        missed.extend(
            goals.iter().filter(|(_, is, goal)| is > goal).map(|(what, is, goal)| format!("{name}: {what}: {is:.2} > {goal}")),
        );
    }
    missed
}
