//! Simulations of clients on a weak table, one for each seed.

use anyhow::{Context, Result, anyhow, bail};
use local::simulation::{self, Length, Report};
use std::io::Write;

/// How many violations of a simulation are printed.
const MAX_PRINTED: usize = 10;

/// Runs the simulations of `count` seeds from `first` on, and prints what each did.
///
/// # Errors
///
/// Returns an error that names the seeds whose simulation found a violation or couldn't go on.
pub fn run(first: u64, count: u64) -> Result<()> {
    let mut failed = Vec::new();
    for seed in first..first.saturating_add(count) {
        let report = simulate(seed).with_context(|| format!("the simulation of seed {seed} failed"))?;
        print(seed, &report)?;
        failed.extend((!report.violations.is_empty()).then_some(seed));
    }
    if let Some(seed) = failed.first() {
        bail!("violations with the seeds {failed:?}; repeat one with: cargo run -p bench -- soak --weak --seed {seed}");
    }
    Ok(())
}

/// Runs one simulation on a thread with a paused clock.
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
        "seed {seed}: {requests} requests, {} snapshots read, {violations} violations; statuses {:?}",
        report.snapshots, report.responses
    )?;
    for violation in report.violations.iter().take(MAX_PRINTED) {
        writeln!(out, "  VIOLATION: {violation}")?;
    }
    Ok(())
}
