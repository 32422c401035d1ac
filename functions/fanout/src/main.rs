//! Runs when records arrive in the table's stream.

use fanout::Fanout;
use shared::aws::environment::EnvironmentError;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::run_batches(|store| -> Result<Fanout, Box<dyn Error + Send + Sync>> {
        let queue = queue::Sqs::from_env()?.ok_or(EnvironmentError::Missing(queue::QUEUE_URL))?;
        Ok(Fanout::new(store, Arc::new(queue.with_retries_from_env()?)))
    })
    .await
}
