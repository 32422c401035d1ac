//! `/v1/processes` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::lambda::run(processes::routes()).await
}
