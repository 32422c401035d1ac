//! Simulations of clients on a faulty table, one per seed.

use anyhow::{Context, Result, anyhow, bail};
use dev_server::simulation::{self, Length, Report};
use std::io::Write;

const MAX_PRINTED: usize = 10;

#[derive(clap::Args)]
pub struct Options {
    /// Seed of the first simulation.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Number of simulations, with consecutive seeds.
    #[arg(long, default_value_t = 1, value_name = "K")]
    seeds: u64,
}

/// Prints the report of each simulation. Fails if a simulation found a violation or couldn't continue.
pub fn run(Options { seed: first, seeds }: Options) -> Result<()> {
    let mut failed = Vec::new();
    for seed in first..first.saturating_add(seeds) {
        let report = simulate(seed).with_context(|| format!("the simulation of seed {seed} failed"))?;
        print(seed, &report)?;
        failed.extend((!report.violations.is_empty()).then_some(seed));
    }
    if let Some(seed) = failed.first() {
        bail!("violations with the seeds {failed:?}; repeat one with: cargo run -p bench -- simulate --seed {seed}");
    }
    Ok(())
}

/// Runs a simulation on a separate thread, with a paused clock.
fn simulate(seed: u64) -> Result<Report> {
    let simulation = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        runtime.block_on(simulation::run(seed, Length::Full))
    });
    simulation.join().map_err(|_| anyhow!("the simulation panicked"))?
}

fn print(seed: u64, report: &Report) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let (requests, violations) = (report.requests, report.violations.len());
    writeln!(
        out,
        "seed {seed}: {requests} requests, {} hostile ones accepted, {} snapshots read, {violations} violations; statuses {:?}",
        report.accepted_attacks, report.snapshots, report.responses
    )?;
    for violation in report.violations.iter().take(MAX_PRINTED) {
        writeln!(out, "  VIOLATION: {violation}")?;
    }
    Ok(())
}
