//! Verifies an API key: its secret, its owner, its rate limit and its scope, in this order.

use super::{Caller, Principal};
use crate::app::App;
use crate::domain::actor::Actor;
use crate::domain::keys::api_key::{ApiKey, SharedLimit};
use crate::domain::keys::rate::Rate;
use crate::domain::keys::scope::Scope;
use crate::domain::keys::token::Token;
use crate::domain::user::User;
use crate::domain::values::id::{Id, TenantId};
use crate::domain::values::time::Timestamp;
use crate::http::RequestContext;
use crate::http::error::ApiError;
use crate::log::error_chain;
use crate::store::{ChangeContext, ReadGate, StoreError, TenantReads};
use uuid::Uuid;

/// The age from which a key's `last_used_at` is written again.
const LAST_USED_PRECISION: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// The name of the metric in the log lines of requests that could not be counted.
const UNCOUNTED: &str = "uncounted_requests";

pub(super) struct KeyCheck<'a> {
    pub(super) app: &'a App,
    pub(super) token: &'a Token,
    pub(super) scope: Option<Scope>,
    pub(super) notes: &'a RequestContext,
}

/// A key's record and the user whom it is bound to, as they are now.
struct Credentials {
    key: ApiKey,
    /// `None` for a key of the tenant.
    owner: Option<User>,
}

