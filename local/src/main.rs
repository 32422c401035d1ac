//! The dev server: `cargo run` starts it.

use local::log::{self, Format};
use local::options::Options;
use local::server::run;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options: Options = terminal::parse_arguments();
    let format = Format::or_default(options.log);
    log::init(format);
    match run(options, format).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
