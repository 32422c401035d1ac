//! Lists of kinds with few records per tenant. They read all records (docs/adr/0008), or the one record with a unique value.

use crate::domain::catalog::{AssetType, Manufacturer, Model};
use crate::domain::keys::api_key::ApiKey;
use crate::domain::processes::process::Process;
use crate::domain::record::{Record, Stored, Unique};
use crate::domain::user::{Email, User};
use crate::domain::values::id::Id;
use crate::domain::values::text::{fold, single_spaced};
use crate::store::keys::{Item, record_id_of_sort_key};
use crate::store::lists::filters::{AssetFilter, AssetTypeFilter, CatalogMatch, ManufacturerFilter, ModelFilter, ProcessFilter};
use crate::store::lists::indexed_lists::{MAX_UNREADABLE, Page, PageRequest};
use crate::store::lists::list_index::SearchTerms;
use crate::store::table::blobs::without_blob;
use crate::store::table::read::{self, OWNER};
use crate::store::table::unit_of_work::size;
use crate::store::{Reader, StoreError};
use futures_util::future::try_join_all;
use futures_util::try_join;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

/// Maximum size in bytes of the records kept in memory while a list reads all records of a kind. Beyond that, the page's records
/// are read again.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;

impl Reader {
    /// Lists asset types. `q` searches name and code.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read. The same applies to all lists.
    pub async fn list_asset_types(
        &self,
        filter: &AssetTypeFilter,
        request: PageRequest,
    ) -> Result<Page<Stored<AssetType>>, StoreError> {
        let terms = SearchTerms::of(filter.q.as_deref());
        let matches = |asset_type: &AssetType| occur_in(&terms, &[&asset_type.name, asset_type.code.as_str()]);
        self.list_few(filter.code.as_ref().map(AssetType::unique_code), request, matches).await
    }

    /// Lists manufacturers. `q` searches the name.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_asset_types`].
    pub async fn list_manufacturers(
        &self,
        filter: &ManufacturerFilter,
        request: PageRequest,
    ) -> Result<Page<Stored<Manufacturer>>, StoreError> {
        let terms = SearchTerms::of(filter.q.as_deref());
        let unique = filter.name.as_ref().map(|name| Manufacturer::unique_name(name));
        self.list_few(unique, request, |manufacturer: &Manufacturer| occur_in(&terms, &[&manufacturer.name])).await
    }

    /// Lists models. `q` searches the name.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_asset_types`].
    pub async fn list_models(&self, filter: &ModelFilter, request: PageRequest) -> Result<Page<Stored<Model>>, StoreError> {
        let terms = SearchTerms::of(filter.q.as_deref());
        let name = filter.name.as_ref().map(|name| fold(name));
        self.list_all(request, |model: &Model| {
            filter.manufacturer_id.is_none_or(|id| model.manufacturer_id == id)
                && filter.asset_type_id.is_none_or(|id| model.asset_type_id == id)
                && name.as_ref().is_none_or(|name| fold(&single_spaced(&model.name)) == *name)
                && occur_in(&terms, &[&model.name])
        })
        .await
    }

    /// Lists process definitions.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_asset_types`].
    pub async fn list_processes(
        &self,
        filter: &ProcessFilter,
        request: PageRequest,
    ) -> Result<Page<Stored<Process>>, StoreError> {
        let matches = |process: &Process| filter.status.is_none_or(|status| process.status == status);
        self.list_few(filter.slug.as_ref().map(Process::unique_slug), request, matches).await
    }

    /// Lists API keys.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_asset_types`].
    pub async fn list_keys(&self, request: PageRequest) -> Result<Page<Stored<ApiKey>>, StoreError> {
        self.list_all(request, |_: &ApiKey| true).await
    }

    /// Lists all records of the kind, or the one record with a unique value.
    async fn list_few<T: Record>(
        &self,
        unique: Option<Unique>,
        request: PageRequest,
        matches: impl Fn(&T) -> bool,
    ) -> Result<Page<Stored<T>>, StoreError> {
        match unique {
            Some(unique) => self.page_with_unique(&unique, request, |stored| Ok(matches(&stored.value))).await,
            None => self.list_all(request, matches).await,
        }
    }

