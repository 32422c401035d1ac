//! Benchmarks and soak tests of the service, on this machine and against the embedded engine.
//!
//! For example: `cargo run --release -p bench -- lists`.

mod capacity_limit;
mod coldstart;
mod hostile;
mod import;
mod lists;
mod schemas;
mod service;
mod soak;
mod usage;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measure the service on this machine, against the embedded engine.
///
/// Absolute figures depend on the machine: only compare figures of the same run.
#[derive(Parser)]
#[command(name = "bench", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the cost and latency of lists, by the number of assets in a tenant.
    Lists(lists::Options),
    /// Measure how fast rows are imported.
    Import(import::Options),
    /// Measure what compiling custom fields schemas takes that are as expensive as they may be.
    Schemas(schemas::Options),
    /// Send mixed traffic of several tenants while injecting faults, then check all invariants.
    Soak(soak::Options),
    /// Send hostile requests, known attacks and random ones, and judge each response.
    Hostile(hostile::Options),
    /// Measure the cold starts of the functions' release binaries, compared with a minimal function.
    Coldstart(coldstart::Options),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into()))
        .with_writer(std::io::stderr)
        .init();
    let result = match Options::parse().command {
        Command::Lists(options) => lists::run(options).await,
        Command::Import(options) => import::run(options).await,
        Command::Schemas(options) => schemas::run(&options),
        Command::Soak(options) => soak::run(options).await,
        Command::Hostile(options) => hostile::run(options).await,
        Command::Coldstart(options) => coldstart::run(options).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
