//! `/v1/catalog` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::lambda::run(catalog::routes()).await
}
