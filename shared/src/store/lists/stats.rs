//! Statistics: counts of the rows of list indexes. Exact after every write, as lists are.

use crate::domain::assets::asset::CatalogNames;
use crate::domain::assets::stats::{AssetTally, CountedAssets};
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::processes::process::Process;
use crate::domain::processes::stats::InstanceStats;
use crate::domain::values::id::Id;
use crate::store::TenantStore;
use crate::store::lists::list_index::{AssetColumns, AssetFacet, AssetIndex, Freshness, InstanceColumns, SortedRows};
use crate::store::table::error::StoreError;
use futures_util::try_join;
use std::collections::HashMap;
use uuid::Uuid;

/// By status and process.
type InstanceCounts = HashMap<(InstanceStatus, Option<Uuid>), u64>;

impl TenantStore {
    /// Counts the tenant's assets, in the round trip in which a list reads the latest events.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::list_assets`].
    pub async fn asset_stats(&self) -> Result<AssetTally, StoreError> {
        let from_index = |index: &AssetIndex| {
            let mut tally = AssetTally::new(index.sums().clone());
            count_facets(&mut tally, &index.assets, |facet| index.catalog_names(facet));
            tally
        };
        Ok(self.with_list_index(Freshness::Refreshed, from_index).await?.0)
    }

    /// Cancelled instances count, too.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::list_assets`].
    pub async fn instance_stats(&self) -> Result<InstanceStats, StoreError> {
        let from_index = |rows: &SortedRows<InstanceColumns>| {
            let mut counts = InstanceCounts::new();
            count(&mut counts, rows);
            counts
        };
        let counts = self.with_list_index(Freshness::Refreshed, from_index);
        let ((counts, _), processes) = try_join!(counts, self.all_without_blobs::<Process>())?;
        let names: HashMap<Uuid, &str> = processes.iter().map(|it| (it.value.id.uuid(), &*it.value.name)).collect();
        let mut stats = InstanceStats::default();
        for ((status, process), instances) in counts {
            let id = process.map(|id| id.to_string()).unwrap_or_default();
            stats.add(status, process.and_then(|id| names.get(&id).copied()).unwrap_or(&id), instances);
        }
        Ok(stats)
    }
}

fn count_facets(tally: &mut AssetTally, rows: &SortedRows<AssetColumns>, names: impl Fn(&AssetFacet) -> CatalogNames) {
    for (facet, count) in rows.facets().iter() {
        // Every asset has a status.
        let Some(status) = facet.status else { continue };
        let names = names(facet);
        tally.add(&CountedAssets {
            status,
            kind: names.kind,
            asset_type: names.asset_type.as_deref().unwrap_or_default(),
            manufacturer: names.manufacturer.as_deref().or(facet.manufacturer.as_deref()).unwrap_or_default(),
            count: count as u64,
        });
    }
}

fn count(counts: &mut InstanceCounts, rows: &SortedRows<InstanceColumns>) {
    for (facet, count) in rows.facets().iter() {
        if let Some(status) = facet.status {
            *counts.entry((status, facet.process)).or_default() += count as u64;
        }
    }
}
