//! Loading a directory and keeping it up to date (docs/adr/0008).

use super::cache::{CacheSlot, SharedSlot};
use super::change_event::{ChangeEvent, UnknownEvent, apply_events};
use super::index::{Inconsistent, ListIndex};
use crate::domain::record::{Kind, Record};
use crate::domain::time::Timestamp;
use crate::store::TenantStore;
use crate::store::client::OPERATION_TIMEOUT;
use crate::store::error::StoreError;
use crate::store::keys::{self, Item, Keys};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use chrono::TimeDelta;
use futures_util::future::try_join_all;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// How far the clocks of two function instances may be apart.
const SKEW: TimeDelta = TimeDelta::seconds(2);
/// How much longer than the writer waits a write may be on its way.
const ON_THE_WAY: TimeDelta = TimeDelta::seconds(3);
/// How far behind the table the index may be when a directory is loaded from it.
pub const LAG: TimeDelta = TimeDelta::seconds(60);
/// How old a directory gets. Whatever went wrong unseen is right again after so long.
const OLDEST: TimeDelta = TimeDelta::hours(1);
/// How long lists read the table after an event that could not be understood: by then the index has what it says.
fn strange_for() -> TimeDelta {
    LAG + late() + SKEW
}

/// How long a directory that was too big is not tried again.
const TOO_BIG: TimeDelta = TimeDelta::minutes(10);
/// How many ranges of the index are read at once, once it turns out to be long.
const RANGES: usize = 4;
/// How many rows of the index cost as much as one page of events: beyond that, loading again is cheaper.
const ROWS_PER_PAGE: usize = 6_400;

/// An event is in the table at most so long after the time that its id tells, as another instance's clock sees it.
pub fn late() -> TimeDelta {
    TimeDelta::from_std(OPERATION_TIMEOUT).unwrap_or(TimeDelta::MAX) + SKEW + ON_THE_WAY
}

/// A tenant's things of one kind, as they were at `synced`.
#[derive(Debug)]
pub struct LoadedIndex<B> {
    pub book: B,
    /// When the last reading of events began; those that were read before are all in.
    synced: Timestamp,
    loaded: Timestamp,
    /// Events of kinds that this version does not know, since which it was loaded.
    strange: HashSet<UnknownEvent>,
}

/// Why there is no directory to list from.
enum RefreshError {
    /// The table.
    Store(StoreError),
    /// It would be over the budget.
    TooBig,
    /// It would not be right.
    Inconsistent,
    /// Too much happened since.
    TooLong,
}

impl From<Inconsistent> for RefreshError {
    fn from(_: Inconsistent) -> Self {
        Self::Inconsistent
    }
}

impl From<StoreError> for RefreshError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What was found in the table of a thing that a page should have shown: its version, or that it is gone.
pub type ObservedVersion = (Uuid, Option<u64>);

impl TenantStore {
    fn slot<B: ListIndex>(&self) -> SharedSlot<B> {
        self.store.list_indexes.get_or_insert(self.id, B::Entity::KIND)
    }

