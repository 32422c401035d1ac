//! The holder of a signing link.

use super::Principal;
use super::caller::{RequestCount, UnverifiedRequest};
use crate::domain::catalog::custom_fields::Patterns;
use crate::domain::history::event::Actor;
use crate::domain::record::Stored;
use crate::domain::signing::{Link, RATE_LIMIT};
use crate::domain::values::id::{Id, LinkId};
use crate::domain::values::time::Timestamp;
use crate::http::check::Check;
use crate::http::openapi::{Describe, Schemas};
use crate::http::requests::body::VerifiedSender;
use crate::http::responses::ApiError;
use crate::services::App;
use crate::store::{ChangeContext, Reader, StoreError};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::sync::Arc;
use utoipa::openapi::path::Operation;

/// The holder of a signing link with a verified secret: the first argument of a handler.
///
/// Verifying the secret costs one read of the link. Then the request is counted against the rate limit. The handler runs only
/// after that, because link holders are untrusted. The idempotency key is looked up while the handler reads.
pub struct Signer {
    pub store: Reader,
    /// The link as it was when the request arrived: open, or used less than 24 hours ago.
    pub link: Stored<Link>,
    check: Check<Principal>,
}

impl FromRequestParts<App> for Signer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let request = UnverifiedRequest::<LinkId>::new(parts, app, ApiError::BadLink(None))?;
        let (store, received, now) = (request.store.reads().clone(), Arc::clone(&request.received), request.at);
        let link = request.verified_link(now).await?;
        let signer = &link.value.signer;
        let actor = Actor::signer(link.value.id, &signer.name, signer.user_id);
        let context = ChangeContext { actor, at: now, idempotency: None, precondition: None, is_erasure: false };
        let principal = Principal { store: request.store.clone(), context, app: app.clone(), patterns: Patterns::default() };
        let check = async move {
            let idempotency = request.idempotency(&principal.store).await?;
            let (context, _) = request.context_with_headers(&principal, idempotency)?;
            Ok(Principal { context, ..principal })
        };
        Ok(Self { store, link, check: Check::start(&received, check)? })
    }
}

impl UnverifiedRequest<LinkId> {
    async fn verified_link(&self, now: Timestamp) -> Result<Stored<Link>, ApiError> {
        // An unreadable link counts as missing, so the request gets a 401.
        let link = StoreError::tolerate_unreadable(self.store.get::<Link>(self.token.id).await)?;
        let link = link.filter(|link| self.token.secret.is_one_of(&[&link.value.hash])).ok_or(ApiError::BadLink(None))?;
        self.notes.note_signer(self.token.tenant, self.token.id);
        let count = RequestCount { store: &self.store, credential: self.token.id.uuid(), at: now };
        count.finish(count.begin(RATE_LIMIT).await, RATE_LIMIT, &[], &self.notes).await?;
        match link.value.end_reason(now) {
            Some(status) => Err(ApiError::BadLink(Some(status))),
            None => Ok(link),
        }
    }
}

impl VerifiedSender for Signer {}

impl Describe for Signer {
    /// Does nothing: the handler's `utoipa::path` attribute declares the security scheme.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Signer {
    /// Waits until the headers are checked and the idempotency key is looked up.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`] if the check or the lookup fails; the client gets the actual error.
    pub async fn verified(&self) -> Result<Principal, ApiError> {
        self.check.passed().await
    }
}
