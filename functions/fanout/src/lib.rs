//! Turns events of the table's stream into messages, one for each webhook that wants one.

mod stream_record;

use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use futures_util::stream::{self, StreamExt};
use shared::domain::values::id::{Id, TenantId};
use shared::domain::webhooks::{DeliveryRequest, Message, Webhook};
use shared::lambda::BatchHandler;
use shared::log::error_chain;
use shared::queue::{NewMessage, Queue};
use shared::store::{Store, StoreError, max_event_delay};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use stream_record::NewEvent;
use tokio::time::{Instant, timeout_at};

/// Tenants whose webhooks are read at the same time.
const TENANTS_AT_ONCE: usize = 16;

/// The state that the function keeps between invocations.
pub struct Fanout {
    store: Store,
    queue: Arc<dyn Queue>,
}

impl Fanout {
    #[must_use]
    pub fn new(store: Store, queue: Arc<dyn Queue>) -> Self {
        Self { store, queue }
    }

    /// Sends a message for each event of the batch and each webhook that wants it. Returns the sequence number of the first
    /// record that could not be handled, if there is one: the stream repeats the batch from there.
    pub async fn handle(&self, event: Event) -> DynamoDbEventResponse {
        response(&event.records, self.fan_out(&event.records).await)
    }

    /// The place of the first record that could not be handled. Those after it are handled nevertheless, so that a tenant whose
    /// webhooks can't be read delays no other event of the batch. The stream repeats all of them from that record, and the
    /// records after the batch wait meanwhile; the messages that come again are doubles.
    async fn fan_out(&self, records: &[EventRecord]) -> Option<usize> {
        let events: Vec<(usize, NewEvent)> =
            records.iter().enumerate().filter_map(|(place, record)| Some((place, NewEvent::of(record)?))).collect();
        let webhooks = self.active_webhooks(events.iter().map(|(_, event)| event.tenant_id).collect()).await;
        let (mut messages, mut first_sent, mut first_failed) = (Vec::new(), None, None);
        for (place, event) in events {
            let Some(webhooks) = webhooks.get(&event.tenant_id) else {
                first_failed.get_or_insert(place);
                continue;
            };
            let wanting = webhooks.iter().filter(|webhook| event.is_for(webhook));
            let before = messages.len();
            messages.extend(wanting.map(|webhook| NewMessage::from(Message::from(event.request(webhook)))));
            if messages.len() > before {
                first_sent.get_or_insert(place);
            }
        }
        let count = messages.len();
        if count == 0 {
            return first_failed;
        }
        match self.queue.send(messages).await {
            Ok(()) => {
                tracing::info!(messages = count, "events are on their way");
                first_failed
            }
            Err(error) => {
                tracing::error!(cause = error_chain(&error), "messages can't be sent");
                first_failed.into_iter().chain(first_sent).min()
            }
        }
    }

    /// Those that can't be read are logged and missing.
    async fn active_webhooks(&self, tenants: HashSet<TenantId>) -> HashMap<TenantId, Vec<Webhook>> {
        let read = stream::iter(tenants).map(|tenant| async move { (tenant, self.active_webhooks_of(tenant).await) });
        let read: Vec<_> = read.buffer_unordered(TENANTS_AT_ONCE).collect().await;
        let readable = read.into_iter().filter_map(|(tenant_id, webhooks)| match webhooks {
            Ok(webhooks) => Some((tenant_id, webhooks)),
            Err(error) => {
                tracing::error!(%tenant_id, cause = error_chain(&error), "webhooks can't be read");
                None
            }
        });
        readable.collect()
    }

    async fn active_webhooks_of(&self, tenant: TenantId) -> Result<Vec<Webhook>, StoreError> {
        let webhooks = self.store.tenant(tenant).all::<Webhook>().await?;
        Ok(webhooks.into_iter().map(|stored| stored.value).filter(|webhook| webhook.is_active).collect())
    }
}

impl NewEvent {
    /// A stream that is read again from its beginning has events of before the webhook, which it does not want.
    fn is_for(&self, webhook: &Webhook) -> bool {
        let is_older = self.event_id.timestamp().plus(max_event_delay()) < webhook.id.timestamp();
        !is_older && webhook.events.contain(&self.event_type)
    }

    fn request(&self, webhook: &Webhook) -> DeliveryRequest {
        DeliveryRequest {
            tenant_id: self.tenant_id,
            webhook_id: webhook.id,
            event_id: self.event_id,
            requested_at: self.event_id.timestamp(),
            test: None,
        }
    }
}

/// `failed` is the place of the first record that was not handled.
fn response(records: &[EventRecord], failed: Option<usize>) -> DynamoDbEventResponse {
    let mut response = DynamoDbEventResponse::default();
    if let Some(record) = failed.and_then(|place| records.get(place)) {
        // Without a number, the stream repeats the whole batch.
        let mut failure = DynamoDbBatchItemFailure::default();
        failure.item_identifier = Some(record.change.sequence_number.clone().unwrap_or_default());
        response.batch_item_failures.push(failure);
    }
    response
}

impl BatchHandler for Fanout {
    type Batch = Event;
    type Response = DynamoDbEventResponse;

    async fn handle_until(&self, batch: Event, deadline: Instant) -> DynamoDbEventResponse {
        match timeout_at(deadline, self.fan_out(&batch.records)).await {
            Ok(failed) => response(&batch.records, failed),
            Err(_) => {
                tracing::error!("a batch of the stream took too long");
                response(&batch.records, Some(0))
            }
        }
    }
}
