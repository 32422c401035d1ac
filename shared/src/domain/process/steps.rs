//! The steps of a process, and what makes them a process that can be run (interface 2.3, contract 7).

use crate::domain::field_error::ValueError;
use crate::domain::json::parse_strict;
use crate::domain::string_enum::string_enum;
use crate::domain::text::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::str::FromStr;

/// How many steps a process may have.
const STEPS: std::ops::RangeInclusive<usize> = 1..=MAX_STEPS;
/// The most of them.
pub const MAX_STEPS: usize = 50;
/// How many entries a checklist or a selection may have.
const ENTRIES: std::ops::RangeInclusive<usize> = 1..=100;
/// The largest steps, in bytes of compact JSON: every run keeps a copy.
const LARGEST: usize = 64 * 1024;
/// Longest key of a step.
const LONGEST_KEY: usize = 64;

string_enum! {
    /// What a step asks for.
    StepKind {
        /// An active user.
        UserPicker = "user_picker",
        /// Which of the items are done.
        Checklist = "checklist",
        /// A PNG image.
        Signature = "signature",
        /// Nothing: the end. Stands last only.
        Complete = "complete",
        /// One line.
        Text = "text",
        /// Several lines.
        Textarea = "textarea",
        /// One of the options.
        Select = "select",
        /// A date.
        Date = "date",
        /// A yes.
        Confirmation = "confirmation",
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Step {
    /// What it asks for.
    #[serde(rename = "type")]
    pub kind: StepKind,
    /// Under which key its data is submitted.
    pub key: String,
    /// What is shown.
    pub label: Name,
    /// Whether a value must be there (for a checklist: every entry checked). Default false, true for confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    pub required: Option<bool>,
    /// The entries of a checklist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    pub items: Option<Vec<String>>,
    /// The options of a select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    pub options: Option<Vec<String>>,
}

/// The steps of a process: 1 to 50, each with a key of its own, `complete` only last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Vec<Step>)]
pub struct Steps(Vec<Step>);

impl Steps {
    /// The steps, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Step] {
        &self.0
    }

    /// Reads the JSON text of a list of steps.
    ///
    /// # Errors
    ///
    /// Every field_error, with its JSON Pointer from the list on (`/2/key`; empty for the list itself).
    pub fn from_json(text: &str) -> Result<Self, Vec<(String, String)>> {
        let whole = |reason: String| vec![(String::new(), reason)];
        let value = parse_strict(text, 4).map_err(|refusal| whole(refusal.to_string()))?;
        if value.to_string().len() > LARGEST {
            return Err(whole(format!("must have at most {LARGEST} bytes as JSON")));
        }
        let Value::Array(steps) = value else { return Err(whole("must be a list of steps".into())) };
        if !STEPS.contains(&steps.len()) {
            return Err(whole(format!("must have {} to {} steps", STEPS.start(), STEPS.end())));
        }
        let mut errors = Vec::new();
        let mut keys = BTreeSet::new();
        let last = steps.len() - 1;
        let mut read = Vec::new();
        for (place, step) in steps.into_iter().enumerate() {
            let mut reader = Reader { step, place, errors: &mut errors };
            let Some(step) = reader.step() else { continue };
            if !keys.insert(step.key.clone()) {
                reader.field_error("key", "must differ from the keys of the other steps");
            }
            if step.kind == StepKind::Complete && place != last {
                reader.field_error("type", "may be complete only for the last step");
            }
            read.push(step);
        }
        if errors.is_empty() { Ok(Self(read)) } else { Err(errors) }
    }
}

/// Reads one step and notes its errors.
struct Reader<'a> {
    step: Value,
    place: usize,
    errors: &'a mut Vec<(String, String)>,
}

