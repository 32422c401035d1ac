//! Idempotent requests that enqueue a message for webhooks, which can't be part of a transaction (docs/adr/0010).
//!
//! With an idempotency key, the message is stored before it is sent, and replaced by the response afterwards. A retry of the
//! request waits for the response. If none comes, because the first attempt was interrupted, the retry sends the same message.
//! Duplicate messages are harmless: they are identified by the event and the time of the request.

use crate::auth::VerifiedCaller;
use crate::domain::record::{IdempotentRequest, Mismatch, StoredResponse};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::Message;
use crate::http::responses::{ApiError, Success};
use crate::queue::Queue;
use crate::store::{PreviousRequest, StoreError, WriteError, has_time_for_operation};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a retry waits for another attempt before it sends the message itself.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

/// The stored state of a request whose message is being sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Dispatch {
    /// When sending started; `None` after a failure.
    since: Option<Timestamp>,
    message: Message,
    response: StoredResponse,
}

impl Dispatch {
    /// Returns the state to store in place of the response, marked so that a retry resumes the request.
    fn stored(&self) -> Result<StoredResponse, StoreError> {
        let body = serde_json::to_string(self).map_err(StoreError::broken)?;
        Ok(StoredResponse { body, ..StoredResponse::of_request_in_parts() })
    }

    fn read(stored: &StoredResponse) -> Result<Self, StoreError> {
        serde_json::from_str(&stored.body).map_err(StoreError::broken)
    }
}

impl VerifiedCaller {
    /// Sends a message once per idempotency key, and stores the response. A dry run sends nothing.
    ///
    /// # Errors
    ///
    /// - [`ApiError::PreconditionFailed`] for a request with `If-Match`: the message changes no resource.
    /// - [`ApiError::Unavailable`] if the queue or the table doesn't respond.
    /// - [`ApiError::Conflict`] if the message was already sent. The middleware then sends the stored response, or this error if
    ///   there is none yet.
    pub async fn idempotent_enqueue(&self, queue: &dyn Queue, message: Message, response: &impl Success) -> Result<(), ApiError> {
        if self.context.precondition.is_some() {
            return Err(ApiError::PreconditionFailed(Mismatch::Version));
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
        self.store.now()
    }

    /// Sends the message, then replaces the stored message with the response.
    async fn send(&self, queue: &dyn Queue, request: &IdempotentRequest, dispatch: Dispatch) -> Result<(), ApiError> {
        let current = dispatch.stored()?;
        if let Err(error) = queue.send(vec![dispatch.message.clone().into()]).await {
            // The next retry need not wait. It sends the same message: if the failed call sent the message after all, the
            // duplicate is harmless.
            let failed = Dispatch { since: None, ..dispatch }.stored()?;
            let _ = self.store.replace_stored_response(request, &current, &failed).await;
            return Err(error.into());
        }
        if self.store.replace_stored_response(request, &current, &dispatch.response).await.is_err() {
            // The message is sent, so the request succeeds. A retry of the request would send the message again.
            tracing::warn!(request_id = self.notes.request_id(), "the response to a request can't be stored");
        }
        Ok(())
    }

    /// Waits for another attempt to send the message, or sends it after [`PATIENCE`].
    async fn resume(&self, queue: &dyn Queue, request: &IdempotentRequest) -> Result<(), ApiError> {
        let began = Instant::now();
        let patience = TimeDelta::from_std(PATIENCE).unwrap_or_default();
        while has_time_for_operation() {
            let current = match self.store.previous_request(request).await? {
                Some(PreviousRequest::Same(stored)) if stored.is_in_parts => *stored,
                _ => return Err(WriteError::AlreadyAnswered.into()),
            };
            let dispatch = Dispatch::read(&current)?;
            let is_left = dispatch.since.is_none_or(|since| since.plus(patience) <= self.now());
            if !is_left && began.elapsed() < PATIENCE {
                sleep(PAUSE).await;
                continue;
            }
            let dispatch = Dispatch { since: Some(self.now()), ..dispatch };
            if self.store.replace_stored_response(request, &current, &dispatch.stored()?).await? {
                self.send(queue, request, dispatch).await?;
                return Err(WriteError::AlreadyAnswered.into());
            }
        }
        Err(WriteError::InProgress.into())
    }
}
