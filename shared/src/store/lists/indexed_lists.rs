//! Lists of assets, users, process instances and movements, built from an in-memory list index (docs/adr/0008). Also pages of
//! lists, and the memory budget for list indexes.

use crate::domain::assets::asset::{Asset, CatalogNames};
use crate::domain::assets::bound::Today;
use crate::domain::catalog::{AssetType, Manufacturer, Model};
use crate::domain::processes::instance::{Instance, InstanceStatus};
use crate::domain::processes::movement::Movement;
use crate::domain::record::{Record, Stored};
use crate::domain::tenants::tenant::Tenant;
use crate::domain::tenants::time_zone::TimeZone;
use crate::domain::user::{Email, User};
use crate::domain::values::id::{Id, UserId};
use crate::store::lists::filters::{AssetFilter, Assignee, InstanceFilter, Resolved, UserFilter};
use crate::store::lists::hints::hint_for;
use crate::store::lists::list_index::{
    AssetIndex, Columns, Freshness, InstanceColumns, LOCATION, ListIndex, MovementColumns, OpenInstances, RowQuery, SortedRows,
    UserColumns, row_from_item,
};
use crate::store::table::read::BatchGet;
use crate::store::table::unit_of_work::from_record;
use crate::store::{Reader, StoreError, TornReadRetry};
use futures_util::try_join;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// Page size for reading a whole list.
const MAX_PAGE: u32 = 100;
/// The memory budget in bytes. With 0, every list reads the records themselves, and fails if there are too many.
const BUDGET_VARIABLE: &str = "LIST_INDEX_BYTES";
/// Lambda sets this variable to a function's memory in MB ("Using Lambda environment variables" in the AWS guide).
const FUNCTION_MEMORY_VARIABLE: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";
/// List indexes get one third of a function's memory, because loading temporarily needs as much again.
const BUDGET_DIVISOR: usize = 3;
/// The budget if neither variable is set.
const DEFAULT_BUDGET: usize = 256 * 1024 * 1024;

