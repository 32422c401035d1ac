//! What the layer around all routes hears of a request from the gate.

use super::error::ApiError;
use super::response::Reply;
use crate::domain::id::{ApiKeyId, TenantId};
use crate::domain::rate::Rate;
use crate::domain::request::IdempotentRequest;
use crate::store::{PreviousRequest, TenantStore};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Says that a request came before and was answered then.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// How long an error waits for the answer that the request may have got before.
const RECALL: Duration = Duration::from_millis(400);

/// Who asks, once the key check knows it, and what for.
#[derive(Clone, Default)]
pub(crate) struct RequestNotes(Arc<Notes>);

#[derive(Default)]
struct Notes {
    caller: OnceLock<(TenantId, ApiKeyId)>,
    rate: OnceLock<Rate>,
    claim: OnceLock<(TenantStore, IdempotentRequest)>,
    remembered: OnceLock<PreviousRequest>,
}

impl RequestNotes {
    /// Notes who asks. Whatever was noted first stays.
    pub(crate) fn note_caller(&self, tenant: TenantId, key: ApiKeyId) {
        let _ = self.0.caller.set((tenant, key));
    }

    /// Notes how many requests the key has left.
    pub(crate) fn note_rate(&self, rate: Rate) {
        let _ = self.0.rate.set(rate);
    }

    /// Notes that the request may come again, and what is known of it.
    pub(crate) fn note_claim(&self, store: TenantStore, claim: IdempotentRequest, remembered: Option<PreviousRequest>) {
        let _ = self.0.claim.set((store, claim));
        if let Some(remembered) = remembered {
            let _ = self.0.remembered.set(remembered);
        }
    }

    /// Who asks.
    pub(super) fn caller(&self) -> Option<(TenantId, ApiKeyId)> {
        self.0.caller.get().copied()
    }

    /// Adds how many requests the key has left (contract 8).
    pub(super) fn add_limits(&self, headers: &mut HeaderMap) {
        let Some(rate) = self.0.rate.get() else { return };
        headers.insert(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(rate.limit));
        headers.insert(HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(rate.remaining()));
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(rate.reset));
    }

    /// The answer that the request got when it came before. Looked for whenever there is an error: a refusal may just
    /// mean that the request has had its effect already, and a time-out, that it has now.
    pub(super) async fn answered_before(&self) -> Option<Response> {
        let (store, claim) = self.0.claim.get()?;
        let remembered = match self.0.remembered.get() {
            Some(remembered) => Some(remembered.clone()),
            // Whatever went before may have used up nearly all the time that there is.
            None => match tokio::time::timeout(RECALL, store.recall(claim)).await {
                Ok(Ok(remembered)) => remembered,
                Ok(Err(error)) => return Some(ApiError::from(error).into_response()),
                Err(elapsed) => return Some(ApiError::Unavailable(elapsed.into()).into_response()),
            },
        };
        match remembered? {
            PreviousRequest::Another => Some(ApiError::idempotency("was sent with another request before").into_response()),
            PreviousRequest::Same(kept) => {
                let mut response = Reply::again(*kept).into_response();
                response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                Some(response)
            }
        }
    }
}
