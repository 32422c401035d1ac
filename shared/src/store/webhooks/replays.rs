//! The record of a tenant's replays.

use crate::domain::request::IdempotentRequest;
use crate::domain::webhooks::Replays;
use crate::store::TenantStore;
use crate::store::table::error::StoreError;

impl TenantStore {
    /// Lets `decide` change the present state, and again if others change it at the same time. Writes only a change, and nothing
    /// in a dry run.
    ///
    /// # Errors
    ///
    /// Those of `decide`, [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when
    /// the record can't be read.
    pub async fn change_replays<T, E: From<StoreError>>(
        &self,
        decide: impl Fn(Replays) -> Result<(Replays, T), E>,
    ) -> Result<T, E> {
        let decide = |present: Option<Replays>| {
            let present = present.unwrap_or_default();
            decide(present)
        };
        self.change_state(&self.keys.replays(), "replays", decide).await
    }

    /// Copies of the request under one idempotency key have the same.
    #[must_use]
    pub fn request_identity(&self, request: &IdempotentRequest) -> String {
        self.keys.stored_response(request).sort().to_owned()
    }
}
