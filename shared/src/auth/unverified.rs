//! A request whose API key is not verified yet.

use super::Caller;
use super::request_headers::RequestHeaders;
use super::verify::KeyCheck;
use crate::app::App;
use crate::domain::request::IdempotentRequest;
use crate::domain::scope::Scope;
use crate::domain::token::Token;
use crate::http::RequestNotes;
use crate::http::error::ApiError;
use crate::http::extract::{QueryParams, received};
use crate::http::params::FromQuery;
use crate::http::receive::{ReceivedBody, ReceivedRequest};
use crate::store::{ChangeContext, PendingStore, PreviousRequest, UnverifiedStore, WriteError};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use std::sync::Arc;

/// A request whose API key is not verified yet. Every handler of an endpoint that needs a key takes one.
pub struct UnverifiedRequest {
    app: App,
    token: Option<Token>,
    received: Arc<ReceivedRequest>,
    headers: RequestHeaders,
    notes: RequestNotes,
}

impl FromRequestParts<App> for UnverifiedRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self {
            app: app.clone(),
            token: bearer_token(&parts.headers).and_then(Token::parse),
            received: received(parts)?,
            headers: RequestHeaders::of(parts),
            notes: parts.extensions.get::<RequestNotes>().cloned().unwrap_or_default(),
        })
    }
}

/// Returns the token of the only `Authorization: Bearer …` header (RFC 6750 §2.1; the case of the scheme is ignored).
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (scheme, token) = values.next()?.to_str().ok()?.split_once(' ')?;
    (values.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| token.trim())
}

impl UnverifiedRequest {
    /// Verifies that the key is valid and has `scope`, and runs `read`, which reads what the handler needs: meanwhile, if
    /// the key was verified lately, or else after its secret has been checked. For an endpoint without query parameters.
    ///
    /// # Errors
    ///
    /// Returns the errors of the key first: [`ApiError::Unauthorized`], [`ApiError::RateLimited`] and
    /// [`ApiError::Forbidden`]; then those of the headers `Idempotency-Key` and `If-Match`, of unknown query parameters,
    /// and of `read`.
    pub async fn authorize<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Scope,
        read: impl FnOnce(UnverifiedStore) -> F,
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
        read: impl FnOnce(UnverifiedStore) -> F,
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
        read: impl FnOnce(UnverifiedStore, Q) -> F,
    ) -> Result<(Caller, T), ApiError> {
        self.authorize_any_query(Some(scope), |store| async move { read(store, query.parse()?).await }).await
    }

    fn authorize_without_query<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        scope: Option<Scope>,
        read: impl FnOnce(UnverifiedStore) -> F,
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
        read: impl FnOnce(UnverifiedStore) -> F,
    ) -> Result<(Caller, T), ApiError> {
        let token = self.token.as_ref().ok_or(ApiError::Unauthorized)?;
        let dry_run = self.received.dry_run();
        let (pending, verification) = self.app.store().unverified_tenant(token.tenant, dry_run.clone());
        let check = KeyCheck { app: &self.app, token, scope, notes: &self.notes };
        // An error of the key ends the reads as well, so that nobody without a key makes the service pay for them.
        let verify = check.verify(verification);
        let read = async { Ok(read(pending.begun().await).await) };
        let idempotency = async { Ok(self.idempotency(&pending, token).await) };
        let (caller, inputs, idempotency) = futures_util::try_join!(verify, read, idempotency)?;
        let idempotency = idempotency?;
        let id = self.received.path_parameter("id").ok().and_then(|id| id.parse().ok());
        let precondition = self.headers.precondition(id, token.tenant)?;
        let mut context = ChangeContext { precondition, ..caller.context };
        let mut is_resumed = false;
        if let Some(dry_run) = dry_run {
            self.headers.refuse_idempotency_key("can't be sent with dry_run")?;
            self.notes.note_dry_run(dry_run);
        }
        if let Some((request, previous)) = idempotency {
            is_resumed = matches!(&previous, Some(PreviousRequest::Same(response)) if response.is_in_parts);
            let previous = previous.filter(|_| !is_resumed);
            let is_repeated = previous.is_some();
            self.notes.note_idempotent_request(caller.store.clone(), request.clone(), previous);
            if is_repeated {
                // The layer around all routes sends the stored response.
                return Err(WriteError::AlreadyAnswered.into());
            }
            context.idempotency = Some(request);
        }
        Ok((Caller { context, is_resumed, ..caller }, inputs?))
    }

    /// Returns the request by its idempotency key, and the previous request under it; `None` if it has no key. Like
    /// reading a large body, hashing it waits until the caller's key is verified.
    async fn idempotency(
        &self,
        pending: &PendingStore,
        token: &Token,
    ) -> Result<Option<(IdempotentRequest, Option<PreviousRequest>)>, ApiError> {
        // A body that is not whole is refused before the request could be repeated.
        let ReceivedBody::Whole(body) = &self.received.body else { return Ok(None) };
        let store = pending.begun().await;
        if store.is_dry_run() {
            return Ok(None);
        }
        if self.received.has_large_body() {
            store.verified().await;
        }
        let Some(request) = self.headers.idempotent_request(token.key, body)? else { return Ok(None) };
        let previous = store.previous_request(&request).await?;
        Ok(Some((request, previous)))
    }
}
