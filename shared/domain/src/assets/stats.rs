//! Statistics of a tenant's assets: counts and sums of all assets, and groups of assets with the same value.

use crate::assets::asset::Status;
use crate::catalog::AssetKind;
use crate::values::natural_order::natural_cmp_folded;
use crate::values::text::fold;
use crate::values::time::Date;
use chrono::{Datelike, NaiveDate};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use utoipa::ToSchema;
use uuid::Uuid;

/// Periods within which warranties end, in days from today.
const WARRANTY_DAYS: [i32; 3] = [30, 60, 90];
/// Parts of a currency unit: prices are summed in ten-thousandths.
const FRACTION: u128 = 10_000;
/// Maximum number of listed groups. The rest are added up.
const MAX_GROUPS: usize = 1_000;

/// Number of records for each value.
#[derive(ToSchema)]
#[schema(value_type = BTreeMap<String, u64>)]
pub struct Counts(());

/// Sum for each value, as exact decimal text.
#[derive(ToSchema)]
#[schema(value_type = BTreeMap<String, String>)]
pub struct Amounts(());

/// An amount as exact decimal text.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = r"^[0-9]+\.[0-9]{2,4}$", examples("3747.00"))]
pub struct AmountText(());

/// Statistics of all assets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AssetStats {
    /// Number of assets.
    pub total: u64,
    /// Number of assets assigned to a user.
    pub assigned: u64,
    /// Number of assets not assigned to anyone.
    pub unassigned: u64,
    /// Number of assets by status. Every status is present.
    #[schema(value_type = Counts)]
    pub by_status: BTreeMap<Status, u64>,
    /// Number of assets by kind.
    #[schema(value_type = Counts)]
    pub by_kind: BTreeMap<AssetKind, u64>,
    /// Number of assets by type name. Assets without a type are counted under the empty name.
    #[schema(value_type = Counts)]
    pub by_type: BTreeMap<String, u64>,
    /// Number of assets by manufacturer name: for assets with a model, the name in the catalog; otherwise, the asset's own
    /// `manufacturer`. Assets without a manufacturer are counted under the empty name.
    #[schema(value_type = Counts)]
    pub by_manufacturer: BTreeMap<String, u64>,
    /// Sum of purchase prices by status, as exact decimal text. Every status is present.
    #[schema(value_type = Amounts)]
    pub value_by_status: BTreeMap<Status, Amount>,
    /// Number of assets by end of warranty.
    pub warranty: WarrantyStats,
}

/// Number of assets by end of warranty. Each count includes the shorter periods, but not `ended`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct WarrantyStats {
    /// Warranty ended before today.
    pub ended: u64,
    /// Warranty ends within 30 days, including today.
    pub within_30: u64,
    /// Warranty ends within 60 days.
    pub within_60: u64,
    /// Warranty ends within 90 days.
    pub within_90: u64,
}

/// A sum of prices in ten-thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount(u128);

impl Amount {
    pub fn of_ten_thousandths(sum: u128) -> Self {
        Self(sum)
    }
}

impl std::fmt::Display for Amount {
    /// Writes all significant digits, and at least two decimal places: `3747.00`, `0.1234`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, fraction) = (self.0 / FRACTION, self.0 % FRACTION);
        let digits = format!("{fraction:04}");
        let (cents, rest) = digits.split_at(2);
        write!(f, "{whole}.{cents}{}", rest.trim_end_matches('0'))
    }
}

impl Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Assets with the same status, kind, type and manufacturer.
#[derive(Debug, Clone, Copy)]
pub struct CountedAssets<'a> {
    pub status: Status,
    pub kind: AssetKind,
    /// Name of the type; empty without a type.
    pub asset_type: &'a str,
    /// Name of the manufacturer; empty without one.
    pub manufacturer: &'a str,
    pub count: u64,
}

/// The values of one asset that [`AssetSums`] adds up.
#[derive(Debug, Clone, Copy)]
pub struct SummedAsset {
    pub status: Status,
    /// Purchase price in ten-thousandths.
    pub price: u64,
    pub is_assigned: bool,
    pub warranty_until: Option<Date>,
}

/// Exact sums, updated as assets are added and removed.
#[derive(Debug, Clone, Default)]
pub struct AssetSums {
    assigned: u64,
    /// Sum of purchase prices by status, in ten-thousandths.
    values: BTreeMap<Status, u128>,
    /// Number of assets by the last day of their warranty. [`AssetTally::finish`] groups them into periods.
    warranties: BTreeMap<Date, u64>,
}

