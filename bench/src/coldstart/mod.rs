//! Measures the cold starts of the functions' release binaries, against a local Runtime API and with the table behind TLS.
//! Compares the cold starts with those of a minimal function, and prints the figures and the missed goals.

use crate::statistics::{self, millis};
use anyhow::{Context, Result, bail};
use rig::environment::Environment;
use rig::events::request;
use rig::function::{Function, binaries_dir};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The minimal function.
const BASELINE: &str = "hello";
/// Each function, with the path to request. Each path reads the table, except `/v1/sign`: the other paths of `sign` need a
/// signing link.
pub const FUNCTIONS: [(&str, &str); 7] = [
    ("assets", "/v1/assets/ASSET"),
    ("processes", "/v1/processes"),
    ("users", "/v1/users"),
    ("catalog", "/v1/catalog/asset-types"),
    ("account", "/v1/settings"),
    ("sign", "/v1/sign"),
    ("meta", "/v1/health"),
];
const TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Number of starts per binary.
    #[arg(long, default_value_t = 100, value_name = "N")]
    starts: usize,
    /// Number of warm requests per start.
    #[arg(long, default_value_t = 20, value_name = "N")]
    warm: usize,
    /// Exit with code 1 if a goal is missed.
    #[arg(long)]
    strict: bool,
}

/// The measurements of one binary: times in milliseconds, memory in MiB, sizes in bytes.
#[derive(Default)]
struct Figures {
    init: Vec<f64>,
    init_cpu: Vec<f64>,
    first: Vec<f64>,
    first_cpu: Vec<f64>,
    warm: Vec<f64>,
    memory: Vec<f64>,
    size: u64,
    zipped_size: u64,
}

/// Alternates the binaries, so that other load on the machine affects all binaries equally.
pub async fn run(options: Options) -> Result<()> {
    let environment = Environment::start().await?;
    let functions: Vec<(&str, &str)> = std::iter::once((BASELINE, "/")).chain(FUNCTIONS).collect();
    let mut figures: Vec<Figures> = Vec::new();
    let folder = tempfile::tempdir()?;
    let mut binaries = Vec::new();
    for (name, _) in &functions {
        let binary = copied(&binaries_dir().join(name), folder.path())?;
        let (size, zipped_size) = sizes(&binary)?;
        figures.push(Figures { size, zipped_size, ..Figures::default() });
        binaries.push(binary);
    }
    for _ in 0..options.starts {
        for (((_, path), binary), figures) in functions.iter().zip(&binaries).zip(&mut figures) {
            let path = path.replace("ASSET", &environment.asset_id);
            let event = request("GET", &path, &environment.api_key, None);
            measure(environment.start_binary(binary).await?, &event, options.warm, figures).await?;
        }
    }
    print_report(&functions, &figures, options.starts)?;
    let missed = missed_goals(&functions, &figures);
    for goal in &missed {
        writeln!(std::io::stdout(), "MISSED {goal}")?;
    }
    if options.strict && !missed.is_empty() {
        bail!("{} goals were missed", missed.len());
    }
    Ok(())
}

/// Sends the first request and the warm requests to a function that has just started.
async fn measure(function: Function, event: &str, warm: usize, figures: &mut Figures) -> Result<()> {
    figures.init.push(millis(function.init));
    let init_cpu = function.cpu_time()?;
    figures.init_cpu.push(millis(init_cpu));
    let first = function.runtime_api.invoke(event, TIMEOUT).await?;
    if first.response["statusCode"] != 200 {
        bail!("the first request failed: {}", first.response);
    }
    figures.first.push(millis(first.duration));
    figures.first_cpu.push(millis(function.cpu_time()?.saturating_sub(init_cpu)));
    for _ in 0..warm {
        figures.warm.push(millis(function.runtime_api.invoke(event, TIMEOUT).await?.duration));
    }
    figures.memory.push(function.peak_memory_bytes()? as f64 / f64::from(1 << 20));
    // Waits until the process has exited, so that it doesn't slow down the next function's start.
    function.kill().await
}

/// Copies a binary to a folder. How the kernel caches a file depends on the free memory when the file is written, and changes CPU
/// times by up to 10 %, so benchmarks measure new copies.
pub fn copied(binary: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join(binary.file_name().context("a binary without a name")?);
    std::fs::copy(binary, &copy).with_context(|| format!("can't copy {}", binary.display()))?;
    Ok(copy)
}

/// Returns the size of a binary in bytes, uncompressed and compressed. gzip and zip compress equally well.
fn sizes(binary: &Path) -> Result<(u64, u64)> {
    let size = std::fs::metadata(binary)?.len();
    let zipped = Command::new("gzip").arg("-9c").arg(binary).stdout(Stdio::piped()).output()?;
    Ok((size, zipped.stdout.len() as u64))
}

fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    statistics::percentile(&sorted, percent)
}

fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn print_report(functions: &[(&str, &str)], figures: &[Figures], starts: usize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{starts} starts per function; median times in ms, unless p90 or p99; cpu: CPU time; - warm: first minus warm"
    )?;
    writeln!(
        out,
        "{:<10}{:>6}{:>7}{:>6}{:>6}{:>7}{:>7}{:>7}{:>7}{:>8}{:>8}{:>11}",
        "", "init", "ratio", "p90", "cpu", "first", "- warm", "cpu", "warm", "p99", "MiB", "MB zip"
    )?;
    let baseline = median(&figures[0].init);
    for ((name, _), row) in functions.iter().zip(figures) {
        let (init, first, warm) = (median(&row.init), median(&row.first), median(&row.warm));
        writeln!(
            out,
            "{name:<10}{init:>6.2}{:>7.2}{:>6.2}{:>6.2}{first:>7.2}{:>7.2}{:>7.2}{warm:>7.2}{:>8.2}{:>8.1}{:>11}",
            init / baseline,
            percentile(&row.init, 90),
            median(&row.init_cpu),
            first - warm,
            median(&row.first_cpu),
            percentile(&row.warm, 99),
            median(&row.memory),
            format!("{:.1}/{:.1}", megabytes(row.size), megabytes(row.zipped_size)),
        )?;
    }
    Ok(())
}

/// Returns the missed goals of docs/adr/0011, with the measured values.
fn missed_goals(functions: &[(&str, &str)], figures: &[Figures]) -> Vec<String> {
    let baseline = median(&figures[0].init);
    let mut missed = Vec::new();
    for ((name, _), row) in functions.iter().zip(figures).skip(1) {
        let goals = [
            ("init time, relative to the minimal function", median(&row.init) / baseline, 1.75),
            ("first request minus warm request, ms", median(&row.first) - median(&row.warm), 4.0),
            ("CPU time of the first request, ms", median(&row.first_cpu), 2.5),
            ("zipped binary, MB", megabytes(row.zipped_size), 8.0),
        ];
        let exceeded = goals.iter().filter(|(_, value, goal)| value > goal);
        missed.extend(exceeded.map(|(label, value, goal)| format!("{name}: {label}: {value:.2} (goal: {goal})")));
    }
    missed
}
