//! Tests of starting and ending process instances.

use super::*;
use crate::record::Record;
use crate::user::User;

#[test]
fn a_process_can_be_started_only_if_active_on_a_free_asset_in_its_trigger_status() {
    assert_eq!(check_startable(&process(), &samples::asset(1)), Ok(()));
    let running = InstanceId::from_uuid(Uuid::from_u128(31));
    let busy = Asset { running_instance_id: Some(running), status: Status::InStock, ..samples::asset(1) };
    let inactive = Process { status: ProcessStatus::Inactive, ..process() };
    assert_eq!(check_startable(&inactive, &busy), Err(ProcessError::Inactive));
    assert_eq!(check_startable(&process(), &busy), Err(ProcessError::Running(samples::asset(1).id, running)));
    let in_stock = Asset { status: Status::InStock, ..samples::asset(1) };
    let error = ProcessError::WrongStatus { asset: samples::asset(1).id, actual: Status::InStock, required: Status::Preparing };
    assert_eq!(check_startable(&process(), &in_stock), Err(error));
}

#[test]
fn starting_copies_the_definition_and_marks_the_asset() {
    let starter = Starter { key_id: Some(ApiKeyId::from_uuid(Uuid::from_u128(40))), name: "Ada".into() };
    let id = InstanceId::from_uuid(Uuid::from_u128(30));
    let (instance, marked) = Instance::start(id, &process(), &samples::asset(1), &starter).expect("can be started");
    assert_eq!(marked, Asset { running_instance_id: Some(id), ..samples::asset(1) });
    assert_eq!(instance.state, State::InProgress { step: 0 });
    assert_eq!((instance.process_id, instance.asset_id), (process().id, samples::asset(1).id));
    assert_eq!((&instance.steps, instance.target_status), (&process().steps, Status::InUse));
    assert_eq!((instance.started_by, instance.started_by_name.as_str()), (starter.key_id, "Ada"));
    assert!(Instance::start(id, &process(), &marked, &starter).is_err());
}

#[test]
fn completion_gives_the_asset_its_status_and_its_recipient() {
    let running = Asset { running_instance_id: Some(instance(0).id), assigned_to: Some(bob()), ..samples::asset(1) };
    let picked = advanced(&instance(0), json!({"employee": alice()}));
    let completed = Instance { state: State::Completed { at: time(1) }, ..picked };
    assert_eq!(completed.recipient(), Some(alice()));
    let after = Asset { running_instance_id: None, status: Status::InUse, assigned_to: Some(alice()), ..samples::asset(1) };
    assert_eq!(completed.asset_after(&running), after);
}

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