    /// Looks into the directory of a kind as it is now, after everything that was written before this call; `None`
    /// when there is none to be had. `seen` must not contradict it: a directory that is behind what was already
    /// found in the table has missed something.
    ///
    /// # Errors
    ///
    /// The table. The directory is then as it was, or gone.
    pub async fn consult<B: ListIndex, T>(
        &self,
        seen: &[ObservedVersion],
        look: impl FnOnce(&B) -> T,
    ) -> Result<Option<T>, StoreError> {
        let shared = match self.store.list_indexes.get::<B>(self.id, B::Entity::KIND) {
            Some(shared) => shared,
            None => {
                // Nobody makes a slot for a tenant that there may not be.
                self.admitted().await;
                self.slot::<B>()
            }
        };
        let mut slot = shared.lock().await;
        let now = self.store.now();
        let held = match &*slot {
            CacheSlot::Unavailable(until) if *until > now => return Ok(None),
            CacheSlot::Loaded(held) if held.loaded.plus(OLDEST) > now => Some((held.synced, held.book.len())),
            _ => None,
        };
        // Nothing is taken out of the slot before the reading is done: a request that ends early changes nothing.
        let followed = match held {
            Some((synced, rows)) => self.follow::<B>(&mut slot, synced, rows, now).await,
            None => Err(RefreshError::TooLong),
        };
        let directory = match followed {
            Ok(directory) if agrees(&directory.book, seen) => Ok(directory),
            Ok(_) | Err(RefreshError::TooLong | RefreshError::Inconsistent) => {
                *slot = CacheSlot::Empty;
                self.store.list_indexes.set_bytes::<B>(self.id, &shared, 0);
                self.admitted().await;
                // An index that is so far behind that it contradicts the table again is not read with every list.
                self.load::<B>()
                    .await
                    .and_then(|loaded| if agrees(&loaded.book, seen) { Ok(loaded) } else { Err(RefreshError::Inconsistent) })
            }
            Err(failed) => Err(failed),
        };
        let directory = directory.map(|mut directory| {
            if directory.book.bytes() > self.store.list_indexes.budget() {
                directory.book.shrink_to_fit();
            }
            directory
        });
        let bytes = directory.as_ref().map_or(0, |directory| directory.book.bytes());
        let refused = match directory {
            Ok(_) if bytes > self.store.list_indexes.budget() => now.plus(TOO_BIG),
            Ok(directory) => {
                let found = look(&directory.book);
                *slot = CacheSlot::Loaded(directory);
                self.store.list_indexes.set_bytes::<B>(self.id, &shared, bytes);
                return Ok(Some(found));
            }
            Err(RefreshError::Store(error)) => return Err(error),
            Err(RefreshError::TooBig) => now.plus(TOO_BIG),
            // What could not be understood is in the index, too, once it is older than all that may be late.
            Err(RefreshError::Inconsistent | RefreshError::TooLong) => now.plus(strange_for()),
        };
        tracing::warn!(tenant_id = %self.id, kind = B::Entity::KIND.noun(), until = %refused, "lists read the table itself");
        *slot = CacheSlot::Unavailable(refused);
        self.store.list_indexes.set_bytes::<B>(self.id, &shared, 0);
        Ok(None)
    }

    /// Takes the directory out of its slot, with all that happened since.
    async fn follow<B: ListIndex>(
        &self,
        slot: &mut CacheSlot<B>,
        synced: Timestamp,
        rows: usize,
        now: Timestamp,
    ) -> Result<LoadedIndex<B>, RefreshError> {
        let since = synced.plus(-late());
        // A load reads the events of so long anyhow: only after a longer absence can it be cheaper.
        let pages = (synced.plus(LAG) < now).then_some(1 + rows / ROWS_PER_PAGE);
        let (news, strange) = self.news::<B>(since, pages).await?;
        let CacheSlot::Loaded(held) = &*slot else { return Err(RefreshError::TooLong) };
        if !strange.is_subset(&held.strange) {
            return Err(RefreshError::Inconsistent);
        }
        let CacheSlot::Loaded(mut directory) = std::mem::take(slot) else { return Err(RefreshError::TooLong) };
        apply_events(&mut directory.book, news, since)?;
        (directory.synced, directory.strange) = (now, strange);
        Ok(directory)
    }

    /// Every event that the book follows, since then and a little before (see [`apply_events`]), by the ids' time, in at most
    /// so many pages; and the strange ones.
    async fn news<B: ListIndex>(
        &self,
        since: Timestamp,
        pages: Option<usize>,
    ) -> Result<(Vec<ChangeEvent>, HashSet<UnknownEvent>), RefreshError> {
        let (from, to) = Keys::events_since(since.plus(-SKEW));
        let query = self.events_query(from, to).projection_expression("#entry").expression_attribute_names("#entry", "entry");
        let mut stream = query.into_paginator().send();
        let (mut news, mut strange, mut read) = (Vec::new(), HashSet::new(), 0);
        while let Some(page) = stream.next().await {
            let page = page.map_err(StoreError::from)?;
            for item in page.items.unwrap_or_default() {
                let entry = item.get("entry").and_then(|entry| entry.as_s().ok()).ok_or(RefreshError::Inconsistent)?;
                match ChangeEvent::parse(entry)? {
                    Ok(one) if B::follows(one.kind) => news.push(one),
                    Ok(_) => {}
                    Err(one) => {
                        strange.insert(one);
                    }
                }
            }
            read += 1;
            if page.last_evaluated_key.is_some() && pages.is_some_and(|pages| read >= pages) {
                return Err(RefreshError::TooLong);
            }
        }
        Ok((news, strange))
    }

