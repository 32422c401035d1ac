//! Pages of lists: from a list index, or from the table itself.

use super::error::StoreError;
use super::filters::{Page, PageRequest};
use super::item;
use super::list_index::{Columns, ListIndex, ObservedVersion, RowQuery, SortKey, SortValue, SortedRows, row_from_item};
use super::read::BatchGet;
use super::{PointReads, TenantStore, UnverifiedStore};
use crate::domain::id::Id;
use crate::domain::record::{Record, Stored};
use uuid::Uuid;

/// How often a page is made at most, if its records change while they are read.
const MAX_ATTEMPTS: u32 = 5;

/// What a list index says of a page: the number of matching records, and id and version of each record of the page, with
/// whatever else the index has of it.
type Selection<E> = (usize, Vec<(Uuid, u64, E)>);

impl UnverifiedStore {
    /// Returns a page that `select` selects from the list index; `None` if there is no index.
    ///
    /// Takes two round trips: one for the events since the last list, one for the records of the page. If a record has
    /// changed in between, it may not belong to the page any more, and the page is made again. At the last attempt,
    /// `matches` decides for each record that has changed.
    pub(super) async fn page_from_index<I: ListIndex, E>(
        &self,
        request: PageRequest,
        select: impl Fn(&I) -> Selection<E>,
        matches: impl Fn(&Stored<I::Entity>) -> Result<bool, StoreError>,
    ) -> Result<Option<Page<(Stored<I::Entity>, E)>>, StoreError> {
        let id = |id: Uuid| Some(<I::Entity as Record>::Id::from_uuid(id));
        let mut changed: Vec<ObservedVersion> = Vec::new();
        for attempt in 1..=MAX_ATTEMPTS {
            let Some((mut total, rows)) = self.with_list_index(&changed, &select).await? else { return Ok(None) };
            let batch = rows.iter().fold(BatchGet::new(), |batch, row| batch.with::<I::Entity>(id(row.0)));
            let records = self.batch_get(batch).await?;
            let mut items = Vec::new();
            changed.clear();
            for (record_id, version, extra) in rows {
                let stored = records.get::<I::Entity>(id(record_id))?;
                let present = stored.as_ref().map(|stored| stored.version);
                if present != Some(version) {
                    changed.push((record_id, present));
                }
                match stored {
                    Some(stored) if stored.version == version || matches(&stored)? => items.push((stored, extra)),
                    _ => total -= 1,
                }
            }
            if changed.is_empty() || attempt == MAX_ATTEMPTS {
                return Ok(Some(Page { items, total, request }));
            }
        }
        Ok(None)
    }
}

impl PointReads {
    /// Whether a record as it is now matches the query.
    pub(super) fn matches<C: Columns>(&self, query: &RowQuery<'_, C>, stored: &Stored<C::Record>) -> Result<bool, StoreError> {
        let mut rows = SortedRows::default();
        rows.upsert(row_from_item::<C>(&item::from_record(&self.keys, stored)?.0).map_err(StoreError::broken)?);
        let mut matches = false;
        query.scan(&rows, |_| matches = true);
        Ok(matches)
    }
}

impl TenantStore {
    /// Returns a page from everything that the table has of a kind: correct for every tenant, at a cost that grows with
    /// it. Keeps only keys and sort values in memory. A record that changes while the others are read is judged as it is
    /// at the end.
    pub(super) async fn page_from_table<C: Columns>(
        &self,
        request: PageRequest,
        query: &RowQuery<'_, C>,
    ) -> Result<Page<Stored<C::Record>>, StoreError> {
        let mut matching: Vec<(Option<SortValue<'static>>, SortKey, u64)> = Vec::new();
        let mut pages = self.of_kind(C::Record::KIND).into_paginator().send();
        while let Some(page) = pages.next().await {
            let mut rows = SortedRows::default();
            for item in page?.items.unwrap_or_default() {
                rows.upsert(row_from_item::<C>(&item).map_err(StoreError::broken)?);
            }
            query.scan(&rows, |position| {
                let sort_value = |row: &_| query.order.as_ref().map(|order| order.value(row).into_owned());
                matching.extend(rows.row(position).map(|row| (sort_value(&row), row.sort_key, row.version)));
            });
        }
        matching.sort_unstable_by(|a, b| match (&query.order, &a.0, &b.0) {
            (Some(order), Some(first), Some(second)) => order.compare((first, a.1), (second, b.1)),
            _ => a.1.cmp(&b.1),
        });
        let (mut total, limit) = (matching.len(), request.limit as usize);
        let (mut items, mut left) = (Vec::new(), matching.get(request.skip()..).unwrap_or_default());
        // A record that is deleted or does not match any more is replaced by the next.
        while items.len() < limit && !left.is_empty() {
            let (next, rest) = left.split_at(left.len().min(limit - items.len()));
            let id = |key: &SortKey| Some(<C::Record as Record>::Id::from_uuid(key.id()));
            let batch = next.iter().fold(BatchGet::new(), |batch, (_, key, _)| batch.with::<C::Record>(id(key)));
            let records = self.batch_get(batch).await?;
            for (_, key, version) in next {
                match records.get::<C::Record>(id(key))? {
                    Some(stored) if stored.version == *version || self.matches(query, &stored)? => items.push(stored),
                    _ => total -= 1,
                }
            }
            left = rest;
        }
        Ok(Page { items, total, request })
    }
}
