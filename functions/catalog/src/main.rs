//! `/v1/catalog` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::app::run(catalog::routes).await
}
