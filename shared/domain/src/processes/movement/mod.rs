//! Movements: one process on several assets at once, such as the handover of a laptop, a dock and two screens. Each step is
//! submitted once for all of them. Many assets in as few movements as possible.

mod size;

use crate::assets::asset::Asset;
use crate::processes::instance::{Instance, InstanceStatus};
use crate::processes::process::Process;
use crate::record::{Kind, Record, Stored, Unique, fields};
use crate::values::field_error::ValueError;
use crate::values::id::{ApiKeyId, AssetId, InstanceId, MovementId, ProcessId};
use crate::values::text::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

const ASSET_COUNTS: std::ops::RangeInclusive<usize> = 2..=20;
pub const NUMBER_TEMPLATE: &str = "MOV-NNNNNN";

/// The assets of a movement in a request: 2 to 20 different ids.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = Vec<AssetId>, min_items = 2, max_items = 20)]
pub struct AssetIds(Vec<AssetId>);

impl AssetIds {
    #[must_use]
    pub fn as_slice(&self) -> &[AssetId] {
        &self.0
    }

    /// # Errors
    ///
    /// Says what the list must be.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        let invalid = || ValueError::new("must be a list of 2 to 20 different asset ids");
        let ids: Vec<AssetId> = serde_json::from_str(text).map_err(|_| invalid())?;
        let distinct: BTreeSet<AssetId> = ids.iter().copied().collect();
        if ASSET_COUNTS.contains(&ids.len()) && distinct.len() == ids.len() { Ok(Self(ids)) } else { Err(invalid()) }
    }
}

/// One process on several assets. The state of a movement is that of its instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Movement {
    pub id: MovementId,
    /// The number that people use, such as `MOV-000001`. Unique in the tenant.
    pub number: String,
    pub process_id: ProcessId,
    /// The name of the definition when the movement was started.
    pub process_name: Name,
    pub instance_ids: Vec<InstanceId>,
    pub started_by: Option<ApiKeyId>,
    /// The name of the user who started it, else that of the API key.
    pub started_by_name: String,
}

/// The status and current step of a movement: in progress while one of them is, else completed if one of them is, else cancelled.
pub fn overall_status(instances: impl IntoIterator<Item = (InstanceStatus, usize)>) -> (InstanceStatus, usize) {
    let rank = |status: InstanceStatus| match status {
        InstanceStatus::InProgress => 0,
        InstanceStatus::Completed => 1,
        InstanceStatus::Cancelled => 2,
    };
    instances.into_iter().min_by_key(|(status, _)| rank(*status)).unwrap_or((InstanceStatus::Cancelled, 0))
}

#[must_use]
pub fn position(instances: &[Stored<Instance>]) -> (InstanceStatus, usize) {
    overall_status(instances.iter().map(|it| (it.value.status(), it.value.current_step())))
}

/// `step_data`, submitted for all `instances` of a movement, as `instance` expects it.
///
/// A signature submitted before may be sent again as the path of its image. That path contains the id of one of the instances, so
/// it is replaced by the path of `instance` if both have the same image.
#[must_use]
pub fn data_for_instance<'a>(
    instance: &Instance,
    instances: &[Stored<Instance>],
    step_data: &'a Map<String, Value>,
) -> Cow<'a, Map<String, Value>> {
    let mut data = Cow::Borrowed(step_data);
    for (image, _) in instance.signatures() {
        let is_sent =
            |other: &&Stored<Instance>| step_data.get(&image.step) == Some(&json!(other.value.signature_path(&image.step)));
        let sent = instances.iter().find(is_sent);
        if sent.is_some_and(|other| other.value.signatures().any(|(other_image, _)| other_image == image)) {
            data.to_mut().insert(image.step.clone(), json!(instance.signature_path(&image.step)));
        }
    }
    data
}

impl Record for Movement {
    const KIND: Kind = Kind::Movement;
    type Id = MovementId;

