//! The values that steps accept, and the form in which they are stored.

use super::{Step, StepKind};
use crate::domain::field_error::ValueError;
use crate::domain::id::UserId;
use crate::domain::signature_image::SignatureImage;
use crate::domain::text::{Line, Notes};
use crate::domain::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The submitted values by step key. A signature is `{"sha256", "bytes"}` of its image, which has an item of its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepValues(pub(in crate::domain) Map<String, Value>);

impl StepValues {
    /// Returns the values by step key.
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
#[derive(Debug, PartialEq, Eq)]
pub(in crate::domain) enum CheckedValue {
    /// A value in the form in which it is stored.
    Value(Value),
    /// The image of a signature.
    Signature(SignatureImage),
}

impl Step {
    /// Checks a submitted value. `active_users` contains the active ones of the users that it may name.
    ///
    /// # Errors
    ///
    /// Returns an error that says what the value must be.
    pub(in crate::domain) fn check(&self, value: &Value, active_users: &BTreeSet<UserId>) -> Result<CheckedValue, ValueError> {
        let text = || value.as_str().ok_or_else(|| ValueError::new("must be a string"));
        let checked = match &self.kind {
            StepKind::UserPicker => check_user(text()?, active_users)?,
            StepKind::Checklist { items } => self.check_entries(value, items)?,
            StepKind::Signature => return SignatureImage::from_data_url(text()?).map(CheckedValue::Signature),
            StepKind::Complete | StepKind::Confirmation => check_true(value)?,
            StepKind::Text => self.check_text(text()?.parse::<Line>()?.into())?,
            StepKind::Textarea => self.check_text(text()?.parse::<Notes>()?.into())?,
            StepKind::Select { options } => check_option(value, options)?,
            StepKind::Date => json!(text()?.parse::<Date>()?),
        };
        Ok(CheckedValue::Value(checked))
    }

    fn check_entries(&self, value: &Value, items: &[String]) -> Result<Value, ValueError> {
        let invalid = || ValueError::new("must be a list of the checklist's entries, each at most once");
        let entries: Option<Vec<&str>> = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        let entries = entries.ok_or_else(invalid)?;
        let distinct: BTreeSet<&str> = entries.iter().copied().collect();
        if distinct.len() != entries.len() || !entries.iter().all(|entry| items.iter().any(|item| item == entry)) {
            return Err(invalid());
        }
        if self.is_required() && entries.len() != items.len() {
            return Err(ValueError::new("must contain all entries of the checklist"));
        }
        Ok(value.clone())
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
    let is_option = options.iter().any(|option| *value == json!(option));
    if is_option { Ok(value.clone()) } else { Err(ValueError::new("must be one of the step's options")) }
}
