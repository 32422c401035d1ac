//! Statistics: counts of rows in list indexes. Like lists, exact after every write.

use crate::domain::assets::asset::{CUSTOM_FIELD, CatalogNames, Cell, Status};
use crate::domain::assets::bound::Today;
use crate::domain::assets::stats::{AssetSums, AssetTally, CountedAssets, DateSum, GroupedAssets, Groups};
use crate::domain::processes::instance::InstanceStatus;
use crate::domain::processes::process::Process;
use crate::domain::processes::stats::InstanceStats;
use crate::domain::values::field_error::{ErrorCode, ValueError};
use crate::domain::values::id::Id;
use crate::domain::values::text::upper_levels;
use crate::domain::values::time::Date;
use crate::store::lists::filters::{AssetFilter, Resolved, custom_column};
use crate::store::lists::hints::hint_for;
use crate::store::lists::list_index::{
    AssetFacet, AssetIndex, ColumnVectors, Freshness, InstanceColumns, LOCATION, MODEL, SortedRows, rows_of, summed,
};
use crate::store::{Reader, StoreError};
use futures_util::try_join;
use std::collections::HashMap;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Number of process instances by status and process.
type InstanceCounts = HashMap<(InstanceStatus, Option<Uuid>), u64>;

/// The values by which assets are grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupBy {
    Status,
    /// The type's name.
    AssetType,
    /// The manufacturer's name; for an asset with a model, the name in the catalog.
    Manufacturer,
    /// The catalog model or, for an asset without a catalog model, its model text.
    Model,
    Location,
    AssignedTo,
    /// Year and month of the purchase.
    PurchaseMonth,
    /// Year and month of the warranty's last day.
    WarrantyMonth,
    /// The field's name, with its prefix.
    CustomField(String),
}

impl std::str::FromStr for GroupBy {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Ok(match text {
            "status" => Self::Status,
            "asset_type" => Self::AssetType,
            "manufacturer" => Self::Manufacturer,
            "model" => Self::Model,
            "location" => Self::Location,
            "assigned_to" => Self::AssignedTo,
            "purchase_month" => Self::PurchaseMonth,
            "warranty_month" => Self::WarrantyMonth,
            text => match text.strip_prefix(CUSTOM_FIELD) {
                Some(name) => Self::CustomField(custom_column(name)?),
                None => {
                    let names = "status, asset_type, manufacturer, model, location, assigned_to, purchase_month, warranty_month \
                        or custom_fields.<name>";
                    return Err(ValueError::coded(ErrorCode::UnknownValue, format!("must be one of {names}")));
                }
            },
        })
    }
}

impl GroupBy {
    fn column(&self) -> Option<&str> {
        match self {
            Self::Location => Some(LOCATION),
            Self::Model => Some(MODEL),
            Self::CustomField(name) => Some(name),
            Self::Status | Self::AssetType | Self::Manufacturer | Self::AssignedTo => None,
            Self::PurchaseMonth | Self::WarrantyMonth => None,
        }
    }

    fn has_ids(&self) -> bool {
        matches!(self, Self::Model | Self::AssignedTo)
    }
}

/// Assets with the same facet, coded value or user, depending on the grouping.
#[derive(Debug, Clone, Copy, Default)]
struct Alike {
    count: u64,
    price: u128,
    dates: DateSum,
    /// Position of the oldest of these assets in the default list order. The remaining fields are the values of that asset.
    last: usize,
    facet: u32,
    number: u32,
    user: Option<Uuid>,
    date: Option<Date>,
}

impl Reader {
    /// Counts the matching assets. Takes one round trip, to read the latest events. If there are none, also returns a hint.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
    pub async fn asset_stats(&self, filter: &AssetFilter) -> Result<(AssetTally, Option<String>), StoreError> {
        let from_index = |index: &AssetIndex, today: Today| {
            index.check_columns(filter.columns())?;
            let resolved = Resolved { ranges: filter.ranges_on(&today), catalog: index.catalog(filter) };
            let (rows, query) = (&index.assets, filter.row_query(resolved));
            let mut counts = rows.facets().counts();
            let sums = if query.is_everything() {
                index.sums().clone()
            } else {
                counts.fill(0);
                let mut sums = AssetSums::default();
                query.scan(rows, |_, segment, matches| {
                    for row in rows_of(matches) {
                        if let (Some(number), Some(columns)) = (segment.facets.get(row), segment.columns.row(row))
                            && let Some(facet) = rows.facets().get(*number)
                        {
                            counts.get_mut(*number as usize).into_iter().for_each(|count| *count += 1);
                            summed(facet, &columns).iter().for_each(|asset| sums.add(asset));
                        }
                    }
                    ControlFlow::Continue(())
                });
                sums
            };
            let mut tally = AssetTally::new(sums);
            for (number, count) in (0..).zip(counts).filter(|(_, count)| *count > 0) {
                if let Some(facet) = rows.facets().get(number) {
                    count_assets(&mut tally, facet, count, index.catalog_names(facet));
                }
            }
            let hint = if tally.is_empty() { hint_for(index, filter, None) } else { None };
            Ok((tally, hint))
        };
        self.with_list_index_and(Freshness::Refreshed, self.today(filter), from_index).await?.0
    }

