//! `/v1/processes` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let key_encryption = key_encryption::from_env(Box::new(key_encryption::function_client));
    shared::app::run_with_links(processes::routes, key_encryption).await
}
