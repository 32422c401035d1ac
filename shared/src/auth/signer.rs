//! Verifies the secret of a signing link.

use super::request_count::RequestCount;
use super::{Principal, UnverifiedRequest};
use crate::domain::actor::Actor;
use crate::domain::record::Stored;
use crate::domain::signing::link::{Link, RATE_LIMIT};
use crate::domain::values::id::{Id, LinkId};
use crate::http::error::ApiError;
use crate::http::requests::extract::QueryParams;
use crate::http::requests::params::FromQuery;
use crate::store::{ChangeContext, StoreError, TenantStore};
use std::ops::Deref;

/// The holder of a signing link whose secret is verified.
pub struct SigningRequester {
    principal: Principal,
    /// The link as it was when the request arrived: open, or used less than 24 hours ago.
    pub link: Stored<Link>,
}

impl Deref for SigningRequester {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.principal
    }
}

impl UnverifiedRequest<LinkId> {
    /// Verifies the secret, counts the request, and runs `read`, the handler's reads. For an endpoint without query parameters.
    ///
    /// A secret causes one read of its link, and nothing else until it has been checked. Then the request is counted, and only
    /// then may it read: a link is in the hands of people whom nobody has given a key.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::BadLink`] for an unknown link, a wrong secret, or a link that is over, [`ApiError::RateLimited`] and
    /// [`ApiError::TenantRateLimited`]; then the errors of the headers, of unknown query parameters, and of `read`.
    pub async fn authorize_signer<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        read: impl FnOnce(TenantStore, Stored<Link>) -> F,
    ) -> Result<(SigningRequester, T), ApiError> {
        let received = self.received.clone();
        let read = |store, link| async move {
            received.params()?.finish()?;
            read(store, link).await
        };
        self.authorize_any_query(read).await
    }

    /// [`UnverifiedRequest::authorize_signer`] for an endpoint with query parameters, which `read` gets.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedRequest::authorize_signer`], with the errors of `query` before those of `read`.
    pub async fn authorize_signer_with_query<Q: FromQuery, T, F: Future<Output = Result<T, ApiError>>>(
        self,
        query: QueryParams<Q>,
        read: impl FnOnce(TenantStore, Stored<Link>, Q) -> F,
    ) -> Result<(SigningRequester, T), ApiError> {
        self.authorize_any_query(|store, link| async move { read(store, link, query.parse()?).await }).await
    }

    async fn authorize_any_query<T, F: Future<Output = Result<T, ApiError>>>(
        self,
        read: impl FnOnce(TenantStore, Stored<Link>) -> F,
    ) -> Result<(SigningRequester, T), ApiError> {
        let token = self.token.as_ref().ok_or(ApiError::BadLink(None))?;
        let now = self.app.store().now();
        let store = self.store(token.tenant);
        // A link that can't be read can't be verified.
        let link = StoreError::tolerate_unreadable(store.get::<Link>(token.id).await)?;
        let link = link.filter(|link| token.secret.is_one_of(&[&link.value.hash])).ok_or(ApiError::BadLink(None))?;
        self.notes.note_signer(token.tenant, token.id);
        let count = RequestCount { store: &store, credential: token.id.uuid(), at: now };
        count.finish(count.begin(RATE_LIMIT).await, RATE_LIMIT, &[], &self.notes).await?;
        if let Some(status) = link.value.end_reason(now) {
            return Err(ApiError::BadLink(Some(status)));
        }
        let (inputs, idempotency) = futures_util::join!(read(store.clone(), link.clone()), self.idempotency(&store, token));
        let signer = &link.value.signer;
        let actor = Actor::signer(link.value.id, &signer.name, signer.user_id);
        let context = ChangeContext { actor, at: now, idempotency: None, precondition: None, is_erasure: false };
        let principal = Principal { store, context, app: self.app.clone(), validations: self.app.validations() };
        let (context, _) = self.context_with_headers(&principal, idempotency?)?;
        Ok((SigningRequester { principal: Principal { context, ..principal }, link }, inputs?))
    }
}
