//! What steps are answered with: which values each accepts, and what is kept of them (contract 7, "Values").

use super::{Step, StepKind};
use crate::domain::field_error::ValueError;
use crate::domain::id::UserId;
use crate::domain::signature_image::SignatureImage;
use crate::domain::text::{Line, Notes};
use crate::domain::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What was submitted, by step key. A signature is here as `{"sha256", "bytes"}`; its image has an item of its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepValues(pub(in crate::domain) Map<String, Value>);

impl StepValues {
    /// The values by step key.
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
        serde_json::from_str(&text).map(Self).map_err(|_| ValueError::new("must be an object"))
    }
}

/// A value that a step accepts.
pub(in crate::domain) enum CheckedValue {
    Value(Value),
    Signature(SignatureImage),
}

impl Step {
    /// Whether a value must be there when the step is submitted.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.kind == StepKind::Confirmation)
    }

    pub(in crate::domain) fn check(&self, value: &Value, active: &BTreeSet<UserId>) -> Result<CheckedValue, ValueError> {
        let text = || value.as_str().ok_or_else(|| ValueError::new("must be a string"));
        let filled = |text: String| {
            let missing = self.is_required() && text.trim().is_empty();
            if missing { Err(ValueError::new("must not be empty")) } else { Ok(json!(text)) }
        };
        let value = match self.kind {
            StepKind::UserPicker => {
                let user: UserId = text()?.parse()?;
                if !active.contains(&user) {
                    return Err(ValueError::new("names no active user of this tenant"));
                }
                json!(user)
            }
            StepKind::Checklist => self.check_list(value)?,
            StepKind::Signature => return SignatureImage::from_data_url(text()?).map(CheckedValue::Signature),
            StepKind::Complete | StepKind::Confirmation if *value == json!(true) => json!(true),
            StepKind::Complete | StepKind::Confirmation => return Err(ValueError::new("must be true")),
            StepKind::Text => filled(text()?.parse::<Line>()?.into())?,
            StepKind::Textarea => filled(text()?.parse::<Notes>()?.into())?,
            StepKind::Select if self.options.iter().flatten().any(|option| *value == json!(option)) => value.clone(),
            StepKind::Select => return Err(ValueError::new("must be one of the options")),
            StepKind::Date => json!(text()?.parse::<Date>()?),
        };
        Ok(CheckedValue::Value(value))
    }

    fn check_list(&self, value: &Value) -> Result<Value, ValueError> {
        let items = self.items.as_deref().unwrap_or_default();
        let wrong = || ValueError::new("must be a list of the checklist's entries, each at most once");
        let checked: Vec<&str> = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect()).ok_or_else(wrong)?;
        let distinct: BTreeSet<&str> = checked.iter().copied().collect();
        if distinct.len() != checked.len() || !checked.iter().all(|entry| items.iter().any(|item| item == entry)) {
            return Err(wrong());
        }
        if self.is_required() && checked.len() != items.len() {
            return Err(ValueError::new("must have every entry checked"));
        }
        Ok(value.clone())
    }
}
