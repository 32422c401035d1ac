//! Requests whose effect is a message in the queue of deliveries, which no transaction contains (docs/adr/0010).
//!
//! With an idempotency key, the message is stored before it is sent, and the response takes its place afterwards. A copy of
//! the request waits for that. If it does not come, because the first request was ended, the copy sends the same message.
//! Sent twice, it has the effect of one: a delivery is known by its event, and a request for it by its time.

use super::VerifiedCaller;
use crate::domain::request::{IdempotentRequest, StoredResponse};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::Message;
use crate::http::error::ApiError;
use crate::http::responses::Success;
use crate::queue::Queue;
use crate::store::{PreviousRequest, StoreError, WriteError, has_time_for_operation};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time that a copy of a request waits for the first one before it sends the message itself.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

/// The stored state of a request whose message is being sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Dispatch {
    /// The beginning of the sending; `None` after a failure.
    since: Option<Timestamp>,
    message: Message,
    response: StoredResponse,
}

impl Dispatch {
    /// The state in the place of a response: the request is resumed, as those in parts are.
    fn stored(&self) -> Result<StoredResponse, StoreError> {
        let body = serde_json::to_string(self).map_err(StoreError::broken)?;
        Ok(StoredResponse { body, ..StoredResponse::of_request_in_parts() })
    }

    fn read(stored: &StoredResponse) -> Result<Self, StoreError> {
        serde_json::from_str(&stored.body).map_err(StoreError::broken)
    }
}

impl VerifiedCaller {
    /// Sends a message, once for each idempotency key, and stores the response. In a dry run, sends nothing.
    ///
    /// # Errors
    ///
    /// - [`ApiError::PreconditionFailed`] for a request with `If-Match`: the message changes no resource.
    /// - [`ApiError::Unavailable`] when the queue or the table does not respond.
    /// - [`ApiError::Conflict`] when the message was sent before. The layer around all routes then sends the stored response,
    ///   or this error if there is none yet.
    pub async fn idempotent_enqueue(&self, queue: &dyn Queue, message: Message, response: &impl Success) -> Result<(), ApiError> {
        if self.context.precondition.is_some() {
            return Err(ApiError::PreconditionFailed);
        }
        if self.store.is_dry_run() {
            return Ok(());
        }
        let Some(request) = &self.context.idempotency else { return Ok(queue.send(vec![message.into()]).await?) };
        let dispatch = Dispatch { since: Some(self.now()), message, response: response.to_stored(Vec::new())? };
        if !self.is_resumed {
            match self.store.store_response_alone(request, &dispatch.stored()?).await {
                Ok(()) => return self.send(queue, request, dispatch).await,
                Err(WriteError::AlreadyAnswered) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.resume(queue, request).await
    }

    fn now(&self) -> Timestamp {
        self.store.store().now()
    }

    /// Sends the message, and lets the response take its place.
    async fn send(&self, queue: &dyn Queue, request: &IdempotentRequest, dispatch: Dispatch) -> Result<(), ApiError> {
        let present = dispatch.stored()?;
        if let Err(error) = queue.send(vec![dispatch.message.clone().into()]).await {
            // So that the next copy need not wait. It may have been sent, so the next one is the same.
            let failed = Dispatch { since: None, ..dispatch }.stored()?;
            let _ = self.store.replace_stored_response(request, &present, &failed).await;
            return Err(error.into());
        }
        if self.store.replace_stored_response(request, &present, &dispatch.response).await.is_err() {
            // The message is sent, which is what the client asked for. A copy of the request would send it again.
            tracing::warn!(request_id = self.notes.request_id(), "the response to a request can't be stored");
        }
        Ok(())
    }

    /// Waits until another copy of the request has sent the message, or sends it in its place.
    async fn resume(&self, queue: &dyn Queue, request: &IdempotentRequest) -> Result<(), ApiError> {
        let began = Instant::now();
        let patience = TimeDelta::from_std(PATIENCE).unwrap_or_default();
        while has_time_for_operation() {
            let present = match self.store.previous_request(request).await? {
                Some(PreviousRequest::Same(stored)) if stored.is_in_parts => *stored,
                _ => return Err(WriteError::AlreadyAnswered.into()),
            };
            let dispatch = Dispatch::read(&present)?;
            let is_left = dispatch.since.is_none_or(|since| since.plus(patience) <= self.now());
            if !is_left && began.elapsed() < PATIENCE {
                sleep(PAUSE).await;
                continue;
            }
            let dispatch = Dispatch { since: Some(self.now()), ..dispatch };
            if self.store.replace_stored_response(request, &present, &dispatch.stored()?).await? {
                self.send(queue, request, dispatch).await?;
                return Err(WriteError::AlreadyAnswered.into());
            }
        }
        Err(WriteError::InProgress.into())
    }
}
