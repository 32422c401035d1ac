//! Loading a list index from the table.

use super::change_event::apply_events;
use super::delays::max_secondary_index_delay;
use super::index::ListIndex;
use super::refresh::{LoadedIndex, RefreshError};
use super::torn_reads::Rereads;
use crate::domain::record::{Kind, Record};
use crate::store::TenantStore;
use crate::store::error::StoreError;
use crate::store::keys::{self, Item, Keys};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use futures_util::future::try_join_all;
use std::sync::{Mutex, PoisonError};

/// How many ranges of the secondary index are read at the same time, once it turns out to have more than one page.
const PARALLEL_RANGES: usize = 4;

impl TenantStore {
    /// Loads a list index: the whole secondary index, the joined kinds from the table, and the events that the
    /// secondary index may not contain yet.
    pub(super) async fn load_index<I: ListIndex>(&self) -> Result<LoadedIndex<I>, RefreshError> {
        let began_at = self.store.now();
        let index = Mutex::new(I::default());
        let add = |kind: Kind, items: Option<Vec<Item>>| {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            for item in items.unwrap_or_default() {
                index.load_item(kind, &item)?;
            }
            let budget = self.store.list_indexes.budget();
            if index.bytes() > budget {
                index.shrink_to_fit();
            }
            if index.bytes() > budget { Err(RefreshError::TooLarge) } else { Ok(()) }
        };
        let joined = try_join_all(I::JOINED_KINDS.iter().map(async |kind| {
            let mut pages = self.of_kind(*kind).into_paginator().send();
            while let Some(page) = pages.next().await {
                add(*kind, page.map_err(StoreError::from)?.items)?;
            }
            Ok::<(), RefreshError>(())
        }));
        // All are read at the same time: what was written before this call is among the events by now, and what is
        // written meanwhile may be in the index or not.
        let since = began_at.plus(-max_secondary_index_delay());
        let (_, (), (mut events, mut unknown_events)) =
            futures_util::try_join!(joined, self.read_secondary_index::<I>(&add), self.events_for::<I>(since, None))?;
        let mut index = index.into_inner().unwrap_or_else(PoisonError::into_inner);
        index.shrink_to_fit();
        let mut rereads = Rereads::default();
        while !apply_events(&mut index, events, since)?.is_empty() {
            if !rereads.pause(&self.store).await {
                return Err(RefreshError::Inconsistent);
            }
            (events, unknown_events) = self.events_for::<I>(since, None).await?;
        }
        Ok(LoadedIndex { index, synced_at: began_at, loaded_at: began_at, unknown_events })
    }

    /// Reads the secondary index: its first page and then, if there is more, the rest in parallel ranges.
    async fn read_secondary_index<I: ListIndex>(
        &self,
        add: &(impl Fn(Kind, Option<Vec<Item>>) -> Result<(), RefreshError> + Sync),
    ) -> Result<(), RefreshError> {
        let kind = I::Entity::KIND;
        let first = self.buckets(kind, 0, keys::BUCKETS - 1).send().await.map_err(StoreError::from)?;
        add(kind, first.items)?;
        let Some(last_key) = first.last_evaluated_key else { return Ok(()) };
        let next = last_key.get(keys::LS).and_then(Keys::bucket_number).ok_or(RefreshError::Inconsistent)?;
        try_join_all(ranges(next).into_iter().enumerate().map(async |(n, (from, to))| {
            // The first range continues after the page that was read.
            let mut start = (n == 0).then(|| last_key.clone());
            loop {
                let query = self.buckets(kind, from, to).set_exclusive_start_key(start);
                let page = query.send().await.map_err(StoreError::from)?;
                add(kind, page.items)?;
                start = page.last_evaluated_key;
                if start.is_none() {
                    return Ok::<(), RefreshError>(());
                }
            }
        }))
        .await?;
        Ok(())
    }

    /// Returns the query of the secondary index for the buckets `from` to `to`, both included.
    fn buckets(&self, kind: Kind, from: usize, to: usize) -> QueryFluentBuilder {
        let query = self.store.client.query().table_name(&self.store.table).index_name(keys::LIST_INDEX);
        query
            .key_condition_expression("#pk = :pk AND #ls BETWEEN :from AND :to")
            .expression_attribute_names("#pk", keys::PK)
            .expression_attribute_names("#ls", keys::LS)
            .expression_attribute_values(":pk", self.keys.partition())
            .expression_attribute_values(":from", Keys::bucket(kind, from))
            .expression_attribute_values(":to", Keys::bucket(kind, to))
    }
}

/// Splits the buckets from `next` to the last into ranges that are read in parallel.
fn ranges(next: usize) -> Vec<(usize, usize)> {
    let left = keys::BUCKETS - next;
    let bound = |n: usize| next + left * n / PARALLEL_RANGES;
    (0..PARALLEL_RANGES)
        .map(|n| (bound(n), bound(n + 1)))
        .filter(|(from, to)| from < to)
        .map(|(from, to)| (from, to - 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_every_bucket_once() {
        for next in [0, 1, 1000, keys::BUCKETS - 3, keys::BUCKETS - 1] {
            let all: Vec<usize> = ranges(next).into_iter().flat_map(|(from, to)| from..=to).collect();
            assert_eq!(all, (next..keys::BUCKETS).collect::<Vec<_>>());
        }
    }
}
