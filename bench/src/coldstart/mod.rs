//! Measures the cold starts of the functions: each release binary against a local Runtime API, with the table behind TLS,
//! compared with a minimal function.

mod report;

use crate::statistics::millis;
use anyhow::{Context, Result, bail};
use report::{missed_goals, print_report};
use rig::environment::Environment;
use rig::events::request;
use rig::function::{Function, binaries_dir};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The minimal function that others are compared with.
const BASELINE: &str = "hello";
/// Each function, with a path of its routes that reads the table, if there is one that needs no signing link.
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

/// Builds the release binaries, unless `FUNCTIONS_DIR` names a folder with others.
fn build() -> Result<()> {
    if std::env::var_os("FUNCTIONS_DIR").is_some() {
        return Ok(());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let packages = FUNCTIONS.iter().map(|(name, _)| *name).chain(["probes"]).flat_map(|name| ["-p", name]);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let status = Command::new(cargo).args(["build", "--release", "--manifest-path"]).arg(manifest).args(packages).status()?;
    if !status.success() {
        bail!("cargo build --release failed");
    }
    Ok(())
}

/// The binaries take turns, so that other load on the machine affects all of them alike.
pub async fn run(options: Options) -> Result<()> {
    build()?;
    let environment = Environment::start().await?;
    let functions: Vec<(&str, &str)> = std::iter::once((BASELINE, "/")).chain(FUNCTIONS).collect();
    let mut figures: Vec<Figures> = Vec::new();
    for (name, _) in &functions {
        let (size, zipped_size) = sizes(&binaries_dir().join(name))?;
        figures.push(Figures { size, zipped_size, ..Figures::default() });
    }
    for _ in 0..options.starts {
        for ((name, path), figures) in functions.iter().zip(&mut figures) {
            let path = path.replace("ASSET", &environment.asset_id);
            let event = request("GET", &path, &environment.api_key, None);
            measure(environment.start_function(name).await?, &event, options.warm, figures).await?;
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

/// Sends the first and the warm requests to a function that has just started.
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
    // Waits for the end, so that it doesn't slow down the next function's start.
    function.kill().await
}

/// In bytes, plain and compressed. Gzip and zip compress alike.
fn sizes(binary: &Path) -> Result<(u64, u64)> {
    let size = std::fs::metadata(binary).with_context(|| format!("{} not found", binary.display()))?.len();
    let zipped = Command::new("gzip").arg("-9c").arg(binary).stdout(Stdio::piped()).output()?;
    Ok((size, zipped.stdout.len() as u64))
}
