//! Lists of the one record that has a unique value.

use crate::domain::record::{Record, Stored, Unique};
use crate::domain::user::{Email, User};
use crate::domain::values::id::Id;
use crate::store::TenantStore;
use crate::store::keys::record_id_of_sort_key;
use crate::store::lists::page::{Page, PageRequest};
use crate::store::table::error::StoreError;
use crate::store::table::item::OWNER;

impl TenantStore {
    /// Takes two round trips.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn user_by_email(&self, email: &Email) -> Result<Option<Stored<User>>, StoreError> {
        let request = PageRequest { number: 1, limit: 1 };
        let page = self.page_with_unique::<User>(&User::unique_email(email.folded()), request, |_| Ok(true)).await?;
        Ok(page.items.into_iter().next())
    }

    /// At most one record has a unique value. Takes two round trips, however many records the tenant has.
    ///
    /// Reads of marker and record are not isolated from a change of the value. A record that lost it in between is left out: at
    /// that moment, no record had it.
    pub(in crate::store) async fn page_with_unique<T: Record>(
        &self,
        unique: &Unique,
        request: PageRequest,
        matches: impl Fn(&Stored<T>) -> Result<bool, StoreError>,
    ) -> Result<Page<Stored<T>>, StoreError> {
        let marker = self.item(&self.keys.unique(T::KIND, unique)).await?;
        let owner = marker.as_ref().and_then(|marker| marker.get(OWNER)?.as_s().ok());
        let id = owner.and_then(|sort_key| record_id_of_sort_key(T::KIND, sort_key)).map(T::Id::from_uuid);
        let mut page = Page { items: Vec::new(), total: 0, request, unreadable: Vec::new() };
        let Some(id) = id else { return Ok(page) };
        match self.get::<T>(id).await {
            Ok(Some(stored)) if stored.value.unique().contains(unique) && matches(&stored)? => {
                page.total = 1;
                page.items.extend((request.skip() == 0).then_some(stored));
            }
            Ok(_) => {}
            Err(error) => page.unreadable.extend(error.unreadable_id()?),
        }
        Ok(page)
    }
}
