//! A request whose credential is not verified yet.

use super::request_headers::RequestHeaders;
use super::verify::KeyCheck;
use super::{Caller, Principal};
use crate::app::App;
use crate::domain::keys::scope::Scope;
use crate::domain::keys::token::{BearerToken, Credential};
use crate::domain::request::IdempotentRequest;
use crate::domain::values::id::{ApiKeyId, TenantId};
use crate::http::RequestContext;
use crate::http::error::ApiError;
use crate::http::openapi::describe::{Describe, Schemas};
use crate::http::requests::extract::QueryParams;
use crate::http::requests::params::FromQuery;
use crate::http::requests::receive::{ReceivedBody, ReceivedRequest, bearer_token};
use crate::http::requests::unread::received;
use crate::store::{ChangeContext, PreviousRequest, TenantStore, WriteError};
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
    /// Verifies that the key is valid and has `scope`. For an endpoint without query parameters.
    ///
    /// # Errors
    ///
    /// Returns the errors of the key first: [`ApiError::Unauthorized`], [`ApiError::RateLimited`] and [`ApiError::Forbidden`];
    /// then those of the headers `Idempotency-Key` and `If-Match`, and of unknown query parameters.
    pub async fn authorize(self, scope: Scope) -> Result<Caller, ApiError> {
        Ok(self.authorize_and_read(scope, async |_| Ok(())).await?.0)
    }

    /// [`UnverifiedRequest::authorize`], and runs `read`, the handler's first reads: with the check, if this instance verified the
    /// key lately, or else after its secret has been checked. The first single items that `read` asks for join the batch that
    /// reads the key. `read` must not write: the key may have been revoked.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize`], then those of `read`.
    pub async fn authorize_and_read<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Scope,
        read: impl FnOnce(TenantStore) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.authorize_without_query(Some(scope), read).await
    }

    /// [`UnverifiedRequest::authorize_and_read`] for an endpoint that every key may use, whatever its scopes.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize_and_read`], without [`ApiError::Forbidden`].
    pub async fn authorize_any_key<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        read: impl FnOnce(TenantStore) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.authorize_without_query(None, read).await
    }

    /// [`UnverifiedRequest::authorize_and_read`] for an endpoint with query parameters, which `read` gets.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize_and_read`], with the errors of `query` before those of `read`.
    pub async fn authorize_with_query<Q: FromQuery, T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Scope,
        query: QueryParams<Q>,
        read: impl FnOnce(TenantStore, Q) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.authorize_any_query(Some(scope), |store| async move { read(store, query.parse()?).await }).await
    }

    fn authorize_without_query<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Option<Scope>,
        read: impl FnOnce(TenantStore) -> F,
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
        read: impl FnOnce(TenantStore) -> F,
    ) -> Result<(Caller, T), ApiError> {
        let token = self.token.as_ref().ok_or(ApiError::Unauthorized)?;
        let store = self.store(token.tenant);
        let check = KeyCheck { app: &self.app, store: &store, token, scope, notes: &self.notes };
        let batch = Arc::default();
        let (key, reads) = match check.known() {
            Some(known) => (Err(known), store.joining(&batch)),
            None => (Ok(check.credentials().await?), store.clone()),
        };
        // In a box: some handlers' reads are large, and each layer would copy them.
        let read = Box::pin(async { futures_util::join!(read(reads.clone()), self.idempotency(&reads, token)) });
        let verify = check.verify(key, &batch);
        let ((inputs, idempotency), caller) = if check.known().is_some() {
            // The reads are polled first, so that they join the batch. An error of the key ends them.
            futures_util::try_join!(async { Ok(read.await) }, verify)?
        } else {
            let caller = verify.await?;
            (read.await, caller)
        };
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

    /// The tenant's part of the table. A dry run writes nothing.
    pub(super) fn store(&self, tenant: TenantId) -> TenantStore {
        let store = self.app.store().tenant(tenant);
        match self.received.dry_run() {
            Some(dry_run) => store.in_dry_run(dry_run),
            None => store,
        }
    }

    pub(super) async fn idempotency(&self, store: &TenantStore, by: &BearerToken<C>) -> Result<Idempotency, ApiError> {
        // A body that is not whole is refused before the request could be repeated.
        let ReceivedBody::Whole(body) = &self.received.body else { return Ok(None) };
        if store.is_dry_run() {
            return Ok(None);
        }
        let Some(request) = self.headers.idempotent_request(by, body)? else { return Ok(None) };
        let previous = store.previous_request(&request).await?;
        Ok(Some((request, previous)))
    }
}
