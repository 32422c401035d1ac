//! `/v1/settings`, `/v1/keys`, `/v1/me` and `/v1/events` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::app::run(account::routes).await
}
