//! Lists of the signing links of a process instance or movement.

use crate::domain::record::{Kind, Stored};
use crate::domain::signing::link::{Link, MAX_LINKS};
use crate::domain::values::id::{Id, LinkId};
use crate::store::keys::{Item, Key, Keys, record_id_of_sort_key};
use crate::store::lists::page::{Page, PageRequest};
use crate::store::table::error::StoreError;
use crate::store::table::item::OWNER;
use crate::store::{BatchGet, TenantStore};
use std::collections::HashSet;
use uuid::Uuid;

impl TenantStore {
    /// `subject` is a process instance or movement. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn free_link_slots(&self, subject: Uuid) -> Result<Vec<u8>, StoreError> {
        let taken: HashSet<Key> = self.link_markers(subject).await?.iter().filter_map(Key::of).collect();
        let is_free = |slot: &u8| !taken.contains(&self.keys.unique(Kind::Link, &Link::unique_slot(subject, *slot)));
        Ok((0..MAX_LINKS).filter(is_free).collect())
    }

    /// Their number is bounded.
    async fn link_markers(&self, subject: Uuid) -> Result<Vec<Item>, StoreError> {
        self.every(self.beginning(Keys::markers(Kind::Link, &Link::of_subject(subject)))).await
    }

    /// Newest first. Includes every link whose creation was acknowledged before the call.
    async fn link_ids(&self, subject: Uuid) -> Result<Vec<LinkId>, StoreError> {
        let markers = self.link_markers(subject).await?;
        let owner = |marker: &Item| record_id_of_sort_key(Kind::Link, marker.get(OWNER)?.as_s().ok()?);
        let mut ids: Vec<LinkId> = markers.iter().filter_map(owner).map(LinkId::from_uuid).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// Newest first. Takes two round trips.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn list_links(&self, subject: Uuid, request: PageRequest) -> Result<Page<Stored<Link>>, StoreError> {
        let ids = self.link_ids(subject).await?;
        let Page { items, total, request, mut unreadable } = Page::cut_from(ids, request);
        let links = self.batch_get(BatchGet::new().with_all::<Link>(items.iter().copied())).await?;
        let mut page = Vec::new();
        for id in items {
            match links.get::<Link>(Some(id)) {
                Ok(link) => page.extend(link),
                Err(error) => unreadable.extend(error.unreadable_id()?),
            }
        }
        Ok(Page { items: page, total, request, unreadable })
    }
}
