//! The size of a movement's transactions.

use super::Movement;
use crate::assets::asset::Asset;
use crate::processes::process::{Process, Step, StepKind};
use crate::record::Stored;
use std::collections::BTreeSet;

/// A signing link and its event.
const LINK_ITEMS: usize = 2;

impl Movement {
    /// The maximum over all ways to submit the steps. Also holds for a process instance on its own.
    ///
    /// Each submission writes the stored response, and the process instances with their events. Of the current step and those
    /// that follow, it may pick another user than was picked ahead, which changes the references to both, and add the image of a
    /// signature. The last one also writes the assets with their events and the references to the process definition, to all
    /// users who were picked, and to those who may lose an asset; and, if a signer submits it, the signing link with its event.
    /// `has_values` says whether values were sent with the start.
    ///
    /// Steps that are submitted together are not counted here: they have more events, and are refused if they don't fit.
    #[must_use]
    pub fn items_of_largest_step(process: &Process, assets: &[Stored<Asset>], has_values: bool) -> usize {
        let steps = process.steps.as_slice();
        let count = |first: usize, is_kind: fn(&Step) -> bool| steps.iter().skip(first).filter(|step| is_kind(step)).count();
        let is_picker = |step: &Step| step.kind == StepKind::UserPicker;
        let all_pickers = count(0, is_picker);
        let assigned: BTreeSet<_> = assets.iter().filter_map(|asset| asset.value.assigned_to).collect();
        let losers = if all_pickers > 0 || process.target_status.clears_assignment() { assigned.len() } else { 0 };
        let items = |step: usize| {
            let (pickers, signatures) = (count(step, is_picker), count(step, Step::is_signature));
            // Before the first step nothing was picked, except with the start.
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
    use crate::processes::instance::{Instance, InstanceStatus, Starter};
    use crate::processes::process::Steps;
    use crate::record::{Record, Reference};
    use crate::samples;
    use crate::values::id::{EventId, Id, InstanceId, MovementId, UserId};
    use crate::values::signature_image::{DecodedImages, data_url};
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};
    use std::collections::BTreeMap;
    use uuid::Uuid;

    /// DynamoDB's limit.
    const MAX_TRANSACTION_ITEMS: usize = 100;

    fn stored(value: Asset) -> Stored<Asset> {
        let at = samples::time(0);
        let last_event = EventId::new(at, [0; 10]);
        Stored { value, version: 1, created_at: at, updated_at: at, last_hash: String::new(), last_event }
    }

    fn assets(holders: &[Option<u128>]) -> Vec<Stored<Asset>> {
        let asset = |(number, holder): (u128, &Option<u128>)| {
            stored(Asset { assigned_to: holder.map(samples::user), ..samples::asset(number) })
        };
        (1..).zip(holders).map(asset).collect()
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
            "a picked user gets them"
        );
        assert_eq!(
            count(&["text", "user_picker"], Status::InUse, &holders),
            LINK_ITEMS + 4 * 4 + 2 + 2 + 2,
            "or another one after all"
        );
        assert_eq!(count(&["text", "signature"], Status::InUse, &holders), LINK_ITEMS + 4 * 4 + 2 + 1);
        let many = [&["text"][..], &["user_picker"; 40], &["text"]].concat();
        assert_eq!(count(&many, Status::InUse, &[None, None]), 2 * 2 + 1 + 2 * 40, "forty users replace forty others");
    }

    /// The number of items written by the transaction from `old` to `new`.
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
        touched.extend(recipients.map(|user| (crate::record::Kind::User, user.uuid())));
        1 + 2 * records + touched.len() + images
    }

    /// A PNG that differs for each width.
    fn signature(width: u32) -> String {
        let mut bytes = Vec::new();
        let encoder = png::Encoder::new(&mut bytes, width, 2);
        let pixels = [vec![0; width as usize], vec![255; width as usize]].concat();
        encoder.write_header().expect("a header").write_image_data(&pixels).expect("data");
        data_url(&bytes)
    }

    /// The values of those steps from `first` on whose bit is set, each with a user or an image of its own.
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

        /// Every step submits values for the current and for later steps, and each replaces what was sent ahead.
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
            let mut fresh = 1000;
            if let Some(bits) = ahead {
                let (data, users) = submission(&types, 0, bits, &mut fresh);
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
                let mut images = BTreeMap::new();
                let next: Vec<_> = now.iter().map(|(instance, asset)| {
                    let next = instance.advance(None, &data, None, &users, &DecodedImages::default(), samples::time(1)).expect("acceptable");
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

        /// One instance always fits: no definition has more steps or pickers than that.
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