    /// Lists a kind with few records. Reads all records, but keeps only records that the page may need, in bounded memory. Reads
    /// blobs only for the page. Unreadable records are listed on every page, because their position is unknown.
    pub(in crate::store) async fn list_all<T: Record>(
        &self,
        request: PageRequest,
        matches: impl Fn(&T) -> bool,
    ) -> Result<Page<Stored<T>>, StoreError> {
        let (mut matching, mut unreadable, mut kept_bytes) = (Vec::new(), Vec::new(), 0);
        let mut pages = self.of_kind(T::KIND).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                match read::read::<T>(without_blob(item.clone())) {
                    Ok(stored) if matches(&stored.value) => {
                        kept_bytes += size(&item);
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
        // Up to 100 concurrent single reads, because not every function is permitted to read batches.
        let read = page.items.into_iter().map(async |(_, id, kept)| match kept {
            Some(item) => Ok(Some(item)),
            None => self.item(&key(id)).await,
        });
        // Omit records that have just been deleted.
        let mut filled: Vec<Item> = try_join_all(read).await?.into_iter().flatten().collect();
        self.fill_in_blobs(&mut filled).await?;
        let mut items = Vec::new();
        for item in filled {
            match read::read(item) {
                Ok(stored) => items.push(stored),
                Err(error) => unreadable.extend(error.unreadable_id()?),
            }
        }
        unreadable.truncate(MAX_UNREADABLE);
        Ok(Page::new(items, page.total, request, unreadable))
    }

    /// Finds the catalog entries needed to evaluate the filter's conditions on kind, type code and manufacturer.
    pub(in crate::store) async fn catalog_match(&self, filter: &AssetFilter) -> Result<CatalogMatch, StoreError> {
        let mut found = CatalogMatch::default();
        if filter.kind.is_some() || filter.asset_type_code.is_some() {
            for AssetType { id, kind, code, .. } in self.all_without_blobs::<AssetType>().await?.into_iter().map(|it| it.value) {
                found.add_type(id.uuid(), Some(kind), Some(code.as_str()), filter);
            }
        }
        if filter.manufacturer.is_some() {
            let (manufacturers, models) = try_join!(self.all_without_blobs::<Manufacturer>(), self.all_without_blobs::<Model>())?;
            let names: HashMap<_, _> = manufacturers.iter().map(|it| (it.value.id, &*it.value.name)).collect();
            for model in &models {
                found.add_model(model.value.id.uuid(), names.get(&model.value.manufacturer_id).copied(), filter);
            }
        }
        Ok(found)
    }

    /// Finds a user by e-mail address. Takes two round trips.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn user_by_email(&self, email: &Email) -> Result<Option<Stored<User>>, StoreError> {
        let request = PageRequest { number: 1, limit: 1 };
        let page = self.page_with_unique::<User>(&User::unique_email(email.folded()), request, |_| Ok(true)).await?;
        Ok(page.items.into_iter().next())
    }

    /// Returns a page with the record that has a unique value, if any. Takes two round trips, no matter how many records the
    /// tenant has.
    ///
    /// The reads of the marker and the record are not isolated from a change to the value. A record that lost the value between
    /// the reads is omitted: at that moment, no record had the value.
    pub(in crate::store) async fn page_with_unique<T: Record>(
        &self,
        unique: &Unique,
        request: PageRequest,
        matches: impl Fn(&Stored<T>) -> Result<bool, StoreError>,
    ) -> Result<Page<Stored<T>>, StoreError> {
        let marker = self.item(&self.keys.unique(T::KIND, unique)).await?;
        let owner = marker.as_ref().and_then(|marker| marker.get(OWNER)?.as_s().ok());
        let id = owner.and_then(|sort_key| record_id_of_sort_key(T::KIND, sort_key)).map(T::Id::from_uuid);
        let mut page = Page::new(Vec::new(), 0, request, Vec::new());
        let Some(id) = id else { return Ok(page) };
        match self.get::<T>(id).await {
            Ok(Some(stored)) if stored.value.unique().contains(unique) && matches(&stored)? => {
                page.total = 1;
                page.items.extend((request.skip() == 0).then_some(stored));
            }
            Ok(_) => {}
            Err(error) => page.unreadable.extend(error.unreadable_id()?),
        }
        Ok(page)
    }
}

/// Whether every search term occurs in one of the texts.
fn occur_in(terms: &SearchTerms, texts: &[&str]) -> bool {
    terms.is_empty() || terms.occur_in(&texts.iter().map(|text| fold(text)).collect::<Vec<_>>().join("\n"))
}

fn cut_page<T>(mut items: Vec<T>, request: PageRequest, compare: impl FnMut(&T, &T) -> Ordering) -> Page<T> {
    items.sort_unstable_by(compare);
    Page::cut_from(items, request)
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