impl Reader {
    /// Lists assets, each with the catalog names that it shows.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read. The same applies to all lists.
    pub async fn list_assets(
        &self,
        filter: &AssetFilter,
        request: PageRequest,
    ) -> Result<Page<(Stored<Asset>, CatalogNames)>, StoreError> {
        let (resolved, hint) = (Mutex::new(Resolved::default()), Mutex::new(None));
        let resolved = || resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let select = |index: &AssetIndex, today: Today| {
            index.check_columns(filter.columns())?;
            *resolved() = Resolved { ranges: filter.ranges_on(&today), catalog: index.catalog(filter) };
            let (total, rows) = filter.row_query(resolved().clone()).select(&index.assets, request);
            let found = if total == 0 { hint_for(index, filter, None) } else { None };
            *hint.lock().unwrap_or_else(PoisonError::into_inner) = found;
            Ok((total, rows.iter().map(|row| (row.sort_key.id(), row.version, index.catalog_names(row.facet))).collect()))
        };
        let arrange = |records: &[&Stored<Asset>]| self.arrange(&filter.row_query(resolved().clone()), records);
        let page = self.page_from_index::<AssetIndex, _, _, _>(request, move || self.today(filter), select, arrange).await?;
        let hint = hint.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Page { hint, ..page })
    }

    /// Returns today in the tenant's time zone. Reads the zone only if the filter needs it; otherwise, the zone is UTC.
    pub(in crate::store) async fn today(&self, filter: &AssetFilter) -> Result<Today, StoreError> {
        let now = self.store.now();
        if filter.needs_time_zone() { self.today_there().await } else { Ok(Today::at(now, &TimeZone::default())) }
    }

    /// Returns today in the tenant's time zone.
    pub(in crate::store) async fn today_there(&self) -> Result<Today, StoreError> {
        let tenant = self.get::<Tenant>(self.id).await?;
        Ok(Today::at(self.store.now(), &tenant.map(|tenant| tenant.value.time_zone).unwrap_or_default()))
    }

    /// Returns the different locations of assets.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
    pub async fn locations(&self) -> Result<Vec<String>, StoreError> {
        let read = |index: &AssetIndex| {
            let coded = index.assets.coded();
            let cells = coded.column(LOCATION).into_iter().flat_map(|column| coded.cells(column));
            cells.map(|cell| cell.text().into_owned()).collect()
        };
        Ok(self.with_list_index(Freshness::Refreshed, read).await?.0)
    }

    /// Lists users.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
    pub async fn list_users(&self, filter: &UserFilter, request: PageRequest) -> Result<Page<Stored<User>>, StoreError> {
        match &filter.email {
            Some(email) => self.user_with_email(email, filter, request).await,
            None => self.list_rows(request, &filter.row_query(), |rows: &SortedRows<UserColumns>| rows).await,
        }
    }

    /// Lists process instances.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
    pub async fn list_instances(
        &self,
        filter: InstanceFilter,
        request: PageRequest,
    ) -> Result<Page<Stored<Instance>>, StoreError> {
        let query = filter.row_query();
        if filter.status == Some(InstanceStatus::InProgress) {
            self.list_rows(request, &query, |open: &OpenInstances| &open.0).await
        } else {
            self.list_rows(request, &query, |all: &SortedRows<InstanceColumns>| all).await
        }
    }

    /// Lists movements.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
    pub async fn list_movements(&self, request: PageRequest) -> Result<Page<Stored<Movement>>, StoreError> {
        self.list_rows(request, &RowQuery::default(), |rows: &SortedRows<MovementColumns>| rows).await
    }

    async fn list_rows<I: ListIndex<Entity = C::Record>, C: Columns>(
        &self,
        request: PageRequest,
        query: &RowQuery<'_, C>,
        rows: impl Fn(&I) -> &SortedRows<C>,
    ) -> Result<Page<Stored<C::Record>>, StoreError> {
        let select = |index: &I, (): ()| {
            let (total, rows) = query.select(rows(index), request);
            Ok((total, rows.iter().map(|row| (row.sort_key.id(), row.version, ())).collect()))
        };
        let nothing = || std::future::ready(Ok(()));
        let page = self.page_from_index::<I, _, _, _>(request, nothing, select, |records| self.arrange(query, records)).await?;
        Ok(page.map(|(stored, ())| stored))
    }

    /// Finds the user with this e-mail address, if the rest of the filter matches.
    pub(in crate::store) async fn user_with_email(
        &self,
        email: &Email,
        filter: &UserFilter,
        request: PageRequest,
    ) -> Result<Page<Stored<User>>, StoreError> {
        let matches = |user: &Stored<User>| Ok(!self.arrange(&filter.row_query(), &[user])?.is_empty());
        self.page_with_unique(&User::unique_email(email.folded()), request, matches).await
    }

    /// Returns catalog names in the order of `assets`, in one round trip. Unreadable entries have no names.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn catalog_names(&self, assets: &[Stored<Asset>]) -> Result<Vec<CatalogNames>, StoreError> {
        let batch = assets.iter().fold(BatchGet::new(), |batch, asset| {
            batch
                .with::<AssetType>(asset.value.asset_type_id)
                .with::<Model>(asset.value.model_id)
                .with::<Manufacturer>(asset.value.manufacturer_id)
        });
        let result = self.batch_get_without_blobs(batch).await?;
        let names = assets.iter().map(|asset| {
            let asset_type = result.get_readable::<AssetType>(asset.value.asset_type_id)?;
            let model = result.get_readable::<Model>(asset.value.model_id)?;
            let manufacturer = result.get_readable::<Manufacturer>(asset.value.manufacturer_id)?;
            Ok(CatalogNames::of(asset_type.as_ref(), model.as_ref(), manufacturer.as_ref()))
        });
        names.collect()
    }

    /// Lists all assets of a user, newest first, with the IDs of unreadable assets.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
    pub async fn assets_of_user(&self, user: UserId) -> Result<(Vec<Stored<Asset>>, Vec<Uuid>), StoreError> {
        let filter = AssetFilter { assigned_to: Some(Assignee::User(user)), ..AssetFilter::default() };
        let (mut assets, mut unreadable, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for number in 1.. {
            let page = self.list_assets(&filter, PageRequest { number, limit: MAX_PAGE }).await?;
            let is_last = number as usize * MAX_PAGE as usize >= page.total;
            // An asset that is assigned between two reads shifts others to the next page.
            assets.extend(page.items.into_iter().map(|(asset, _)| asset).filter(|asset| seen.insert(asset.value.id)));
            unreadable.extend(page.unreadable);
            if is_last {
                break;
            }
        }
        Ok((assets, unreadable))
    }
}

