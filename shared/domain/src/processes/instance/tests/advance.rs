//! Tests of advancing process instances.

use super::*;
use crate::values::field_error::{ErrorLocation, FieldError};
use crate::values::signature_image::{SignatureImage, data_url};
use serde_json::Map;

/// The pointers and details of the errors caused by `data`.
fn errors(instance: &Instance, data: Value) -> Vec<(String, String)> {
    let Err(ProcessError::Invalid(errors)) = advance(instance, data) else { panic!("acceptable") };
    let parts = |error: FieldError| match error.location {
        ErrorLocation::Pointer(pointer) => (pointer, error.reason.text),
        other => panic!("{other:?}"),
    };
    errors.into_iter().map(parts).collect()
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
fn a_value_submitted_before_is_compared_in_its_stored_form() {
    let next = advanced(&instance(2), json!({"remark": "  all there  "}));
    assert_eq!(next.step_values.as_map()["remark"], "all there");
    assert!(advance(&next, json!({"remark": "all there"})).is_ok());
    assert!(advance(&next, json!({"remark": "  all there  "})).is_ok());
    assert_eq!(advance(&next, json!({"remark": "all gone"})).map(|_| ()), Err(ProcessError::Submitted("remark".into())));
}

#[test]
fn a_picked_user_stays_acceptable_after_being_deactivated() {
    let ahead = advanced(&instance(0), json!({"employee": alice()}));
    let data = json!({"employee": alice()});
    let advance_without_users = |instance: &Instance| {
        instance.advance(None, data.as_object().expect("an object"), None, &BTreeSet::new(), &DecodedImages::default(), time(5))
    };
    assert!(advance_without_users(&ahead).is_ok(), "submitted with an earlier step");
    let current = Instance { state: State::InProgress { step: 0 }, ..ahead };
    assert!(advance_without_users(&current).is_ok(), "submitted ahead of its step");
    assert!(advance_without_users(&instance(0)).is_err(), "not submitted before");
}

#[test]
fn a_signature_submitted_before_can_be_sent_as_image_or_path() {
    let signed = advance(&instance(3), json!({"signature": data_url(&image(1))})).expect("acceptable");
    let hash = SignatureImage::from_data_url(&data_url(&image(1))).expect("an image").hash().to_owned();
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
    assert_eq!(errors(&instance(0), json!({"employee": bob()})), required("must be the id of an active user of this tenant"));
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
