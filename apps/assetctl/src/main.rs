//! `assetctl`, the command line for users of the service over HTTP: imports, exports, lists and changes an inventory, takes stock,
//! prints labels, hands assets over, manages users and asset types, verifies histories, and shows events.

mod args;
mod config;
mod error;
mod export;
mod handover;
mod http;
mod import;
mod interrupt;
mod labels;
mod list;
mod lookup;
mod mcp;
mod offboard;
mod output;
mod selection;
mod set;
mod show;
mod stocktake;
mod types;
mod users;
mod verify;
mod webhooks;

use args::{Cli, Command, Global};
use clap::CommandFactory;
use config::Connection;
use error::{CliError, EXIT_SUCCESS, Result};
use serde_json::json;
use std::process::ExitCode;
use webhooks::Webhooks;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Cli { global, command } = terminal::parse_arguments();
    let is_json = global.json;
    match run(global, command).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            terminal::print_error(&error.to_string());
            if is_json {
                // If writing to standard output fails, the exit code still reports the error.
                let _ = output::print_json(&json!({"error": error.to_string(), "exit_code": error.exit_code()}));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

async fn run(global: Global, command: Command) -> Result<u8> {
    let is_json = global.json;
    match command {
        Command::Import(options) if options.suggest => import::suggest::suggest(&options, &connection(global)?, is_json).await,
        Command::Import(options) => import::import(&options, &connection(global)?, is_json).await,
        Command::Export(options) => export::export(&options, &connection(global)?, is_json).await,
        Command::Labels(options) => labels::labels(&options, &connection(global)?, is_json).await,
        Command::Handover(options) => handover::handover(options.errand(), &connection(global)?, is_json).await,
        Command::Return(options) => handover::handover(options.errand(), &connection(global)?, is_json).await,
        Command::Run(options) => handover::handover(options.errand(), &connection(global)?, is_json).await,
        Command::Set(options) => set::set(&options, &connection(global)?, is_json).await,
        Command::User { command } => users::user(&command, &connection(global)?, is_json).await,
        Command::Type { command } => types::asset_type(&command, &connection(global)?, is_json).await,
        Command::Verify(options) => verify::verify(&options, || connection(global), is_json).await,
        Command::Who(options) => show::who(&options, &connection(global)?, is_json).await,
        Command::Show { asset } => show::show(&asset, &connection(global)?, is_json).await,
        Command::Offboard(options) => offboard::offboard(&options, &connection(global)?, is_json).await,
        Command::Webhooks { command: Webhooks::Listen(options) } => {
            webhooks::listen(&options, &connection(global)?, is_json).await
        }
        Command::Mcp(options) => mcp::mcp(&options, &connection(global)?).await,
        Command::List(options) => list::list(&options, &connection(global)?, is_json).await,
        Command::Events(options) => list::events(&options, &connection(global)?, is_json).await,
        Command::Stocktake(options) => stocktake::stocktake(&options, &connection(global)?, is_json).await,
        Command::Stats(options) => list::stats(&options, &connection(global)?, is_json).await,
        Command::Me => show::me(&connection(global)?, is_json).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "assetctl", &mut script);
            terminal::print_data(String::from_utf8_lossy(&script).trim_end())?;
            Ok(EXIT_SUCCESS)
        }
    }
}

fn connection(global: Global) -> Result<Connection> {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let base_url = global.base_url.or_else(|| variable("ASSETCTL_BASE_URL"));
    let base_url = config::base_url(base_url.as_deref(), global.insecure_http);
    let file = variable("ASSETCTL_API_KEY_FILE").map(Into::into);
    let api_key = config::api_key([(global.api_key, global.api_key_file), (variable("ASSETCTL_API_KEY"), file)]);
    match (base_url, api_key) {
        (Err(address), Err(key)) => Err(CliError::Usage(format!("{address}\n{key}"))),
        (base_url, api_key) => Ok(Connection { base_url: base_url?, api_key: api_key? }),
    }
}
