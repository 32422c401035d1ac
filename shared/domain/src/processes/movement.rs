//! Movements: one process on several assets at once, such as the handover of a laptop, a dock and two screens. Each step is
//! submitted once for all assets. Also groups many assets into as few movements as possible, each small enough for its
//! transactions.

use crate::assets::asset::Asset;
use crate::processes::process::{Process, Step, StepKind};
use crate::record::{Kind, Record, Stored, Unique, fields};
use crate::values::field_error::ValueError;
use crate::values::id::{ApiKeyId, AssetId, InstanceId, MovementId, ProcessId};
use crate::values::text::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const ASSET_COUNTS: std::ops::RangeInclusive<usize> = 2..=20;
pub const NUMBER_TEMPLATE: &str = "MOV-NNNNNN";
/// Number of items that a submission through a signing link adds: the link and its event.
const LINK_ITEMS: usize = 2;

/// Assets of a movement: 2 to 20 different IDs.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = Vec<AssetId>, min_items = 2, max_items = 20)]
pub struct AssetIds(Vec<AssetId>);

impl AssetIds {
    pub fn as_slice(&self) -> &[AssetId] {
        &self.0
    }

    /// Parses a list of IDs.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] when the text is anything else.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        let invalid = || ValueError::form("must be a list of 2 to 20 different asset IDs");
        let ids: Vec<AssetId> = serde_json::from_str(text).map_err(|_| invalid())?;
        let distinct: BTreeSet<AssetId> = ids.iter().copied().collect();
        if ASSET_COUNTS.contains(&ids.len()) && distinct.len() == ids.len() { Ok(Self(ids)) } else { Err(invalid()) }
    }
}

