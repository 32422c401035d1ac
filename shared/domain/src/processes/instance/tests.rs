//! Tests of process instances.

use super::*;
use crate::samples::{self, signature as image, time};
use crate::values::field_error::ErrorLocation;

fn alice() -> UserId {
    samples::user(1)
}

fn bob() -> UserId {
    samples::user(2)
}

/// Returns a process from `preparing` to `in_use` with five steps.
fn process() -> Process {
    samples::process(&json!([
        {"type": "user_picker", "key": "employee", "label": "Who?", "required": true},
        {"type": "checklist", "key": "parts", "label": "Parts", "items": ["Device", "Cable"]},
        {"type": "text", "key": "remark", "label": "Remark"},
        {"type": "signature", "key": "signature", "label": "Signature"},
        {"type": "complete", "key": "complete", "label": "Done"}
    ]))
}

fn instance(step: usize) -> Instance {
    Instance { state: State::InProgress { step }, ..samples::instance(30, &process()) }
}

fn object(data: Value) -> Map<String, Value> {
    data.as_object().expect("an object").clone()
}

fn images(typed: &[&str]) -> DecodedImages {
    DecodedImages::with_typed(typed.iter().map(|key| (*key).to_owned()).collect())
}

/// Submits the steps up to `through`. The images of the `typed` steps show a typed name.
fn submit(
    instance: &Instance,
    through: Option<&str>,
    data: Value,
    active: &[UserId],
    typed: &[&str],
) -> Result<AdvanceOutcome, ProcessError> {
    let active = active.iter().copied().collect();
    instance.advance(through, &object(data), None, &active, &images(typed), time(5))
}

/// Submits the current step. Only Alice is an active user.
fn advance(instance: &Instance, data: Value) -> Result<AdvanceOutcome, ProcessError> {
    submit(instance, None, data, &[alice()], &[])
}

fn advanced(instance: &Instance, data: Value) -> Instance {
    advance(instance, data).expect("acceptable").instance
}

/// Submits the current step with a signature that shows a typed name.
fn typed(instance: &Instance, data: Value) -> Result<Instance, ProcessError> {
    submit(instance, None, data, &[alice()], &["signature"]).map(|next| next.instance)
}

fn values(instance: &Instance) -> Value {
    Value::Object(instance.step_values.as_map().clone())
}

fn stored(instance: &Instance) -> &Value {
    &instance.step_values.as_map()["signature"]
}

/// Returns the pointers and details of the errors caused by `data`.
fn errors(instance: &Instance, data: Value) -> Vec<(String, String)> {
    let Err(ProcessError::Invalid(errors)) = advance(instance, data) else { panic!("acceptable") };
    let parts = |error: FieldError| match error.location {
        ErrorLocation::Pointer(pointer) => (pointer, error.reason.text),
        other => panic!("{other:?}"),
    };
    errors.into_iter().map(parts).collect()
}

