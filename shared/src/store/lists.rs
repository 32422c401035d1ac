//! Lists: filter, search, sort, count, and cut out a page.
//!
//! Lists of assets, users, process instances and movements are made from a list index in memory. Of the other kinds a
//! tenant has few records: all of them are read (docs/adr/0008).

use super::content_items::without_content;
use super::error::StoreError;
use super::filters::{AssetFilter, InstanceFilter, ModelFilter, Page, PageRequest, ProcessFilter, UserFilter};
use super::item;
use super::keys::Item;
use super::list_index::{
    AssetColumns, AssetIndex, Columns, InstanceColumns, ListIndex, MovementColumns, OpenInstances, RowQuery, SearchTerms,
    SortedRows, UserColumns,
};
use super::read::BatchGet;
use super::{PointReads, TenantStore, UnverifiedStore};
use crate::domain::api_key::ApiKey;
use crate::domain::asset::{Asset, CatalogNames};
use crate::domain::catalog::{AssetKind, AssetType, Manufacturer, Model};
use crate::domain::id::Id;
use crate::domain::instance::{Instance, InstanceStatus};
use crate::domain::movement::Movement;
use crate::domain::process::Process;
use crate::domain::record::{Record, Stored};
use crate::domain::text::fold;
use crate::domain::user::User;
use futures_util::future::try_join_all;
use std::cmp::{Ordering, Reverse};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// How many bytes of records a list keeps in memory that reads all of a kind. Beyond that, the page is read again.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;
/// How many records that can't be read a page names at most.
pub(super) const MAX_UNREADABLE: usize = 100;

impl UnverifiedStore {
    /// Returns a page of the tenant's assets, each with the names that it shows of the catalog.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read. The same applies to all lists.
    pub async fn list_assets(
        &self,
        filter: &AssetFilter,
        request: PageRequest,
    ) -> Result<Page<(Stored<Asset>, CatalogNames)>, StoreError> {
        let logical_types = Mutex::new(Vec::new());
        let logical_types = || logical_types.lock().unwrap_or_else(PoisonError::into_inner);
        let select = |index: &AssetIndex| {
            logical_types().clone_from(&index.logical_types());
            let (total, rows) = filter.row_query(logical_types().clone()).select(&index.assets, request);
            (total, rows.iter().map(|row| (row.sort_key.id(), row.version, index.catalog_names(row.columns))).collect())
        };
        let arrange = |records: &[&Stored<Asset>]| self.arrange(&filter.row_query(logical_types().clone()), records);
        if let Some(page) = self.page_from_index::<AssetIndex, _>(request, select, arrange).await? {
            return Ok(page);
        }
        let store = self.verified().await;
        let logical_types = if filter.kind.is_some() { store.logical_types().await? } else { Vec::new() };
        let page = store.page_from_table::<AssetColumns>(request, &filter.row_query(logical_types)).await?;
        let names = self.catalog_names(&page.items).await?;
        let Page { items, total, request, unreadable } = page;
        Ok(Page { items: items.into_iter().zip(names).collect(), total, request, unreadable })
    }

    /// Returns a page of the tenant's users.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
    pub async fn list_users(&self, filter: &UserFilter, request: PageRequest) -> Result<Page<Stored<User>>, StoreError> {
        self.list_rows(request, &filter.row_query(), |rows: &SortedRows<UserColumns>| rows).await
    }

    /// Returns a page of the tenant's process instances.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
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

    /// Returns a page of the tenant's movements.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
    pub async fn list_movements(&self, request: PageRequest) -> Result<Page<Stored<Movement>>, StoreError> {
        self.list_rows(request, &RowQuery::default(), |rows: &SortedRows<MovementColumns>| rows).await
    }

    /// Returns a page of the `rows` of a list index.
    async fn list_rows<I: ListIndex<Entity = C::Record>, C: Columns>(
        &self,
        request: PageRequest,
        query: &RowQuery<'_, C>,
        rows: impl Fn(&I) -> &SortedRows<C>,
    ) -> Result<Page<Stored<C::Record>>, StoreError> {
        let select = |index: &I| {
            let (total, rows) = query.select(rows(index), request);
            (total, rows.iter().map(|row| (row.sort_key.id(), row.version, ())).collect())
        };
        match self.page_from_index::<I, _>(request, select, |records| self.arrange(query, records)).await? {
            Some(page) => Ok(page.map(|(stored, ())| stored)),
            None => self.verified().await.page_from_table(request, query).await,
        }
    }
}

impl PointReads {
    /// Returns the names that each asset shows of the catalog, in one round trip. Entries that can't be read have none.
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
        let result = self.batch_get_without_content(batch).await?;
        let names = assets.iter().map(|asset| {
            let asset_type = result.get_readable::<AssetType>(asset.value.asset_type_id)?;
            let model = result.get_readable::<Model>(asset.value.model_id)?;
            let manufacturer = result.get_readable::<Manufacturer>(asset.value.manufacturer_id)?;
            Ok(CatalogNames::of(asset_type.as_ref(), model.as_ref(), manufacturer.as_ref()))
        });
        names.collect()
    }
}

