//! `/v1/health` and `/v1/openapi.json` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    shared::lambda::run(meta::routes()).await
}