#[test]
fn picked_user_who_became_inactive_is_refused_at_the_next_step() {
    let picked = advanced(&instance(0), json!({"employee": alice()}));
    let without = |data: Value| submit(&picked, None, data, &[], &[]).map(|_| ());
    assert_eq!(without(json!({"parts": ["Device"]})), Err(ProcessError::InactiveUser(alice())));
    assert_eq!(picked.check_picked(&[alice()].into()), Ok(()));
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
fn a_value_submitted_before_can_be_sent_again_but_not_changed() {
    let next = advanced(&instance(0), json!({"employee": alice()}));
    assert!(advance(&next, json!({"employee": alice(), "parts": ["Device"]})).is_ok());
    for changed in [json!(bob()), json!(null), json!("nobody")] {
        let error = advance(&next, json!({"employee": changed, "parts": ["Device"]}));
        assert_eq!(error.map(|_| ()), Err(ProcessError::Submitted("employee".into())));
    }
    let skipped = instance(3);
    assert!(advance(&skipped, json!({"remark": null})).is_ok(), "a step that was skipped still has no value");
    assert_eq!(advance(&skipped, json!({"remark": "x"})).map(|_| ()), Err(ProcessError::Submitted("remark".into())));
}

#[test]
fn nothing_is_submitted_after_the_picked_user_was_deactivated() {
    let ahead = advanced(&instance(0), json!({"employee": alice()}));
    let advance_without_users = |instance: &Instance| submit(instance, None, json!({"employee": alice()}), &[], &[]).map(|_| ());
    let inactive = ahead.picked_users().next().map(ProcessError::InactiveUser).expect("a picked user");
    assert_eq!(advance_without_users(&ahead), Err(inactive.clone()), "submitted with an earlier step");
    let current = Instance { state: State::InProgress { step: 0 }, ..ahead };
    assert_eq!(advance_without_users(&current), Err(inactive), "submitted ahead of its step");
    assert!(advance_without_users(&instance(0)).is_err(), "not submitted before");
}

#[test]
fn a_signature_submitted_before_can_be_sent_as_image_or_path() {
    let signed = advance(&instance(3), json!({"signature": image(1)})).expect("acceptable");
    let sent = SignatureImage::from_data_url(&image(1)).expect("an image");
    assert_eq!(signed.signatures.keys().collect::<Vec<_>>(), ["signature"]);
    assert_eq!(*stored(&signed.instance), json!({"sha256": sent.hash(), "bytes": sent.bytes().len()}));
    let path = signed.instance.signature_path("signature");
    for same in [json!(image(1)), json!(path)] {
        let again = advance(&signed.instance, json!({"signature": same})).expect("acceptable");
        assert!(again.signatures.is_empty(), "an unchanged image is not stored again");
    }
    for other in [json!(image(2)), json!("/v1/processes/instances/x/signatures/signature"), json!(null)] {
        let error = advance(&signed.instance, json!({"signature": other}));
        assert_eq!(error.map(|_| ()), Err(ProcessError::Submitted("signature".into())));
    }
}

#[test]
fn values_of_later_steps_are_stored_ahead_and_can_be_replaced_or_removed() {
    let next = advanced(&instance(0), json!({"employee": alice(), "parts": ["Device"], "remark": "early"}));
    assert_eq!(next.current_step(), 1);
    assert_eq!(next.step_values.as_map()["remark"], "early");
    let next = advanced(&next, json!({"parts": ["Cable"], "remark": null}));
    assert_eq!(next.step_values.as_map()["parts"], json!(["Cable"]));
    assert!(!next.step_values.as_map().contains_key("remark"), "null removes a value");
}

#[test]
fn a_key_of_no_step_is_refused_with_an_escaped_pointer() {
    let expected =
        [("/step_data/a~1b".to_owned(), "unknown step key; known: parts, remark, employee, signature, complete".to_owned())];
    assert_eq!(errors(&instance(2), json!({"a/b": 1})), expected);
}

#[test]
fn a_required_value_must_be_submitted_and_its_error_is_reported_once() {
    let required = |detail: &str| [("/step_data/employee".to_owned(), detail.to_owned())];
    assert_eq!(errors(&instance(0), json!({})), required("is required"));
    assert_eq!(errors(&instance(0), json!({"employee": null})), required("is required"));
    assert_eq!(errors(&instance(0), json!({"employee": bob()})), required("must be the ID of an active user of this tenant"));
    let ahead = advanced(&instance(0), json!({"employee": alice()}));
    let current = Instance { state: State::InProgress { step: 0 }, ..ahead };
    assert!(advance(&current, json!({})).is_ok(), "a value submitted ahead counts");
}

#[test]
fn all_errors_of_a_submission_are_reported_before_a_changed_value() {
    let next = advanced(&instance(0), json!({"employee": alice()}));
    let data = json!({"employee": bob(), "parts": ["Charger"], "remark": 1, "colour": "red"});
    let pointers: Vec<String> = errors(&next, data).into_iter().map(|(pointer, _)| pointer).collect();
    assert_eq!(pointers, ["/step_data/parts", "/step_data/remark", "/step_data/colour"]);
}

#[test]
fn all_values_together_have_a_maximum_size() {
    let steps: Vec<Value> = (0..15).map(|n| json!({"type": "textarea", "key": format!("t{n}"), "label": "Text"})).collect();
    let process = samples::process(&json!(steps));
    let texts = |count: usize| (0..count).map(|n| (format!("t{n}"), json!("x".repeat(10_000)))).collect::<Map<_, _>>();
    let instance = samples::instance(30, &process);
    assert!(advance(&instance, Value::Object(texts(13))).is_ok());
    let expected = "must have at most 131072 bytes as JSON in all, without images";
    assert_eq!(errors(&instance, Value::Object(texts(14))), [("/step_data".to_owned(), expected.to_owned())]);
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
    let next = submit(&samples::instance(30, &process), None, data, &[alice(), bob()], &[]).expect("acceptable").instance;
    assert_eq!(next.picked_users().collect::<Vec<_>>(), [bob(), alice()]);
    assert_eq!(next.recipient(), Some(alice()));
}

#[test]
fn candidate_users_are_all_values_that_look_like_ids() {
    let data = json!({"employee": alice(), "remark": bob(), "parts": [alice()], "other": "text", "number": 1});
    let candidates: Vec<UserId> = candidate_users(&object(data)).collect();
    assert_eq!(candidates, [alice(), bob()]);
}

#[test]
fn cancelling_keeps_the_step_and_the_reason() {
    let reason: Notes = "Wrong laptop".parse().expect("a reason");
    let cancelled = instance(2).cancelled(Some(reason.clone()), time(7)).expect("in progress");
    assert_eq!(cancelled.state, State::Cancelled { step: 2, at: time(7), reason: Some(reason) });
    assert_eq!((cancelled.status(), cancelled.current_step()), (InstanceStatus::Cancelled, 2));
}

fn by(name: &str) -> Signed {
    Signed { by: name.to_owned(), at: time(7) }
}

fn signed(before: &Instance, data: Value, name: &str) -> Instance {
    advance(before, data).expect("acceptable").signed(before, &by(name)).instance
}

#[test]
fn a_signature_has_the_author_of_its_image() {
    let ahead = signed(&instance(1), json!({"signature": image(1)}), "Ada");
    assert_eq!(ahead.signed, [("signature".to_owned(), by("Ada"))].into());
    let again = signed(&ahead, json!({"signature": image(1)}), "Grace");
    assert_eq!(again.signed, ahead.signed, "the same image is not another signature");
    let replaced = signed(&ahead, json!({"signature": image(2)}), "Grace");
    assert_eq!(replaced.signed, [("signature".to_owned(), by("Grace"))].into());
    let removed = signed(&ahead, json!({"signature": null}), "Grace");
    assert!(removed.signed.is_empty());
    assert!(signed(&instance(2), json!({"remark": "x"}), "Ada").signed.is_empty(), "only a signature is signed");
}

#[test]
fn each_step_is_submitted_with_its_own_value_and_the_last_with_those_of_later_steps() {
    let data = json!({"employee": alice(), "parts": ["Cable"], "remark": "r", "complete": true});
    let submitted = submit(&instance(0), Some("parts"), data, &[alice()], &[]).expect("acceptable");
    let states: Vec<_> = submitted.versions().iter().map(|it| (it.current_step(), values(it))).collect();
    let rest = json!({"employee": alice(), "parts": ["Cable"], "remark": "r", "complete": true});
    assert_eq!(states, [(1, json!({"employee": alice()})), (2, rest)]);
}

#[test]
fn typed_signatures_are_marked_at_a_start_and_with_several_steps() {
    let data = json!({"remark": "r", "signature": image(1)});
    let kept = instance(0).with_values(&object(data.clone()), &BTreeSet::new(), &images(&["signature"])).expect("acceptable");
    let submitted = submit(&instance(1), Some("complete"), data.clone(), &[], &["signature"]).expect("acceptable");
    assert!(is_typed(stored(&kept.instance)) && is_typed(stored(&submitted.instance)));
    let ahead = typed(&instance(2), data).expect("acceptable");
    assert_eq!(stored(&ahead), stored(&submitted.instance), "before the step is the current one");
}

#[test]
fn a_typed_signature_sent_again_stays_typed() {
    let first = typed(&instance(3), json!({"signature": image(1)})).expect("acceptable");
    let ahead = Instance { state: State::InProgress { step: 2 }, ..first.clone() };
    for again in [json!({"signature": image(1)}), json!({"signature": first.signature_path("signature")}), json!({})] {
        for before in [&first, &ahead] {
            let next = advanced(before, again.clone());
            assert_eq!(stored(&next), stored(&first), "{again}");
        }
    }
    assert!(typed(&first, json!({"signature": image(1)})).is_ok());
    let drawn = advanced(&ahead, json!({"signature": image(2)}));
    assert!(!is_typed(stored(&drawn)), "another image replaces it before its step is submitted");
}

#[test]
fn a_translated_statement_is_kept_with_the_signature_also_when_it_is_sent_again() {
    let next = advance(&instance(3), json!({"signature": image(1)})).expect("acceptable");
    let english = next.clone().stated(Language::English).instance;
    assert_eq!(read_statement(stored(&english)), None);
    let french = next.stated(Language::French).instance;
    assert_eq!(read_statement(stored(&french)), Some("Je confirme ce qui est indiqué ci-dessus."));
    let ahead = Instance { state: State::InProgress { step: 2 }, ..french.clone() };
    let again = advanced(&ahead, json!({"signature": image(1)}));
    assert_eq!(stored(&again), stored(&french));
}

#[test]
fn a_drawn_signature_does_not_become_a_typed_one_after_its_step() {
    let drawn = advanced(&instance(3), json!({"signature": image(1)}));
    let refused = typed(&drawn, json!({"signature": image(1)}));
    assert_eq!(refused, Err(ProcessError::Submitted("signature".into())));
    let ahead = Instance { state: State::InProgress { step: 2 }, ..drawn };
    let replaced = typed(&ahead, json!({"signature": image(1)})).expect("acceptable");
    assert!(is_typed(stored(&replaced)));
}

#[test]
fn only_signatures_that_are_sent_can_be_typed() {
    let of_no_signature = "unknown key of a signature step; known: signature";
    let not_sent = "must be the key of a step whose image is in step_data";
    let error = |index: usize, detail: &str| FieldError::within("typed_signatures", &format!("/{index}"), detail);
    for (data, typed, expected) in [
        (json!({}), vec!["signature"], vec![error(0, not_sent)]),
        (json!({"signature": null}), vec!["signature"], vec![error(0, not_sent)]),
        (json!({"signature": image(1), "remark": "r"}), vec!["signature", "remark"], vec![error(1, of_no_signature)]),
        (json!({}), vec!["a/b", "signature"], vec![error(0, of_no_signature), error(1, not_sent)]),
    ] {
        let invalid = Err(ProcessError::Invalid(expected));
        for through in [None, Some("complete")] {
            let advanced = submit(&instance(2), through, data.clone(), &[], &typed);
            assert_eq!(advanced.map(|_| ()), invalid, "{data} {typed:?}");
        }
        let kept = instance(0).with_values(&object(data), &BTreeSet::new(), &images(&typed));
        assert_eq!(kept.map(|_| ()), invalid, "{typed:?}");
    }
    let ended = instance(3).cancelled(None, time(1)).expect("in progress");
    let refused = typed(&ended, json!({}));
    assert_eq!(refused, Err(ProcessError::Closed(InstanceStatus::Cancelled)), "that there is nothing to sign comes first");
}
