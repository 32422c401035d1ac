//! The record of each erasure: how far it has come.

use crate::domain::people::Erasure;
use crate::domain::values::id::UserId;
use crate::store::TenantStore;
use crate::store::keys::{ERASURES, Item};
use crate::store::state_records::state_of;
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;

impl TenantStore {
    /// All of the tenant's, in the order of the users' creation.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn erasures(&self) -> Result<Vec<Erasure>, StoreError> {
        let items = self.every(self.beginning(AttributeValue::S(ERASURES.to_owned()))).await?;
        items.iter().map(|item: &Item| state_of(Some(item))).filter_map(Result::transpose).collect()
    }

    /// `None` if nobody has begun to erase the person.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::erasures`].
    pub async fn erasure(&self, person: UserId) -> Result<Option<Erasure>, StoreError> {
        state_of(self.item(&self.keys.erasure(person)).await?.as_ref())
    }

    /// Lets `next` change the state.
    pub(super) async fn change_erasure(
        &self,
        person: UserId,
        next: impl Fn(Option<Erasure>) -> Erasure,
    ) -> Result<Erasure, StoreError> {
        let decide = |present| {
            let next = next(present);
            Ok::<_, StoreError>((next.clone(), next))
        };
        self.change_state(&self.keys.erasure(person), "erasure", decide).await
    }
}
