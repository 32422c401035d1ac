//! The operator's command line: tenants, keys and checks, straight on the table (contract 3).
//!
//! It needs what any AWS tool needs, credentials and a region, and prints JSON.

mod commands;
mod environment;
mod events;
mod receipts;
mod verify;

use clap::Parser;
use commands::Options;
use std::io::Write;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    match commands::run(options).await {
        Ok(answer) => match writeln!(std::io::stdout(), "{answer:#}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
