//! Benchmarks and simulations of the service, on this machine and against the embedded engine.
//!
//! For example: `cargo run --release -p bench -- lists`.

mod coldstart;
mod compare;
mod generated_index;
mod lists;
mod service;
mod simulate;
mod statistics;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use terminal::examples;

/// Measure the service on this machine, against the embedded engine.
///
/// Absolute figures depend on the machine, so compare only figures of the same run. In a checkout, `cargo run --release -p bench
/// --` is the same as `bench`.
#[derive(Parser)]
#[command(name = "bench", version, after_help = examples("bench lists --sizes 1000,5000 --samples 20\nbench simulate --seed 7"))]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the cost and latency of lists, by the number of assets in a tenant.
    #[command(after_help = examples("bench lists --sizes 1000,5000 --samples 20\nbench lists --generated 1000000"))]
    Lists(lists::Options),
    /// Simulate clients on a table that is as weak as AWS permits, and compare every response with a model.
    #[command(after_help = examples("bench simulate --seed 7\nbench simulate --seeds 4"))]
    Simulate(simulate::Options),
    /// Measure the cold starts of the functions' release binaries, compared with a minimal function.
    #[command(after_help = examples("bench coldstart"))]
    Coldstart(coldstart::Options),
    /// Compare two builds of a function or of the dev server, which take turns.
    #[command(after_help = examples("bench compare old/assets target/release/assets\nbench compare old/asset-lifecycle-dev \\\n  target/release/asset-lifecycle-dev --rounds 5"))]
    Compare(compare::Options),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into()))
        .with_writer(std::io::stderr)
        .init();
    let result = match Options::parse().command {
        Command::Lists(options) => lists::run(options).await,
        Command::Simulate(options) => simulate::run(options),
        Command::Coldstart(options) => coldstart::run(options).await,
        Command::Compare(options) => compare::run(&options).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_help_has_examples_that_are_right() {
        Options::command().debug_assert();
        assert_eq!(terminal::check_examples(Options::command()), Ok(()));
    }
}
