//! Bulk requests as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::lambda::run(bulk::routes()).await
}
