//! A request whose credential is not verified yet.

use super::request_headers::RequestHeaders;
use super::verify::KeyCheck;
use super::{Principal, VerifiedCaller};
use crate::app::App;
use crate::domain::keys::scope::Scope;
use crate::domain::keys::token::{BearerToken, Credential};
use crate::domain::request::IdempotentRequest;
use crate::domain::values::id::ApiKeyId;
use crate::http::RequestContext;
use crate::http::error::ApiError;
use crate::http::requests::receive::{ReceivedBody, ReceivedRequest, bearer_token};
use crate::http::requests::unread::received;
use crate::store::{ChangeContext, KeyBatch, PreviousRequest, TenantStore, WriteError};
use axum::http::request::Parts;
use std::sync::Arc;

/// A request with a credential that is not verified yet.
pub(super) struct UnverifiedRequest<C> {
    pub(super) app: App,
    pub(super) token: BearerToken<C>,
    /// The tenant's part of the table. A dry run writes nothing.
    pub(super) store: TenantStore,
    pub(super) received: Arc<ReceivedRequest>,
    headers: RequestHeaders,
    pub(super) notes: RequestContext,
}

impl<C: Credential> UnverifiedRequest<C> {
    /// # Errors
    ///
    /// Returns `without` for a request without a credential.
    pub(super) fn new(parts: &Parts, app: &App, without: ApiError) -> Result<Self, ApiError> {
        let token: BearerToken<C> = bearer_token(&parts.headers).ok_or(without)?;
        let received = received(parts)?;
        let store = app.store().tenant(token.tenant);
        let store = match received.dry_run() {
            Some(dry_run) => store.in_dry_run(dry_run),
            None => store,
        };
        Ok(Self {
            app: app.clone(),
            token,
            store,
            received,
            headers: RequestHeaders::of(parts),
            notes: parts.extensions.get::<RequestContext>().cloned().unwrap_or_default(),
        })
    }
}

impl UnverifiedRequest<ApiKeyId> {
    /// Begins the check of a key that this instance has verified lately: the rest of it is returned, with a store whose first reads
    /// join the batch that reads the key. Any other key is verified first, alone; the rest is to look up the request by its
    /// idempotency key.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`], [`ApiError::RateLimited`], [`ApiError::TenantRateLimited`] and [`ApiError::Forbidden`].
    pub(super) async fn begin_check(
        self,
        scopes: &'static [Scope],
    ) -> Result<(TenantStore, impl Future<Output = Result<VerifiedCaller, ApiError>> + Send + use<>), ApiError> {
        let batch = Arc::<KeyBatch>::default();
        let check = self.key_check(scopes);
        let (reads, read) = match check.known() {
            Some(known) => (self.store.joining(&batch), Err(known)),
            None => (self.store.clone(), Ok(check.verify_alone().await?)),
        };
        let store = reads.clone();
        let rest = async move {
            let (idempotency, caller) = match read {
                Ok(caller) => (self.idempotency(&reads).await, caller),
                Err(known) => {
                    let check = self.key_check(scopes);
                    // The look-up is polled first, so that it joins the batch. An error of the key ends it.
                    let look_up = async { Ok(self.idempotency(&reads).await) };
                    futures_util::try_join!(look_up, check.verify_in(&batch, known))?
                }
            };
            let (context, is_resumed) = self.context_with_headers(&caller, idempotency?)?;
            Ok(VerifiedCaller { is_resumed, ..caller.with_context(context) })
        };
        Ok((store, rest))
    }

    fn key_check(&self, scopes: &'static [Scope]) -> KeyCheck<'_> {
        KeyCheck { app: &self.app, store: &self.store, token: &self.token, scopes, notes: &self.notes }
    }
}

/// A request by its idempotency key, and the previous request under it; `None` if it has no key.
pub(super) type Idempotency = Option<(IdempotentRequest, Option<PreviousRequest>)>;

impl<C: Credential> UnverifiedRequest<C> {
    /// The context of the request's changes, from its headers; and whether its changes, which are committed one by one, were
    /// begun before. The credential is verified.
    ///
    /// # Errors
    ///
    /// Returns the errors of the headers. Returns [`WriteError::AlreadyAnswered`] if the request was answered before: the layer
    /// around all routes then sends the stored response.
    pub(super) fn context_with_headers(
        &self,
        principal: &Principal,
        idempotency: Idempotency,
    ) -> Result<(ChangeContext, bool), ApiError> {
        let id = ["link_id", "id"].iter().find_map(|name| self.received.path_parameter(name).ok()?.parse().ok());
        let precondition = self.headers.precondition(id, principal.store.id())?;
        let mut context = ChangeContext { precondition, ..principal.context.clone() };
        let mut is_resumed = false;
        if let Some(dry_run) = principal.store.dry_run() {
            self.headers.refuse_idempotency_key("can't be sent with dry_run")?;
            self.notes.note_dry_run(dry_run.clone());
        }
        if let Some((request, previous)) = idempotency {
            is_resumed = matches!(&previous, Some(PreviousRequest::Same(response)) if response.is_in_parts);
            let previous = previous.filter(|_| !is_resumed);
            let is_repeated = previous.is_some();
            self.notes.note_idempotent_request(principal.store.clone(), request.clone(), previous);
            if is_repeated {
                // The layer around all routes sends the stored response.
                return Err(WriteError::AlreadyAnswered.into());
            }
            context.idempotency = Some(request);
        }
        Ok((context, is_resumed))
    }

    pub(super) async fn idempotency(&self, store: &TenantStore) -> Result<Idempotency, ApiError> {
        // A body that is not whole is refused before the request could be repeated.
        let ReceivedBody::Whole(body) = &self.received.body else { return Ok(None) };
        if store.is_dry_run() {
            return Ok(None);
        }
        let Some(request) = self.headers.idempotent_request(&self.token, body)? else { return Ok(None) };
        let previous = store.previous_request(&request).await?;
        Ok(Some((request, previous)))
    }
}
