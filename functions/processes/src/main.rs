//! `/v1/processes` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let sealer = vault::from_env(Box::new(vault::client_of_function));
    shared::lambda::run_sealed(processes::routes(), sealer).await
}
