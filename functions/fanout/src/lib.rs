//! Turns events from the table's stream into messages, one for each event that a webhook wants.

use futures_util::future::join;
use futures_util::stream::{self, StreamExt};
use serde_dynamo::{AttributeValue, Item};
use shared::app::BatchHandler;
use shared::app::dynamodb::{Event, EventRecord};
use shared::app::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use shared::domain::history::event;
use shared::domain::values::id::{EventId, TenantId};
use shared::domain::webhooks::{FanoutRequest, Message, NewEvent, Webhook};
use shared::log::error_chain;
use shared::queue::{NewMessage, Queue, QueueError, SOON};
use shared::store::keys::{ENTRY, EVENTS, PK, SK, event_of};
use shared::store::{Store, max_event_delay};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Number of tenants whose webhooks are read concurrently.
const TENANTS_AT_ONCE: usize = 16;
/// The metric in log lines about damaged events.
const UNREADABLE: &str = "unreadable_events";

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

    /// Sends a message for each event of the batch that a webhook wants. Returns the sequence number of the first record that
    /// couldn't be handled, if any: Lambda retries the batch from there.
    pub async fn handle(&self, event: Event) -> DynamoDbEventResponse {
        response(&event.records, self.fan_out(&event.records).await)
    }

    /// Returns the index of the first record that couldn't be handled because a queue was unavailable. Lambda retries the
    /// batch from there, which duplicates some messages.
    async fn fan_out(&self, records: &[EventRecord]) -> Option<usize> {
        let mut places = HashMap::new();
        let mut tenants = HashMap::<TenantId, Vec<NewEvent>>::new();
        for (place, record) in records.iter().enumerate() {
            if let Some((tenant_id, event)) = new_event(record) {
                places.entry(event.id).or_insert(place);
                tenants.entry(tenant_id).or_default().push(event);
            }
        }
        let requests = tenants.into_iter().map(|(tenant_id, events)| FanoutRequest { tenant_id, events });
        let read = stream::iter(requests).map(|request| async {
            let webhooks = self.store.reader(request.tenant_id).all::<Webhook>().await;
            (request, webhooks)
        });
        let (mut requests, mut aside) = (Vec::new(), Vec::new());
        for (request, webhooks) in read.buffer_unordered(TENANTS_AT_ONCE).collect::<Vec<_>>().await {
            match webhooks {
                Ok(webhooks) => {
                    let webhooks: Vec<Webhook> = webhooks.into_iter().map(|stored| stored.value).collect();
                    requests.extend(request.requests(&webhooks, max_event_delay()));
                }
                Err(error) => {
                    let (tenant_id, cause) = (request.tenant_id, error_chain(&error));
                    tracing::error!(%tenant_id, cause, "webhooks can't be read; deliver will fan these events out");
                    aside.push(request);
                }
            }
        }
        let first = |events: &mut dyn Iterator<Item = EventId>| events.filter_map(|event| places.get(&event).copied()).min();
        let first_sent = first(&mut requests.iter().map(|request| request.event_id));
        let first_aside = first(&mut aside.iter().flat_map(|request| &request.events).map(|event| event.id));
        let (count, count_aside) = (requests.len(), aside.len());
        let messages = requests.into_iter().map(|request| Message::Event(request).into()).collect();
        // The delays have jitter, so that a throttled partition doesn't get all requests at once.
        let later = |message| NewMessage { message, delay: self.store.jittered(SOON) };
        let aside = aside.into_iter().map(|request| later(Message::Fanout(request))).collect();
        let failed = join(
            sent(first_sent, self.queue.send(messages)),
            // If a tenant's webhooks can't be read, `deliver` fans its events out, without a delay for other tenants.
            sent(first_aside, self.queue.send_retry(aside)),
        );
        let (failed, failed_aside) = failed.await;
        if failed.is_none() && failed_aside.is_none() && count + count_aside > 0 {
            tracing::info!(messages = count, tenants_left_to_deliver = count_aside, "events were queued");
        }
        failed.into_iter().chain(failed_aside).min()
    }
}

/// Waits until messages are sent. `first` is the index of the first record with a message, or `None` if there are no messages.
/// Returns `first` if sending fails.
async fn sent(first: Option<usize>, send: impl Future<Output = Result<(), QueueError>>) -> Option<usize> {
    let first = first?;
    let error = send.await.err()?;
    tracing::error!(cause = error_chain(&error), "messages can't be sent");
    Some(first)
}

/// Builds the response. `failed` is the index of the first unhandled record.
fn response(records: &[EventRecord], failed: Option<usize>) -> DynamoDbEventResponse {
    let mut response = DynamoDbEventResponse::default();
    if let Some(record) = failed.and_then(|place| records.get(place)) {
        // Without a sequence number, the identifier is empty, so Lambda retries the whole batch.
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

/// Returns `None` if the record has no event. Logs and skips a damaged event: reading it again wouldn't help, and would delay all
/// others.
fn new_event(record: &EventRecord) -> Option<(TenantId, NewEvent)> {
    let keys = &record.change.keys;
    let sort = text(keys, SK).filter(|sort| record.event_name == "INSERT" && sort.starts_with(EVENTS))?;
    let event = text(keys, PK).and_then(|partition| event_of(partition, sort)).and_then(|(tenant_id, id)| {
        let event: event::Event = serde_json::from_str(text(&record.change.new_image, ENTRY)?).ok()?;
        Some((tenant_id, NewEvent { id, event_type: event.event_type }))
    });
    if event.is_none() {
        // Doesn't log the content. The template's metric filters count these lines.
        let sequence_number = record.change.sequence_number.as_deref();
        tracing::error!(metric = UNREADABLE, sequence_number, "can't parse an event from the table's stream");
    }
    event
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    match item.inner().get(name)? {
        AttributeValue::S(text) => Some(text),
        _ => None,
    }
}