impl AssetSums {
    pub fn add(&mut self, asset: &SummedAsset) {
        self.assigned += u64::from(asset.is_assigned);
        *self.values.entry(asset.status).or_default() += u128::from(asset.price);
        if let Some(until) = asset.warranty_until {
            *self.warranties.entry(until).or_default() += 1;
        }
    }

    pub fn remove(&mut self, asset: &SummedAsset) {
        self.assigned -= u64::from(asset.is_assigned);
        *self.values.entry(asset.status).or_default() -= u128::from(asset.price);
        if let Some(until) = asset.warranty_until
            && let Entry::Occupied(mut assets) = self.warranties.entry(until)
        {
            *assets.get_mut() -= 1;
            if *assets.get() == 0 {
                assets.remove();
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct AssetTally {
    stats: AssetStats,
    pub sums: AssetSums,
}

impl Default for AssetTally {
    fn default() -> Self {
        Self::new(AssetSums::default())
    }
}

impl AssetTally {
    pub fn new(sums: AssetSums) -> Self {
        let stats = AssetStats {
            total: 0,
            assigned: 0,
            unassigned: 0,
            by_status: Status::ALL.iter().map(|status| (*status, 0)).collect(),
            by_kind: AssetKind::ALL.iter().map(|kind| (*kind, 0)).collect(),
            by_type: BTreeMap::new(),
            by_manufacturer: BTreeMap::new(),
            value_by_status: Status::ALL.iter().map(|status| (*status, Amount::default())).collect(),
            warranty: WarrantyStats::default(),
        };
        Self { stats, sums }
    }

    pub fn add(&mut self, assets: &CountedAssets<'_>) {
        let stats = &mut self.stats;
        stats.total += assets.count;
        *stats.by_status.entry(assets.status).or_default() += assets.count;
        *stats.by_kind.entry(assets.kind).or_default() += assets.count;
        count(&mut stats.by_type, assets.asset_type, assets.count);
        count(&mut stats.by_manufacturer, assets.manufacturer, assets.count);
    }

    pub fn is_empty(&self) -> bool {
        self.stats.total == 0
    }

    pub fn finish(self, today: NaiveDate) -> AssetStats {
        let mut warranty = WarrantyStats::default();
        let WarrantyStats { ended, within_30, within_60, within_90 } = &mut warranty;
        for (until, assets) in self.sums.warranties {
            let days = until.days() - today.num_days_from_ce();
            *ended += if days < 0 { assets } else { 0 };
            for (counter, most) in [&mut *within_30, within_60, within_90].into_iter().zip(WARRANTY_DAYS) {
                *counter += if (0..=most).contains(&days) { assets } else { 0 };
            }
        }
        let mut stats = self.stats;
        (stats.assigned, stats.unassigned) = (self.sums.assigned, stats.total.saturating_sub(self.sums.assigned));
        stats.value_by_status.extend(self.sums.values.into_iter().map(|(status, value)| (status, Amount(value))));
        AssetStats { warranty, ..stats }
    }
}

/// Adds to a count, allocating `name` only for a new key.
fn count(counts: &mut BTreeMap<String, u64>, name: &str, assets: u64) {
    match counts.get_mut(name) {
        Some(count) => *count += assets,
        None => {
            counts.insert(name.to_owned(), assets);
        }
    }
}

/// Assets with the same value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Group {
    /// Value, spelled as in the group's oldest asset; null for assets without a value.
    #[schema(required)]
    pub value: Option<String>,
    /// ID of the catalog model or user; null if there is none. Absent if the assets are grouped by a different field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, required = false)]
    pub id: Option<Option<Uuid>>,
    /// Number of assets.
    pub count: u64,
    /// Sum of the assets' purchase prices, as exact decimal text.
    #[schema(value_type = AmountText)]
    pub purchase_price: Amount,
    /// Dates of purchase.
    pub purchase_date: PurchaseDates,
}

/// The assets' dates of purchase. Null if no asset has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PurchaseDates {
    /// First date.
    #[schema(required)]
    pub oldest: Option<Date>,
    /// Last date.
    #[schema(required)]
    pub newest: Option<Date>,
    /// Mean number of days from the date to today in the tenant's time zone, rounded to a whole number. Negative for dates in the
    /// future.
    #[schema(required)]
    pub mean_age_days: Option<i64>,
}

/// Dates of purchase, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DateSum {
    /// First and last date.
    ends: Option<(Date, Date)>,
    count: i64,
    /// Sum of the days' numbers.
    days: i64,
}

impl DateSum {
    pub fn add(&mut self, date: Date) {
        self.join(Self { ends: Some((date, date)), count: 1, days: date.days().into() });
    }

