//! Tests of starting, advancing and ending process instances.

use super::*;
use crate::domain::field_error::{ErrorLocation, FieldError};
use crate::domain::signature_image::{SignatureImage, data_url};

const ALICE: u128 = 1;
const BOB: u128 = 2;

fn user(number: u128) -> UserId {
    UserId::from_uuid(Uuid::from_u128(number))
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A process from `preparing` to `in_use` with one step of each kind that the tests need.
fn process() -> Process {
    let steps = json!([
        {"type": "user_picker", "key": "employee", "label": "Who?", "required": true},
        {"type": "checklist", "key": "parts", "label": "Parts", "items": ["Device", "Cable"]},
        {"type": "text", "key": "remark", "label": "Remark"},
        {"type": "signature", "key": "signature", "label": "Signature"},
        {"type": "complete", "key": "complete", "label": "Done"}
    ]);
    Process {
        id: ProcessId::from_uuid(Uuid::from_u128(10)),
        name: "Handover".parse().expect("a name"),
        slug: "handover".parse().expect("a slug"),
        description: Notes::default(),
        trigger_status: Status::Preparing,
        target_status: Status::InUse,
        is_system: false,
        status: ProcessStatus::Active,
        steps: Steps::from_json(&steps.to_string()).expect("steps"),
    }
}

fn asset() -> Asset {
    let asset = json!({"id": Uuid::from_u128(20), "asset_tag": "AST-000001", "name": "Laptop", "status": "preparing"});
    let asset = asset.as_object().cloned().expect("an object");
    let fields = [("custom_fields".to_owned(), json!("{}"))];
    serde_json::from_value(asset.into_iter().chain(fields).collect()).expect("an asset")
}

/// An instance of `process` whose current step has this index.
fn instance_of(process: &Process, step: usize) -> Instance {
    let starter = Starter { key_id: None, name: "Key".into() };
    let id = InstanceId::from_uuid(Uuid::from_u128(30));
    let (instance, _) = Instance::start(id, process, &asset(), &starter).expect("can be started");
    Instance { state: State::InProgress { step }, ..instance }
}

fn instance(step: usize) -> Instance {
    instance_of(&process(), step)
}

/// Advances with Alice and nobody else being active.
fn advance(instance: &Instance, data: Value) -> Result<Advancement, ProcessError> {
    let data = data.as_object().expect("an object");
    instance.advance(data, None, &BTreeSet::from([user(ALICE)]), time(5))
}

/// Advances and returns the instance afterwards.
fn advanced(instance: &Instance, data: Value) -> Instance {
    advance(instance, data).expect("acceptable").instance
}

/// The pointers and details of the errors that `data` causes.
fn errors(instance: &Instance, data: Value) -> Vec<(String, String)> {
    let Err(ProcessError::Invalid(errors)) = advance(instance, data) else { panic!("acceptable") };
    let parts = |error: FieldError| match error.location {
        ErrorLocation::Pointer(pointer) => (pointer, error.detail),
        other => panic!("{other:?}"),
    };
    errors.into_iter().map(parts).collect()
}

/// A PNG image of this width.
fn image(width: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = png::Encoder::new(&mut bytes, width, 1);
    encoder.write_header().expect("a header").write_image_data(&vec![0; width as usize]).expect("data");
    bytes
}

#[test]
fn advancing_stores_the_value_and_moves_on_to_the_next_step() {
    let next = advanced(&instance(0), json!({"employee": user(ALICE)}));
    assert_eq!(next.state, State::InProgress { step: 1 });
    assert_eq!(Value::Object(next.step_values.as_map().clone()), json!({"employee": user(ALICE)}));
    let next = advanced(&next, json!({}));
    assert_eq!((next.status(), next.current_step()), (InstanceStatus::InProgress, 2), "an optional step can be skipped");
}

#[test]
fn submitting_the_last_step_completes_the_instance_and_stays_at_it() {
    let last = instance(4);
    for data in [json!({}), json!({"complete": true})] {
        let next = advanced(&last, data);
        assert_eq!(next.state, State::Completed { at: time(5) });
        assert_eq!((next.status(), next.current_step()), (InstanceStatus::Completed, 4));
    }
    assert_eq!(errors(&last, json!({"complete": "yes"})), [("/step_data/complete".into(), "must be true".into())]);
}

#[test]
fn another_step_than_the_expected_one_is_refused() {
    let data = json!({"parts": []});
    let data = data.as_object().expect("an object");
    let advance = |expected| instance(1).advance(data, expected, &BTreeSet::new(), time(5));
    assert_eq!(advance(Some(0)).map(|_| ()), Err(ProcessError::Moved(1)));
    assert_eq!(advance(Some(2)).map(|_| ()), Err(ProcessError::Moved(1)));
    assert!(advance(Some(1)).is_ok());
}

#[test]
fn a_completed_or_cancelled_instance_can_neither_be_advanced_nor_cancelled() {
    let completed = Instance { state: State::Completed { at: time(1) }, ..instance(4) };
    let cancelled = instance(1).cancelled(None, time(1)).expect("in progress");
    for (ended, status) in [(completed, InstanceStatus::Completed), (cancelled, InstanceStatus::Cancelled)] {
        let closed = ProcessError::Closed(status);
        assert_eq!(advance(&ended, json!({})).map(|_| ()), Err(closed.clone()));
        assert_eq!(ended.cancelled(None, time(2)), Err(closed.clone()));
        assert_eq!(ended.open_step(), Err(closed));
    }
}

#[test]
fn cancelling_keeps_the_step_and_the_reason() {
    let reason: Notes = "Wrong laptop".parse().expect("a reason");
    let cancelled = instance(2).cancelled(Some(reason.clone()), time(7)).expect("in progress");
    assert_eq!(cancelled.state, State::Cancelled { step: 2, at: time(7), reason: Some(reason) });
    assert_eq!((cancelled.status(), cancelled.current_step()), (InstanceStatus::Cancelled, 2));
}

#[test]
fn a_value_submitted_before_can_be_sent_again_but_not_changed() {
    let next = advanced(&instance(0), json!({"employee": user(ALICE)}));
    assert!(advance(&next, json!({"employee": user(ALICE), "parts": ["Device"]})).is_ok());
    for changed in [json!(user(BOB)), json!(null), json!("nobody")] {
        let error = advance(&next, json!({"employee": changed, "parts": ["Device"]}));
        assert_eq!(error.map(|_| ()), Err(ProcessError::Submitted("employee".into())));
    }
    let skipped = instance(3);
    assert!(advance(&skipped, json!({"remark": null})).is_ok(), "a step that was skipped still has no value");
    assert_eq!(advance(&skipped, json!({"remark": "x"})).map(|_| ()), Err(ProcessError::Submitted("remark".into())));
}

#[test]
fn a_value_submitted_before_is_compared_in_its_stored_form() {
    let next = advanced(&instance(2), json!({"remark": "  all there  "}));
    assert_eq!(next.step_values.as_map()["remark"], "all there");
    assert!(advance(&next, json!({"remark": "all there"})).is_ok());
    assert!(advance(&next, json!({"remark": "  all there  "})).is_ok());
    assert_eq!(advance(&next, json!({"remark": "all gone"})).map(|_| ()), Err(ProcessError::Submitted("remark".into())));
}

#[test]
fn a_picked_user_stays_acceptable_after_being_deactivated() {
    let ahead = advanced(&instance(0), json!({"employee": user(ALICE)}));
    let data = json!({"employee": user(ALICE)});
    let advance_without_users =
        |instance: &Instance| instance.advance(data.as_object().expect("an object"), None, &BTreeSet::new(), time(5));
    assert!(advance_without_users(&ahead).is_ok(), "submitted with an earlier step");
    let current = Instance { state: State::InProgress { step: 0 }, ..ahead };
    assert!(advance_without_users(&current).is_ok(), "submitted ahead of its step");
    assert!(advance_without_users(&instance(0)).is_err(), "not submitted before");
}

#[test]
fn a_signature_submitted_before_can_be_sent_as_image_or_path() {
    let signed = advance(&instance(3), json!({"signature": data_url(&image(1))})).expect("acceptable");
    let hash = SignatureImage::from_data_url(&data_url(&image(1))).expect("an image").hash();
    assert_eq!(signed.signatures.keys().collect::<Vec<_>>(), ["signature"]);
    assert_eq!(signed.instance.step_values.as_map()["signature"], json!({"sha256": hash, "bytes": image(1).len()}));
    let path = signed.instance.signature_path("signature");
    for same in [json!(data_url(&image(1))), json!(path)] {
        let again = advance(&signed.instance, json!({"signature": same})).expect("acceptable");
        assert!(again.signatures.is_empty(), "an unchanged image is not stored again");
    }
    for other in [json!(data_url(&image(2))), json!("/v1/processes/instances/x/signatures/signature"), json!(null)] {
        let error = advance(&signed.instance, json!({"signature": other}));
        assert_eq!(error.map(|_| ()), Err(ProcessError::Submitted("signature".into())));
    }
}

#[test]
fn values_of_later_steps_are_stored_ahead_and_can_be_replaced_or_removed() {
    let next = advanced(&instance(0), json!({"employee": user(ALICE), "parts": ["Device"], "remark": "early"}));
    assert_eq!(next.current_step(), 1);
    assert_eq!(next.step_values.as_map()["remark"], "early");
    let next = advanced(&next, json!({"parts": ["Cable"], "remark": null}));
    assert_eq!(next.step_values.as_map()["parts"], json!(["Cable"]));
    assert!(!next.step_values.as_map().contains_key("remark"), "null removes a value");
}

#[test]
fn a_key_of_no_step_is_refused_with_an_escaped_pointer() {
    let expected = [("/step_data/a~1b".to_owned(), "is not the key of a step".to_owned())];
    assert_eq!(errors(&instance(2), json!({"a/b": 1})), expected);
}

#[test]
fn a_required_value_must_be_submitted_and_its_error_is_reported_once() {
    let required = |detail: &str| [("/step_data/employee".to_owned(), detail.to_owned())];
    assert_eq!(errors(&instance(0), json!({})), required("is required"));
    assert_eq!(errors(&instance(0), json!({"employee": null})), required("is required"));
    assert_eq!(errors(&instance(0), json!({"employee": user(BOB)})), required("must be the id of an active user of this tenant"));
    let ahead = advanced(&instance(0), json!({"employee": user(ALICE)}));
    let current = Instance { state: State::InProgress { step: 0 }, ..ahead };
    assert!(advance(&current, json!({})).is_ok(), "a value submitted ahead counts");
}

#[test]
fn all_errors_of_a_submission_are_reported_before_a_changed_value() {
    let next = advanced(&instance(0), json!({"employee": user(ALICE)}));
    let data = json!({"employee": user(BOB), "parts": ["Charger"], "remark": 1, "colour": "red"});
    let pointers: Vec<String> = errors(&next, data).into_iter().map(|(pointer, _)| pointer).collect();
    assert_eq!(pointers, ["/step_data/parts", "/step_data/remark", "/step_data/colour"]);
}

#[test]
fn all_values_together_have_a_maximum_size() {
    let steps: Vec<Value> = (0..15).map(|n| json!({"type": "textarea", "key": format!("t{n}"), "label": "Text"})).collect();
    let process = Process { steps: Steps::from_json(&json!(steps).to_string()).expect("steps"), ..process() };
    let texts = |count: usize| (0..count).map(|n| (format!("t{n}"), json!("x".repeat(10_000)))).collect::<Map<_, _>>();
    let instance = instance_of(&process, 0);
    assert!(advance(&instance, Value::Object(texts(13))).is_ok());
    let expected = "must have at most 131072 bytes as JSON in all, without images";
    assert_eq!(errors(&instance, Value::Object(texts(14))), [("/step_data".to_owned(), expected.to_owned())]);
}

#[test]
fn a_process_can_be_started_only_if_active_on_a_free_asset_in_its_trigger_status() {
    assert_eq!(check_startable(&process(), &asset()), Ok(()));
    let running = InstanceId::from_uuid(Uuid::from_u128(31));
    let busy = Asset { running_instance_id: Some(running), status: Status::InStock, ..asset() };
    let inactive = Process { status: ProcessStatus::Inactive, ..process() };
    assert_eq!(check_startable(&inactive, &busy), Err(ProcessError::Inactive));
    assert_eq!(check_startable(&process(), &busy), Err(ProcessError::Running(asset().id, running)));
    let in_stock = Asset { status: Status::InStock, ..asset() };
    let error = ProcessError::WrongStatus { asset: asset().id, actual: Status::InStock, required: Status::Preparing };
    assert_eq!(check_startable(&process(), &in_stock), Err(error));
}

#[test]
fn starting_copies_the_definition_and_marks_the_asset() {
    let starter = Starter { key_id: Some(ApiKeyId::from_uuid(Uuid::from_u128(40))), name: "Ada".into() };
    let id = InstanceId::from_uuid(Uuid::from_u128(30));
    let (instance, marked) = Instance::start(id, &process(), &asset(), &starter).expect("can be started");
    assert_eq!(marked, Asset { running_instance_id: Some(id), ..asset() });
    assert_eq!(instance.state, State::InProgress { step: 0 });
    assert_eq!((instance.process_id, instance.asset_id), (process().id, asset().id));
    assert_eq!((&instance.steps, instance.target_status), (&process().steps, Status::InUse));
    assert_eq!((instance.started_by, instance.started_by_name.as_str()), (starter.key_id, "Ada"));
    assert!(Instance::start(id, &process(), &marked, &starter).is_err());
}

#[test]
fn completion_gives_the_asset_its_status_and_its_recipient() {
    let running = Asset { running_instance_id: Some(instance(0).id), assigned_to: Some(user(BOB)), ..asset() };
    let picked = advanced(&instance(0), json!({"employee": user(ALICE)}));
    let completed = Instance { state: State::Completed { at: time(1) }, ..picked };
    assert_eq!(completed.recipient(), Some(user(ALICE)));
    let after = Asset { running_instance_id: None, status: Status::InUse, assigned_to: Some(user(ALICE)), ..asset() };
    assert_eq!(completed.asset_after(&running), after);
}

#[test]
fn completion_without_a_picked_user_clears_the_assignment_only_in_some_statuses() {
    let running = Asset { running_instance_id: Some(instance(0).id), assigned_to: Some(user(BOB)), ..asset() };
    for &target_status in Status::ALL {
        let completed = Instance { state: State::Completed { at: time(1) }, target_status, ..instance(4) };
        let after = completed.asset_after(&running);
        let is_cleared = matches!(target_status, Status::InStock | Status::Returned | Status::Scrapped);
        assert_eq!((after.status, after.running_instance_id), (target_status, None));
        assert_eq!(after.assigned_to, if is_cleared { None } else { Some(user(BOB)) }, "{target_status}");
    }
}

#[test]
fn cancelling_only_frees_the_asset() {
    let running = Asset { running_instance_id: Some(instance(0).id), assigned_to: Some(user(BOB)), ..asset() };
    let picked = advanced(&instance(0), json!({"employee": user(ALICE)}));
    let cancelled = picked.cancelled(None, time(1)).expect("in progress");
    assert_eq!(cancelled.asset_after(&running), Asset { running_instance_id: None, ..running });
}

#[test]
fn the_recipient_is_the_user_of_the_last_step_that_picked_one() {
    let steps = json!([
        {"type": "user_picker", "key": "from", "label": "From"}, {"type": "user_picker", "key": "to", "label": "To"},
        {"type": "user_picker", "key": "witness", "label": "Witness"}
    ]);
    let process = Process { steps: Steps::from_json(&steps.to_string()).expect("steps"), ..process() };
    let data = json!({"to": user(ALICE), "from": user(BOB)});
    let active = BTreeSet::from([user(ALICE), user(BOB)]);
    let next = instance_of(&process, 0).advance(data.as_object().expect("an object"), None, &active, time(1));
    let next = next.expect("acceptable").instance;
    assert_eq!(next.picked_users().collect::<Vec<_>>(), [user(BOB), user(ALICE)]);
    assert_eq!(next.recipient(), Some(user(ALICE)));
}

#[test]
fn an_instance_refers_to_its_process_and_picked_users_while_in_progress() {
    let picked = advanced(&instance(0), json!({"employee": user(ALICE)}));
    let references = [Process::reference("process_id", process().id), User::reference("step_data", user(ALICE))];
    assert_eq!(picked.references(), references);
    let completed = Instance { state: State::Completed { at: time(1) }, ..picked };
    assert_eq!(completed.references(), []);
}

#[test]
fn candidate_users_are_all_values_that_look_like_ids() {
    let data = json!({"employee": user(ALICE), "remark": user(BOB), "parts": [user(ALICE)], "other": "text", "number": 1});
    let candidates: Vec<UserId> = candidate_users(data.as_object().expect("an object")).collect();
    assert_eq!(candidates, [user(ALICE), user(BOB)]);
}
