//! `/v1/webhooks` as a Lambda function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let key_encryption = key_encryption::from_env(Box::new(key_encryption::function_client));
    let queue = queue::Sqs::from_env().map(|queue| queue.map(|queue| std::sync::Arc::new(queue) as _));
    shared::app::run_with_queue(webhooks::routes, key_encryption, queue).await
}