    fn join(&mut self, other: Self) {
        let joined = |((a, b), (c, d)): ((Date, Date), (Date, Date))| (a.min(c), b.max(d));
        self.ends = self.ends.zip(other.ends).map(joined).or(self.ends).or(other.ends);
        (self.count, self.days) = (self.count + other.count, self.days + other.days);
    }

    fn on(&self, today: Date) -> PurchaseDates {
        let ages = i64::from(today.days()) * self.count - self.days;
        // Halves are rounded up.
        let mean_age_days = (self.count > 0).then(|| (2 * ages + self.count).div_euclid(2 * self.count));
        PurchaseDates { oldest: self.ends.map(|ends| ends.0), newest: self.ends.map(|ends| ends.1), mean_age_days }
    }
}

/// Groups that are not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct OtherGroups {
    /// Number of groups.
    pub groups: u64,
    /// Number of assets.
    pub count: u64,
    /// Sum of the assets' purchase prices, as exact decimal text.
    #[schema(value_type = AmountText)]
    pub purchase_price: Amount,
}

/// Assets grouped by a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Groups {
    /// The 1,000 largest groups, largest first.
    pub groups: Vec<Group>,
    /// All other groups.
    pub rest: OtherGroups,
}

/// Assets with the same value and ID.
#[derive(Debug, Clone)]
pub struct GroupedAssets<'a> {
    pub value: Option<&'a str>,
    /// `None` if the assets are grouped by a field without IDs.
    pub id: Option<Option<Uuid>>,
    pub count: u64,
    /// Sum of purchase prices in ten-thousandths.
    pub price: u128,
    pub dates: DateSum,
    /// Position of the oldest of these assets in the default list order.
    pub last: usize,
}

struct Sum<'a> {
    value: Option<&'a str>,
    count: u64,
    price: u128,
    dates: DateSum,
    last: usize,
}

