//! Tests of submitting several steps at once, and of values sent with the start.

use super::*;
use serde_json::Map;

fn object(data: Value) -> Map<String, Value> {
    data.as_object().expect("an object").clone()
}

/// Only Alice is an active user.
fn submit(instance: &Instance, through: &str, data: Value) -> Result<AdvanceOutcome, ProcessError> {
    let active = BTreeSet::from([alice()]);
    instance.advance(Some(through), &object(data), None, &active, &DecodedImages::default(), time(5))
}

fn values(instance: &Instance) -> Value {
    Value::Object(instance.step_values.as_map().clone())
}

#[test]
fn each_step_is_submitted_with_its_own_value_and_the_last_with_those_of_later_steps() {
    let data = json!({"employee": alice(), "parts": ["Cable"], "remark": "r", "complete": true});
    let submitted = submit(&instance(0), "parts", data).expect("acceptable");
    let states: Vec<_> = submitted.versions().iter().map(|it| (it.current_step(), values(it))).collect();
    let rest = json!({"employee": alice(), "parts": ["Cable"], "remark": "r", "complete": true});
    assert_eq!(states, [(1, json!({"employee": alice()})), (2, rest)]);
}

#[test]
fn the_first_step_that_fails_decides_the_error() {
    let pointer = |error: ProcessError| match error {
        ProcessError::Invalid(errors) => errors.into_iter().map(|error| error.location).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let of = |data: Value| advance(&instance(0), data).map(|_| ()).expect_err("not acceptable");
    let both = submit(&instance(0), "remark", json!({"parts": ["x"], "remark": 1})).map(|_| ()).expect_err("not acceptable");
    assert_eq!(pointer(both), pointer(of(json!({}))), "a required value of the first step is missing");
    let unknown = submit(&instance(0), "remark", json!({"employee": alice(), "x": 1, "remark": 1})).map(|_| ());
    assert_eq!(pointer(unknown.expect_err("not acceptable")), pointer(of(json!({"employee": alice(), "x": 1}))));
    assert_eq!(submit(&instance(2), "employee", json!({})).map(|_| ()), Err(ProcessError::Submitted("employee".into())));
    let changed = submit(&instance(2), "remark", json!({"employee": alice()})).map(|_| ());
    assert_eq!(changed, Err(ProcessError::Submitted("employee".into())));
    let no_step = submit(&instance(2), "nothing", json!({"x": 1})).map(|_| ());
    assert!(matches!(no_step, Err(ProcessError::Invalid(errors)) if errors.len() == 1 && errors[0].is_of("through")));
    let ended = instance(1).cancelled(None, time(1)).expect("in progress");
    assert_eq!(submit(&ended, "nothing", json!({})).map(|_| ()), Err(ProcessError::Closed(InstanceStatus::Cancelled)));
}

#[test]
fn values_of_a_start_are_checked_and_kept() {
    let keep = |data: Value| {
        instance(0).with_values(&object(data), &BTreeSet::from([alice()]), &DecodedImages::default()).map(|kept| kept.instance)
    };
    let kept = keep(json!({"employee": alice(), "remark": "r", "parts": null})).expect("acceptable");
    assert_eq!((kept.current_step(), values(&kept)), (0, json!({"employee": alice(), "remark": "r"})));
    assert_eq!(keep(json!({})), Ok(instance(0)), "not even a required value has to be sent");
    for wrong in [json!({"employee": bob()}), json!({"parts": ["x"]}), json!({"x": 1}), json!({"remark": "x".repeat(300)})] {
        assert!(matches!(keep(wrong), Err(ProcessError::Invalid(errors)) if errors.len() == 1));
    }
}
