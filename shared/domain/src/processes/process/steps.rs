//! The list of steps of a process, and its JSON form in requests.

use super::step::{Step, StepKind, StepType};
use crate::values::field_error::{ValueError, pointer_token};
use crate::values::hex;
use crate::values::json::parse_strict;
use crate::values::suggestions::unknown_name;
use crate::values::text::{Name, Statement};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::str::FromStr;

pub const MAX_STEPS: usize = 50;
const STEP_COUNTS: std::ops::RangeInclusive<usize> = 1..=MAX_STEPS;
/// The maximum number of steps of type `user_picker`. One submission can replace all users but that of the first step, which
/// writes two items for each; a transaction has at most 100.
const MAX_PICKERS: usize = 48;
/// Entries of a checklist, or options of a select.
const ENTRY_COUNTS: std::ops::RangeInclusive<usize> = 1..=100;
/// The maximum size of all steps in bytes of compact JSON. They are one item of the table.
const MAX_STEPS_BYTES: usize = 64 * 1024;
/// The maximum nesting of steps: a list of objects, which have a list each.
const MAX_LEVELS: usize = 4;
/// The maximum length of a step's key in characters.
const MAX_KEY_CHARS: usize = 64;

/// The steps of a process: 1 to 50 steps with different keys. A `complete` step can only be the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Vec<Step>)]
#[schema(as = ProcessSteps)]
pub struct Steps(Vec<Step>);

impl Steps {
    #[must_use]
    pub fn as_slice(&self) -> &[Step] {
        &self.0
    }

    /// The hash of the steps' JSON text, by which the table names them.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::sha256(String::from(self.clone()))
    }

    /// # Errors
    ///
    /// Returns all errors. Each has a JSON Pointer from the list on, such as `/2/key`; the pointer of an error about the whole
    /// list is empty.
    pub fn from_json(text: &str) -> Result<Self, Vec<(String, String)>> {
        let whole = |reason: String| vec![(String::new(), reason)];
        let value = parse_strict(text, MAX_LEVELS).map_err(|error| whole(error.to_string()))?;
        if value.to_string().len() > MAX_STEPS_BYTES {
            return Err(whole(format!("must have at most {MAX_STEPS_BYTES} bytes as JSON")));
        }
        let Value::Array(list) = value else { return Err(whole("must be a list of steps".into())) };
        if !STEP_COUNTS.contains(&list.len()) {
            return Err(whole(format!("must have {} to {} steps", STEP_COUNTS.start(), STEP_COUNTS.end())));
        }
        let (mut steps, mut keys, mut errors) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (index, value) in list.iter().enumerate() {
            let mut reader = StepReader { value, index, errors: &mut errors };
            steps.extend(reader.read(&mut keys, index + 1 == list.len()));
        }
        if steps.iter().filter(|step: &&Step| step.kind == StepKind::UserPicker).count() > MAX_PICKERS {
            errors.push((String::new(), format!("must have at most {MAX_PICKERS} steps of type user_picker")));
        }
        if errors.is_empty() { Ok(Self(steps)) } else { Err(errors) }
    }
}

/// Collects the errors of one step of a request.
struct StepReader<'a> {
    value: &'a Value,
    index: usize,
    errors: &'a mut Vec<(String, String)>,
}

impl StepReader<'_> {
    fn error(&mut self, member: &str, reason: impl Into<String>) {
        self.errors.push((format!("/{}/{}", self.index, pointer_token(member)), reason.into()));
    }

    /// `None` if it has errors that prevent that. `keys` are those of the steps before.
    fn read(&mut self, keys: &mut BTreeSet<String>, is_last: bool) -> Option<Step> {
        let Value::Object(members) = self.value else {
            self.errors.push((format!("/{}", self.index), "must be an object".into()));
            return None;
        };
        let known = ["type", "key", "label", "required", "items", "options", "statement"];
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.error(name, unknown_name(name, &known, "member of a step", 0));
        }
        let step_type = self.text::<StepType>("type");
        if step_type == Some(StepType::Complete) && !is_last {
            self.error("type", "may be complete only for the last step");
        }
        let key = self.text::<StepKey>("key");
        if key.as_ref().is_some_and(|key| !keys.insert(key.0.clone())) {
            self.error("key", "must differ from the keys of the other steps");
        }
        let label = self.text::<Name>("label");
        let required = self.required();
        let items = self.entries("items", step_type, StepType::Checklist);
        let options = self.entries("options", step_type, StepType::Select);
        let statement = self.statement(step_type);
        let kind = StepKind::new(step_type?, items, options, statement)?;
        Some(Step { key: key?.0, label: label?, required, kind })
    }

    fn text<T: FromStr<Err = ValueError>>(&mut self, member: &str) -> Option<T> {
        let result = match self.value.get(member) {
            None => Err(ValueError::new("is required")),
            Some(value) => value.as_str().ok_or_else(|| ValueError::new("must be a string")).and_then(str::parse),
        };
        result.map_err(|error| self.error(member, error.to_string())).ok()
    }

    fn statement(&mut self, step_type: Option<StepType>) -> Option<Statement> {
        self.value.get("statement")?;
        if step_type.is_some_and(|step_type| step_type != StepType::Signature) {
            self.error("statement", "does not belong to this type of step");
            return None;
        }
        self.text("statement")
    }

    fn required(&mut self) -> Option<bool> {
        let value = self.value.get("required")?;
        if !value.is_boolean() {
            self.error("required", "must be true or false");
        }
        value.as_bool()
    }

    /// The list `member`, which steps of type `owner` must have and no others may have.
    fn entries(&mut self, member: &str, step_type: Option<StepType>, owner: StepType) -> Option<Vec<String>> {
        let Some(value) = self.value.get(member) else {
            if step_type == Some(owner) {
                self.error(member, "is required for this type of step");
            }
            return None;
        };
        if step_type.is_some_and(|step_type| step_type != owner) {
            self.error(member, "does not belong to this type of step");
            return None;
        }
        let entries = parse_entries(value);
        if entries.is_none() {
            self.error(member, "must be a list of 1 to 100 different texts of 1 to 255 characters");
        }
        entries
    }
}