    /// Reads the index whole, and the events that it may not have heard of yet.
    async fn load<B: ListIndex>(&self) -> Result<LoadedIndex<B>, RefreshError> {
        let began = self.store.now();
        let book = Mutex::new(B::default());
        let take = |kind: Kind, items: Option<Vec<Item>>| {
            let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
            for item in items.unwrap_or_default() {
                book.load_item(kind, &item)?;
            }
            let budget = self.store.list_indexes.budget();
            if book.bytes() > budget {
                book.shrink_to_fit();
            }
            if book.bytes() > budget { Err(RefreshError::TooBig) } else { Ok(()) }
        };
        let beside = try_join_all(B::JOINED_KINDS.iter().map(async |kind| {
            let mut pages = self.of_kind(*kind).into_paginator().send();
            while let Some(page) = pages.next().await {
                take(*kind, page.map_err(StoreError::from)?.items)?;
            }
            Ok::<(), RefreshError>(())
        }));
        // All at once: whatever was written before this call is in the events by now, whatever is written meanwhile
        // may be there or not.
        let since = began.plus(-(LAG + late()));
        let (_, (), (news, strange)) = futures_util::try_join!(beside, self.index::<B>(&take), self.news::<B>(since, None))?;
        let mut book = book.into_inner().unwrap_or_else(PoisonError::into_inner);
        book.shrink_to_fit();
        apply_events(&mut book, news, since)?;
        Ok(LoadedIndex { book, synced: began, loaded: began, strange })
    }

    /// Reads the index: its first page, and if that is not all, the rest in ranges at once.
    async fn index<B: ListIndex>(
        &self,
        take: &(impl Fn(Kind, Option<Vec<Item>>) -> Result<(), RefreshError> + Sync),
    ) -> Result<(), RefreshError> {
        let kind = B::Entity::KIND;
        let first = self.buckets(kind, 0, keys::BUCKETS - 1).send().await.map_err(StoreError::from)?;
        take(kind, first.items)?;
        let Some(rest) = first.last_evaluated_key else { return Ok(()) };
        let next = rest.get(keys::LS).and_then(Keys::bucket_number).ok_or(RefreshError::Inconsistent)?;
        try_join_all(ranges(next).into_iter().enumerate().map(async |(n, (from, to))| {
            // The first range goes on behind the page that was read.
            let mut start = (n == 0).then(|| rest.clone());
            loop {
                let query = self.buckets(kind, from, to).set_exclusive_start_key(start);
                let page = query.send().await.map_err(StoreError::from)?;
                take(kind, page.items)?;
                start = page.last_evaluated_key;
                if start.is_none() {
                    return Ok::<(), RefreshError>(());
                }
            }
        }))
        .await?;
        Ok(())
    }

    /// The part of the index from one bucket to another, both included.
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

/// Splits the buckets from `next` to the last into ranges that are read at once.
fn ranges(next: usize) -> Vec<(usize, usize)> {
    let left = keys::BUCKETS - next;
    let bound = |n: usize| next + left * n / RANGES;
    (0..RANGES).map(|n| (bound(n), bound(n + 1))).filter(|(from, to)| from < to).map(|(from, to)| (from, to - 1)).collect()
}

/// Whether a directory knows at least what was already seen in the table.
fn agrees<B: ListIndex>(book: &B, seen: &[ObservedVersion]) -> bool {
    seen.iter().all(|(id, version)| match (book.version(B::Entity::KIND, *id), version) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(known), Some(version)) => known >= *version,
    })
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
