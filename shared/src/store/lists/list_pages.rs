//! Pages of lists: their requests, and making them from a list index.

use crate::domain::record::{Record, Stored};
use crate::domain::values::id::Id;
use crate::store::TenantStore;
use crate::store::lists::list_index::{Columns, Freshness, ListIndex, RowQuery, SortedRows, row_from_item};
use crate::store::table::error::StoreError;
use crate::store::table::read::{self, BatchGet, Contradiction, TornReadRetry};
use futures_util::try_join;
use std::collections::HashMap;
use uuid::Uuid;

/// The most attempts to make a page whose records change while they are read. Waiting for a transaction that is visible
/// in part does not count.
const MAX_CHANGES: u32 = 5;
/// The records that a page names because they can't be read.
pub(in crate::store) const MAX_UNREADABLE: usize = 100;

/// The page of a list that a request selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// The page's number, from 1.
    pub number: u32,
    /// Items on a page, 1 to 100.
    pub limit: u32,
}

impl PageRequest {
    pub(in crate::store) fn skip(self) -> usize {
        (self.number as usize).saturating_sub(1).saturating_mul(self.limit as usize)
    }
}

#[derive(Debug, Clone)]
pub struct Page<T> {
    /// In the list's order.
    pub items: Vec<T>,
    pub total: usize,
    pub request: PageRequest,
    /// Records that `items` lacks because they can't be read.
    pub unreadable: Vec<Uuid>,
}

impl<T> Page<T> {
    #[must_use]
    pub fn cut_from(list: Vec<T>, request: PageRequest) -> Self {
        let total = list.len();
        let items = list.into_iter().skip(request.skip()).take(request.limit as usize).collect();
        Self { items, total, request, unreadable: Vec::new() }
    }

    /// Adds other records of the list that can't be read, of which a page names some.
    #[must_use]
    pub(in crate::store) fn with_unreadable(mut self, others: Vec<Uuid>) -> Self {
        self.unreadable.extend(others);
        self.unreadable.truncate(MAX_UNREADABLE);
        self
    }

    pub fn map<V>(self, view: impl FnMut(T) -> V) -> Page<V> {
        let Self { items, total, request, unreadable } = self;
        Page { items: items.into_iter().map(view).collect(), total, request, unreadable }
    }
}

/// A page as the list index has it: the number of matching records, and id and version of each record of the page, with its other
/// values in the index.
pub(in crate::store) type Selection<E> = (usize, Vec<(Uuid, u64, E)>);

/// By id; `None` if the table does not have the record.
type Records<T> = HashMap<Uuid, Result<Option<Stored<T>>, Unreadable>>;

#[derive(Debug, Clone, Copy)]
struct Unreadable;

impl TenantStore {
    /// `select` selects the page from the list index.
    ///
    /// Takes two round trips: one for the events since the last list, one for the records of the page. If the table contradicts
    /// the index, a record has changed in between or a transaction is visible only in part. Both are read again, at the same
    /// time, but only the contradicting records. A contradiction that lasts longer than a transaction can explain leads to a new load
    /// and, if that doesn't help, to an index of the records themselves. If records keep changing, `arrange` chooses and sorts
    /// the records of the last page.
    pub(in crate::store) async fn page_from_index<I: ListIndex, E>(
        &self,
        request: PageRequest,
        select: impl Fn(&I) -> Result<Selection<E>, StoreError>,
        arrange: impl Fn(&[&Stored<I::Entity>]) -> Result<Vec<Uuid>, StoreError>,
    ) -> Result<Page<(Stored<I::Entity>, E)>, StoreError> {
        let mut records = HashMap::new();
        let mut contradictions: Vec<Contradiction> = Vec::new();
        let (mut freshness, mut torn_read_retry, mut changes) = (Freshness::Refreshed, TornReadRetry::default(), 0);
        let mut is_refused = false;
        loop {
            let contradicting = contradictions.iter().map(|contradiction| contradiction.id);
            let ((selection, unreadable), reread) =
                try_join!(self.with_list_index(freshness, &select), self.records::<I::Entity>(contradicting))?;
            let (total, rows) = selection?;
            records.extend(reread);
            let unread: Vec<Uuid> = rows.iter().map(|row| row.0).filter(|id| !records.contains_key(id)).collect();
            records.extend(self.records(unread).await?);
            let earlier = std::mem::replace(&mut contradictions, contradictions_of(&rows, &records));
            let is_persistent = contradictions.iter().any(|contradiction| contradiction.persists(&earlier));
            changes += u32::from(!is_persistent);
            if contradictions.is_empty() {
                return Ok(page_of(request, (total, rows), records).with_unreadable(unreadable));
            }
            if is_refused || changes >= MAX_CHANGES && !is_persistent {
                return Ok(arranged_page(request, (total, rows), records, arrange)?.with_unreadable(unreadable));
            }
            if is_persistent && freshness == Freshness::Reloaded {
                // A secondary index that far behind is not loaded for every list.
                self.refuse_list_index::<I>().await;
                is_refused = true;
                continue;
            }
            if !is_persistent {
                torn_read_retry = TornReadRetry::default();
            }
            freshness = if torn_read_retry.pause(&self.store).await { Freshness::Refreshed } else { Freshness::Reloaded };
        }
    }

