//! Counts a request against the limits of its key or signing link, and of its tenant.

use crate::domain::keys::api_key::SharedLimit;
use crate::domain::keys::rate::Rate;
use crate::domain::values::id::Id;
use crate::domain::values::time::Timestamp;
use crate::http::RequestContext;
use crate::http::error::ApiError;
use crate::log::error_chain;
use crate::store::{StoreError, TenantStore};
use uuid::Uuid;

/// Marks the log lines of requests that could not be counted, for the dashboard.
const UNCOUNTED: &str = "uncounted_requests";

pub(super) struct RequestCount<'a> {
    pub(super) store: &'a TenantStore,
    pub(super) credential: Uuid,
    pub(super) at: Timestamp,
}

/// A request that is counted against the limit of its credential only.
pub(super) struct Begun {
    used: Result<u64, StoreError>,
    /// The tenant's limit.
    ceiling: Result<Option<u32>, StoreError>,
}

impl RequestCount<'_> {
    /// Counts the request against the credential's own limit, and reads the tenant's meanwhile.
    pub(super) async fn begin(&self, limit: u32) -> Begun {
        let used = self.store.count_request(self.credential, limit, self.at);
        let (used, ceiling) = futures_util::join!(used, self.store.ceiling_of_minute(self.at));
        Begun { used, ceiling }
    }

    /// Counts the request against the other limits: those that a new key shares with those that created it, then the tenant's.
    /// What one limit refuses doesn't count against the next, so a key beyond its own limit doesn't use up that of the tenant.
    ///
    /// # Errors
    ///
    /// Returns [`ApiError::RateLimited`] or [`ApiError::TenantRateLimited`]. `notes` get the limit that is exceeded, and otherwise
    /// the credential's own.
    pub(super) async fn finish(
        &self,
        begun: Begun,
        limit: u32,
        shared: &[SharedLimit],
        notes: &RequestContext,
    ) -> Result<(), ApiError> {
        let rate = Rate::new(limit, self.counted(self.credential, begun.used)?, self.at);
        let rate = if rate.is_exceeded() { rate } else { self.shared_rate(shared).await?.unwrap_or(rate) };
        if rate.is_exceeded() {
            notes.note_rate(rate);
            return Err(ApiError::RateLimited(rate.wait));
        }
        let of_tenant = self.tenant_rate(begun.ceiling).await?.filter(Rate::is_exceeded);
        notes.note_rate(of_tenant.unwrap_or(rate));
        of_tenant.map_or(Ok(()), |of_tenant| Err(ApiError::TenantRateLimited(of_tenant.wait)))
    }

    /// Returns the rate of the first shared limit that is exceeded.
    async fn shared_rate(&self, limits: &[SharedLimit]) -> Result<Option<Rate>, StoreError> {
        let count = |limit: &SharedLimit| self.store.count_request(limit.key.uuid(), limit.rate_limit_per_minute, self.at);
        let counts = futures_util::future::join_all(limits.iter().map(count)).await;
        for (limit, used) in limits.iter().zip(counts) {
            let rate = Rate::new(limit.rate_limit_per_minute, self.counted(limit.key.uuid(), used)?, self.at);
            if rate.is_exceeded() {
                return Ok(Some(rate));
            }
        }
        Ok(None)
    }

    async fn tenant_rate(&self, ceiling: Result<Option<u32>, StoreError>) -> Result<Option<Rate>, StoreError> {
        let tenant = self.store.id().uuid();
        let Some(limit) = self.counted(tenant, ceiling)?.flatten() else { return Ok(None) };
        let used = self.store.count_request(tenant, limit, self.at).await;
        Ok(Some(Rate::new(limit, self.counted(tenant, used)?, self.at)))
    }

    /// What the table says. `None` if it can't: limits protect the service from its callers, so they must not refuse them for a
    /// fault of the table.
    fn counted<T>(&self, credential_id: Uuid, answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match answer {
            Err(StoreError::Unavailable(cause)) => {
                let (tenant_id, cause) = (self.store.id(), error_chain(&*cause));
                tracing::warn!(metric = UNCOUNTED, %tenant_id, %credential_id, cause, "a request was let through without being counted");
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}