impl Groups {
    /// Groups the assets by ID or, without one, by text, ignoring case. Ages count until `today`.
    pub fn of<'a>(assets: impl IntoIterator<Item = GroupedAssets<'a>>, today: Date) -> Self {
        let mut sums: HashMap<(Option<String>, Option<Option<Uuid>>), Sum<'a>> = HashMap::new();
        for GroupedAssets { value, id, count, price, dates, last } in assets {
            // With an ID, the text is only the name of the model or user.
            let text = value.filter(|_| id.flatten().is_none()).map(fold);
            let empty = Sum { value, count: 0, price: 0, dates: DateSum::default(), last };
            let sum = sums.entry((text, id)).or_insert(empty);
            (sum.count, sum.price) = (sum.count + count, sum.price + price);
            sum.dates.join(dates);
            if last > sum.last {
                (sum.value, sum.last) = (value, last);
            }
        }
        let mut sums: Vec<(Option<Option<Uuid>>, Sum<'a>)> = sums.into_iter().map(|((_, id), sum)| (id, sum)).collect();
        sums.sort_unstable_by(|(id_a, a), (id_b, b)| {
            let text = |sum: &Sum<'a>| sum.value.unwrap_or_default();
            (Reverse(a.count), a.value.is_none())
                .cmp(&(Reverse(b.count), b.value.is_none()))
                .then_with(|| natural_cmp_folded(text(a), text(b)))
                .then(id_a.cmp(id_b))
        });
        let others = sums.split_off(sums.len().min(MAX_GROUPS));
        let group = |(id, sum): (Option<Option<Uuid>>, Sum<'a>)| Group {
            value: sum.value.map(str::to_owned),
            id,
            count: sum.count,
            purchase_price: Amount::of_ten_thousandths(sum.price),
            purchase_date: sum.dates.on(today),
        };
        let rest = OtherGroups {
            groups: others.len() as u64,
            count: others.iter().map(|(_, sum)| sum.count).sum(),
            purchase_price: Amount::of_ten_thousandths(others.iter().map(|(_, sum)| sum.price).sum()),
        };
        Self { groups: sums.into_iter().map(group).collect(), rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset(price: u64, until: Option<&str>) -> SummedAsset {
        let warranty_until = until.map(|day| day.parse().expect("a date"));
        SummedAsset { status: Status::InUse, price, is_assigned: true, warranty_until }
    }

    fn finish(tally: AssetTally) -> AssetStats {
        tally.finish(NaiveDate::from_ymd_opt(2026, 11, 22).expect("a date"))
    }

    fn stats(assets: &[SummedAsset]) -> AssetStats {
        let mut tally = AssetTally::default();
        assets.iter().for_each(|asset| tally.sums.add(asset));
        finish(tally)
    }

    #[test]
    fn amounts_are_exact_and_have_at_least_two_fractional_digits() {
        for (amount, text) in [
            (0, "0.00"),
            (1, "0.0001"),
            (12_300, "1.23"),
            (37_470_000, "3747.00"),
            (u128::from(u64::MAX), "1844674407370955.1615"),
        ] {
            assert_eq!(Amount(amount).to_string(), text);
        }
        // Adding the prices as doubles would give 0.30000000000000004.
        let sum = stats(&[asset(1_000, None), asset(2_000, None)]);
        assert_eq!(sum.value_by_status[&Status::InUse].to_string(), "0.30");
        assert_eq!(sum.value_by_status[&Status::Scrapped].to_string(), "0.00");
    }

    #[test]
    fn a_warranty_that_ends_today_has_not_ended() {
        let days = ["2026-11-21", "2026-11-22", "2026-12-22", "2026-12-23", "2027-01-21", "2027-02-20", "2027-02-21"];
        let warranty = stats(&days.map(|day| asset(0, Some(day)))).warranty;
        assert_eq!(warranty, WarrantyStats { ended: 1, within_30: 2, within_60: 4, within_90: 5 });
        assert_eq!(stats(&[asset(0, None)]).warranty, WarrantyStats::default());
    }

    #[test]
    fn removed_assets_are_subtracted_from_the_statistics() {
        let (first, second) = (asset(1_000, Some("2026-12-22")), asset(u64::MAX, Some("2027-02-20")));
        let mut tally = AssetTally::default();
        tally.sums.add(&first);
        tally.sums.add(&second);
        tally.sums.remove(&second);
        assert_eq!(tally.sums.warranties.len(), 1);
        assert_eq!(finish(tally), stats(&[first]));
    }

    fn assets(value: Option<&str>, count: u64, price: u128, last: usize) -> GroupedAssets<'_> {
        GroupedAssets { value, id: None, count, price, dates: DateSum::default(), last }
    }

    fn date(text: &str) -> Date {
        text.parse().expect("a date")
    }

    fn shown(groups: &Groups) -> Vec<(Option<&str>, u64, String)> {
        groups.groups.iter().map(|it| (it.value.as_deref(), it.count, it.purchase_price.to_string())).collect()
    }

    #[test]
    fn groups_are_by_size_and_their_sums_are_exact() {
        let of = [
            assets(Some("room 10"), 1, 1_000, 4),
            assets(Some("Room 9"), 1, 0, 3),
            assets(None, 1, 2_000, 2),
            assets(Some("ROOM 9"), 1, 1_000, 1),
            assets(Some("room 9"), 1, 2_000, 5),
        ];
        let groups = Groups::of(of, date("2026-11-22"));
        let text = |text: &str| text.to_owned();
        assert_eq!(
            shown(&groups),
            [(Some("room 9"), 3, text("0.30")), (Some("room 10"), 1, text("0.10")), (None, 1, text("0.20"))]
        );
        assert_eq!(groups.rest, OtherGroups::default());
        assert_eq!(serde_json::to_value(&groups).expect("JSON")["rest"]["purchase_price"], "0.00");
    }

    #[test]
    fn groups_have_their_first_and_last_day_of_purchase_and_the_mean_age() {
        let of = |days: &[&str]| {
            let mut dates = DateSum::default();
            days.iter().for_each(|day| dates.add(date(day)));
            dates.on(date("2026-11-22"))
        };
        let found = of(&["2026-11-20", "2026-11-21", "2026-11-19"]);
        assert_eq!(
            found,
            PurchaseDates { oldest: Some(date("2026-11-19")), newest: Some(date("2026-11-21")), mean_age_days: Some(2) }
        );
        assert_eq!(of(&["2026-11-20", "2026-11-21"]).mean_age_days, Some(2), "1.5 is rounded up");
        assert_eq!(of(&["2026-11-24"]).mean_age_days, Some(-2));
        assert_eq!(of(&[]), PurchaseDates::default());
    }

    #[test]
    fn groups_with_an_id_are_not_joined_by_their_name() {
        let model = |id: u128, count| GroupedAssets { id: Some(Some(Uuid::from_u128(id))), ..assets(Some("T14"), count, 0, 0) };
        let text = GroupedAssets { id: Some(None), ..assets(Some("t14"), 1, 0, 1) };
        let groups = Groups::of([model(1, 2), model(2, 3), model(1, 2), text], date("2026-11-22"));
        let found: Vec<_> = groups.groups.iter().map(|it| (it.id.flatten().map(|id| id.as_u128()), it.count)).collect();
        assert_eq!(found, [(Some(1), 4), (Some(2), 3), (None, 1)]);
    }
}
