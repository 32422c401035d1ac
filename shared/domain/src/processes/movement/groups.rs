//! Many assets in as few movements as possible.

use super::{ASSET_COUNTS, Movement};
use crate::assets::asset::Asset;
use crate::processes::process::Process;
use crate::record::Stored;

impl Movement {
    /// The assets in groups that can each start the process together: in their order, as many in a group as a movement may have
    /// and as fit `max_items`, the number of items of a transaction. A group of one is for a process instance on its own.
    #[must_use]
    pub fn groups(process: &Process, assets: Vec<Stored<Asset>>, max_items: usize) -> Vec<Vec<Stored<Asset>>> {
        let mut groups: Vec<Vec<Stored<Asset>>> = Vec::new();
        for asset in assets {
            match groups.last_mut() {
                Some(group) if group.len() < *ASSET_COUNTS.end() => {
                    group.push(asset);
                    if Self::items_of_largest_step(process, group, false) > max_items {
                        let too_many = group.pop();
                        groups.extend(too_many.map(|asset| vec![asset]));
                    }
                }
                _ => groups.push(vec![asset]),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::values::id::{EventId, Id};
    use serde_json::json;

    fn assets(count: u128, holder: impl Fn(u128) -> u128) -> Vec<Stored<Asset>> {
        let asset = |n| {
            let at = samples::time(0);
            let value = Asset { assigned_to: Some(samples::user(holder(n))), ..samples::asset(n) };
            let last_event = EventId::new(at, [0; 10]);
            Stored { value, version: 1, created_at: at, updated_at: at, last_hash: String::new(), last_event }
        };
        (0..count).map(asset).collect()
    }

    fn sizes(count: u128, holder: impl Fn(u128) -> u128, max_items: usize) -> Vec<usize> {
        let process = samples::process(&json!([{"type": "complete", "key": "c", "label": "C"}]));
        Movement::groups(&process, assets(count, holder), max_items).iter().map(Vec::len).collect()
    }

    #[test]
    fn groups_have_at_most_twenty_assets_and_the_last_may_be_a_single_one() {
        assert_eq!(sizes(0, |_| 1, 100), Vec::<usize>::new());
        assert_eq!(sizes(1, |_| 1, 100), [1]);
        assert_eq!(sizes(3, |_| 1, 100), [3]);
        assert_eq!(sizes(41, |_| 1, 100), [20, 20, 1]);
    }

    #[test]
    fn a_group_fits_one_transaction() {
        // Four items for each asset, and four more.
        assert_eq!(sizes(10, |_| 1, 4 * 4 + 4), [4, 4, 2]);
        assert_eq!(sizes(2, |_| 1, 1), [1, 1], "a single asset always fits a transaction");
    }

    #[test]
    fn groups_keep_the_order_and_lose_none() {
        let process = samples::process(&json!([{"type": "complete", "key": "c", "label": "C"}]));
        let assets = assets(33, |n| n);
        let ids: Vec<_> = assets.iter().map(|asset| asset.value.id).collect();
        let grouped = Movement::groups(&process, assets, 30);
        assert_eq!(grouped.iter().flatten().map(|asset| asset.value.id).collect::<Vec<_>>(), ids);
    }
}
