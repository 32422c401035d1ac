//! A list index that is made of the records themselves, for one list: while the secondary index contradicts the table.

use super::index::ListIndex;
use crate::domain::record::{Kind, Record};
use crate::store::TenantStore;
use crate::store::keys::Item;
use crate::store::table::error::StoreError;
use crate::store::table::item;
use uuid::Uuid;

/// The most pages of 1 MB that are read for one list: 1,024 read units, a third of what a partition has for a second. With more
/// records, lists wait until the secondary index has caught up.
const MAX_PAGES: usize = 8;

impl TenantStore {
    /// With the ids of records that can't be read; `None` if there are too many records.
    pub(super) async fn index_of_records<I: ListIndex>(&self) -> Result<Option<(I, Vec<Uuid>)>, StoreError> {
        let (mut index, mut unreadable, mut pages_read) = (I::default(), Vec::new(), 0);
        for kind in I::JOINED_KINDS.iter().copied().chain([I::Entity::KIND]) {
            let mut pages = self.of_kind(kind).into_paginator().send();
            while let Some(page) = pages.next().await {
                let page = page?;
                for item in page.items.unwrap_or_default() {
                    unreadable.extend(add_record(&mut index, kind, item)?);
                }
                pages_read += 1;
                if pages_read >= MAX_PAGES && page.last_evaluated_key.is_some() {
                    return Ok(None);
                }
            }
        }
        Ok(Some((index, unreadable)))
    }
}

/// Returns the id of a record that can't be read. Names of joined kinds that can't be read are left out.
fn add_record<I: ListIndex>(index: &mut I, kind: Kind, item: Item) -> Result<Option<Uuid>, StoreError> {
    if index.load_item(kind, &item).is_ok() || kind != I::Entity::KIND {
        return Ok(None);
    }
    // Says so in the log, and which record it is.
    match item::read::<I::Entity>(item) {
        Ok(_) => Err(StoreError::broken("a record without a row")),
        Err(error) => error.unreadable_id(),
    }
}
