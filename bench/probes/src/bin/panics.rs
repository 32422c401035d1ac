//! A function that is set up like the others, with one route that panics.

use axum::Router;
use axum::routing::get;
use std::process::ExitCode;

#[expect(clippy::panic, reason = "tests check how a panic is handled")]
async fn panics() {
    panic!("on purpose");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let routes = Router::new().route("/v1/panics", get(panics)).route("/v1/fine", get(async || "fine"));
    shared::app::run(|| routes).await
}
