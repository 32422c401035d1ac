//! A step of a process: its JSON form, the values that it accepts, and the stored form of these values.

use crate::tenants::tenant::Language;
use crate::values::field_error::{ErrorCode, ValueError};
use crate::values::id::UserId;
use crate::values::json::parse_object;
use crate::values::signature_image::{DecodedImages, SignatureImage};
use crate::values::string_enum::string_enum;
use crate::values::text::{Line, Name, Notes, Statement, composed};
use crate::values::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// Maximum length of the choices listed in an error, in bytes.
const MAX_NAMED_BYTES: usize = 1_000;
/// The default statement of a signature step.
const DEFAULT_STATEMENT: &str = "I confirm what is stated above.";

/// The default statement as signers read it.
const fn default_statement(language: Language) -> &'static str {
    match language {
        Language::English => DEFAULT_STATEMENT,
        Language::German => "Ich bestätige, was oben steht.",
        Language::French => "Je confirme ce qui est indiqué ci-dessus.",
        Language::Spanish => "Confirmo lo indicado arriba.",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StepObject", try_from = "StepObject")]
pub struct Step {
    pub key: String,
    pub label: Name,
    /// `None` stands for the default of the step's kind.
    pub required: Option<bool>,
    pub kind: StepKind,
}

/// The kind of value that a step asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// The id of an active user.
    UserPicker,
    /// The checked entries of a list.
    Checklist {
        items: Vec<String>,
    },
    /// A PNG image of a signature.
    Signature {
        /// The sentence that the signer confirms.
        statement: Statement,
    },
    /// No value: completes the process. Can only be the last step.
    Complete,
    Text,
    /// Text of several lines.
    Textarea,
    Select {
        options: Vec<String>,
    },
    Date,
    /// `true`.
    Confirmation,
}

string_enum! {
    /// The type of a step.
    StepType {
        /// [`StepKind::UserPicker`].
        UserPicker = "user_picker",
        /// [`StepKind::Checklist`].
        Checklist = "checklist",
        /// [`StepKind::Signature`].
        Signature = "signature",
        /// [`StepKind::Complete`].
        Complete = "complete",
        /// [`StepKind::Text`].
        Text = "text",
        /// [`StepKind::Textarea`].
        Textarea = "textarea",
        /// [`StepKind::Select`].
        Select = "select",
        /// [`StepKind::Date`].
        Date = "date",
        /// [`StepKind::Confirmation`].
        Confirmation = "confirmation",
    }
}

impl Step {
    /// Whether a value is required. For a checklist, whether all entries are required.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.kind == StepKind::Confirmation)
    }

    #[must_use]
    pub fn is_signature(&self) -> bool {
        matches!(self.kind, StepKind::Signature { .. })
    }

    /// The default statement in a language other than English. `None` for a custom statement, which is not translated.
    #[must_use]
    pub fn translated_statement(&self, language: Language) -> Option<&'static str> {
        let is_default = matches!(&self.kind, StepKind::Signature { statement } if **statement == *DEFAULT_STATEMENT);
        (is_default && language != Language::English).then(|| default_statement(language))
    }

    /// The signature step with the statement that a signer read.
    #[must_use]
    pub fn with_statement(self, statement: &str) -> Self {
        Self { kind: StepKind::Signature { statement: Statement::from_stored(statement.to_owned()) }, ..self }
    }

    /// Checks a submitted value. `active_users` must contain the picked user, if active. `images` decodes its image.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] that describes valid values.
    pub(crate) fn check(
        &self,
        value: &Value,
        active_users: &BTreeSet<UserId>,
        images: &DecodedImages,
    ) -> Result<CheckedValue, ValueError> {
        let text = || value.as_str().ok_or_else(|| ValueError::form("must be a string"));
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
        let invalid = || {
            let text = format!("must be a list of entries of the checklist, each at most once: {}", named(items));
            ValueError::coded(ErrorCode::UnknownValue, text)
        };
        let text = |entry: &Value| entry.as_str().map(choice);
        let entries: Option<Vec<String>> = value.as_array().and_then(|list| list.iter().map(text).collect());
        let entries = entries.ok_or_else(invalid)?;
        let distinct: BTreeSet<&String> = entries.iter().collect();
        if distinct.len() != entries.len() || !entries.iter().all(|entry| items.contains(entry)) {
            return Err(invalid());
        }
        if self.is_required() && entries.len() != items.len() {
            let text = format!("must contain all entries of the checklist: {}", named(items));
            return Err(ValueError::coded(ErrorCode::Required, text));
        }
        Ok(json!(entries))
    }

    fn check_text(&self, text: String) -> Result<Value, ValueError> {
        let is_missing = self.is_required() && text.trim().is_empty();
        if is_missing { Err(ValueError::coded(ErrorCode::Required, "must not be empty")) } else { Ok(json!(text)) }
    }
}

