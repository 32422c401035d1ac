//! Lists of signing links, which the table finds by what they open.

use super::error::StoreError;
use super::filters::{Page, PageRequest};
use super::item::OWNER;
use super::keys::{Item, Keys, record_id_of_sort_key};
use super::{BatchGet, TenantStore};
use crate::domain::id::{Id, LinkId};
use crate::domain::link::Link;
use crate::domain::record::{Kind, Stored};
use uuid::Uuid;

impl TenantStore {
    /// Returns the IDs of all links that open a process instance or movement, newest first. Includes every link whose creation
    /// was acknowledged before the call.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn link_ids(&self, target: Uuid) -> Result<Vec<LinkId>, StoreError> {
        let markers = self.every(self.beginning(Keys::markers(Kind::Link, &Link::of_target(target)))).await?;
        let owner = |marker: &Item| record_id_of_sort_key(Kind::Link, marker.get(OWNER)?.as_s().ok()?);
        let mut ids: Vec<LinkId> = markers.iter().filter_map(owner).map(LinkId::from_uuid).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// Returns a page of the links that open a process instance or movement, newest first. Takes two round trips.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::link_ids`].
    pub async fn list_links(&self, target: Uuid, request: PageRequest) -> Result<Page<Stored<Link>>, StoreError> {
        let ids = self.link_ids(target).await?;
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