    /// Counts the matching assets per group. `depth` is the number of location levels. If no group has a value, also returns a hint.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
    pub async fn asset_groups(
        &self,
        filter: &AssetFilter,
        group_by: &GroupBy,
        depth: usize,
    ) -> Result<(Groups, Option<String>), StoreError> {
        let from_index = |index: &AssetIndex, today: Today| {
            index.check_columns(filter.columns().chain(group_by.column().map(|column| ("group_by", column))))?;
            let groups = grouped(index, filter, group_by, depth, &today);
            let is_empty = groups.groups.iter().all(|group| group.value.is_none());
            let hint = if is_empty { hint_for(index, filter, group_by.column()) } else { None };
            Ok((groups, hint))
        };
        self.with_list_index_and(Freshness::Refreshed, self.today_there(), from_index).await?.0
    }

    /// Counts process instances by status and process, including cancelled instances.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::list_assets`].
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

fn count_assets(tally: &mut AssetTally, facet: &AssetFacet, count: u64, names: CatalogNames) {
    // Every asset has a status.
    let Some(status) = facet.status else { return };
    tally.add(&CountedAssets {
        status,
        kind: names.kind,
        asset_type: names.asset_type.as_deref().unwrap_or_default(),
        manufacturer: names.manufacturer.as_deref().or(facet.manufacturer.as_deref()).unwrap_or_default(),
        count,
    });
}

fn grouped(index: &AssetIndex, filter: &AssetFilter, group_by: &GroupBy, depth: usize, today: &Today) -> Groups {
    let resolved = Resolved { ranges: filter.ranges_on(today), catalog: index.catalog(filter) };
    let (rows, query) = (&index.assets, filter.row_query(resolved));
    let column = group_by.column().and_then(|name| rows.coded().column(name));
    let by_user = *group_by == GroupBy::AssignedTo;
    let (have_model, _) = rows.facets().select(|facet| facet.model.is_some());
    // Group by the number of the facet, the value or the user, because hashing a key per asset takes longer than everything else.
    let (mut alike, mut users, mut place) = (Vec::<Alike>::new(), HashMap::<Uuid, usize>::new(), 0);
    query.scan(rows, |_, segment, matches| {
        let numbers = segment.numbers(column);
        for row in rows_of(matches) {
            let Some(facet) = segment.facets.get(row).copied() else { continue };
            let number = numbers.get(row).copied().unwrap_or_default();
            let user = if by_user { segment.columns.assigned_to.get(row).copied().flatten() } else { None };
            let columns = &segment.columns;
            let bought = columns.purchase_date.get(row).copied().flatten();
            let ends = || columns.warranty_until.get(row).copied().flatten();
            let date = if *group_by == GroupBy::WarrantyMonth { ends() } else { bought };
            let at = match group_by {
                GroupBy::Status | GroupBy::AssetType | GroupBy::Manufacturer => facet as usize,
                // An asset's model text counts only if the asset has no catalog model.
                GroupBy::Model if have_model.get(facet as usize) == Some(&true) => facet as usize,
                GroupBy::Model => have_model.len() + number as usize,
                GroupBy::Location | GroupBy::CustomField(_) => number as usize,
                GroupBy::PurchaseMonth | GroupBy::WarrantyMonth => date.map_or(0, |date| date.months_of_calendar() + 1),
                GroupBy::AssignedTo => user.map_or(0, |user| {
                    let next = users.len() + 1;
                    *users.entry(user).or_insert(next)
                }),
            };
            if at >= alike.len() {
                alike.resize(at + 1, Alike::default());
            }
            let Some(assets) = alike.get_mut(at) else { continue };
            let (count, price) = (assets.count + 1, assets.price + u128::from(segment.columns.price(row).unwrap_or_default()));
            bought.into_iter().for_each(|date| assets.dates.add(date));
            *assets = Alike { count, price, dates: assets.dates, last: place, facet, number, user, date };
            place += 1;
        }
        ControlFlow::Continue(())
    });
    let named: Vec<(Option<String>, Option<Uuid>, Alike)> = alike
        .into_iter()
        .filter(|assets| assets.count > 0)
        .filter_map(|assets| {
            let facet = rows.facets().get(assets.facet)?;
            let cell = column.and_then(|column| rows.coded().cell(column, assets.number));
            let cell = cell.map(|cell: &Cell| cell.text().into_owned());
            let names = || index.catalog_names(facet);
            let text = |name: Option<_>| name.map(String::from);
            let (value, id) = match group_by {
                GroupBy::Status => (facet.status.map(|status: Status| status.to_string()), None),
                GroupBy::AssetType => (text(names().asset_type), None),
                GroupBy::Manufacturer => {
                    (text(names().manufacturer).or_else(|| facet.manufacturer.as_deref().map(str::to_owned)), None)
                }
                GroupBy::Model => (text(names().model).or(cell), facet.model),
                GroupBy::Location => (cell.map(|place| upper_levels(&place, depth).to_owned()), None),
                GroupBy::AssignedTo => (assets.user.map(|id| id.to_string()), assets.user),
                GroupBy::PurchaseMonth | GroupBy::WarrantyMonth => (assets.date.map(Date::month), None),
                GroupBy::CustomField(_) => (cell, None),
            };
            Some((value, id, assets))
        })
        .collect();
    let groups = named.iter().map(|(value, id, Alike { count, price, dates, last, .. })| GroupedAssets {
        value: value.as_deref(),
        id: group_by.has_ids().then_some(*id),
        count: *count,
        price: *price,
        dates: *dates,
        last: *last,
    });
    Groups::of(groups, today.date())
}

fn count(counts: &mut InstanceCounts, rows: &SortedRows<InstanceColumns>) {
    for (facet, count) in rows.facets().iter() {
        if let Some(status) = facet.status {
            *counts.entry((status, facet.process)).or_default() += count as u64;
        }
    }
}
