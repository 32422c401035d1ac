//! The dev server: `cargo run` starts it.

use clap::Parser;
use local::options::Options;
use local::server::run;
use std::process::ExitCode;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    // The engine logs a warning for each failed condition, which is part of normal operation.
    let default = "warn,shared=info,dynoxide=error";
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| default.into());
    tracing_subscriber::registry().with(shared::log::lines(std::io::stderr).with_filter(filter)).init();
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
