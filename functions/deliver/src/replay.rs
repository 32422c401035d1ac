//! Replays: delivers past events again.

use super::{Deliver, Failure};
use chrono::TimeDelta;
use shared::domain::history::filter::EventFilter;
use shared::domain::values::id::{EventId, Id};
use shared::domain::webhooks::{Message, ReplayRequest, Replays, Webhook};
use shared::queue::NewMessage;
use shared::store::StoreError;

/// Number of events per message of a replay.
const EVENTS_AT_ONCE: u32 = 100;

impl Deliver {
    /// Sends a message for each event in the next part of a replay, then one message for the rest. After an interruption, the
    /// part is sent again: deliveries that already succeeded drop the duplicates.
    pub(crate) async fn replay(&self, request: &ReplayRequest) -> Result<(), Failure> {
        let store = self.store.writer(request.tenant_id);
        let (id, requested_at) = (request.webhook_id, request.requested_at);
        let confirm = |replays: Replays| {
            let confirmed = replays.clone().confirmed(id, requested_at, self.store.now());
            let is_superseded = confirmed.is_none();
            Ok::<_, StoreError>((confirmed.unwrap_or(replays), is_superseded))
        };
        let (webhook, is_superseded) = tokio::try_join!(store.get::<Webhook>(id), store.change_replays(confirm))?;
        if is_superseded {
            tracing::warn!(webhook_id = %id, %requested_at, "a replay ends, because a newer one has started");
            return Ok(());
        }
        let end = |replays: Replays| Ok::<_, StoreError>((replays.ended(id, requested_at), ()));
        if !webhook.is_some_and(|webhook| webhook.value.is_active) {
            tracing::info!(webhook_id = %id, "a replay ends, because the webhook is not active");
            return Ok(store.change_replays(end).await?);
        }
        // Determined before the feed is read, so that no event before this time can be added after the feed is read.
        let complete_until = store.end_of_feed().timestamp().plus(TimeDelta::milliseconds(1));
        let filter = EventFilter { types: request.events.filter(), ..EventFilter::default() };
        let feed = store.matching_events(Some(request.after), EVENTS_AT_ONCE, &filter).await?;
        let events: Vec<EventId> = feed.entries.iter().map(|entry| entry.id).collect();
        let part = request.part(&events, feed.last, feed.has_more, complete_until);
        let deliveries: Vec<NewMessage> = part.deliveries.into_iter().map(|request| Message::from(request).into()).collect();
        if !deliveries.is_empty() {
            self.queue.send(deliveries).await?;
        }
        // Sent separately: if the batch failed in part but this message was sent, two messages would replay the rest.
        if let Some((rest, delay)) = part.rest {
            self.queue.send(vec![NewMessage { message: Message::Replay(rest), delay }]).await?;
            return Ok(());
        }
        Ok(store.change_replays(end).await?)
    }
}
