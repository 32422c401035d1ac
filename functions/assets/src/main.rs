//! `/v1/assets` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::app::run(assets::routes).await
}
