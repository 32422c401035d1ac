//! What is stored of a signature. Its image may show a typed name: a signer who can't draw types it, and every later reader is
//! told.

use super::{Instance, ProcessError};
use crate::values::field_error::FieldError;
use crate::values::signature_image::SignatureImage;
use crate::values::suggestions::unknown_name;
use serde_json::{Map, Value, json};

/// The value of a step, beside which the image is stored. A drawn signature is not marked. `before` is the value that it replaces:
/// of an image that is sent again, it says more than who sends back all values knows.
pub(super) fn stored_signature(image: &SignatureImage, is_typed: bool, before: Option<&Value>) -> Value {
    let before = before.filter(|before| before["sha256"] == image.hash());
    let mut value = json!({"sha256": image.hash(), "bytes": image.bytes().len()});
    if is_typed || before.is_some_and(self::is_typed) {
        value["typed"] = json!(true);
    }
    if let Some(statement) = before.and_then(|before| before.get("statement")) {
        value["statement"] = statement.clone();
    }
    value
}

/// `value` is the stored value of the step.
#[must_use]
pub fn is_typed(value: &Value) -> bool {
    value["typed"] == true
}

/// The statement that the signer read, if that is not the step's but a translation. `value` is the stored value of the step.
#[must_use]
pub fn read_statement(value: &Value) -> Option<&str> {
    value["statement"].as_str()
}

impl Instance {
    /// Checks that each of the `typed` keys is that of a signature step whose image is in `step_data`.
    ///
    /// # Errors
    ///
    /// Returns [`ProcessError::Invalid`] with an error for each of the others.
    pub(super) fn check_typed_signatures(&self, typed: &[String], step_data: &Map<String, Value>) -> Result<(), ProcessError> {
        let signatures = self.steps.as_slice().iter().filter(|step| step.is_signature());
        let keys: Vec<&str> = signatures.map(|step| step.key.as_str()).collect();
        let mut errors = Vec::new();
        for (index, key) in typed.iter().enumerate() {
            let detail = if !keys.contains(&key.as_str()) {
                unknown_name(key, &keys, "key of a signature step", errors.len())
            } else if step_data.get(key).is_none_or(Value::is_null) {
                "must be the key of a step whose image is in step_data".to_owned()
            } else {
                continue;
            };
            errors.push(FieldError::within("typed_signatures", &format!("/{index}"), detail));
        }
        if errors.is_empty() { Ok(()) } else { Err(ProcessError::Invalid(errors)) }
    }
}
