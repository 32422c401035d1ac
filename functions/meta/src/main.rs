//! The documentation, `/v1/health`, `/v1/openapi.json` and whatever no route takes, as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::lambda::run(meta::default_routes()).await
}
