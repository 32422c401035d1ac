//! Tests of starting and ending process instances.

use super::*;
use crate::record::Record;
use crate::user::User;

#[test]
fn completion_without_a_picked_user_clears_the_assignment_only_in_some_statuses() {
    let running = Asset { running_instance_id: Some(instance(0).id), assigned_to: Some(bob()), ..samples::asset(1) };
    for &target_status in Status::ALL {
        let completed = Instance { state: State::Completed { at: time(1) }, target_status, ..instance(4) };
        let after = completed.asset_after(&running);
        let is_cleared = matches!(target_status, Status::InStock | Status::Returned | Status::Scrapped);
        assert_eq!((after.status, after.running_instance_id), (target_status, None));
        assert_eq!(after.assigned_to, if is_cleared { None } else { Some(bob()) }, "{target_status}");
    }
}

#[test]
fn cancelling_only_frees_the_asset() {
    let running = Asset { running_instance_id: Some(instance(0).id), assigned_to: Some(bob()), ..samples::asset(1) };
    let picked = advanced(&instance(0), json!({"employee": alice()}));
    let cancelled = picked.cancelled(None, time(1)).expect("in progress");
    assert_eq!(cancelled.asset_after(&running), Asset { running_instance_id: None, ..running });
}

#[test]
fn the_recipient_is_the_user_of_the_last_step_that_picked_one() {
    let steps = json!([
        {"type": "user_picker", "key": "from", "label": "From"}, {"type": "user_picker", "key": "to", "label": "To"},
        {"type": "user_picker", "key": "witness", "label": "Witness"}
    ]);
    let process = samples::process(&steps);
    let data = json!({"to": alice(), "from": bob()});
    let active = BTreeSet::from([alice(), bob()]);
    let next = samples::instance(30, &process).advance(
        None,
        data.as_object().expect("an object"),
        None,
        &active,
        &DecodedImages::default(),
        time(1),
    );
    let next = next.expect("acceptable").instance;
    assert_eq!(next.picked_users().collect::<Vec<_>>(), [bob(), alice()]);
    assert_eq!(next.recipient(), Some(alice()));
}

#[test]
fn an_instance_refers_to_its_process_and_picked_users_while_in_progress() {
    let picked = advanced(&instance(0), json!({"employee": alice()}));
    let references = [Process::reference("process_id", process().id), User::reference("step_data", alice())];
    assert_eq!(picked.references(), references);
    let completed = Instance { state: State::Completed { at: time(1) }, ..picked };
    assert_eq!(completed.references(), []);
}

#[test]
fn candidate_users_are_all_values_that_look_like_ids() {
    let data = json!({"employee": alice(), "remark": bob(), "parts": [alice()], "other": "text", "number": 1});
    let candidates: Vec<UserId> = candidate_users(data.as_object().expect("an object")).collect();
    assert_eq!(candidates, [alice(), bob()]);
}

#[test]
fn cancelling_keeps_the_step_and_the_reason() {
    let reason: Notes = "Wrong laptop".parse().expect("a reason");
    let cancelled = instance(2).cancelled(Some(reason.clone()), time(7)).expect("in progress");
    assert_eq!(cancelled.state, State::Cancelled { step: 2, at: time(7), reason: Some(reason) });
    assert_eq!((cancelled.status(), cancelled.current_step()), (InstanceStatus::Cancelled, 2));
}
