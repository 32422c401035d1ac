//! `/v1/settings` and `/v1/keys` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::lambda::run(account::routes()).await
}
