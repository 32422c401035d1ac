//! New events: the first attempts to deliver each to all webhooks that want it.

use super::delivery::Place;
use super::shared_reads::SharedReads;
use super::webhooks::Age;
use super::{Deliver, Failure, Outcome};
use futures_util::future::join_all;
use shared::domain::webhooks::{DeliveryRequest, EventRequest, FanoutRequest, Message};
use shared::queue::{MAX_DELAY, NewMessage};
use shared::store::max_event_delay;
use std::time::Duration;

impl Deliver {
    /// Attempts all deliveries at the same time. Those that have to wait, or may take long, go on as messages of their own. If some
    /// failed before their attempt, returns the rest of the message with one of the failures.
    pub(crate) async fn deliver_event(
        &self,
        reads: &SharedReads,
        is_retry: bool,
        request: &EventRequest,
    ) -> Result<(), (Message, Failure)> {
        let place = Place { reads, is_retry, age: Age::After(request.event_id) };
        let attempts = join_all(request.deliveries().map(|delivery| self.begin(place, delivery))).await;
        let (mut webhook_ids, mut failure) = (Vec::new(), None);
        for (webhook_id, attempt) in request.webhook_ids.iter().zip(attempts) {
            if let Err(error) = attempt {
                webhook_ids.push(*webhook_id);
                failure.get_or_insert(error);
            }
        }
        match failure {
            Some(failure) => Err((Message::Event(EventRequest { webhook_ids, ..request.clone() }), failure)),
            None => Ok(()),
        }
    }

    async fn begin(&self, place: Place<'_>, request: DeliveryRequest) -> Result<(), Failure> {
        if let Outcome::Later(left) = self.deliver(place, &request).await? {
            let delay = left.to_std().unwrap_or(Duration::ZERO).min(MAX_DELAY);
            self.queue.send_retry(vec![NewMessage { message: Message::Delivery(request), delay }]).await?;
        }
        Ok(())
    }

    /// Does what the function `fanout` could not do.
    pub(crate) async fn fan_out(&self, request: &FanoutRequest) -> Result<(), Failure> {
        let webhooks = self.store.tenant(request.tenant_id).all().await?;
        let webhooks: Vec<_> = webhooks.into_iter().map(|stored| stored.value).collect();
        let messages: Vec<NewMessage> =
            request.requests(&webhooks, max_event_delay()).map(|request| Message::Event(request).into()).collect();
        if !messages.is_empty() {
            self.queue.send(messages).await?;
        }
        Ok(())
    }
}