/// One process on several assets. Its state follows from its instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Movement {
    pub id: MovementId,
    /// The number shown to people, such as `MOV-000001`. Unique in the tenant.
    pub number: String,
    pub process_id: ProcessId,
    /// The definition's name when the movement was started.
    pub process_name: Name,
    pub instance_ids: Vec<InstanceId>,
    pub started_by: Option<ApiKeyId>,
    /// The name of the user who started the movement, or else of the API key.
    pub started_by_name: String,
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
    /// Groups assets that can start the process together, in order. Each group is as large as possible for a movement and for its
    /// transactions of at most `max_items` items. A group of one becomes a single process instance.
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

    /// Returns the number of items in the largest transaction, over all ways to submit the steps. Also correct for a single
    /// process instance.
    ///
    /// Each submission writes the stored response, and the process instances with their events. For the current and later steps,
    /// a submission can pick a user other than the one picked ahead, which changes the references to both users, and add a
    /// signature image. The last submission also writes the assets with their events, and the references to the process
    /// definition, to all picked users, and to users who could lose an asset. A signer's submission also writes the signing link
    /// with its event. `has_values`: whether values were sent with the start.
    ///
    /// Ignores submissions of several steps at once: such a submission writes more events, and is rejected if it doesn't fit.
    pub fn items_of_largest_step(process: &Process, assets: &[Stored<Asset>], has_values: bool) -> usize {
        let steps = process.steps.as_slice();
        let count = |first: usize, is_kind: fn(&Step) -> bool| steps.iter().skip(first).filter(|step| is_kind(step)).count();
        let is_picker = |step: &Step| step.kind == StepKind::UserPicker;
        let all_pickers = count(0, is_picker);
        let assigned: BTreeSet<_> = assets.iter().filter_map(|asset| asset.value.assigned_to).collect();
        let losers = if all_pickers > 0 || process.target_status.clears_assignment() { assigned.len() } else { 0 };
        let items = |step: usize| {
            let (pickers, signatures) = (count(step, is_picker), count(step, Step::is_signature));
            // Before the first step, users can only have been picked with the start.
            let replaced = if step > 0 || has_values { pickers } else { 0 };
            if step + 1 == steps.len() {
                LINK_ITEMS + 4 * assets.len() + 2 + losers + all_pickers + replaced + signatures
            } else {
                2 * assets.len() + 1 + pickers + replaced + signatures
            }
        };
        (0..steps.len()).map(items).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::asset::Status;
    use crate::processes::instance::{Instance, InstanceStatus, Starter, data_for_instance, overall_status};
    use crate::processes::process::{StepValues, Steps};
    use crate::record::Reference;
    use crate::samples::{self, signature, stored};
    use crate::values::id::{Id, UserId};
    use crate::values::signature_image::DecodedImages;
    use InstanceStatus::{Cancelled, Completed, InProgress};
    use proptest::prelude::*;
    use std::borrow::Cow;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    /// DynamoDB's maximum number of items in a transaction.
    const MAX_TRANSACTION_ITEMS: usize = 100;

    fn signed(number: u128, hash: &str) -> Stored<Instance> {
        let process = samples::process(&json!([{"type": "signature", "key": "sign", "label": "Sign"}]));
        let movement_id = Some(MovementId::from_uuid(Uuid::from_u128(99)));
        let step_values = StepValues(Map::from_iter([("sign".to_owned(), json!({"sha256": hash, "bytes": 10}))]));
        stored(Instance { movement_id, step_values, ..samples::instance(number, &process) })
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

    fn assets(holders: &[Option<u128>]) -> Vec<Stored<Asset>> {
        let asset = |(number, holder): (u128, &Option<u128>)| {
            stored(Asset { assigned_to: holder.map(samples::user), ..samples::asset(number) })
        };
        (1..).zip(holders).map(asset).collect()
    }

    fn sizes(count: usize, max_items: usize) -> Vec<usize> {
        let process = samples::process(&json!([{"type": "complete", "key": "c", "label": "C"}]));
        Movement::groups(&process, assets(&vec![Some(1); count]), max_items).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_group_fits_one_transaction() {
        // The last step writes four items per asset, and four more.
        assert_eq!(sizes(10, 4 * 4 + 4), [4, 4, 2]);
        assert_eq!(sizes(2, 1), [1, 1], "a single asset always fits a transaction");
    }

    #[test]
    fn groups_keep_the_order_and_lose_none() {
        let process = samples::process(&json!([{"type": "complete", "key": "c", "label": "C"}]));
        let assets = assets(&(0..33).map(Some).collect::<Vec<_>>());
        let ids: Vec<_> = assets.iter().map(|asset| asset.value.id).collect();
        let grouped = Movement::groups(&process, assets, 30);
        assert_eq!(grouped.iter().flatten().map(|asset| asset.value.id).collect::<Vec<_>>(), ids);
    }

    fn steps(types: &[&str]) -> Value {
        let step = |(n, step_type): (usize, &&str)| json!({"type": step_type, "key": format!("k{n}"), "label": "L"});
        types.iter().enumerate().map(step).collect()
    }

    #[test]
    fn the_largest_step_is_the_last_or_one_that_replaces_many_users() {
        let count = |types: &[&str], target_status, holders: &[Option<u128>]| {
            let process = Process { target_status, ..samples::process(&steps(types)) };
            Movement::items_of_largest_step(&process, &assets(holders), false)
        };
        let holders = [Some(8), Some(8), Some(9), None];
        assert_eq!(count(&["text"], Status::InUse, &holders), LINK_ITEMS + 4 * 4 + 2, "assignments stay");
        assert_eq!(count(&["text"], Status::Returned, &holders), LINK_ITEMS + 4 * 4 + 2 + 2, "two users lose their assets");
        assert_eq!(
            count(&["user_picker", "text"], Status::InUse, &holders),
            LINK_ITEMS + 4 * 4 + 2 + 2 + 1,
            "a picked user gets all assets"
        );
        assert_eq!(
            count(&["text", "user_picker"], Status::InUse, &holders),
            LINK_ITEMS + 4 * 4 + 2 + 2 + 2,
            "a different user is picked after all"
        );
        assert_eq!(count(&["text", "signature"], Status::InUse, &holders), LINK_ITEMS + 4 * 4 + 2 + 1);
        let many = [&["text"][..], &["user_picker"; 40], &["text"]].concat();
        assert_eq!(count(&many, Status::InUse, &[None, None]), 2 * 2 + 1 + 2 * 40, "forty users replace forty others");
    }

    /// Counts the items written by the transaction from `old` to `new`.
    fn written(old: &[(Instance, Asset)], new: &[(Instance, Asset)], images: usize) -> usize {
        let mut touched = BTreeSet::new();
        let mut records = 0;
        let mut compare = |is_equal: bool, old: Vec<Reference>, new: Vec<Reference>| {
            records += usize::from(!is_equal);
            let gained = new.iter().filter(|it| !old.contains(it));
            touched.extend(gained.chain(old.iter().filter(|it| !new.contains(it))).map(|it| (it.kind, it.id)));
        };
        for ((old, old_asset), (new, new_asset)) in old.iter().zip(new) {
            compare(old == new, old.references(), new.references());
            compare(old_asset == new_asset, old_asset.references(), new_asset.references());
        }
        let recipients = new.iter().filter(|it| it.0.status() == InstanceStatus::Completed).filter_map(|it| it.0.recipient());
        touched.extend(recipients.map(|user| (Kind::User, user.uuid())));
        1 + 2 * records + touched.len() + images
    }

    /// Returns the picked users, and a value for each step at or after `first` whose bit is set in `bits`. Each value is a new
    /// user or image.
    fn submission(types: &[&str], first: usize, bits: u64, fresh: &mut u128) -> (Map<String, Value>, BTreeSet<UserId>) {
        let (mut data, mut users) = (Map::new(), BTreeSet::new());
        for (n, step_type) in types.iter().enumerate().skip(first).filter(|(n, _)| bits >> (n % 64) & 1 == 1) {
            *fresh += 1;
            let value = match *step_type {
                "user_picker" => {
                    users.insert(samples::user(*fresh));
                    json!(samples::user(*fresh))
                }
                "signature" => json!(signature(u32::try_from(*fresh % 500).unwrap_or(1) + 1)),
                _ => json!("x"),
            };
            data.insert(format!("k{n}"), value);
        }
        (data, users)
    }

    fn a_type() -> impl Strategy<Value = &'static str> {
        prop_oneof![3 => Just("user_picker"), 1 => Just("signature"), 1 => Just("text")]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Each submission has values for the current and later steps, and replaces the values sent ahead.
        #[test]
        fn no_transaction_is_larger_than_the_start_expects(
            types in prop::collection::vec(a_type(), 1..12),
            holders in prop::collection::vec(prop::option::of(1u128..25), 1..20),
            clears: bool,
            masks in prop::collection::vec(prop_oneof![Just(u64::MAX), any::<u64>()], 12),
            ahead in prop::option::of(any::<u64>())
        ) {
            let target_status = if clears { Status::Returned } else { Status::InUse };
            let process = Process { target_status, ..samples::process(&steps(&types)) };
            let assets = assets(&holders);
            let most = Movement::items_of_largest_step(&process, &assets, ahead.is_some());
            let starter = Starter { key_id: None, name: "Key".into() };
            let movement_id = Some(MovementId::from_uuid(Uuid::from_u128(99)));
            let mut now: Vec<(Instance, Asset)> = (1..).zip(&assets).map(|(n, asset)| {
                let id = InstanceId::from_uuid(Uuid::from_u128(n));
                let (instance, asset) = Instance::start(id, &process, &asset.value, &starter).expect("can be started");
                (Instance { movement_id, ..instance }, asset)
            }).collect();
            let (mut fresh, mut active) = (1000, BTreeSet::new());
            if let Some(bits) = ahead {
                let (data, users) = submission(&types, 0, bits, &mut fresh);
                active.extend(users.iter().copied());
                for (instance, _) in &mut now {
                    let kept = instance.clone().with_values(&data, &users, &DecodedImages::default()).expect("acceptable");
                    *instance = kept.instance;
                }
            }
            for (step, mask) in (0..types.len()).zip(masks) {
                let cancelled: Vec<_> = now.iter().map(|(instance, asset)| {
                    let instance = instance.cancelled(None, samples::time(1)).expect("is open");
                    (instance.clone(), instance.asset_after(asset))
                }).collect();
                prop_assert!(written(&now, &cancelled, 0) <= most, "cancelling at step {step}");
                let (data, users) = submission(&types, step, mask, &mut fresh);
                active.extend(users);
                let mut images = BTreeMap::new();
                let next: Vec<_> = now.iter().map(|(instance, asset)| {
                    let next = instance.advance(None, &data, None, &active, &DecodedImages::default(), samples::time(1)).expect("acceptable");
                    images.extend(next.signatures);
                    let is_completed = next.instance.status() == InstanceStatus::Completed;
                    let asset = if is_completed { next.instance.asset_after(asset) } else { asset.clone() };
                    (next.instance, asset)
                }).collect();
                let items = written(&now, &next, images.len());
                prop_assert!(items <= most, "step {step} of {types:?} writes {items} items, not at most {most}");
                now = next;
            }
        }

        /// Checks that a single instance always fits: no definition has too many steps or pickers.
        #[test]
        fn an_instance_on_its_own_always_fits(types in prop::collection::vec(a_type(), 1..=50)) {
            let text = steps(&types).to_string();
            let Ok(steps) = Steps::from_json(&text) else { return Ok(()) };
            let process = Process { steps, ..samples::process(&super::tests::steps(&["text"])) };
            prop_assert!(Movement::items_of_largest_step(&process, &assets(&[Some(1)]), false) <= MAX_TRANSACTION_ITEMS);
        }
    }

    #[test]
    fn a_definition_has_at_most_as_many_pickers_as_one_instance_can_replace() {
        let pickers =
            |n: usize| Steps::from_json(&steps(&[&["text"][..], &vec!["user_picker"; n], &["text"]].concat()).to_string());
        let process = Process { steps: pickers(48).expect("allowed"), ..samples::process(&steps(&["text"])) };
        assert!(Movement::items_of_largest_step(&process, &assets(&[Some(1)]), false) <= MAX_TRANSACTION_ITEMS);
        let all_but_one = [&["user_picker"; 48][..], &["signature"; 2]].concat();
        let steps_of_all = Steps::from_json(&steps(&all_but_one).to_string()).expect("allowed");
        let process = Process { steps: steps_of_all, ..process };
        assert!(Movement::items_of_largest_step(&process, &assets(&[Some(1)]), false) <= MAX_TRANSACTION_ITEMS);
        assert!(Steps::from_json(&steps(&["user_picker"; 49]).to_string()).is_err());
    }
}
