//! Two more list indexes: one that is made of the records themselves for one list, while the secondary index contradicts the
//! table; and one of process instances in progress, since there are more ended ones every day.

use super::ListIndex;
use super::blocks::{Decoder, Encoder};
use super::change_event::{ChangeEvent, Inconsistent};
use super::columns::{InstanceColumns, row_from_item};
use super::rows::SortedRows;
use crate::domain::processes::instance::{Instance, InstanceStatus};
use crate::domain::record::{Kind, Record};
use crate::store::TenantStore;
use crate::store::keys::{Item, Section};
use crate::store::table::error::StoreError;
use crate::store::table::read;
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
    match read::read::<I::Entity>(item) {
        Ok(_) => Err(StoreError::broken("a record without a row")),
        Err(error) => error.unreadable_id(),
    }
}

#[derive(Debug, Default)]
pub struct OpenInstances(pub SortedRows<InstanceColumns>);

impl ListIndex for OpenInstances {
    type Entity = Instance;
    const SECTIONS: &'static [Section] = &[Section::OpenInstances];
    /// There are few, and they change often.
    const HAS_SNAPSHOTS: bool = false;
    /// Ended instances are removed, and can still change: an erasure may replace their `step_data`.
    const DROPS_ENDED: bool = true;
    const JOINED_KINDS: &'static [Kind] = &[];

    fn load_item(&mut self, _: Kind, item: &Item) -> Result<(), Inconsistent> {
        let row = row_from_item::<InstanceColumns>(item)?;
        if row.facet.status == Some(InstanceStatus::InProgress) {
            self.0.upsert(row);
        } else {
            self.0.remove(row.id);
        }
        Ok(())
    }

    fn version(&self, kind: Kind, id: Uuid) -> Option<u64> {
        self.0.version(kind, id)
    }

    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent> {
        self.0.apply_change(event)
    }

    fn remove(&mut self, _: Kind, id: Uuid) {
        self.0.remove(id);
    }

    /// An ended instance is never resumed.
    fn is_removed_by(event: &ChangeEvent) -> bool {
        let is_ended = |status: &str| status != InstanceStatus::InProgress.as_str();
        event.is_deletion() || event.new_text("status").is_some_and(is_ended)
    }

    fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, encoder: &mut Encoder) {
        self.0.encode(encoder);
    }

    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self> {
        SortedRows::decode(decoder, with_optional).map(Self)
    }
}
