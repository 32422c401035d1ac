//! The dev server: `cargo run` starts it.

use dev_server::log::{self, Format};
use dev_server::options::Options;
use dev_server::server::run;
use std::process::ExitCode;
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let options: Options = terminal::parse_arguments();
    let format = Format::or_default(options.log);
    log::init(format);
    let ended = Builder::new_multi_thread().enable_all().build().map_err(Into::into).and_then(|runtime| {
        let ended = runtime.block_on(run(options, format));
        // Doesn't wait for requests that haven't finished in time.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
