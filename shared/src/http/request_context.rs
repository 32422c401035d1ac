//! The facts about a request that the layer around all routes learns while it is handled.

use super::error::{ApiError, ConflictCode};
use super::responses::ApiResponse;
use crate::domain::keys::rate::Rate;
use crate::domain::request::{ERASED, IdempotentRequest, StoredResponse};
use crate::domain::values::id::{ApiKeyId, LinkId, TenantId};
use crate::store::{DryRun, PreviousRequest, TenantStore};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Marks a response that was stored when the same request came before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The time that an error waits for the stored response of the same request.
const STORED_RESPONSE_TIMEOUT: Duration = Duration::from_millis(400);

/// Notes on one request, written by the key check and read by the layer around all routes. Each is written once.
#[derive(Clone, Default)]
pub(crate) struct RequestContext(Arc<Notes>);

#[derive(Default)]
struct Notes {
    request_id: String,
    tenant: OnceLock<TenantId>,
    key: OnceLock<ApiKeyId>,
    link: OnceLock<LinkId>,
    rate: OnceLock<Rate>,
    idempotent_request: OnceLock<(TenantStore, IdempotentRequest)>,
    previous: OnceLock<PreviousRequest>,
    replayed: OnceLock<()>,
    dry_run: OnceLock<DryRun>,
}

impl RequestContext {
    pub(super) fn new(request_id: String) -> Self {
        Self(Arc::new(Notes { request_id, ..Notes::default() }))
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.0.request_id
    }

    /// A problem document, as the response to a part of the request.
    pub(crate) fn problem(&self, error: &ApiError) -> StoredResponse {
        let problem = error.problem(&self.0.request_id);
        StoredResponse::new(problem.status, serde_json::to_string(&problem).unwrap_or_default())
    }

    /// Notes that all parts of the request were executed before.
    pub(crate) fn note_replay(&self) {
        let _ = self.0.replayed.set(());
    }

    /// Marks the response if all parts were executed before.
    pub(super) fn add_replayed(&self, headers: &mut HeaderMap) {
        headers.extend(self.0.replayed.get().map(|()| (REPLAYED, HeaderValue::from_static("true"))));
    }

    pub(crate) fn note_caller(&self, tenant: TenantId, key: ApiKeyId) {
        let _ = self.0.tenant.set(tenant);
        let _ = self.0.key.set(key);
    }

    pub(crate) fn note_signer(&self, tenant: TenantId, link: LinkId) {
        let _ = self.0.tenant.set(tenant);
        let _ = self.0.link.set(link);
    }

    pub(crate) fn note_rate(&self, rate: Rate) {
        let _ = self.0.rate.set(rate);
    }

    /// Notes that the request has an idempotency key, and the previous request under it.
    pub(crate) fn note_idempotent_request(
        &self,
        store: TenantStore,
        request: IdempotentRequest,
        previous: Option<PreviousRequest>,
    ) {
        let _ = self.0.idempotent_request.set((store, request));
        if let Some(previous) = previous {
            let _ = self.0.previous.set(previous);
        }
    }

    /// Nothing is written; `dry_run` collects the writes.
    pub(crate) fn note_dry_run(&self, dry_run: DryRun) {
        let _ = self.0.dry_run.set(dry_run);
    }

    /// `None` for a real request.
    pub(super) fn dry_run(&self) -> Option<&DryRun> {
        self.0.dry_run.get()
    }

    /// The IDs of the caller's tenant, API key and signing link, once verified.
    pub(super) fn caller(&self) -> [Option<String>; 3] {
        let Notes { tenant, key, link, .. } = &*self.0;
        [tenant.get().map(ToString::to_string), key.get().map(ToString::to_string), link.get().map(ToString::to_string)]
    }

    /// Adds the `X-RateLimit-…` headers, once the key or link is verified. The number of remaining requests is left out if it is
    /// not known.
    pub(super) fn add_rate_limit(&self, headers: &mut HeaderMap) {
        let Some(rate) = self.0.rate.get() else { return };
        headers.insert(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(rate.limit));
        let remaining = rate.remaining().map(HeaderValue::from);
        headers.extend(remaining.map(|remaining| (HeaderName::from_static("x-ratelimit-remaining"), remaining)));
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(rate.reset));
    }

    /// Decides whether a stored response is sent instead of an error, and returns it.
    ///
    /// An error may only mean that the request took effect before, or, after a timeout, that it has now. So the stored
    /// response is looked up for every error of a request with an idempotency key.
    pub(super) async fn stored_response(&self) -> Option<Response> {
        let (store, request) = self.0.idempotent_request.get()?;
        let previous = match self.0.previous.get() {
            Some(previous) => Some(previous.clone()),
            // The handler may have used up nearly all the time that there is.
            None => match tokio::time::timeout(STORED_RESPONSE_TIMEOUT, store.previous_request(request)).await {
                Ok(Ok(previous)) => previous,
                Ok(Err(error)) => return Some(ApiError::from(error).into_response()),
                Err(elapsed) => return Some(ApiError::timed_out(elapsed).into_response()),
            },
        };
        match previous? {
            PreviousRequest::Different => {
                Some(ApiError::idempotency_key("was already used for a different request").into_response())
            }
            // The parts of the request have stored responses of their own.
            PreviousRequest::Same(stored) if stored.is_in_parts => None,
            PreviousRequest::Same(stored) if *stored == StoredResponse::erased() => {
                Some(ApiError::conflict(ConflictCode::Conflict, ERASED, Value::Null).into_response())
            }
            PreviousRequest::Same(stored) => {
                let mut response = ApiResponse::from_stored(*stored).into_response();
                response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                Some(response)
            }
        }
    }
}
