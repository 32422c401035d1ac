//! The values that steps accept, and the form in which they are stored.

use super::{Step, StepKind};
use crate::values::field_error::ValueError;
use crate::values::id::UserId;
use crate::values::json::parse_object;
use crate::values::signature_image::{DecodedImages, SignatureImage};
use crate::values::text::{Line, Notes, composed};
use crate::values::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The maximum size of the choices that an error names.
const MAX_NAMED_BYTES: usize = 1_000;

/// The submitted values by step key. A signature is `{"sha256", "bytes"}` of its image, which has an item of its own, with
/// `"typed": true` if the image shows a typed name, and the `"statement"` that the signer read, if that is a translation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepValues(pub(crate) Map<String, Value>);

impl StepValues {
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<StepValues> for String {
    fn from(values: StepValues) -> Self {
        Value::Object(values.0).to_string()
    }
}

impl TryFrom<String> for StepValues {
    type Error = ValueError;
    fn try_from(text: String) -> Result<Self, ValueError> {
        parse_object(&text).map(Self).map_err(|_| ValueError::new("must be an object"))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CheckedValue {
    /// A value in the form in which it is stored.
    Value(Value),
    Signature(SignatureImage),
}

impl Step {
    /// `active_users` contains the active ones of the users that the value may name. `images` decodes its image.
    ///
    /// # Errors
    ///
    /// Says what the value must be.
    pub(crate) fn check(
        &self,
        value: &Value,
        active_users: &BTreeSet<UserId>,
        images: &DecodedImages,
    ) -> Result<CheckedValue, ValueError> {
        let text = || value.as_str().ok_or_else(|| ValueError::new("must be a string"));
        let checked = match &self.kind {
            StepKind::UserPicker => check_user(text()?, active_users)?,
            StepKind::Checklist { items } => self.check_entries(value, items)?,
            StepKind::Signature { .. } => return images.image(text()?).map(CheckedValue::Signature),
            StepKind::Complete | StepKind::Confirmation => check_true(value)?,
            StepKind::Text => self.check_text(text()?.parse::<Line>()?.into())?,
            StepKind::Textarea => self.check_text(text()?.parse::<Notes>()?.into())?,
            StepKind::Select { options } => check_option(value, options)?,
            StepKind::Date => json!(text()?.parse::<Date>()?),
        };
        Ok(CheckedValue::Value(checked))
    }

    fn check_entries(&self, value: &Value, items: &[String]) -> Result<Value, ValueError> {
        let invalid =
            || ValueError::new(format!("must be a list of entries of the checklist, each at most once: {}", named(items)));
        let text = |entry: &Value| entry.as_str().map(choice);
        let entries: Option<Vec<String>> = value.as_array().and_then(|list| list.iter().map(text).collect());
        let entries = entries.ok_or_else(invalid)?;
        let distinct: BTreeSet<&String> = entries.iter().collect();
        if distinct.len() != entries.len() || !entries.iter().all(|entry| items.contains(entry)) {
            return Err(invalid());
        }
        if self.is_required() && entries.len() != items.len() {
            return Err(ValueError::new(format!("must contain all entries of the checklist: {}", named(items))));
        }
        Ok(json!(entries))
    }

    fn check_text(&self, text: String) -> Result<Value, ValueError> {
        let is_missing = self.is_required() && text.trim().is_empty();
        if is_missing { Err(ValueError::new("must not be empty")) } else { Ok(json!(text)) }
    }
}

fn check_user(text: &str, active_users: &BTreeSet<UserId>) -> Result<Value, ValueError> {
    let user: UserId = text.parse()?;
    let is_active = active_users.contains(&user);
    if is_active { Ok(json!(user)) } else { Err(ValueError::new("must be the id of an active user of this tenant")) }
}

fn check_true(value: &Value) -> Result<Value, ValueError> {
    if *value == json!(true) { Ok(json!(true)) } else { Err(ValueError::new("must be true")) }
}

fn check_option(value: &Value, options: &[String]) -> Result<Value, ValueError> {
    let option = value.as_str().map(choice).filter(|text| options.contains(text));
    option.map(Value::from).ok_or_else(|| ValueError::new(format!("must be one of {}", named(options))))
}

/// In the form in which the definition has its entries and options, so that what it was sent with is a value, too.
fn choice(text: &str) -> String {
    composed(text.trim()).into_owned()
}

/// As many choices as fit a line or two.
fn named(choices: &[String]) -> String {
    let mut text = String::new();
    for choice in choices {
        if text.len() + choice.len() > MAX_NAMED_BYTES {
            text.push_str(if text.is_empty() { "…" } else { ", …" });
            break;
        }
        text.push_str(if text.is_empty() { "" } else { ", " });
        text.push_str(choice);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::id::Id;
    use crate::values::signature_image::data_url;
    use uuid::Uuid;

    fn user(number: u128) -> UserId {
        UserId::from_uuid(Uuid::from_u128(number))
    }

    /// User 1 is active.
    fn check(required: Option<bool>, kind: &StepKind, value: &Value) -> Result<CheckedValue, String> {
        let step = Step { key: "k".into(), label: "L".parse().expect("a label"), required, kind: kind.clone() };
        step.check(value, &BTreeSet::from([user(1)]), &DecodedImages::default()).map_err(|error| error.to_string())
    }

    fn assert_accepted(kind: &StepKind, value: &Value, stored: &Value) {
        assert_eq!(check(None, kind, value), Ok(CheckedValue::Value(stored.clone())), "{value}");
    }

    fn assert_refused(kind: &StepKind, values: &[Value]) {
        for value in values {
            assert!(check(None, kind, value).is_err(), "{value}");
        }
    }

    #[test]
    fn a_user_picker_accepts_the_id_of_an_active_user() {
        assert_accepted(&StepKind::UserPicker, &json!(user(1)), &json!(user(1)));
        assert_refused(&StepKind::UserPicker, &[json!(user(2)), json!("ada"), json!(1), json!(null)]);
    }

    #[test]
    fn a_checklist_accepts_its_entries_each_at_most_once() {
        let kind = StepKind::Checklist { items: vec!["a".into(), "b".into()] };
        for value in [json!([]), json!(["b"]), json!(["b", "a"])] {
            assert_accepted(&kind, &value, &value);
        }
        assert_refused(&kind, &[json!(["a", "a"]), json!(["c"]), json!([1]), json!("a"), json!({"a": true})]);
    }

    #[test]
    fn a_required_checklist_needs_all_its_entries() {
        let kind = StepKind::Checklist { items: vec!["a".into(), "b".into()] };
        assert_eq!(check(Some(true), &kind, &json!(["b", "a"])), Ok(CheckedValue::Value(json!(["b", "a"]))));
        let error = Err("must contain all entries of the checklist: a, b".to_owned());
        assert_eq!(check(Some(true), &kind, &json!(["a"])), error);
    }

    #[test]
    fn a_signature_accepts_a_png_data_url() {
        let mut bytes = Vec::new();
        let encoder = png::Encoder::new(&mut bytes, 2, 1);
        encoder.write_header().expect("a header").write_image_data(&[0, 255]).expect("data");
        let kind = StepKind::Signature { statement: "I got it.".parse().expect("a statement") };
        let signature = check(None, &kind, &json!(data_url(&bytes)));
        assert!(matches!(signature, Ok(CheckedValue::Signature(image)) if image.bytes() == bytes));
        assert_refused(&kind, &[json!("x"), json!(data_url(b"x")), json!(true), json!({"sha256": "x"})]);
    }

    #[test]
    fn complete_and_confirmation_accept_true_only() {
        for kind in [StepKind::Complete, StepKind::Confirmation] {
            assert_accepted(&kind, &json!(true), &json!(true));
            assert_refused(&kind, &[json!(false), json!("true"), json!(1)]);
        }
    }

    #[test]
    fn text_accepts_one_line_of_at_most_255_characters() {
        assert_accepted(&StepKind::Text, &json!("  ä  "), &json!("ä"));
        assert_accepted(&StepKind::Text, &json!("ä".repeat(255)), &json!("ä".repeat(255)));
        assert_refused(&StepKind::Text, &[json!("ä".repeat(256)), json!("a\nb"), json!(1), json!(["a"])]);
    }

    #[test]
    fn textarea_accepts_several_lines_of_at_most_10000_characters() {
        assert_accepted(&StepKind::Textarea, &json!(" a\nb "), &json!(" a\nb "));
        assert_refused(&StepKind::Textarea, &[json!("x".repeat(10_001)), json!("a\u{7}"), json!(1)]);
    }

    #[test]
    fn required_text_must_not_be_blank() {
        for kind in [StepKind::Text, StepKind::Textarea] {
            assert_accepted(&kind, &json!(""), &json!(""));
            assert_eq!(check(Some(true), &kind, &json!(" ")), Err("must not be empty".to_owned()));
        }
    }

    #[test]
    fn a_select_accepts_one_of_its_options() {
        let kind = StepKind::Select { options: vec!["x".into(), "y".into()] };
        assert_accepted(&kind, &json!("y"), &json!("y"));
        assert_refused(&kind, &[json!("z"), json!(["x"]), json!(0)]);
    }

    #[test]
    fn choices_are_accepted_as_the_definition_was_sent() {
        let items = StepKind::Checklist { items: vec!["ü".into(), "x".into()] };
        assert_accepted(&items, &json!(["u\u{308}"]), &json!(["ü"]));
        assert_accepted(&items, &json!([" x ", "ü"]), &json!(["x", "ü"]));
        assert_refused(&items, &[json!(["ü", "u\u{308}"]), json!(["u"])]);
        let options = StepKind::Select { options: vec!["ü".into()] };
        assert_accepted(&options, &json!("u\u{308} "), &json!("ü"));
        assert_refused(&options, &[json!("u"), json!(["ü"])]);
    }

    #[test]
    fn a_date_accepts_a_calendar_date() {
        assert_accepted(&StepKind::Date, &json!("2028-02-29"), &json!("2028-02-29"));
        assert_refused(&StepKind::Date, &[json!("2027-02-29"), json!("2028-02-29T00:00:00Z"), json!(20280229)]);
    }

    #[test]
    fn only_a_confirmation_is_required_by_default() {
        let is_required =
            |required, kind| Step { key: "k".into(), label: "L".parse().expect("a label"), required, kind }.is_required();
        assert!(is_required(None, StepKind::Confirmation) && !is_required(Some(false), StepKind::Confirmation));
        assert!(!is_required(None, StepKind::Text) && is_required(Some(true), StepKind::Text));
    }
}
