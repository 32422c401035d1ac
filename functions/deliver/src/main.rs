//! Runs when messages arrive in the delivery queue or the retry queue.

use deliver::{Deliver, Sender};
use shared::aws::environment::EnvironmentError;
use shared::domain::webhooks::AddressPolicy;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    shared::app::run_batches(|store| -> Result<Deliver, Box<dyn Error + Send + Sync>> {
        let queue = queue::Sqs::from_env()?.ok_or(EnvironmentError::Missing(queue::QUEUE_URL))?;
        let queue = queue.with_retries_from_env()?;
        let key_encryption = key_encryption::from_env(Box::new(key_encryption::function_client))?;
        let key_encryption = key_encryption.ok_or(EnvironmentError::Missing(key_encryption::KMS_KEY))?;
        let sender = Sender::new(AddressPolicy::Public)?;
        Ok(Deliver::new(store, Arc::new(queue), key_encryption, sender))
    })
    .await
}
