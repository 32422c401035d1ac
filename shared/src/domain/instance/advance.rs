//! One step further: what was submitted, checked against the steps (contract 7, "advance").

use super::{Instance, ProcessError, State};
use crate::domain::field_error::FieldError;
use crate::domain::id::UserId;
use crate::domain::process::values::{CheckedValue, StepValues};
use crate::domain::process::{Step, StepKind};
use crate::domain::signature_image::SignatureImage;
use crate::domain::time::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The largest answers of a run, in bytes of compact JSON, images aside: an item holds 400 KB.
const LARGEST_ANSWERS: usize = 128 * 1024;

/// A run that goes one step further.
#[derive(Debug, Clone)]
pub struct Advancement {
    /// The run afterwards.
    pub instance: Instance,
    /// Images to be kept, by step key.
    pub signatures: BTreeMap<String, SignatureImage>,
}

impl Instance {
    /// Submits the open step. `active` are those of the picked users that can be picked.
    ///
    /// Writes nothing: gives the run as it would be afterwards and leaves it to the store to keep all of it or none.
    ///
    /// # Errors
    ///
    /// What contract 7 ("advance") lists.
    pub fn advance(
        &self,
        data: &Map<String, Value>,
        expected: Option<usize>,
        active: &BTreeSet<UserId>,
        at: Timestamp,
    ) -> Result<Advancement, ProcessError> {
        let open = self.open_step()?;
        if expected.is_some_and(|expected| expected != open) {
            return Err(ProcessError::Moved(open));
        }
        let steps = self.steps.as_slice();
        let (mut errors, mut changed) = (Vec::new(), None);
        let mut answers = self.answers.0.clone();
        let mut signatures = BTreeMap::new();
        for (key, value) in data {
            let Some(place) = steps.iter().position(|step| step.key == *key) else {
                errors.push(field_error(key, "is the key of no step"));
                continue;
            };
            if place < open {
                if !self.is_same(key, &steps[place], value, active) {
                    changed = Some(key.clone());
                }
                continue;
            }
            if value.is_null() {
                answers.remove(key);
                continue;
            }
            match steps[place].check(value, active) {
                Ok(CheckedValue::Value(value)) => {
                    answers.insert(key.clone(), value);
                }
                Ok(CheckedValue::Signature(image)) => {
                    answers.insert(key.clone(), json!({"sha256": image.hash(), "bytes": image.bytes().len()}));
                    signatures.insert(key.clone(), image);
                }
                Err(refusal) if self.is_same(key, &steps[place], value, active) => drop(refusal),
                Err(refusal) => errors.push(field_error(key, refusal.to_string())),
            }
        }
        let step = &steps[open];
        if step.is_required()
            && !answers.contains_key(&step.key)
            && !errors.iter().any(|f| f.place == field_error(&step.key, "").place)
        {
            errors.push(field_error(&step.key, "is required"));
        }
        let answers = StepValues(answers);
        if String::from(answers.clone()).len() > LARGEST_ANSWERS {
            let detail = format!("all values together must have at most {LARGEST_ANSWERS} bytes as JSON, images aside");
            errors.push(FieldError::field("step_data", detail));
        }
        if !errors.is_empty() {
            return Err(ProcessError::Invalid(errors));
        }
        if let Some(key) = changed {
            return Err(ProcessError::Submitted(key));
        }
        let state = if open + 1 == steps.len() { State::Completed { at } } else { State::InProgress { step: open + 1 } };
        Ok(Advancement { instance: Self { state, answers, ..self.clone() }, signatures })
    }

    /// Whether `value` says what was said before: as it was sent or as it was kept. A signature may also come back as
    /// the path of its image.
    fn is_same(&self, key: &str, step: &Step, value: &Value, active: &BTreeSet<UserId>) -> bool {
        let known = self.answers.0.get(key);
        match (known, step.kind) {
            (None, _) => value.is_null(),
            (Some(known), StepKind::Signature) => {
                let text = value.as_str().unwrap_or_default();
                text == self.signature_path(key)
                    || SignatureImage::from_data_url(text).is_ok_and(|image| known["sha256"] == image.hash())
            }
            (Some(known), _) => {
                known == value || matches!(step.check(value, active), Ok(CheckedValue::Value(said)) if said == *known)
            }
        }
    }
}

fn field_error(key: &str, detail: impl Into<String>) -> FieldError {
    FieldError::within("step_data", &format!("/{}", key.replace('~', "~0").replace('/', "~1")), detail)
}

/// The ids in `data` that may be picked users, to be looked up before [`Instance::advance`] decides. Which steps
/// pick a user is known only from the run, and this way both are read together.
pub fn possible_users(data: &Map<String, Value>) -> impl Iterator<Item = UserId> {
    data.values().filter_map(|value| value.as_str()?.parse().ok())
}
