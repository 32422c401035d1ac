//! Lists of assets, users, process instances and movements, which are made from a list index in memory (docs/adr/0008), and the
//! memory for such indexes.

use crate::domain::assets::asset::{Asset, CatalogNames};
use crate::domain::catalog::{AssetType, Manufacturer, Model};
use crate::domain::processes::instance::{Instance, InstanceStatus};
use crate::domain::processes::movement::Movement;
use crate::domain::record::Stored;
use crate::domain::user::{Email, User};
use crate::domain::values::id::UserId;
use crate::store::TenantStore;
use crate::store::lists::filters::{AssetFilter, Assignee, CatalogMatch, InstanceFilter, UserFilter};
use crate::store::lists::list_index::{
    AssetIndex, Columns, InstanceColumns, ListIndex, MovementColumns, OpenInstances, RowQuery, SortedRows, UserColumns,
};
use crate::store::lists::list_pages::{Page, PageRequest};
use crate::store::table::error::StoreError;
use crate::store::table::read::BatchGet;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// The records that are read at once, where a whole list is needed.
const MAX_PAGE: u32 = 100;
/// Sets the budget, in bytes. With 0, every list reads the records themselves, if there are few.
const BUDGET_VARIABLE: &str = "LIST_INDEX_BYTES";
/// Lambda sets this variable to a function's memory in MB ("Using Lambda environment variables" in the AWS guide).
const FUNCTION_MEMORY_VARIABLE: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";
/// List indexes get one third of a function's memory. Loading needs as much again for a while, and the rest is for
/// everything else.
const BUDGET_DIVISOR: usize = 3;
/// The budget if neither variable is set.
const DEFAULT_BUDGET: usize = 256 * 1024 * 1024;

impl TenantStore {
    /// Each asset has the catalog names that it shows.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read. The same applies to all lists.
    pub async fn list_assets(
        &self,
        filter: &AssetFilter,
        request: PageRequest,
    ) -> Result<Page<(Stored<Asset>, CatalogNames)>, StoreError> {
        let catalog = Mutex::new(CatalogMatch::default());
        let catalog = || catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let select = |index: &AssetIndex| {
            index.check_columns(filter.columns())?;
            *catalog() = index.catalog(filter);
            let (total, rows) = filter.row_query(catalog().clone()).select(&index.assets, request);
            Ok((total, rows.iter().map(|row| (row.sort_key.id(), row.version, index.catalog_names(row.facet))).collect()))
        };
        let arrange = |records: &[&Stored<Asset>]| self.arrange(&filter.row_query(catalog().clone()), records);
        self.page_from_index::<AssetIndex, _>(request, select, arrange).await
    }

    /// # Errors
    ///
    /// As [`TenantStore::list_assets`].
    pub async fn list_users(&self, filter: &UserFilter, request: PageRequest) -> Result<Page<Stored<User>>, StoreError> {
        match &filter.email {
            Some(email) => self.user_with_email(email, filter, request).await,
            None => self.list_rows(request, &filter.row_query(), |rows: &SortedRows<UserColumns>| rows).await,
        }
    }

    /// # Errors
    ///
    /// As [`TenantStore::list_assets`].
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

    /// # Errors
    ///
    /// As [`TenantStore::list_assets`].
    pub async fn list_movements(&self, request: PageRequest) -> Result<Page<Stored<Movement>>, StoreError> {
        self.list_rows(request, &RowQuery::default(), |rows: &SortedRows<MovementColumns>| rows).await
    }

    async fn list_rows<I: ListIndex<Entity = C::Record>, C: Columns>(
        &self,
        request: PageRequest,
        query: &RowQuery<'_, C>,
        rows: impl Fn(&I) -> &SortedRows<C>,
    ) -> Result<Page<Stored<C::Record>>, StoreError> {
        let select = |index: &I| {
            let (total, rows) = query.select(rows(index), request);
            Ok((total, rows.iter().map(|row| (row.sort_key.id(), row.version, ())).collect()))
        };
        let page = self.page_from_index::<I, _>(request, select, |records| self.arrange(query, records)).await?;
        Ok(page.map(|(stored, ())| stored))
    }

    /// The user with this address, if it matches the rest of the filter.
    pub(in crate::store) async fn user_with_email(
        &self,
        email: &Email,
        filter: &UserFilter,
        request: PageRequest,
    ) -> Result<Page<Stored<User>>, StoreError> {
        let matches = |user: &Stored<User>| Ok(!self.arrange(&filter.row_query(), &[user])?.is_empty());
        self.page_with_unique(&User::unique_email(email.folded()), request, matches).await
    }

    /// In the order of `assets`, in one round trip. Entries that can't be read have none.
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

    /// Newest first, with the IDs of assets that can't be read.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::list_assets`].
    pub async fn assets_of_user(&self, user: UserId) -> Result<(Vec<Stored<Asset>>, Vec<Uuid>), StoreError> {
        let filter = AssetFilter { assigned_to: Some(Assignee::User(user)), ..AssetFilter::default() };
        let (mut assets, mut unreadable, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for number in 1.. {
            let page = self.list_assets(&filter, PageRequest { number, limit: MAX_PAGE }).await?;
            let is_last = number as usize * MAX_PAGE as usize >= page.total;
            // An asset that is assigned meanwhile moves others to the next page.
            assets.extend(page.items.into_iter().map(|(asset, _)| asset).filter(|asset| seen.insert(asset.value.id)));
            unreadable.extend(page.unreadable);
            if is_last {
                break;
            }
        }
        Ok((assets, unreadable))
    }
}

/// The memory for list indexes, in bytes, from the environment.
pub fn memory_budget() -> usize {
    let variable = |name: &str| std::env::var(name).ok();
    budget(variable(BUDGET_VARIABLE).as_deref(), variable(FUNCTION_MEMORY_VARIABLE).as_deref())
}

fn budget(bytes: Option<&str>, function_megabytes: Option<&str>) -> usize {
    let share = || Some(function_megabytes?.parse::<usize>().ok()?.saturating_mul(1024 * 1024) / BUDGET_DIVISOR);
    bytes.and_then(|bytes| bytes.parse().ok()).or_else(share).unwrap_or(DEFAULT_BUDGET)
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
}
