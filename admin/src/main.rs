//! The operator's command line: manages tenants and API keys, and verifies audit trails, directly on the table.
//!
//! It takes credentials and region from the AWS environment, like any AWS tool, and prints JSON.

mod clock;
mod commands;
mod environment;
mod events;
mod options;
mod receipts;
mod verify;

use clap::Parser;
use options::Options;
use std::io::Write;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    match commands::run(options).await {
        Ok(output) => match writeln!(std::io::stdout(), "{output:#}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
