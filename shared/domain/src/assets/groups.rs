//! Groups of assets with the same value, with their number and their purchase prices.

use crate::assets::stats::Amount;
use crate::values::natural_order::natural_cmp_folded;
use crate::values::text::fold;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// The groups that are listed. Others are added up.
const MAX_GROUPS: usize = 1_000;

/// An amount as exact decimal text.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = r"^[0-9]+\.[0-9]{2,4}$", examples("3747.00"))]
pub struct AmountText(());

/// Assets with the same value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Group {
    /// The value, as the newest of these assets has it; null for assets without one.
    #[schema(required)]
    pub value: Option<String>,
    /// ID of the catalog model or of the user. Absent in groups by other values, null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, required = false)]
    pub id: Option<Option<Uuid>>,
    /// Number of assets.
    pub count: u64,
    /// Sum of their purchase prices, as exact decimal text.
    #[schema(value_type = AmountText)]
    pub purchase_price: Amount,
}

/// The groups that are not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct OtherGroups {
    /// Number of groups.
    pub groups: u64,
    /// Number of assets.
    pub count: u64,
    /// Sum of their purchase prices, as exact decimal text.
    #[schema(value_type = AmountText)]
    pub purchase_price: Amount,
}

/// Assets by a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Groups {
    /// The largest groups first, at most 1,000.
    pub groups: Vec<Group>,
    /// The groups that are left.
    pub rest: OtherGroups,
}

/// Assets that are alike in all that decides their group.
#[derive(Debug, Clone)]
pub struct GroupedAssets<'a> {
    pub value: Option<&'a str>,
    /// `None` in groups by values without IDs.
    pub id: Option<Option<Uuid>>,
    pub count: u64,
    /// In ten-thousandths.
    pub price: u128,
    /// The place of the newest asset in the default order of lists.
    pub first: usize,
}

struct Sum<'a> {
    value: Option<&'a str>,
    count: u64,
    price: u128,
    first: usize,
}

impl Groups {
    /// Texts are the same without regard to case, if they have the same ID.
    #[must_use]
    pub fn of<'a>(assets: impl IntoIterator<Item = GroupedAssets<'a>>) -> Self {
        let mut sums: HashMap<(Option<String>, Option<Option<Uuid>>), Sum<'a>> = HashMap::new();
        for GroupedAssets { value, id, count, price, first } in assets {
            // The name of one with an ID is that of the catalog.
            let text = value.filter(|_| id.flatten().is_none()).map(fold);
            let sum = sums.entry((text, id)).or_insert(Sum { value, count: 0, price: 0, first });
            (sum.count, sum.price) = (sum.count + count, sum.price + price);
            if first < sum.first {
                (sum.value, sum.first) = (value, first);
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

    fn assets(value: Option<&str>, count: u64, price: u128, first: usize) -> GroupedAssets<'_> {
        GroupedAssets { value, id: None, count, price, first }
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
        let groups = Groups::of(of);
        let text = |text: &str| text.to_owned();
        assert_eq!(
            shown(&groups),
            [(Some("ROOM 9"), 3, text("0.30")), (Some("room 10"), 1, text("0.10")), (None, 1, text("0.20"))]
        );
        assert_eq!(groups.rest, OtherGroups::default());
        assert_eq!(serde_json::to_value(&groups).expect("JSON")["rest"]["purchase_price"], "0.00");
    }

    #[test]
    fn groups_with_an_id_are_not_joined_by_their_name() {
        let model = |id: u128, count| GroupedAssets { id: Some(Some(Uuid::from_u128(id))), ..assets(Some("T14"), count, 0, 0) };
        let text = GroupedAssets { id: Some(None), ..assets(Some("t14"), 1, 0, 1) };
        let groups = Groups::of([model(1, 2), model(2, 3), model(1, 2), text]);
        let found: Vec<_> = groups.groups.iter().map(|it| (it.id.flatten().map(|id| id.as_u128()), it.count)).collect();
        assert_eq!(found, [(Some(1), 4), (Some(2), 3), (None, 1)]);
    }

    #[test]
    fn groups_beyond_the_first_thousand_are_added_up() {
        let names: Vec<String> = (0..1_003).map(|n| format!("n{n}")).collect();
        let groups = Groups::of(names.iter().enumerate().map(|(n, name)| assets(Some(name), 1, 15_000, n)));
        assert_eq!((groups.groups.len(), groups.groups.first().and_then(|it| it.value.as_deref())), (1_000, Some("n0")));
        let rest = OtherGroups { groups: 3, count: 3, purchase_price: Amount::of_ten_thousandths(45_000) };
        assert_eq!(groups.rest, rest);
    }
}