fn parse_entries(value: &Value) -> Option<Vec<String>> {
    let entries: Option<Vec<Name>> = value.as_array()?.iter().map(|entry| entry.as_str()?.parse().ok()).collect();
    let entries = entries.filter(|entries| ENTRY_COUNTS.contains(&entries.len()))?;
    let distinct = entries.iter().collect::<BTreeSet<_>>().len();
    (distinct == entries.len()).then(|| entries.into_iter().map(String::from).collect())
}

/// The key of a step: `[a-z][a-z0-9_]*`.
struct StepKey(String);

impl FromStr for StepKey {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_valid = text.len() <= MAX_KEY_CHARS
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        let error =
            || ValueError::new("must be a lower-case letter followed by lower-case letters, digits or _, at most 64 in all");
        is_valid.then(|| Self(text.to_owned())).ok_or_else(error)
    }
}

impl From<Steps> for String {
    fn from(steps: Steps) -> Self {
        // Serializing strings and booleans does not fail.
        serde_json::to_string(&steps.0).unwrap_or_default()
    }
}

impl TryFrom<String> for Steps {
    type Error = ValueError;
    /// Reads steps from the table, which contains only checked steps.
    fn try_from(text: String) -> Result<Self, ValueError> {
        serde_json::from_str(&text).map(Self).map_err(|_| ValueError::new("must be a list of steps"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn errors(steps: &Value) -> Vec<String> {
        let errors = Steps::from_json(&steps.to_string()).err().unwrap_or_default();
        let mut pointers: Vec<String> = errors.into_iter().map(|(pointer, _)| pointer).collect();
        pointers.sort();
        pointers
    }

    #[test]
    fn steps_of_all_types_are_read_and_stored_unchanged() {
        let json = json!([
            {"type": "user_picker", "key": "user", "label": "User", "required": true},
            {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
            {"type": "select", "key": "one", "label": "One", "options": ["x"]},
            {"type": "signature", "key": "sign", "label": "Sign", "statement": "I got it.\nAll of it."},
            {"type": "signature", "key": "sign_2", "label": "Sign"}, {"type": "text", "key": "t", "label": "T"},
            {"type": "textarea", "key": "ta", "label": "T"}, {"type": "date", "key": "d", "label": "D"},
            {"type": "confirmation", "key": "c", "label": "C"}, {"type": "complete", "key": "end_1", "label": "Done"}
        ]);
        let steps = Steps::from_json(&json.to_string()).expect("steps");
        let mut stored = json.clone();
        stored[4]["statement"] = json!("I confirm what is stated above.");
        assert_eq!(serde_json::to_value(steps.as_slice()).expect("json"), stored);
        assert_eq!(String::from(steps.clone()), stored.to_string());
        assert_eq!(Steps::try_from(String::from(steps.clone())), Ok(steps));
    }

    #[test]
    fn all_errors_of_all_steps_are_reported() {
        assert_eq!(errors(&json!([])), [""]);
        assert_eq!(errors(&json!("x")), [""]);
        let many: Vec<Value> = (0..51).map(|n| json!({"type": "text", "key": format!("k{n}"), "label": "x"})).collect();
        assert_eq!(errors(&json!(many)), [""]);
        assert_eq!(
            errors(&json!([
                {"type": "complete", "key": "a", "label": "x"},
                {"type": "stamp", "key": "A", "label": "", "required": 1, "colour": "red"},
                {"type": "checklist", "key": "a", "label": "x", "options": ["x"]},
                {"type": "select", "key": "b", "label": "x", "options": ["x", "x"]},
                {"type": "text", "key": "c", "label": "x", "items": ["x"]},
                "step", {},
                {"type": "text", "key": "d", "label": "x", "statement": "x"},
                {"type": "signature", "key": "e", "label": "x", "statement": " "},
                {"type": "signature", "key": "f", "label": "x", "statement": null}
            ])),
            [
                "/0/type",
                "/1/colour",
                "/1/key",
                "/1/label",
                "/1/required",
                "/1/type",
                "/2/items",
                "/2/key",
                "/2/options",
                "/3/options",
                "/4/items",
                "/5",
                "/6/key",
                "/6/label",
                "/6/type",
                "/7/statement",
                "/8/statement",
                "/9/statement"
            ]
        );
    }
}
