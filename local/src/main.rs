//! `cargo run`: the whole API on this machine.

use clap::Parser;
use local::server::{Options, run};
use std::process::ExitCode;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    // The engine warns of every refused write, which conflicts are part of.
    let filter = "warn,shared=info,dynoxide=error";
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| filter.into());
    tracing_subscriber::registry().with(shared::log::lines(std::io::stderr).with_filter(filter)).init();
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
