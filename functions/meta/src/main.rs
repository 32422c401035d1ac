//! The documentation, `/v1/health`, `/v1/openapi.json` and whatever the gateway has no route for, as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::lambda::run(meta::all_routes()).await
}
