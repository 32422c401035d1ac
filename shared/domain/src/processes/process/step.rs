//! A step of a process and its JSON form.

use crate::tenants::locale::Language;
use crate::values::field_error::ValueError;
use crate::values::string_enum::string_enum;
use crate::values::text::{Name, Statement};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// The statement of a signature that has none of its own.
const DEFAULT_STATEMENT: &str = "I confirm what is stated above.";

/// As signers read it.
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
    /// For a checklist: all entries must be checked.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.kind == StepKind::Confirmation)
    }

    #[must_use]
    pub fn is_signature(&self) -> bool {
        matches!(self.kind, StepKind::Signature { .. })
    }

    /// The default statement in a language other than English. `None` for a statement that somebody wrote, which stays as it is.
    #[must_use]
    pub fn translated_statement(&self, language: Language) -> Option<&'static str> {
        let is_default = matches!(&self.kind, StepKind::Signature { statement } if **statement == *DEFAULT_STATEMENT);
        (is_default && language != Language::English).then(|| default_statement(language))
    }

    /// A signature step as a signer saw it.
    #[must_use]
    pub fn with_statement(self, statement: &str) -> Self {
        Self { kind: StepKind::Signature { statement: Statement::from_stored(statement.to_owned()) }, ..self }
    }
}

impl StepKind {
    /// `None` unless `items` are given for a checklist only, `options` for a select only, and a `statement` for a signature only.
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
    /// The key under which the step's value is submitted in `step_data`.
    key: String,
    /// The text that people see.
    label: Name,
    /// Whether a value must be submitted; for a checklist, whether all entries must be checked. Default: `true` for
    /// `confirmation`, else `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    required: Option<bool>,
    /// The entries of a `checklist`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    items: Option<Vec<String>>,
    /// The options of a `select`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    options: Option<Vec<String>>,
    /// The sentence that the signer confirms, of a `signature`. Default: "I confirm what is stated above."
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use utoipa::{PartialSchema, ToSchema};

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
}
