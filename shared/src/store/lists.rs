//! Lists: filter, search, sort, count and cut. The only module that knows how a list gets its candidates: assets,
//! users, runs and movements from a directory in memory, what is few from the table (docs/adr/0008).

use super::TenantStore;
use super::error::StoreError;
use super::filters::{AssetFilter, InstanceFilter, ModelFilter, Page, PageRequest, ProcessFilter, UserFilter};
use super::item;
use super::list_index::{
    AssetColumns, AssetIndex, Columns, InstanceColumns, ListIndex, MovementColumns, ObservedVersion, RowQuery, SearchTerms,
    SortKey, SortValue, SortedRows, UserColumns, row_from_item,
};
use super::read::BatchGet;
use crate::domain::api_key::ApiKey;
use crate::domain::asset::{Asset, CatalogNames};
use crate::domain::catalog::{AssetKind, AssetType, Manufacturer, Model};
use crate::domain::id::Id;
use crate::domain::instance::Instance;
use crate::domain::movement::Movement;
use crate::domain::process::Process;
use crate::domain::record::{Record, Stored};
use crate::domain::text::fold;
use crate::domain::user::User;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// How often a page is made again because somebody changed one of its things meanwhile.
const TRIES: u32 = 5;

/// What a directory says of a page: how many things all pages have, and those of the page, each with its version
/// and what else is known of it.
type Chosen<E> = (usize, Vec<(Uuid, u64, E)>);

fn holds<T: PartialEq>(wanted: &Option<T>, has: Option<&T>) -> bool {
    wanted.as_ref().is_none_or(|wanted| has == Some(wanted))
}

/// Whether every word occurs in one of the texts.
fn occur_in(words: &SearchTerms, texts: &[&str]) -> bool {
    words.is_empty() || words.occur_in(&texts.iter().map(|text| fold(text)).collect::<Vec<_>>().join("\n"))
}

/// Counts, and cuts out the page.
fn cut<T>(mut all: Vec<T>, page: PageRequest, compare: impl FnMut(&T, &T) -> Ordering) -> Page<T> {
    all.sort_unstable_by(compare);
    let total = all.len();
    Page { items: all.into_iter().skip(page.skip()).take(page.limit as usize).collect(), total, page }
}

/// Newest first, equals by id.
fn newest<T: Record>(a: &Stored<T>, b: &Stored<T>) -> Ordering {
    b.created_at.cmp(&a.created_at).then_with(|| a.value.id().cmp(&b.value.id()))
}

