//! `cargo run --release -p bench -- lists`, `… soak` and `… coldstart`: the service on this machine, against the embedded engine.

mod coldstart;
mod lists;
mod service;
mod soak;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measures the service on this machine, against the embedded engine. Compare figures of one run only.
#[derive(Parser)]
#[command(name = "bench", version)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What lists cost and how long they take, by the number of a tenant's assets.
    Lists(lists::Options),
    /// Mixed traffic of several tenants with faults on, and what must hold at the end.
    Soak(soak::Options),
    /// How the functions' release binaries start, beside a bare one.
    Coldstart(coldstart::Options),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into()))
        .with_writer(std::io::stderr)
        .init();
    let done = match Options::parse().what {
        What::Lists(options) => lists::run(options).await,
        What::Soak(options) => soak::run(options).await,
        What::Coldstart(options) => coldstart::run(options).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