/// Returns the memory budget for list indexes, in bytes, from the environment.
pub fn memory_budget() -> usize {
    let variable = |name: &str| std::env::var(name).ok();
    budget(variable(BUDGET_VARIABLE).as_deref(), variable(FUNCTION_MEMORY_VARIABLE).as_deref())
}

fn budget(bytes: Option<&str>, function_megabytes: Option<&str>) -> usize {
    let share = || Some(function_megabytes?.parse::<usize>().ok()?.saturating_mul(1024 * 1024) / BUDGET_DIVISOR);
    bytes.and_then(|bytes| bytes.parse().ok()).or_else(share).unwrap_or(DEFAULT_BUDGET)
}

/// Maximum number of attempts to build a page whose records change while they are read. After that, the records of the last
/// attempt are filtered and sorted. Rereads of a partly visible transaction don't count.
const MAX_CHANGES: u32 = 5;
/// A page omits further unreadable records.
pub(in crate::store) const MAX_UNREADABLE: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1.
    pub number: u32,
    /// 1 to 100.
    pub limit: u32,
}

impl PageRequest {
    pub(in crate::store) fn skip(self) -> usize {
        (self.number as usize).saturating_sub(1).saturating_mul(self.limit as usize)
    }
}

#[derive(Debug, Clone)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub total: usize,
    pub request: PageRequest,
    /// Missing from `items`.
    pub unreadable: Vec<Uuid>,
    /// Why the list is empty, if no record has a value that the filter requires.
    pub hint: Option<String>,
}

impl<T> Page<T> {
    #[must_use]
    pub fn new(items: Vec<T>, total: usize, request: PageRequest, unreadable: Vec<Uuid>) -> Self {
        Self { items, total, request, unreadable, hint: None }
    }

    #[must_use]
    pub fn cut_from(list: Vec<T>, request: PageRequest) -> Self {
        let total = list.len();
        let items = list.into_iter().skip(request.skip()).take(request.limit as usize).collect();
        Self::new(items, total, request, Vec::new())
    }

    /// Adds other unreadable records of the list, up to [`MAX_UNREADABLE`].
    #[must_use]
    pub(in crate::store) fn with_unreadable(mut self, others: Vec<Uuid>) -> Self {
        self.unreadable.extend(others);
        self.unreadable.truncate(MAX_UNREADABLE);
        self
    }

    pub fn map<V>(self, view: impl FnMut(T) -> V) -> Page<V> {
        let Self { items, total, request, unreadable, hint } = self;
        Page { items: items.into_iter().map(view).collect(), total, request, unreadable, hint }
    }
}

/// A page from the list index: the number of matching records, and the ID, the version and other indexed values of each record on
/// the page.
pub(in crate::store) type Selection<E> = (usize, Vec<(Uuid, u64, E)>);

/// Records by ID; `None` if the table doesn't have the record.
type Records<T> = HashMap<Uuid, Result<Option<Stored<T>>, Unreadable>>;

#[derive(Debug, Clone, Copy)]
struct Unreadable;

