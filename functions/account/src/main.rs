//! `/v1/settings` and `/v1/keys` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::lambda::run(account::routes()).await
}
