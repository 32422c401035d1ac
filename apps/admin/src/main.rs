//! The operator's command line: manages tenants and API keys, and verifies audit trails, directly on the table.
//!
//! It takes credentials and region from the AWS environment, like any AWS tool. It prints tables on a terminal, and JSON
//! Lines otherwise.

mod check;
mod deletion;
mod doctor;
mod environment;
mod erasures;
mod events;
mod keys;
mod options;
mod output;
mod receipts;
mod tenants;
mod verify;

use options::Options;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options: Options = terminal::parse_arguments();
    let is_json = options.json;
    let printed = async {
        let output = options::run(options).await?;
        output.print(is_json)?;
        anyhow::Ok(output.is_success())
    };
    match printed.await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            terminal::print_error(&terminal::clean(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}