impl StepKind {
    /// `None` unless `items` are given exactly for a checklist, `options` exactly for a select, and a `statement` only for a
    /// signature.
    pub(super) fn new(
        step_type: StepType,
        items: Option<Vec<String>>,
        options: Option<Vec<String>>,
        statement: Option<Statement>,
    ) -> Option<Self> {
        let kind = match (step_type, items, options, statement) {
            (StepType::Checklist, Some(items), None, None) => Self::Checklist { items },
            (StepType::Select, None, Some(options), None) => Self::Select { options },
            (StepType::Signature, None, None, statement) => {
                let default = || Statement::from_stored(DEFAULT_STATEMENT.to_owned());
                Self::Signature { statement: statement.unwrap_or_else(default) }
            }
            (StepType::UserPicker, None, None, None) => Self::UserPicker,
            (StepType::Complete, None, None, None) => Self::Complete,
            (StepType::Text, None, None, None) => Self::Text,
            (StepType::Textarea, None, None, None) => Self::Textarea,
            (StepType::Date, None, None, None) => Self::Date,
            (StepType::Confirmation, None, None, None) => Self::Confirmation,
            _ => return None,
        };
        Some(kind)
    }
}

/// A step of a process.
// The JSON form of a step, in the API and in the table: one object for all types.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
struct StepObject {
    /// What the step asks for.
    #[serde(rename = "type")]
    step_type: StepType,
    /// Key of the step's value in `step_data`.
    key: String,
    /// Text shown to people.
    label: Name,
    /// Whether a value must be submitted; for a checklist, whether all entries must be checked. Default: `true` for
    /// `confirmation`, else `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    required: Option<bool>,
    /// Entries of a `checklist`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    items: Option<Vec<String>>,
    /// Options of a `select`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    options: Option<Vec<String>>,
    /// Sentence that the signer of a `signature` confirms. Default: "I confirm what is stated above."
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Statement, required = false)]
    statement: Option<Statement>,
}

impl From<Step> for StepObject {
    fn from(step: Step) -> Self {
        let Step { key, label, required, kind } = step;
        let object = |step_type| Self { step_type, key, label, required, items: None, options: None, statement: None };
        match kind {
            StepKind::Checklist { items } => Self { items: Some(items), ..object(StepType::Checklist) },
            StepKind::Select { options } => Self { options: Some(options), ..object(StepType::Select) },
            StepKind::Signature { statement } => Self { statement: Some(statement), ..object(StepType::Signature) },
            StepKind::UserPicker => object(StepType::UserPicker),
            StepKind::Complete => object(StepType::Complete),
            StepKind::Text => object(StepType::Text),
            StepKind::Textarea => object(StepType::Textarea),
            StepKind::Date => object(StepType::Date),
            StepKind::Confirmation => object(StepType::Confirmation),
        }
    }
}

impl TryFrom<StepObject> for Step {
    type Error = ValueError;
    fn try_from(object: StepObject) -> Result<Self, ValueError> {
        let StepObject { step_type, key, label, required, items, options, statement } = object;
        let kind = StepKind::new(step_type, items, options, statement).ok_or_else(|| {
            ValueError::new(
                "must have items for a checklist only, options for a select only, and a statement for a signature only",
            )
        })?;
        Ok(Self { key, label, required, kind })
    }
}

impl utoipa::PartialSchema for Step {
    fn schema() -> RefOr<Schema> {
        StepObject::schema()
    }
}

impl utoipa::ToSchema for Step {
    fn name() -> std::borrow::Cow<'static, str> {
        "ProcessStep".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        <StepObject as utoipa::ToSchema>::schemas(schemas);
    }
}

/// The submitted values by step key. A signature's value is `{"sha256", "bytes"}` of its image, which is a separate item. It also
/// has `"typed": true` if the image shows a typed name, and the `"statement"` that the signer read, if it was a translation.
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
        parse_object(&text).map(Self).map_err(|_| ValueError::form("must be an object"))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CheckedValue {
    /// A value in its stored form.
    Value(Value),
    Signature(SignatureImage),
}

fn check_user(text: &str, active_users: &BTreeSet<UserId>) -> Result<Value, ValueError> {
    let user: UserId = text.parse()?;
    let is_active = active_users.contains(&user);
    let unknown = || ValueError::coded(ErrorCode::UnknownReference, "must be the id of an active user of this tenant");
    if is_active { Ok(json!(user)) } else { Err(unknown()) }
}

