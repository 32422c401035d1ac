//! Tests of the stored values of signatures.

use super::*;
use crate::tenants::tenant::Language;
use crate::values::field_error::FieldError;
use crate::values::signature_image::data_url;
use serde_json::Map;

fn object(data: Value) -> Map<String, Value> {
    data.as_object().expect("an object").clone()
}

fn image(width: u32) -> String {
    data_url(&super::image(width))
}

/// The images of the `typed` steps show a typed name.
fn submit(instance: &Instance, data: Value, typed: &[&str]) -> Result<Instance, ProcessError> {
    let images = DecodedImages::with_typed(typed.iter().map(|key| (*key).to_owned()).collect());
    let active = BTreeSet::from([alice()]);
    instance.advance(None, &object(data), None, &active, &images, time(5)).map(|next| next.instance)
}

fn stored(instance: &Instance) -> &Value {
    &instance.step_values.as_map()["signature"]
}

#[test]
fn only_a_typed_signature_has_a_mark() {
    let drawn = submit(&instance(3), json!({"signature": image(1)}), &[]).expect("acceptable");
    let typed = submit(&instance(3), json!({"signature": image(1)}), &["signature"]).expect("acceptable");
    let mut expected = object(stored(&drawn).clone());
    assert_eq!(expected.keys().collect::<BTreeSet<_>>(), BTreeSet::from([&"bytes".to_owned(), &"sha256".to_owned()]));
    expected.insert("typed".into(), json!(true));
    assert_eq!(*stored(&typed), Value::Object(expected));
    assert!(is_typed(stored(&typed)) && !is_typed(stored(&drawn)));
    let names = |instance: &Instance| instance.signatures().collect::<Vec<_>>();
    assert_eq!(names(&typed), names(&drawn), "the image is found in the same way");
}

#[test]
fn a_start_and_a_submission_of_several_steps_mark_it_too() {
    let images = DecodedImages::with_typed(vec!["signature".into()]);
    let (data, active) = (object(json!({"remark": "r", "signature": image(1)})), BTreeSet::new());
    let kept = instance(0).with_values(&data, &active, &images).expect("acceptable");
    let submitted = instance(1).advance(Some("complete"), &data, None, &active, &images, time(5)).expect("acceptable");
    assert!(is_typed(stored(&kept.instance)) && is_typed(stored(&submitted.instance)));
    let ahead = submit(&instance(2), data.clone().into(), &["signature"]).expect("acceptable");
    assert_eq!(stored(&ahead), stored(&submitted.instance), "before the step is the current one");
}

#[test]
fn a_typed_signature_sent_again_stays_typed() {
    let typed = submit(&instance(3), json!({"signature": image(1)}), &["signature"]).expect("acceptable");
    let ahead = Instance { state: State::InProgress { step: 2 }, ..typed.clone() };
    for again in [json!({"signature": image(1)}), json!({"signature": typed.signature_path("signature")}), json!({})] {
        for before in [&typed, &ahead] {
            let next = submit(before, again.clone(), &[]).expect("acceptable");
            assert_eq!(stored(&next), stored(&typed), "{again}");
        }
    }
    assert!(submit(&typed, json!({"signature": image(1)}), &["signature"]).is_ok());
    let drawn = submit(&ahead, json!({"signature": image(2)}), &[]).expect("acceptable");
    assert!(!is_typed(stored(&drawn)), "another image replaces it before its step is submitted");
}

#[test]
fn a_translated_statement_is_kept_with_the_signature_also_when_it_is_sent_again() {
    let (data, active) = (object(json!({"signature": image(1)})), BTreeSet::from([alice()]));
    let next = instance(3).advance(None, &data, None, &active, &DecodedImages::default(), time(5)).expect("acceptable");
    let english = next.clone().stated(Language::English).instance;
    assert_eq!(read_statement(stored(&english)), None);
    let french = next.stated(Language::French).instance;
    assert_eq!(read_statement(stored(&french)), Some("Je confirme ce qui est indiqué ci-dessus."));
    let ahead = Instance { state: State::InProgress { step: 2 }, ..french.clone() };
    let again = submit(&ahead, json!({"signature": image(1)}), &[]).expect("acceptable");
    assert_eq!(stored(&again), stored(&french));
}

#[test]
fn a_drawn_signature_does_not_become_a_typed_one_after_its_step() {
    let drawn = submit(&instance(3), json!({"signature": image(1)}), &[]).expect("acceptable");
    let refused = submit(&drawn, json!({"signature": image(1)}), &["signature"]);
    assert_eq!(refused, Err(ProcessError::Submitted("signature".into())));
    let ahead = Instance { state: State::InProgress { step: 2 }, ..drawn };
    let typed = submit(&ahead, json!({"signature": image(1)}), &["signature"]).expect("acceptable");
    assert!(is_typed(stored(&typed)));
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
        assert_eq!(submit(&instance(2), data.clone(), &typed), Err(ProcessError::Invalid(expected.clone())), "{data} {typed:?}");
        let images = DecodedImages::with_typed(typed.into_iter().map(str::to_owned).collect());
        let (data, active) = (object(data), BTreeSet::new());
        let through = instance(2).advance(Some("complete"), &data, None, &active, &images, time(5));
        assert_eq!(through.map(|_| ()), Err(ProcessError::Invalid(expected.clone())));
        let kept = instance(0).with_values(&data, &active, &images);
        assert_eq!(kept.map(|_| ()), Err(ProcessError::Invalid(expected)));
    }
    let ended = instance(3).cancelled(None, time(1)).expect("in progress");
    let refused = submit(&ended, json!({}), &["signature"]);
    assert_eq!(refused, Err(ProcessError::Closed(InstanceStatus::Cancelled)), "that there is nothing to sign comes first");
}
