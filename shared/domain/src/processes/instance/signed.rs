//! Who signed, kept beside the values for the next signer, and what they read. The history has both as well.

use super::{AdvanceOutcome, Instance, Starter};
use crate::actor::Actor;
use crate::tenants::locale::Language;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The author of a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The name of the signer or of the key's user, else of the API key.
    pub by: String,
    pub at: Timestamp,
}

impl Signed {
    #[must_use]
    pub fn new(actor: &Actor, at: Timestamp) -> Self {
        Self { by: Starter::from(actor).name, at }
    }
}

impl AdvanceOutcome {
    /// Notes the author of each signature that was not there `before`.
    #[must_use]
    pub fn signed(mut self, before: &Instance, signed: &Signed) -> Self {
        for instance in self.earlier.iter_mut().chain([&mut self.instance]) {
            let steps = instance.steps.as_slice().iter().filter(|step| step.is_signature()).map(|step| &step.key);
            let signers = steps.filter_map(|step| {
                let value = instance.step_values.0.get(step)?;
                let signed = if before.step_values.0.get(step) == Some(value) { before.signed.get(step)? } else { signed };
                Some((step.clone(), signed.clone()))
            });
            instance.signed = signers.collect();
        }
        self
    }

    /// Keeps with each submitted signature the statement that the signer read, if that is a translation.
    #[must_use]
    pub fn stated(mut self, language: Language) -> Self {
        for instance in self.earlier.iter_mut().chain([&mut self.instance]) {
            for (key, image) in &self.signatures {
                let step = instance.steps.as_slice().iter().find(|step| step.key == *key);
                let statement = step.and_then(|step| step.translated_statement(language));
                let value = instance.step_values.0.get_mut(key).filter(|value| value["sha256"] == image.hash());
                if let (Some(statement), Some(value)) = (statement, value) {
                    value["statement"] = json!(statement);
                }
            }
        }
        self
    }
}
