//! The operator's command line: manages tenants and API keys, and verifies audit trails, directly on the table.
//!
//! It takes credentials and region from the AWS environment, like any AWS tool, and prints JSON.

mod check;
mod clock;
mod commands;
mod environment;
mod events;
mod options;
mod output;
mod receipts;
mod verify;

use clap::Parser;
use options::Options;
use output::Output;
use std::io::Write;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    match commands::run(options).await {
        Ok(Output { value, is_success }) => match writeln!(std::io::stdout(), "{value:#}") {
            Ok(()) if is_success => ExitCode::SUCCESS,
            Ok(()) | Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