    async fn records<T: Record>(&self, ids: impl IntoIterator<Item = Uuid>) -> Result<Records<T>, StoreError> {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let result = self.batch_get(BatchGet::new().with_all::<T>(ids.iter().copied().map(T::Id::from_uuid))).await?;
        let record = |id| match result.get(Some(T::Id::from_uuid(id))) {
            Err(StoreError::Unreadable(_)) => Ok((id, Err(Unreadable))),
            read => Ok((id, Ok(read?))),
        };
        ids.into_iter().map(record).collect()
    }

    /// The records that match the query now, in its order.
    pub(in crate::store) fn arrange<C: Columns>(
        &self,
        query: &RowQuery<'_, C>,
        records: &[&Stored<C::Record>],
    ) -> Result<Vec<Uuid>, StoreError> {
        let mut rows = SortedRows::default();
        for stored in records {
            rows.upsert(row_from_item::<C>(&read::from_record(&self.keys, stored)?.0).map_err(StoreError::broken)?);
        }
        let (_, matching) = query.select(&rows, PageRequest { number: 1, limit: u32::MAX });
        Ok(matching.iter().map(|row| row.sort_key.id()).collect())
    }
}

/// Rows whose version differs from the record in the table.
fn contradictions_of<T, E>(rows: &[(Uuid, u64, E)], records: &Records<T>) -> Vec<Contradiction> {
    let contradiction = |&(id, indexed, _): &(Uuid, u64, E)| {
        let Some(Ok(record)) = records.get(&id) else { return None };
        let found = record.as_ref().map(|stored| stored.version);
        (found != Some(indexed)).then_some(Contradiction { id, indexed, found })
    };
    rows.iter().filter_map(contradiction).collect()
}

/// Rows without a record don't count any more; records that can't be read are named.
fn page_of<T, E>(request: PageRequest, (mut total, rows): Selection<E>, mut records: Records<T>) -> Page<(Stored<T>, E)> {
    let (mut items, mut unreadable) = (Vec::new(), Vec::new());
    for (id, _, extra) in rows {
        match records.remove(&id).unwrap_or(Ok(None)) {
            Ok(Some(stored)) => items.push((stored, extra)),
            Ok(None) => total -= 1,
            Err(Unreadable) => unreadable.push(id),
        }
    }
    Page { items, total, request, unreadable }
}

/// `arrange` chooses and sorts the records: some are not at the row's version, so that they may not match any more, or belong
/// elsewhere. Records that can't be read stay.
fn arranged_page<T: Record, E>(
    request: PageRequest,
    (total, rows): Selection<E>,
    records: Records<T>,
    arrange: impl Fn(&[&Stored<T>]) -> Result<Vec<Uuid>, StoreError>,
) -> Result<Page<(Stored<T>, E)>, StoreError> {
    let found: Vec<&Stored<T>> = rows.iter().filter_map(|(id, ..)| records.get(id)?.as_ref().ok()?.as_ref()).collect();
    let places = places(arrange(&found)?);
    let (selected, mut kept) = (rows.len(), rows);
    kept.retain(|(id, ..)| places.contains_key(id) || matches!(records.get(id), Some(Err(_))));
    kept.sort_unstable_by_key(|(id, ..)| places.get(id).copied());
    Ok(page_of(request, (total - (selected - kept.len()), kept), records))
}

/// The index of each id.
fn places(ids: Vec<Uuid>) -> HashMap<Uuid, usize> {
    ids.into_iter().enumerate().map(|(place, id)| (id, place)).collect()
}