    fn id(&self) -> MovementId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, number, process_id, process_name: _, instance_ids, started_by: _, started_by_name: _ } = self;
        fields([("number", json!(number)), ("process_id", json!(process_id)), ("instances", json!(instance_ids))])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Unique { field: "number", value: self.number.clone(), reserved_after_deletion: true }]
    }
}

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
    use crate::processes::process::step::StepValues;
    use crate::samples;
    use crate::values::id::{EventId, Id};
    use InstanceStatus::{Cancelled, Completed, InProgress};
    use serde_json::json;
    use uuid::Uuid;

    fn stored<T>(value: T) -> Stored<T> {
        let at = samples::time(0);
        let last_event = EventId::new(at, [0; 10]);
        Stored { value, version: 1, created_at: at, updated_at: at, last_hash: String::new(), last_event }
    }

    fn signed(number: u128, hash: &str) -> Stored<Instance> {
        let process = samples::process(&json!([{"type": "signature", "key": "sign", "label": "Sign"}]));
        let movement_id = Some(MovementId::from_uuid(Uuid::from_u128(99)));
        let step_values = StepValues(Map::from_iter([("sign".to_owned(), json!({"sha256": hash, "bytes": 10}))]));
        stored(Instance { movement_id, step_values, ..samples::instance(number, &process) })
    }

    #[test]
    fn a_movement_has_2_to_20_different_assets() {
        let ids = |numbers: std::ops::Range<u128>| -> Vec<AssetId> {
            numbers.map(|number| AssetId::from_uuid(Uuid::from_u128(number))).collect()
        };
        let parse = |ids: &[AssetId]| AssetIds::from_json(&json!(ids).to_string());
        for good in [ids(0..2), ids(0..20)] {
            assert_eq!(parse(&good).map(|ids| ids.as_slice().to_vec()), Ok(good));
        }
        for bad in [ids(0..0), ids(0..1), ids(0..21), [ids(0..2), ids(0..1)].concat()] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
        for bad in ["null", "\"x\"", "[1, 2]", "[\"a\", \"b\"]"] {
            assert!(AssetIds::from_json(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_movement_is_in_progress_while_an_instance_is_else_completed_if_one_is() {
        for (instances, expected) in [
            (vec![(Completed, 4), (InProgress, 2), (Cancelled, 1)], (InProgress, 2)),
            (vec![(Cancelled, 1), (Completed, 4)], (Completed, 4)),
            (vec![(Cancelled, 1), (Cancelled, 1)], (Cancelled, 1)),
            (vec![], (Cancelled, 0)),
        ] {
            assert_eq!(overall_status(instances.clone()), expected, "{instances:?}");
        }
    }

    #[test]
    fn the_path_of_a_signature_is_translated_to_the_instance_that_has_the_same_image() {
        let instances = [signed(1, "same"), signed(2, "same"), signed(3, "other")];
        let [first, second, third] = instances.each_ref().map(|instance| &instance.value);
        let data = Map::from_iter([("sign".to_owned(), json!(first.signature_path("sign"))), ("note".to_owned(), json!("x"))]);
        let path = |instance: &Instance| data_for_instance(instance, &instances, &data)["sign"].clone();
        assert_eq!(path(first), first.signature_path("sign"));
        assert_eq!(path(second), second.signature_path("sign"));
        assert_eq!(path(third), first.signature_path("sign"), "another image keeps the foreign path, which is then refused");
        assert_eq!(data_for_instance(second, &instances, &data)["note"], "x");
    }

    #[test]
    fn data_without_a_path_of_the_movement_stays_as_it_is() {
        let instances = [signed(1, "same"), signed(2, "same")];
        for value in ["data:image/png;base64,AAAA", "/v1/processes/instances/x/signatures/sign"] {
            let data = Map::from_iter([("sign".to_owned(), json!(value))]);
            assert!(matches!(data_for_instance(&instances[1].value, &instances, &data), Cow::Borrowed(same) if *same == data));
        }
    }

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
