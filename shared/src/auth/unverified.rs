//! A request whose credential is not verified yet.

use super::request_headers::RequestHeaders;
use super::verify::KeyCheck;
use super::{Caller, Principal};
use crate::app::App;
use crate::domain::keys::scope::Scope;
use crate::domain::keys::token::{BearerToken, Credential};
use crate::domain::request::IdempotentRequest;
use crate::domain::values::id::ApiKeyId;
use crate::http::RequestContext;
use crate::http::error::ApiError;
use crate::http::openapi::describe::{Describe, Schemas};
use crate::http::requests::extract::QueryParams;
use crate::http::requests::params::FromQuery;
use crate::http::requests::receive::{ReceivedBody, ReceivedRequest, bearer_token};
use crate::http::requests::unread::received;
use crate::store::{BoundedReads, ChangeContext, PendingStore, PreviousRequest, WriteError};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::sync::Arc;
use utoipa::openapi::path::Operation;

/// A request whose credential is not verified yet: an API key, unless another kind is named. Every handler of an endpoint that
/// needs a credential takes one.
pub struct UnverifiedRequest<C = ApiKeyId> {
    pub(super) app: App,
    pub(super) token: Option<BearerToken<C>>,
    pub(super) received: Arc<ReceivedRequest>,
    headers: RequestHeaders,
    pub(super) notes: RequestContext,
}

impl<C: Credential> FromRequestParts<App> for UnverifiedRequest<C> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self {
            app: app.clone(),
            token: bearer_token(&parts.headers),
            received: received(parts)?,
            headers: RequestHeaders::of(parts),
            notes: parts.extensions.get::<RequestContext>().cloned().unwrap_or_default(),
        })
    }
}

impl<C> Describe for UnverifiedRequest<C> {
    /// The attribute of the handler names the scope.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl UnverifiedRequest {
    /// Verifies that the key is valid and has `scope`, and runs `read`, the handler's reads: meanwhile, if the key was verified
    /// lately, or else after its secret has been checked. For an endpoint without query parameters.
    ///
    /// # Errors
    ///
    /// Returns the errors of the key first: [`ApiError::Unauthorized`], [`ApiError::RateLimited`] and [`ApiError::Forbidden`];
    /// then those of the headers `Idempotency-Key` and `If-Match`, of unknown query parameters, and of `read`.
    pub async fn authorize<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Scope,
        read: impl FnOnce(BoundedReads) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.authorize_without_query(Some(scope), read).await
    }

    /// [`UnverifiedRequest::authorize`] for an endpoint that every key may use, whatever its scopes.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize`], without [`ApiError::Forbidden`].
    pub async fn authorize_any_key<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        read: impl FnOnce(BoundedReads) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.authorize_without_query(None, read).await
    }

    /// [`UnverifiedRequest::authorize`] for an endpoint with query parameters, which `read` gets.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize`], with the errors of `query` before those of `read`.
    pub async fn authorize_with_query<Q: FromQuery, T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Scope,
        query: QueryParams<Q>,
        read: impl FnOnce(BoundedReads, Q) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.authorize_any_query(Some(scope), |store| async move { read(store, query.parse()?).await }).await
    }

    fn authorize_without_query<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Option<Scope>,
        read: impl FnOnce(BoundedReads) -> F,
    ) -> impl Future<Output = Result<(Caller, T), ApiError>> {
        let received = Arc::clone(&self.received);
        let read = |store| async move {
            received.params()?.finish()?;
            read(store).await
        };
        self.authorize_any_query(scope, read)
    }

    async fn authorize_any_query<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Option<Scope>,
        read: impl FnOnce(BoundedReads) -> F,
    ) -> Result<(Caller, T), ApiError> {
        let token = self.token.as_ref().ok_or(ApiError::Unauthorized)?;
        let (pending, verification) = self.app.store().unverified_tenant(token.tenant, self.received.dry_run());
        let check = KeyCheck { app: &self.app, token, scope, notes: &self.notes };
        // An error of the key ends the reads as well, so that nobody without a key makes the service pay for them.
        let verify = check.verify(verification);
        let read = async { Ok(read(pending.begun().await).await) };
        let idempotency = async { Ok(self.idempotency(&pending, token.id).await) };
        let (caller, inputs, idempotency) = futures_util::try_join!(verify, read, idempotency)?;
        let (context, is_resumed) = self.context_with_headers(&caller, idempotency?)?;
        Ok((Caller { is_resumed, ..caller.with_context(context) }, inputs?))
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

    /// Returns the request by its idempotency key, and the previous request under it; `None` if it has no key. Like
    /// reading a large body, hashing it waits until the caller's key is verified.
    pub(super) async fn idempotency(&self, pending: &PendingStore, by: C) -> Result<Idempotency, ApiError> {
        // A body that is not whole is refused before the request could be repeated.
        let ReceivedBody::Whole(body) = &self.received.body else { return Ok(None) };
        let store = pending.begun().await;
        if store.is_dry_run() {
            return Ok(None);
        }
        if self.received.has_large_body() {
            store.verified().await;
        }
        let Some(request) = self.headers.idempotent_request(by, body)? else { return Ok(None) };
        let previous = store.previous_request(&request).await?;
        Ok(Some((request, previous)))
    }
}
