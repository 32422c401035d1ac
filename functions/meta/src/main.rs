//! The documentation page, the inventory page, `/v1/health`, `/v1/openapi.json` and all requests that match no route of the
//! gateway, as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::app::run(meta::all_routes).await
}