impl Reader<'_> {
    fn field_error(&mut self, member: &str, reason: impl Into<String>) {
        let member = member.replace('~', "~0").replace('/', "~1");
        let pointer = if member.is_empty() { format!("/{}", self.place) } else { format!("/{}/{member}", self.place) };
        self.errors.push((pointer, reason.into()));
    }

    fn step(&mut self) -> Option<Step> {
        let Value::Object(members) = &self.step else {
            self.field_error("", "must be an object");
            return None;
        };
        let known = ["type", "key", "label", "required", "items", "options"];
        let unknown: Vec<String> = members.keys().filter(|name| !known.contains(&name.as_str())).cloned().collect();
        unknown.iter().for_each(|name| self.field_error(name, "is no member of a step"));
        let kind = self.text::<StepKind>("type");
        let key = self.text::<Key>("key");
        let label = self.text::<Name>("label");
        let required = match self.step.get("required").cloned() {
            None => None,
            Some(Value::Bool(required)) => Some(required),
            Some(_) => {
                self.field_error("required", "must be true or false");
                None
            }
        };
        let items = self.entries("items", kind == Some(StepKind::Checklist), kind.is_some());
        let options = self.entries("options", kind == Some(StepKind::Select), kind.is_some());
        Some(Step { kind: kind?, key: key?.0, label: label?, required, items, options })
    }

    fn text<T: FromStr<Err = ValueError>>(&mut self, member: &str) -> Option<T> {
        let read = match self.step.get(member) {
            None => Err(ValueError::new("is required")),
            Some(value) => value.as_str().ok_or_else(|| ValueError::new("must be a string")).and_then(str::parse),
        };
        read.map_err(|refusal| self.field_error(member, refusal.to_string())).ok()
    }

    /// The list of entries that a checklist or a select needs and no other step may have.
    fn entries(&mut self, member: &str, needed: bool, known: bool) -> Option<Vec<String>> {
        let Some(value) = self.step.get(member) else {
            if needed {
                self.field_error(member, "is required for this type of step");
            }
            return None;
        };
        let texts = value.as_array().map(|list| list.iter().map(|entry| entry.as_str()?.parse::<Name>().ok()).collect());
        let texts: Option<Vec<Name>> = texts.flatten();
        let distinct = texts.as_ref().map(|texts| texts.iter().collect::<BTreeSet<_>>().len());
        match texts {
            _ if known && !needed => self.field_error(member, "does not belong to this type of step"),
            Some(texts) if ENTRIES.contains(&texts.len()) && distinct == Some(texts.len()) => {
                return Some(texts.into_iter().map(String::from).collect());
            }
            _ => self.field_error(member, "must be a list of 1 to 100 different texts of 1 to 255 characters"),
        }
        None
    }
}

/// A step's key: `[a-z][a-z0-9_]*`.
struct Key(String);

impl FromStr for Key {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let fits = text.len() <= LONGEST_KEY
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| ValueError::new("must be a lower-case letter and then letters, digits or _, at most 64"))
    }
}

impl From<Steps> for String {
    fn from(steps: Steps) -> Self {
        // A list of strings and booleans always has a JSON text.
        serde_json::to_string(&steps.0).unwrap_or_default()
    }
}

impl TryFrom<String> for Steps {
    type Error = ValueError;
    /// From the table, where only checked steps are.
    fn try_from(text: String) -> Result<Self, ValueError> {
        serde_json::from_str(&text).map(Self).map_err(|_| ValueError::new("must be a list of steps"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn errors(steps: &Value) -> Vec<String> {
        let mut places: Vec<String> =
            Steps::from_json(&steps.to_string()).err().unwrap_or_default().into_iter().map(|(p, _)| p).collect();
        places.sort();
        places
    }

    #[test]
    fn every_type_of_step_reads_back() {
        let steps = json!([
            {"type": "user_picker", "key": "user", "label": "User", "required": true},
            {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
            {"type": "select", "key": "one", "label": "One", "options": ["x"]},
            {"type": "signature", "key": "sign", "label": "Sign"}, {"type": "text", "key": "t", "label": "T"},
            {"type": "textarea", "key": "ta", "label": "T"}, {"type": "date", "key": "d", "label": "D"},
            {"type": "confirmation", "key": "c", "label": "C"}, {"type": "complete", "key": "end_1", "label": "Done"}
        ]);
        let read = Steps::from_json(&steps.to_string()).expect("steps");
        assert_eq!(serde_json::to_value(read.as_slice()).expect("json"), steps);
        assert_eq!(Steps::try_from(String::from(read.clone())), Ok(read));
    }

    #[test]
    fn every_fault_of_every_step_is_named() {
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
                "step", {}
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
                "/6/type"
            ]
        );
    }
}
