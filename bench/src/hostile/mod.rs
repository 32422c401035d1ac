//! Hostile requests: attacks that are known, then random ones that are generated from the OpenAPI document and mutated.
//! Every response is judged; at the end, whatever was accepted must be readable, and the other tenant untouched.

mod attack;
mod generate;
mod images;
mod judge;
mod known;
mod mutate;
mod target;

use anyhow::{Result, bail};
use attack::Sender;
use generate::Generator;
use judge::Judge;
use std::io::Write;
use std::time::{Duration, Instant};
use target::Target;

/// How many faults are printed.
const MAX_PRINTED: usize = 10;

#[derive(clap::Args)]
pub struct Options {
    /// Duration of the random requests, in seconds. The known attacks come first.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u64,
    /// Seed of the random requests.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

/// Sends hostile requests and prints a report.
///
/// # Errors
///
/// Returns an error when a response or the data at the end is not as it must be.
pub async fn run(options: Options) -> Result<()> {
    let mut target = Target::start().await?;
    let mut judge = Judge::new(target.marker());
    for (name, attack) in known::attacks(&mut target).await? {
        for sender in Sender::ALL {
            let faults = judge.faults.len();
            target.send(sender, &attack, &mut judge).await?;
            for fault in judge.faults.iter_mut().skip(faults) {
                *fault = format!("{name}: {fault}");
            }
        }
    }
    let known = judge.requests;
    let mut generator = Generator::new(options.seed, target.document().await?)?;
    let end = Instant::now() + Duration::from_secs(options.seconds);
    while Instant::now() < end && judge.faults.len() < MAX_PRINTED {
        let (sender, attack) = generator.attack(&target);
        target.send(sender, &attack, &mut judge).await?;
    }
    if let Err(error) = target.check(&mut judge).await {
        judge.faults.push(format!("the data can't be checked: {error:#}"));
    }
    report(&judge, known, options.seed)
}

fn report(judge: &Judge, known: u64, seed: u64) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let random = judge.requests - known;
    writeln!(out, "{known} known and {random} random requests of seed {seed}")?;
    for (status, count) in &judge.statuses {
        writeln!(out, "{count:>10}  {status}")?;
    }
    let (cpu_ms, memory_mb) = (judge.most_cpu_time.as_millis(), judge.most_memory_bytes / 1_000_000);
    writeln!(out, "at most {cpu_ms} ms of processor time and {memory_mb} MB of memory for one request")?;
    for fault in judge.faults.iter().take(MAX_PRINTED) {
        writeln!(out, "FAULT: {fault}")?;
    }
    if !judge.faults.is_empty() {
        bail!("{} faults; repeat with: cargo run -p bench -- hostile --seed {seed}", judge.faults.len());
    }
    writeln!(out, "no fault")?;
    Ok(())
}