impl Reader {
    /// Builds a page from the list index, in which `select` finds the page's rows. `beside` reads what `select` needs, while the
    /// index is refreshed.
    ///
    /// Takes two round trips: one for the events since the last list, and one for the records of the page. If the table
    /// contradicts the index, a record has changed in between or a transaction is only partly visible. Then new events and the
    /// contradictory records are read again, concurrently. If a contradiction lasts longer than a transaction can explain, the
    /// index is loaded again and, if that doesn't help, built from the records themselves. If records keep changing, `arrange`
    /// filters and sorts the records of the last page.
    pub(in crate::store) async fn page_from_index<I: ListIndex, B, F: Future<Output = Result<B, StoreError>>, E>(
        &self,
        request: PageRequest,
        beside: impl Fn() -> F,
        select: impl Fn(&I, B) -> Result<Selection<E>, StoreError>,
        arrange: impl Fn(&[&Stored<I::Entity>]) -> Result<Vec<Uuid>, StoreError>,
    ) -> Result<Page<(Stored<I::Entity>, E)>, StoreError> {
        let mut records = HashMap::new();
        let mut contradictions: Vec<Contradiction> = Vec::new();
        let (mut freshness, mut torn_read_retry, mut changes) = (Freshness::Refreshed, TornReadRetry::default(), 0);
        let mut is_refused = false;
        loop {
            let contradicting = contradictions.iter().map(|contradiction| contradiction.id);
            let ((selection, unreadable), reread) =
                try_join!(self.with_list_index_and(freshness, beside(), &select), self.records::<I::Entity>(contradicting))?;
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
                // Use no list index until the secondary index has caught up. Otherwise, every list would load the index, with the
                // same result.
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

    pub(in crate::store) fn arrange<C: Columns>(
        &self,
        query: &RowQuery<'_, C>,
        records: &[&Stored<C::Record>],
    ) -> Result<Vec<Uuid>, StoreError> {
        let mut rows = SortedRows::default();
        for stored in records {
            rows.upsert(row_from_item::<C>(&from_record(&self.keys, stored)?.0).map_err(StoreError::broken)?);
        }
        let (_, matching) = query.select(&rows, PageRequest { number: 1, limit: u32::MAX });
        Ok(matching.iter().map(|row| row.sort_key.id()).collect())
    }
}

/// A record whose version in the list index differs from its version in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    pub id: Uuid,
    pub indexed: u64,
    /// `None` if the table does not have the record.
    pub found: Option<u64>,
}

impl Contradiction {
    /// Whether this contradiction is among the `earlier` contradictions, rather than due to a new change to the same record.
    pub fn persists(&self, earlier: &[Self]) -> bool {
        let is_behind = |earlier: &Self| Some(self.indexed) < earlier.found || self.found < Some(earlier.indexed);
        earlier.iter().any(|earlier| earlier.id == self.id && is_behind(earlier))
    }
}

fn contradictions_of<T, E>(rows: &[(Uuid, u64, E)], records: &Records<T>) -> Vec<Contradiction> {
    let contradiction = |&(id, indexed, _): &(Uuid, u64, E)| {
        let Some(Ok(record)) = records.get(&id) else { return None };
        let found = record.as_ref().map(|stored| stored.version);
        (found != Some(indexed)).then_some(Contradiction { id, indexed, found })
    };
    rows.iter().filter_map(contradiction).collect()
}

/// Builds a page. Doesn't count rows without a record, and lists unreadable records separately.
fn page_of<T, E>(request: PageRequest, (mut total, rows): Selection<E>, mut records: Records<T>) -> Page<(Stored<T>, E)> {
    let (mut items, mut unreadable) = (Vec::new(), Vec::new());
    for (id, _, extra) in rows {
        match records.remove(&id).unwrap_or(Ok(None)) {
            Ok(Some(stored)) => items.push((stored, extra)),
            Ok(None) => total -= 1,
            Err(Unreadable) => unreadable.push(id),
        }
    }
    Page::new(items, total, request, unreadable)
}

/// Builds a page whose records `arrange` filters and sorts, because some records no longer have the row's version, and may no
/// longer match or may sort elsewhere. Keeps unreadable records.
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

fn places(ids: Vec<Uuid>) -> HashMap<Uuid, usize> {
    ids.into_iter().enumerate().map(|(place, id)| (id, place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_a_third_of_the_function_unless_it_is_set() {
        assert_eq!(budget(None, Some("300")), 100 * 1024 * 1024);
        assert_eq!(budget(Some("12345"), Some("300")), 12345);
        assert_eq!(budget(Some("much"), None), DEFAULT_BUDGET);
    }

    fn contradiction(indexed: u64, found: Option<u64>) -> Contradiction {
        Contradiction { id: Uuid::nil(), indexed, found }
    }

    #[test]
    fn a_contradiction_persists_until_each_side_has_what_the_other_had() {
        for (earlier, later, persists) in [
            // The table is ahead of the index.
            ((1, Some(2)), (1, Some(2)), true),
            ((1, Some(2)), (1, Some(3)), true),
            ((1, Some(2)), (2, Some(3)), false),
            // The index is ahead of the table.
            ((3, Some(2)), (3, Some(2)), true),
            ((3, Some(2)), (4, Some(3)), false),
            // The table does not have the record, yet or any more.
            ((1, None), (1, None), true),
            ((1, None), (2, Some(1)), false),
        ] {
            let (earlier, later) = (contradiction(earlier.0, earlier.1), contradiction(later.0, later.1));
            assert_eq!(later.persists(&[earlier]), persists, "{earlier:?} {later:?}");
        }
        let other = Contradiction { id: Uuid::max(), ..contradiction(1, None) };
        assert!(!contradiction(1, None).persists(&[other]));
    }
}
