//! Statistics: counts of the rows of list indexes. Exact after every write, as lists are.

use crate::domain::assets::asset::CatalogNames;
use crate::domain::assets::stats::{AssetTally, CountedAsset};
use crate::domain::catalog::{AssetType, Manufacturer, Model};
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::processes::process::Process;
use crate::domain::processes::stats::InstanceStats;
use crate::domain::record::{Record, Stored};
use crate::domain::values::id::Id;
use crate::store::lists::list_index::{AssetColumns, AssetIndex, Freshness, InstanceColumns, RowRef, SearchTerms, SortedRows};
use crate::store::table::error::StoreError;
use crate::store::{BoundedReads, TenantStore};
use futures_util::try_join;
use std::collections::HashMap;
use uuid::Uuid;

/// By status and process.
type InstanceCounts = HashMap<(InstanceStatus, Option<Uuid>), u64>;

impl BoundedReads {
    /// Counts the tenant's assets, in the round trip in which a list reads the latest events.
    ///
    /// # Errors
    ///
    /// As [`BoundedReads::list_assets`].
    pub async fn asset_stats(&self) -> Result<AssetTally, StoreError> {
        let from_index = |index: &AssetIndex| {
            let (mut tally, mut names) = (AssetTally::default(), HashMap::new());
            each_row(&index.assets, |row| {
                // Assets share few types and models, whose names are looked up once.
                let names = names.entry((row.columns.asset_type, row.columns.model));
                add(&mut tally, &row, names.or_insert_with(|| index.catalog_names(row.columns)));
            });
            tally
        };
        match self.with_list_index(Freshness::Refreshed, from_index).await? {
            Some(tally) => Ok(tally),
            None => self.verified().await.asset_stats_from_table().await,
        }
    }

    /// Cancelled instances count, too.
    ///
    /// # Errors
    ///
    /// As [`BoundedReads::list_assets`].
    pub async fn instance_stats(&self) -> Result<InstanceStats, StoreError> {
        let from_index = |rows: &SortedRows<InstanceColumns>| {
            let mut counts = InstanceCounts::new();
            each_row(rows, |row| count(&mut counts, &row));
            counts
        };
        let counts = async {
            match self.with_list_index(Freshness::Refreshed, from_index).await? {
                Some(counts) => Ok(counts),
                None => self.verified().await.instance_counts_from_table().await,
            }
        };
        let processes = async { self.verified().await.all_without_blobs::<Process>().await };
        let (counts, processes) = try_join!(counts, processes)?;
        let names: HashMap<Uuid, &str> = processes.iter().map(|it| (it.value.id.uuid(), &*it.value.name)).collect();
        let mut stats = InstanceStats::default();
        for ((status, process), instances) in counts {
            let id = process.map(|id| id.to_string()).unwrap_or_default();
            stats.add(status, process.and_then(|id| names.get(&id).copied()).unwrap_or(&id), instances);
        }
        Ok(stats)
    }
}

impl TenantStore {
    /// Counts the assets in the table itself, for a tenant whose list index is too large or inconsistent.
    async fn asset_stats_from_table(&self) -> Result<AssetTally, StoreError> {
        let (types, models, manufacturers) =
            try_join!(self.by_id::<AssetType>(), self.by_id::<Model>(), self.by_id::<Manufacturer>(),)?;
        let mut tally = AssetTally::default();
        let mut count = |row: RowRef<'_, AssetColumns>| {
            let model = row.columns.model.and_then(|id| models.get(&id));
            let manufacturer = model.and_then(|model| manufacturers.get(&model.value.manufacturer_id.uuid()));
            let asset_type = row.columns.asset_type.and_then(|id| types.get(&id));
            add(&mut tally, &row, &CatalogNames::of(asset_type, model, manufacturer));
        };
        // Records that can't be read are left out, as from lists.
        self.each_page_of_rows(|rows| each_row(rows, &mut count)).await?;
        Ok(tally)
    }

    async fn instance_counts_from_table(&self) -> Result<InstanceCounts, StoreError> {
        let mut counts = InstanceCounts::new();
        self.each_page_of_rows(|rows| each_row(rows, |row| count(&mut counts, &row))).await?;
        Ok(counts)
    }

    async fn by_id<T: Record>(&self) -> Result<HashMap<Uuid, Stored<T>>, StoreError> {
        Ok(self.all_without_blobs::<T>().await?.into_iter().map(|stored| (stored.value.id().uuid(), stored)).collect())
    }
}

fn each_row<'r, C>(rows: &'r SortedRows<C>, mut visit: impl FnMut(RowRef<'r, C>)) {
    rows.scan(&SearchTerms::default(), |_| true, |position| rows.row(position).into_iter().for_each(&mut visit));
}

fn add(tally: &mut AssetTally, row: &RowRef<'_, AssetColumns>, names: &CatalogNames) {
    // Every asset has a status.
    let Some(status) = row.columns.status else { return };
    tally.add(&CountedAsset {
        status,
        kind: names.kind,
        asset_type: names.asset_type.as_deref().unwrap_or_default(),
        manufacturer: names.manufacturer.as_deref().or(row.exact_text(AssetColumns::MANUFACTURER)).unwrap_or_default(),
        price: row.columns.price,
        is_assigned: row.columns.assigned_to.is_some(),
        warranty_until: row.columns.warranty_until,
    });
}

fn count(counts: &mut InstanceCounts, row: &RowRef<'_, InstanceColumns>) {
    if let Some(status) = row.columns.status {
        *counts.entry((status, row.columns.process)).or_default() += 1;
    }
}