impl TenantStore {
    /// Returns a page of the tenant's asset types; `q` searches name and code.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
    pub async fn list_asset_types(&self, q: Option<&str>, request: PageRequest) -> Result<Page<Stored<AssetType>>, StoreError> {
        let terms = SearchTerms::of(q);
        self.list_all(request, |asset_type: &AssetType| occur_in(&terms, &[&asset_type.name, asset_type.code.as_str()])).await
    }

    /// Returns a page of the tenant's manufacturers; `q` searches the name.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
    pub async fn list_manufacturers(
        &self,
        q: Option<&str>,
        request: PageRequest,
    ) -> Result<Page<Stored<Manufacturer>>, StoreError> {
        let terms = SearchTerms::of(q);
        self.list_all(request, |manufacturer: &Manufacturer| occur_in(&terms, &[&manufacturer.name])).await
    }

    /// Returns a page of the tenant's models; `q` searches the name.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
    pub async fn list_models(&self, filter: &ModelFilter, request: PageRequest) -> Result<Page<Stored<Model>>, StoreError> {
        let terms = SearchTerms::of(filter.q.as_deref());
        self.list_all(request, |model: &Model| {
            filter.manufacturer_id.is_none_or(|id| model.manufacturer_id == id)
                && filter.asset_type_id.is_none_or(|id| model.asset_type_id == id)
                && occur_in(&terms, &[&model.name])
        })
        .await
    }

    /// Returns a page of the tenant's process definitions.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
    pub async fn list_processes(&self, filter: ProcessFilter, request: PageRequest) -> Result<Page<Stored<Process>>, StoreError> {
        self.list_all(request, |process: &Process| filter.status.is_none_or(|status| process.status == status)).await
    }

    /// Returns a page of the tenant's API keys.
    ///
    /// # Errors
    ///
    /// As [`UnverifiedStore::list_assets`].
    pub async fn list_keys(&self, request: PageRequest) -> Result<Page<Stored<ApiKey>>, StoreError> {
        self.list_all(request, |_: &ApiKey| true).await
    }

    /// Returns a page of a kind that a tenant has few records of. Reads them all, but keeps only what the page may need, in
    /// bounded memory. Content is read for the page only. Records that can't be read are named on every page, since nothing
    /// says which one they belong to.
    async fn list_all<T: Record>(
        &self,
        request: PageRequest,
        matches: impl Fn(&T) -> bool,
    ) -> Result<Page<Stored<T>>, StoreError> {
        let (mut matching, mut unreadable, mut kept_bytes) = (Vec::new(), Vec::new(), 0);
        let mut pages = self.of_kind(T::KIND).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                match item::read::<T>(without_content(item.clone())) {
                    Ok(stored) if matches(&stored.value) => {
                        kept_bytes += item::size(&item);
                        let kept = (kept_bytes <= MAX_KEPT_BYTES).then_some(item);
                        matching.push((Reverse(stored.created_at), stored.value.id(), kept));
                    }
                    Ok(_) => {}
                    Err(error) => unreadable.extend(error.unreadable_id()?),
                }
            }
        }
        let page = cut_page(matching, request, |a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let key = |id: T::Id| self.keys.record(T::KIND, id.uuid());
        // One by one at the same time: not every function may read batches, and there are 100 at most.
        let read = page.items.into_iter().map(async |(_, id, kept)| match kept {
            Some(item) => Ok(Some(item)),
            None => self.item(&key(id)).await,
        });
        // One that was deleted meanwhile is left out.
        let mut filled: Vec<Item> = try_join_all(read).await?.into_iter().flatten().collect();
        self.fill_in_content(&mut filled).await?;
        let mut items = Vec::new();
        for item in filled {
            match item::read(item) {
                Ok(stored) => items.push(stored),
                Err(error) => unreadable.extend(error.unreadable_id()?),
            }
        }
        unreadable.truncate(MAX_UNREADABLE);
        Ok(Page { items, total: page.total, request, unreadable })
    }

    /// Returns the ids of the asset types of kind `logical`, sorted.
    pub(super) async fn logical_types(&self) -> Result<Vec<Uuid>, StoreError> {
        let types = self.all_without_content::<AssetType>().await?;
        let logical = types.iter().filter(|stored| stored.value.kind == AssetKind::Logical);
        let mut ids: Vec<Uuid> = logical.map(|stored| stored.value.id.uuid()).collect();
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Whether every search term occurs in one of the texts.
fn occur_in(terms: &SearchTerms, texts: &[&str]) -> bool {
    terms.is_empty() || terms.occur_in(&texts.iter().map(|text| fold(text)).collect::<Vec<_>>().join("\n"))
}

/// Sorts and counts the items, and cuts out the page.
fn cut_page<T>(mut items: Vec<T>, request: PageRequest, compare: impl FnMut(&T, &T) -> Ordering) -> Page<T> {
    items.sort_unstable_by(compare);
    let total = items.len();
    let items = items.into_iter().skip(request.skip()).take(request.limit as usize).collect();
    Page { items, total, request, unreadable: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_past_the_end_is_empty_with_the_true_total() {
        let page = cut_page((0..5).collect(), PageRequest { number: 3, limit: 2 }, Ord::cmp);
        assert_eq!((page.items, page.total), (vec![4], 5));
        let page = cut_page((0..5).collect(), PageRequest { number: u32::MAX, limit: 100 }, Ord::cmp);
        assert_eq!((page.items, page.total), (vec![], 5));
    }
}
