//! Verifies an API key: its secret, its owner, its rate limit and its scope, in this order.

use super::Caller;
use crate::app::App;
use crate::domain::api_key::ApiKey;
use crate::domain::event::Actor;
use crate::domain::rate::Rate;
use crate::domain::scope::Scope;
use crate::domain::time::Timestamp;
use crate::domain::token::Token;
use crate::http::RequestNotes;
use crate::http::error::ApiError;
use crate::log::error_chain;

use crate::store::{ChangeContext, StoreError, UnverifiedStore, Verification};

/// How old a key's `last_used_at` gets before it is written again.
const LAST_USED_PRECISION: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// The name of the metric in the log lines of requests that could not be counted.
const UNCOUNTED: &str = "uncounted_requests";

/// A key that is being verified for a scope.
pub(super) struct KeyCheck<'a> {
    pub(super) app: &'a App,
    pub(super) token: &'a Token,
    pub(super) scope: Scope,
    pub(super) notes: &'a RequestNotes,
}

impl KeyCheck<'_> {
    /// Verifies the key and lets the reads of `store` go on that wait for it.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::Unauthorized`] for an unknown key, a wrong secret, or an owner who is inactive or deleted,
    /// [`ApiError::RateLimited`] and [`ApiError::Forbidden`].
    pub(super) async fn verify(&self, store: &UnverifiedStore, verification: Verification) -> Result<Caller, ApiError> {
        let token = self.token;
        let now = self.app.store().now();
        let secret = token.secret.hash();
        let counted = store.count_request(token.key, &secret.0, now);
        let (credentials, counted) = futures_util::join!(store.credentials(token.key), counted);
        let credentials = credentials?.ok_or(ApiError::Unauthorized)?;
        let key = &credentials.key.value;
        let owner = credentials.owner.as_ref().map(|owner| &owner.value);
        let has_active_owner = key.user_id.is_none() || owner.is_some_and(|owner| owner.is_active);
        if !token.secret.is_one_of(&key.accepted_hashes(now)) || !has_active_owner {
            return Err(ApiError::Unauthorized);
        }
        self.notes.note_caller(token.tenant, token.key);
        let used = self.used(store, counted, key, now).await?;
        let rate = Rate::new(key.rate_limit_per_minute, used, now);
        self.notes.note_rate(rate);
        if rate.is_exceeded() {
            return Err(ApiError::RateLimited(rate.wait));
        }
        let scopes = key.effective_scopes(owner);
        let is_permitted = scopes.contains(&self.scope);
        if is_permitted {
            // First, so that the request's reads don't wait for the write that follows.
            verification.pass();
        }
        if is_outdated(key.last_used_at, now)
            && let Err(error) = store.touch_key(token.key, now).await
        {
            tracing::warn!(error = %error, key_id = %token.key, "could not record that a key was used");
        }
        if !is_permitted {
            return Err(ApiError::Forbidden(self.scope));
        }
        let actor = Actor {
            key_id: Some(token.key),
            key_name: key.name.to_string(),
            user_id: key.user_id,
            user_name: owner.map(|owner| owner.display_name.to_string()),
        };
        let context = ChangeContext { actor, at: now, idempotency: None, precondition: None };
        Ok(Caller { store: store.verified().await, scopes, context, app: self.app.clone() })
    }

    /// Returns how many requests the key has sent in this minute. `None` if the table can't say: the limit protects the
    /// service from its callers, so it must not take down what works.
    async fn used(
        &self,
        store: &UnverifiedStore,
        counted: Result<u64, StoreError>,
        key: &ApiKey,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let secret = self.token.secret.hash();
        let all = async {
            let mut used = counted?;
            // While the previous secret of a rotated key is still accepted, both count.
            for other in key.accepted_hashes(now).into_iter().filter(|other| **other != secret) {
                used += store.counted_requests(self.token.key, &other.0, now).await?;
            }
            Ok(used)
        };
        match all.await {
            Err(StoreError::Unavailable(cause)) => {
                let (tenant_id, key_id, cause) = (self.token.tenant, self.token.key, error_chain(&*cause));
                // The template's metric filters count these lines.
                tracing::warn!(metric = UNCOUNTED, %tenant_id, %key_id, cause, "a request was let through without being counted");
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}

fn is_outdated(last_used_at: Option<Timestamp>, now: Timestamp) -> bool {
    last_used_at.is_none_or(|at| at.plus(LAST_USED_PRECISION) <= now)
}