impl TenantStore {
    /// A page of the tenant's assets, each with what it shows of the catalog.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_assets(
        &self,
        filter: &AssetFilter,
        page: PageRequest,
    ) -> Result<Page<(Stored<Asset>, CatalogNames)>, StoreError> {
        let logical = Mutex::new(Vec::new());
        let types = || logical.lock().unwrap_or_else(PoisonError::into_inner);
        let look = |book: &AssetIndex| {
            types().clone_from(&book.logical_types());
            let (total, rows) = filter.row_query(types().clone()).select(&book.assets, page);
            (total, rows.iter().map(|row| (row.sort_key.id(), row.version, book.catalog_names(row.columns))).collect())
        };
        let belongs = |stored: &Stored<Asset>| self.wants(&filter.row_query(types().clone()), stored);
        if let Some(listed) = self.by_list_index::<AssetIndex, _>(page, look, belongs).await? {
            return Ok(listed);
        }
        let types = async { if filter.kind.is_some() { self.all::<AssetType>().await } else { Ok(Vec::new()) } };
        let mut logical: Vec<Uuid> =
            types.await?.iter().filter(|t| t.value.kind == AssetKind::Logical).map(|t| t.value.id.uuid()).collect();
        logical.sort_unstable();
        let Page { items, total, page } = self.by_table::<AssetColumns>(page, &filter.row_query(logical)).await?;
        let names = self.catalog_names(&items).await?;
        Ok(Page { items: items.into_iter().zip(names).collect(), total, page })
    }

    /// What assets show of the catalog: one round trip for all of them.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn catalog_names(&self, assets: &[Stored<Asset>]) -> Result<Vec<CatalogNames>, StoreError> {
        let wanted = assets.iter().fold(BatchGet::new(), |wanted, asset| {
            wanted
                .with::<AssetType>(self, asset.value.asset_type_id)
                .with::<Model>(self, asset.value.model_id)
                .with::<Manufacturer>(self, asset.value.manufacturer_id)
        });
        let batch = self.batch(wanted).await?;
        let names = assets.iter().map(|asset| {
            let asset_type = batch.get::<AssetType>(self, asset.value.asset_type_id)?;
            let model = batch.get::<Model>(self, asset.value.model_id)?;
            let manufacturer = batch.get::<Manufacturer>(self, asset.value.manufacturer_id)?;
            Ok(CatalogNames::of(asset_type.as_ref(), model.as_ref(), manufacturer.as_ref()))
        });
        names.collect()
    }

    /// A page of the tenant's users.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_users(&self, filter: &UserFilter, page: PageRequest) -> Result<Page<Stored<User>>, StoreError> {
        self.list_shelf::<UserColumns>(page, &filter.row_query()).await
    }

    /// A page of the tenant's runs.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_instances(&self, filter: InstanceFilter, page: PageRequest) -> Result<Page<Stored<Instance>>, StoreError> {
        self.list_shelf::<InstanceColumns>(page, &filter.row_query()).await
    }

    /// A page of the tenant's movements.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_movements(&self, page: PageRequest) -> Result<Page<Stored<Movement>>, StoreError> {
        self.list_shelf::<MovementColumns>(page, &RowQuery::default()).await
    }

    async fn list_shelf<F: Columns>(
        &self,
        page: PageRequest,
        wish: &RowQuery<'_, F>,
    ) -> Result<Page<Stored<F::Record>>, StoreError> {
        let look = |shelf: &SortedRows<F>| {
            let (total, rows) = wish.select(shelf, page);
            (total, rows.iter().map(|row| (row.sort_key.id(), row.version, ())).collect())
        };
        match self.by_list_index::<SortedRows<F>, _>(page, look, |stored| self.wants(wish, stored)).await? {
            Some(Page { items, total, page }) => {
                Ok(Page { items: items.into_iter().map(|(stored, ())| stored).collect(), total, page })
            }
            None => self.by_table(page, wish).await,
        }
    }

    /// A page by the directory; `None` when there is none to be had. Two round trips: the events since the last
    /// list, and the page's things. A thing that was changed meanwhile may not belong on the page any more, so the page
    /// is made anew; where that goes on and on, `belongs` judges what was read last.
    async fn by_list_index<B: ListIndex, E>(
        &self,
        page: PageRequest,
        look: impl Fn(&B) -> Chosen<E>,
        belongs: impl Fn(&Stored<B::Entity>) -> Result<bool, StoreError>,
    ) -> Result<Option<Page<(Stored<B::Entity>, E)>>, StoreError> {
        type IdOf<B> = <<B as ListIndex>::Entity as Record>::Id;
        let mut seen: Vec<ObservedVersion> = Vec::new();
        for round in 1..=TRIES {
            let Some((mut total, rows)) = self.consult(&seen, &look).await? else { return Ok(None) };
            let id = |id: Uuid| Some(IdOf::<B>::from_uuid(id));
            let wanted = rows.iter().fold(BatchGet::new(), |wanted, row| wanted.with::<B::Entity>(self, id(row.0)));
            let batch = self.batch(wanted).await?;
            let mut items = Vec::new();
            seen.clear();
            for (thing, version, more) in rows {
                let stored = batch.get::<B::Entity>(self, id(thing))?;
                let found = stored.as_ref().map(|stored| stored.version);
                if found != Some(version) {
                    seen.push((thing, found));
                }
                match stored {
                    Some(stored) if stored.version == version || belongs(&stored)? => items.push((stored, more)),
                    _ => total -= 1,
                }
            }
            if seen.is_empty() || round == TRIES {
                return Ok(Some(Page { items, total, page }));
            }
        }
        Ok(None)
    }

    /// Whether a thing is wanted as it is now.
    fn wants<F: Columns>(&self, wish: &RowQuery<'_, F>, stored: &Stored<F::Record>) -> Result<bool, StoreError> {
        let mut shelf = SortedRows::default();
        shelf.upsert(row_from_item::<F>(&item::from_record(&self.keys, stored)?).map_err(StoreError::broken)?);
        let mut wanted = false;
        wish.scan(&shelf, |_| wanted = true);
        Ok(wanted)
    }

    /// A page by everything that the table has of a kind: right for any tenant, at a cost that grows with it. Keeps
    /// places and ranks only. What was changed while the rest was read is judged as it is now.
    async fn by_table<F: Columns>(
        &self,
        page: PageRequest,
        wish: &RowQuery<'_, F>,
    ) -> Result<Page<Stored<F::Record>>, StoreError> {
        self.admitted().await;
        let mut kept: Vec<(Option<SortValue<'static>>, SortKey, u64)> = Vec::new();
        let mut pages = self.of_kind(F::Record::KIND).into_paginator().send();
        while let Some(part) = pages.next().await {
            let mut shelf = SortedRows::default();
            for item in part?.items.unwrap_or_default() {
                shelf.upsert(row_from_item::<F>(&item).map_err(StoreError::broken)?);
            }
            wish.scan(&shelf, |spot| {
                let rank = |view: &_| wish.order.as_ref().map(|order| order.value(view).into_owned());
                kept.extend(shelf.row(spot).map(|view| (rank(&view), view.sort_key, view.version)));
            });
        }
        kept.sort_unstable_by(|a, b| match (&wish.order, &a.0, &b.0) {
            (Some(order), Some(first), Some(second)) => order.compare((first, a.1), (second, b.1)),
            _ => a.1.cmp(&b.1),
        });
        let (mut total, limit) = (kept.len(), page.limit as usize);
        let (mut items, mut left) = (Vec::new(), kept.get(page.skip()..).unwrap_or_default());
        // What is gone, or does not belong any more, gives way to what comes next.
        while items.len() < limit && !left.is_empty() {
            let (next, rest) = left.split_at(left.len().min(limit - items.len()));
            let id = |place: &SortKey| Some(<F::Record as Record>::Id::from_uuid(place.id()));
            let wanted = next.iter().fold(BatchGet::new(), |wanted, (_, place, _)| wanted.with::<F::Record>(self, id(place)));
            let batch = self.batch(wanted).await?;
            for (_, place, version) in next {
                match batch.get::<F::Record>(self, id(place))? {
                    Some(stored) if stored.version == *version || self.wants(wish, &stored)? => items.push(stored),
                    _ => total -= 1,
                }
            }
            left = rest;
        }
        Ok(Page { items, total, page })
    }

    /// A page of the tenant's asset types; `q` searches name and code.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_asset_types(&self, q: Option<&str>, page: PageRequest) -> Result<Page<Stored<AssetType>>, StoreError> {
        let words = SearchTerms::of(q);
        self.list(page, |t: &AssetType| occur_in(&words, &[&t.name, t.code.as_str()])).await
    }

    /// A page of the tenant's manufacturers; `q` searches the name.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_manufacturers(&self, q: Option<&str>, page: PageRequest) -> Result<Page<Stored<Manufacturer>>, StoreError> {
        let words = SearchTerms::of(q);
        self.list(page, |maker: &Manufacturer| occur_in(&words, &[&maker.name])).await
    }

    /// A page of the tenant's models; `q` searches the name.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_models(&self, filter: &ModelFilter, page: PageRequest) -> Result<Page<Stored<Model>>, StoreError> {
        let words = SearchTerms::of(filter.q.as_deref());
        self.list(page, |model: &Model| {
            holds(&filter.manufacturer_id, Some(&model.manufacturer_id))
                && holds(&filter.asset_type_id, Some(&model.asset_type_id))
                && occur_in(&words, &[&model.name])
        })
        .await
    }

    /// A page of the tenant's process definitions.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_processes(&self, filter: ProcessFilter, page: PageRequest) -> Result<Page<Stored<Process>>, StoreError> {
        self.list(page, |process: &Process| holds(&filter.status, Some(&process.status))).await
    }

    /// A page of the tenant's keys.
    ///
    /// # Errors
    ///
    /// The table.
    pub async fn list_keys(&self, page: PageRequest) -> Result<Page<Stored<ApiKey>>, StoreError> {
        self.list(page, |_: &ApiKey| true).await
    }

    /// A page of what a tenant has few of: all of them are read.
    async fn list<T: Record>(&self, page: PageRequest, keeps: impl Fn(&T) -> bool) -> Result<Page<Stored<T>>, StoreError> {
        let kept = self.all::<T>().await?.into_iter().filter(|stored| keeps(&stored.value)).collect();
        Ok(cut(kept, page, newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_past_the_end_is_empty_with_the_true_total() {
        let list = cut((0..5).collect(), PageRequest { number: 3, limit: 2 }, Ord::cmp);
        assert_eq!((list.items, list.total), (vec![4], 5));
        let list = cut((0..5).collect(), PageRequest { number: u32::MAX, limit: 100 }, Ord::cmp);
        assert_eq!((list.items, list.total), (vec![], 5));
    }
}