impl KeyCheck<'_> {
    /// Verifies the key and lets the request's reads go on that wait for it.
    ///
    /// Until its secret has been checked, a key causes one read of its own record and nothing else, so that unauthenticated
    /// callers cost next to nothing. Then the request is counted. Its reads begin at the same time, unless the key lacks the
    /// scope or is known to have exceeded its rate. Only for a key that was verified lately, counting and reads begin at once.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`] for an unknown key, a wrong secret, or an owner who is inactive or deleted,
    /// [`ApiError::RateLimited`] and [`ApiError::Forbidden`].
    pub(super) async fn verify(&self, verification: ReadGate) -> Result<Caller, ApiError> {
        let (token, now) = (self.token, self.app.store().now());
        let reads = verification.reads();
        let count = |limit| reads.count_request(token.id.uuid(), limit, now);
        let known = self.app.verified_keys();
        let (credentials, counted) = if let Some(limit) = known.permits(token, self.scope, now) {
            verification.begin_reads();
            let (credentials, counted) = futures_util::join!(self.credentials(reads, now), count(limit));
            (credentials?, counted)
        } else {
            let credentials = self.credentials(reads, now).await?;
            if known.permits(token, self.scope, now).is_some() {
                verification.begin_reads();
            }
            let counted = count(credentials.key.rate_limit_per_minute).await;
            (credentials, counted)
        };
        let (key, owner) = (&credentials.key, credentials.owner.as_ref());
        self.notes.note_caller(token.tenant, token.id);
        let rate = Rate::new(key.rate_limit_per_minute, counted_requests(reads.id(), token.id.uuid(), counted)?, now);
        let rate = if rate.is_exceeded() { rate } else { self.shared_rate(reads, key, now).await?.unwrap_or(rate) };
        self.notes.note_rate(rate);
        if rate.is_exceeded() {
            known.exhaust(token, Timestamp::from_millis(rate.reset * 1000));
            return Err(ApiError::RateLimited(rate.wait));
        }
        let scopes = key.effective_scopes(owner.map(|owner| owner.role));
        let reads = reads.clone();
        // First, so that the request's reads don't wait for the write that follows.
        let store = match self.scope.filter(|scope| !scopes.contains(scope)) {
            None => Ok(verification.pass()),
            Some(scope) => Err(ApiError::Forbidden(scope)),
        };
        if is_outdated(key.last_used_at, now)
            && let Err(error) = reads.touch_key(token.id, now).await
        {
            tracing::warn!(error = %error, key_id = %token.id, "could not record that a key was used");
        }
        let store = store?;
        let actor = Actor {
            key_id: Some(token.id),
            key_name: key.name.to_string(),
            user_id: key.user_id,
            user_name: owner.map(|owner| owner.display_name.to_string()),
            link_id: None,
        };
        let context = ChangeContext { actor, at: now, idempotency: None, precondition: None };
        let role = key.role(owner.map(|owner| owner.role));
        let (app, notes) = (self.app.clone(), self.notes.clone());
        let Credentials { key, owner } = credentials;
        let principal = Principal { validations: app.validations(), store, context, app };
        Ok(Caller { principal, scopes, role, key, owner, notes, is_resumed: false })
    }

    /// Reads the key and, once its secret is known to be right, the owner of a bound key: one round trip, two for a bound
    /// key.
    async fn credentials(&self, reads: &TenantReads, now: Timestamp) -> Result<Credentials, ApiError> {
        let credentials = self.read_credentials(reads, now).await?;
        match &credentials {
            Some(Credentials { key, owner }) => {
                let scopes = key.effective_scopes(owner.as_ref().map(|owner| owner.role));
                self.app.verified_keys().insert(self.token, scopes, key.rate_limit_per_minute, now);
            }
            None => self.app.verified_keys().remove(self.token),
        }
        credentials.ok_or(ApiError::Unauthorized)
    }

    /// Returns `None` for a key that must be refused.
    async fn read_credentials(&self, reads: &TenantReads, now: Timestamp) -> Result<Option<Credentials>, ApiError> {
        // A key or an owner that can't be read can't be verified.
        let key = StoreError::tolerate_unreadable(reads.get::<ApiKey>(self.token.id).await)?.map(|stored| stored.value);
        let Some(key) = key.filter(|key| self.token.secret.is_one_of(&key.accepted_hashes(now))) else { return Ok(None) };
        let key = if self.token.secret.is_one_of(&[&key.hash]) { key } else { key.in_grace() };
        let Some(user) = key.user_id else { return Ok(Some(Credentials { key, owner: None })) };
        let owner = StoreError::tolerate_unreadable(reads.get::<User>(user).await)?.map(|stored| stored.value);
        let owner = owner.filter(|owner| owner.is_active);
        Ok(owner.map(|owner| Credentials { key, owner: Some(owner) }))
    }

    /// Counts the request against the limits that a new key shares with those that created it. Returns the rate of the
    /// first one that is exceeded.
    async fn shared_rate(&self, reads: &TenantReads, key: &ApiKey, now: Timestamp) -> Result<Option<Rate>, StoreError> {
        let limits = key.shared_limits(now);
        let count = |limit: &SharedLimit| reads.count_request(limit.key.uuid(), limit.rate_limit_per_minute, now);
        let counts = futures_util::future::join_all(limits.iter().map(count)).await;
        for (limit, counted) in limits.iter().zip(counts) {
            let rate = Rate::new(limit.rate_limit_per_minute, counted_requests(reads.id(), limit.key.uuid(), counted)?, now);
            if rate.is_exceeded() {
                return Ok(Some(rate));
            }
        }
        Ok(None)
    }
}

/// The counted requests of a credential. `None` if the table can't say: the limit protects the service from its callers, so it
/// must not refuse them for a fault of the table.
pub(super) fn counted_requests(
    tenant_id: TenantId,
    credential_id: Uuid,
    counted: Result<u64, StoreError>,
) -> Result<Option<u64>, StoreError> {
    match counted {
        Err(StoreError::Unavailable(cause)) => {
            let cause = error_chain(&*cause);
            // The template's metric filters count these lines.
            tracing::warn!(metric = UNCOUNTED, %tenant_id, %credential_id, cause, "a request was let through without being counted");
            Ok(None)
        }
        other => other.map(Some),
    }
}

fn is_outdated(last_used_at: Option<Timestamp>, now: Timestamp) -> bool {
    last_used_at.is_none_or(|at| at.plus(LAST_USED_PRECISION) <= now)
}