fn check_true(value: &Value) -> Result<Value, ValueError> {
    if *value == json!(true) { Ok(json!(true)) } else { Err(ValueError::coded(ErrorCode::Required, "must be true")) }
}

fn check_option(value: &Value, options: &[String]) -> Result<Value, ValueError> {
    let option = value.as_str().map(choice).filter(|text| options.contains(text));
    let unknown = || ValueError::coded(ErrorCode::UnknownValue, format!("must be one of {}", named(options)));
    option.map(Value::from).ok_or_else(unknown)
}

/// Normalizes a choice like the definition's entries and options, so clients can send it as they sent the definition.
fn choice(text: &str) -> String {
    composed(text.trim()).into_owned()
}

/// Lists as many choices as fit [`MAX_NAMED_BYTES`].
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
    use utoipa::{PartialSchema, ToSchema};
    use uuid::Uuid;

    #[test]
    fn the_json_of_each_type_of_step_is_one_object_with_its_members_in_order() {
        let texts = [
            r#"{"type":"user_picker","key":"k","label":"L","required":true}"#,
            r#"{"type":"checklist","key":"k","label":"L","required":false,"items":["a","b"]}"#,
            r#"{"type":"signature","key":"k","label":"L","statement":"I got it.\nAll of it."}"#,
            r#"{"type":"complete","key":"k","label":"L"}"#,
            r#"{"type":"text","key":"k","label":"L"}"#,
            r#"{"type":"textarea","key":"k","label":"L"}"#,
            r#"{"type":"select","key":"k","label":"L","required":true,"options":["x","y"]}"#,
            r#"{"type":"date","key":"k","label":"L"}"#,
            r#"{"type":"confirmation","key":"k","label":"L"}"#,
        ];
        assert_eq!(texts.len(), StepType::ALL.len());
        for text in texts {
            let step: Step = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&step).expect("json"), text);
        }
    }

    #[test]
    fn only_the_default_statement_is_translated() {
        let step = |text: &str| serde_json::from_str::<Step>(text).expect(text);
        let default = step(r#"{"type":"signature","key":"k","label":"L"}"#);
        let german = default.translated_statement(Language::German);
        assert_eq!(german, Some("Ich bestätige, was oben steht."));
        assert_eq!(default.translated_statement(Language::English), None);
        assert_eq!(default.with_statement("x").translated_statement(Language::German), None);
        assert_eq!(step(r#"{"type":"text","key":"k","label":"L"}"#).translated_statement(Language::German), None);
    }

    #[test]
    fn only_a_signature_gets_a_statement_if_it_has_none() {
        let stated = |text: &str| {
            let step: Step = serde_json::from_str(text).expect(text);
            serde_json::to_value(step).expect("json")["statement"].clone()
        };
        assert_eq!(stated(r#"{"type":"signature","key":"k","label":"L"}"#), DEFAULT_STATEMENT);
        assert_eq!(stated(r#"{"type":"signature","key":"k","label":"L","statement":"I got it."}"#), "I got it.");
        assert_eq!(stated(r#"{"type":"text","key":"k","label":"L"}"#), Value::Null);
    }

    #[test]
    fn a_step_has_items_or_options_only_if_its_kind_has_them() {
        for wrong in [
            json!({"type": "checklist", "key": "k", "label": "L"}),
            json!({"type": "checklist", "key": "k", "label": "L", "items": ["a"], "options": ["x"]}),
            json!({"type": "select", "key": "k", "label": "L", "items": ["a"]}),
            json!({"type": "text", "key": "k", "label": "L", "items": ["a"]}),
            json!({"type": "text", "key": "k", "label": "L", "statement": "a"}),
            json!({"type": "signature", "key": "k", "label": "L", "statement": "a", "items": ["a"]}),
        ] {
            assert!(serde_json::from_value::<Step>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_schema_names_the_members_of_the_json_form() {
        let schema = serde_json::to_value(Step::schema()).expect("json");
        let members: Vec<&String> = schema["properties"].as_object().expect("properties").keys().collect();
        assert_eq!(members.len(), 7);
        for member in ["type", "key", "label", "required", "items", "options", "statement"] {
            assert!(members.contains(&&member.to_owned()), "{member}");
        }
        assert_eq!(schema["required"], json!(["type", "key", "label"]));
        assert_eq!(Step::name(), "ProcessStep");
        let mut referenced = Vec::new();
        Step::schemas(&mut referenced);
        let names: Vec<Value> = referenced.into_iter().map(|(name, _)| json!(name)).collect();
        assert!(names.contains(&json!("StepType")) && names.contains(&json!("Name")), "{names:?}");
    }

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
