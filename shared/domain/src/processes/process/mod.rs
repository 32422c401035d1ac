//! Process definitions: the steps of a process, their JSON form in requests, and the asset's status before and after the process.
//! Every new tenant has the system processes.

pub mod step;

use crate::assets::asset::Status;
use crate::record::{Kind, Record, Reference, Requirement, Unique, fields};
use crate::values::field_error::{ValueError, pointer_token, text_form};
use crate::values::hex;
use crate::values::id::{Id, ProcessId};
use crate::values::json::parse_strict;
use crate::values::string_enum::string_enum;
use crate::values::suggestions::unknown_name;
use crate::values::text::{Name, Notes, Statement};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::str::FromStr;
pub use step::{Step, StepKind, StepType};

string_enum! {
    /// Whether a process can be started.
    ProcessStatus {
        /// Can be started.
        Active = "active",
        /// Can't be started. Instances in progress continue.
        Inactive = "inactive",
    }
}

impl ProcessStatus {
    fn requirement(self) -> Requirement {
        Requirement::text("status", self.as_str())
    }
}

/// A name for URLs: words of `a-z` and `0-9` with single hyphens between them, at most 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$", examples("employee-onboarding"))]
pub struct Slug(String);

/// In characters.
const MAX_SLUG_CHARS: usize = 64;

impl Slug {
    /// Characters other than ASCII letters and digits become hyphens. An `nth` above 1 is appended, to make the slug unique.
    #[must_use]
    pub fn from_name(name: &str, nth: u32) -> Self {
        let words = name.to_lowercase();
        let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let suffix = if nth > 1 { format!("-{nth}") } else { String::new() };
        let mut slug = words.collect::<Vec<_>>().join("-");
        slug.truncate(MAX_SLUG_CHARS - suffix.len());
        let slug = slug.trim_end_matches('-');
        Self(format!("{}{suffix}", if slug.is_empty() { "process" } else { slug }))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Slug {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let fits = text.len() <= MAX_SLUG_CHARS && text.split('-').all(word);
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| ValueError::form("must be up to 64 characters of a-z and 0-9, with single hyphens between them"))
    }
}

text_form!(Slug, |slug| slug.0);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub id: ProcessId,
    pub name: Name,
    /// Unique in the tenant. Never changes.
    pub slug: Slug,
    pub description: Notes,
    /// The status that an asset must have when the process is started.
    pub trigger_status: Status,
    /// The status that the asset gets when the process is completed.
    pub target_status: Status,
    /// Whether it is a system process, which every new tenant has.
    pub is_system: bool,
    /// Whether it can be started.
    pub status: ProcessStatus,
    pub steps: Steps,
}

/// `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct ProcessChange {
    pub name: Option<Name>,
    pub description: Option<Notes>,
    /// Status that an asset must have at the start.
    pub trigger_status: Option<Status>,
    /// Status of the asset on completion.
    pub target_status: Option<Status>,
    /// The new steps. Instances that have started keep the old ones.
    pub steps: Option<Steps>,
    pub status: Option<ProcessStatus>,
}

/// Only the status of a system process can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Only the status of a system process can change.")]
pub struct SystemProcessFixed;

impl Process {
    #[must_use]
    pub fn unique_slug(slug: &Slug) -> Unique {
        Unique { field: "slug", value: slug.as_str().to_owned(), reserved_after_deletion: false }
    }

    /// A reference that requires an active process.
    #[must_use]
    pub fn reference(field: &'static str, id: ProcessId) -> Reference {
        Reference::new(field, Kind::Process, id.uuid()).requiring(ProcessStatus::Active.requirement())
    }

    /// # Errors
    ///
    /// Returns [`SystemProcessFixed`] if anything but the status of a system process would change.
    pub fn changed(&self, change: &ProcessChange) -> Result<Self, SystemProcessFixed> {
        let ProcessChange { name, description, trigger_status, target_status, steps, status } = change.clone();
        let next = Self {
            id: self.id,
            slug: self.slug.clone(),
            is_system: self.is_system,
            name: name.unwrap_or_else(|| self.name.clone()),
            description: description.unwrap_or_else(|| self.description.clone()),
            trigger_status: trigger_status.unwrap_or(self.trigger_status),
            target_status: target_status.unwrap_or(self.target_status),
            steps: steps.unwrap_or_else(|| self.steps.clone()),
            status: status.unwrap_or(self.status),
        };
        let only_status_changes = Self { status: self.status, ..next.clone() } == *self;
        if self.is_system && !only_status_changes { Err(SystemProcessFixed) } else { Ok(next) }
    }
}

impl Record for Process {
    const KIND: Kind = Kind::Process;
    type Id = ProcessId;

    fn id(&self) -> ProcessId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, name, slug, description, trigger_status, target_status, is_system, status, steps } = self;
        fields([
            ("name", json!(name)),
            ("slug", json!(slug)),
            ("description", json!(description)),
            ("trigger_status", json!(trigger_status)),
            ("target_status", json!(target_status)),
            ("is_system", json!(is_system)),
            ("status", json!(status)),
            ("steps", json!(steps.as_slice())),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Self::unique_slug(&self.slug)]
    }

    fn referenceable_attributes(&self) -> Option<Vec<Requirement>> {
        Some(vec![self.status.requirement()])
    }
}

pub const MAX_STEPS: usize = 50;
const STEP_COUNTS: std::ops::RangeInclusive<usize> = 1..=MAX_STEPS;
/// Maximum number of `user_picker` steps. One submission can replace all picked users except the first step's. This writes two
/// items per user, and a transaction has at most 100 items.
const MAX_PICKERS: usize = 48;
/// Permitted number of entries of a checklist, or options of a select.
const ENTRY_COUNTS: std::ops::RangeInclusive<usize> = 1..=100;
/// Maximum size of all steps, in bytes of compact JSON. They are stored in one item.
const MAX_STEPS_BYTES: usize = 64 * 1024;
/// Maximum nesting of steps: a list of objects that contain lists.
const MAX_LEVELS: usize = 4;
/// Maximum length of a step's key, in characters.
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

    /// The hash of the steps' JSON text, which identifies them in the table.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::sha256(String::from(self.clone()))
    }

    /// # Errors
    ///
    /// Returns all errors. Each has a JSON Pointer within the list, such as `/2/key`; the pointer of an error about the whole
    /// list is empty.
    pub fn from_json(text: &str) -> Result<Self, Vec<(String, ValueError)>> {
        let whole = |error: ValueError| vec![(String::new(), error)];
        let value = parse_strict(text, MAX_LEVELS).map_err(whole)?;
        if value.to_string().len() > MAX_STEPS_BYTES {
            return Err(whole(format!("must have at most {MAX_STEPS_BYTES} bytes as JSON").into()));
        }
        let Value::Array(list) = value else { return Err(whole(ValueError::form("must be a list of steps"))) };
        if !STEP_COUNTS.contains(&list.len()) {
            return Err(whole(format!("must have {} to {} steps", STEP_COUNTS.start(), STEP_COUNTS.end()).into()));
        }
        let (mut steps, mut keys, mut errors) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (index, value) in list.iter().enumerate() {
            let mut reader = StepReader { value, index, errors: &mut errors };
            steps.extend(reader.read(&mut keys, index + 1 == list.len()));
        }
        if steps.iter().filter(|step: &&Step| step.kind == StepKind::UserPicker).count() > MAX_PICKERS {
            errors.push((String::new(), format!("must have at most {MAX_PICKERS} steps of type user_picker").into()));
        }
        if errors.is_empty() { Ok(Self(steps)) } else { Err(errors) }
    }
}

/// Reads one step of a request and collects its errors.
struct StepReader<'a> {
    value: &'a Value,
    index: usize,
    errors: &'a mut Vec<(String, ValueError)>,
}

impl StepReader<'_> {
    fn error(&mut self, member: &str, reason: impl Into<ValueError>) {
        self.errors.push((format!("/{}/{}", self.index, pointer_token(member)), reason.into()));
    }

    /// `None` if the step is unreadable. `keys` has the keys of earlier steps.
    fn read(&mut self, keys: &mut BTreeSet<String>, is_last: bool) -> Option<Step> {
        let Value::Object(members) = self.value else {
            self.errors.push((format!("/{}", self.index), ValueError::form("must be an object")));
            return None;
        };
        let known = ["type", "key", "label", "required", "items", "options", "statement"];
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.error(name, unknown_name(name, &known, "member of a step", 0));
        }
        let step_type = self.text::<StepType>("type");
        if step_type == Some(StepType::Complete) && !is_last {
            self.error("type", "can only be complete for the last step");
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
            None => Err(ValueError::required()),
            Some(value) => value.as_str().ok_or_else(|| ValueError::form("must be a string")).and_then(str::parse),
        };
        result.map_err(|error| self.error(member, error)).ok()
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

    /// Reads the list `member`, which is required for steps of type `owner` and not permitted for others.
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
            || ValueError::form("must be a lower-case letter followed by lower-case letters, digits or _, at most 64 in all");
        is_valid.then(|| Self(text.to_owned())).ok_or_else(error)
    }
}

impl From<Steps> for String {
    fn from(steps: Steps) -> Self {
        // Serializing strings and booleans never fails.
        serde_json::to_string(&steps.0).unwrap_or_default()
    }
}

impl TryFrom<String> for Steps {
    type Error = ValueError;
    /// Reads stored steps, which were checked before.
    fn try_from(text: String) -> Result<Self, ValueError> {
        serde_json::from_str(&text).map(Self).map_err(|_| ValueError::form("must be a list of steps"))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct SystemProcess {
    name: &'static str,
    description: &'static str,
    trigger_status: Status,
    target_status: Status,
    steps: &'static str,
}

impl SystemProcess {
    /// The same in every tenant.
    #[must_use]
    pub fn slug(&self) -> Slug {
        Slug::from_name(self.name, 1)
    }

    /// # Errors
    ///
    /// Returns an error if the template is invalid, which a unit test rules out.
    pub fn process(&self, id: ProcessId) -> Result<Process, ValueError> {
        let steps = Steps::from_json(self.steps).map_err(|errors| ValueError::new(format!("{}: {errors:?}", self.name)))?;
        Ok(Process {
            id,
            name: self.name.parse()?,
            slug: self.slug(),
            description: self.description.parse()?,
            trigger_status: self.trigger_status,
            target_status: self.target_status,
            is_system: true,
            status: ProcessStatus::Active,
            steps,
        })
    }
}

pub const SYSTEM_PROCESSES: [SystemProcess; 7] = [
    SystemProcess {
        name: "Employee Onboarding",
        description: "Hands a prepared asset to a user, who signs for it.",
        trigger_status: Status::Preparing,
        target_status: Status::InUse,
        steps: r#"[
            {"type": "user_picker", "key": "employee", "label": "Who gets the asset?", "required": true},
            {"type": "checklist", "key": "handover", "label": "Handed over", "items": ["Device", "Power supply", "Accessories", "Usage policy explained"]},
            {"type": "signature", "key": "signature", "label": "Signature of the recipient", "required": true},
            {"type": "complete", "key": "complete", "label": "Complete the handover"}
        ]"#,
    },
    SystemProcess {
        name: "Device Return",
        description: "Takes an asset back from its user.",
        trigger_status: Status::InUse,
        target_status: Status::Returned,
        steps: r#"[
            {"type": "checklist", "key": "returned_items", "label": "Given back", "items": ["Device", "Power supply", "Accessories"]},
            {"type": "textarea", "key": "condition", "label": "Condition and damage"},
            {"type": "signature", "key": "signature", "label": "Signature of the user", "required": true},
            {"type": "confirmation", "key": "received", "label": "Received by IT"},
            {"type": "complete", "key": "complete", "label": "Complete the return"}
        ]"#,
    },
    SystemProcess {
        name: "Repair",
        description: "Sends an asset in use to be repaired.",
        trigger_status: Status::InUse,
        target_status: Status::InService,
        steps: r#"[
            {"type": "textarea", "key": "fault", "label": "What is broken?", "required": true},
            {"type": "text", "key": "ticket", "label": "Ticket of the service partner"},
            {"type": "complete", "key": "complete", "label": "Send it to be repaired"}
        ]"#,
    },
    SystemProcess {
        name: "Back from Repair",
        description: "Puts a repaired asset back into stock.",
        trigger_status: Status::InService,
        target_status: Status::InStock,
        steps: r#"[
            {"type": "checklist", "key": "checks", "label": "Checked", "items": ["Fault is gone", "Device starts", "Nothing is missing"], "required": true},
            {"type": "text", "key": "invoice", "label": "Number of the invoice"},
            {"type": "complete", "key": "complete", "label": "Put it into stock"}
        ]"#,
    },
    SystemProcess {
        name: "Restock",
        description: "Makes a returned asset ready for the next user.",
        trigger_status: Status::Returned,
        target_status: Status::InStock,
        steps: r#"[
            {"type": "checklist", "key": "checks", "label": "Done", "items": ["Data erased", "Device reset", "Device cleaned"], "required": true},
            {"type": "complete", "key": "complete", "label": "Put it into stock"}
        ]"#,
    },
    SystemProcess {
        name: "Decommission",
        description: "Takes a returned asset out of service for good.",
        trigger_status: Status::Returned,
        target_status: Status::Scrapped,
        steps: r#"[
            {"type": "select", "key": "reason", "label": "Why?", "options": ["Defective", "Too old", "Lost", "Sold"], "required": true},
            {"type": "confirmation", "key": "data_erased", "label": "All data is erased"},
            {"type": "complete", "key": "complete", "label": "Scrap it"}
        ]"#,
    },
    SystemProcess {
        name: "Prepare",
        description: "Takes an asset out of stock and sets it up for a user.",
        trigger_status: Status::InStock,
        target_status: Status::Preparing,
        steps: r#"[
            {"type": "checklist", "key": "setup", "label": "Set up", "items": ["System installed", "Updates installed", "Disk encrypted", "Asset tag attached"]},
            {"type": "complete", "key": "complete", "label": "Ready to be handed over"}
        ]"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::time::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn a_slug_contains_the_letters_and_digits_of_the_name() {
        assert_eq!(Slug::from_name("Employee Onboarding!", 1).as_str(), "employee-onboarding");
        assert_eq!(Slug::from_name("Übergabe", 2).as_str(), "bergabe-2");
        assert_eq!(Slug::from_name("日本", 1).as_str(), "process");
        for wrong in ["", "A", "a--b", "-a", "a-", "a_b", &"a".repeat(65)] {
            assert!(wrong.parse::<Slug>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_an_active_process_meets_what_a_reference_requires() {
        let id = ProcessId::new(Timestamp::from_millis(0), [0; 10]);
        let process = SYSTEM_PROCESSES[0].process(id).expect("a process");
        let required = Some(Process::reference("process_id", id).requirements);
        assert_eq!(process.referenceable_attributes(), required);
        assert_ne!(Process { status: ProcessStatus::Inactive, ..process }.referenceable_attributes(), required);
    }

    proptest! {
        #[test]
        fn every_name_gives_a_valid_slug(name: String, nth in 1u32..1000) {
            let slug = Slug::from_name(&name, nth);
            prop_assert_eq!(slug.as_str().parse::<Slug>(), Ok(slug.clone()));
        }
    }

    #[test]
    fn only_the_status_of_a_system_process_can_change() {
        let id = ProcessId::new(Timestamp::from_millis(0), [0; 10]);
        let process = SYSTEM_PROCESSES[0].process(id).expect("a process");
        let off = ProcessChange { status: Some(ProcessStatus::Inactive), ..ProcessChange::default() };
        assert_eq!(process.changed(&off).map(|p| p.status), Ok(ProcessStatus::Inactive));
        let renamed = ProcessChange { name: "x".parse().ok(), ..off.clone() };
        assert_eq!(process.changed(&renamed), Err(SystemProcessFixed));
        let same = ProcessChange { name: Some(process.name.clone()), ..off };
        assert!(process.changed(&same).is_ok(), "sending the same name again is not a change");
        let own = Process { is_system: false, ..process };
        assert_eq!(own.changed(&renamed).map(|p| p.name.to_string()), Ok("x".into()));
    }

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

    #[test]
    fn all_system_processes_are_valid_definitions() {
        let id = ProcessId::new(Timestamp::from_millis(0), [0; 10]);
        let processes: Vec<Process> = SYSTEM_PROCESSES.iter().map(|system| system.process(id).expect("a process")).collect();
        let changes: Vec<String> =
            processes.iter().map(|p| format!("{}: {} → {}", p.slug.as_str(), p.trigger_status, p.target_status)).collect();
        assert_eq!(
            changes,
            [
                "employee-onboarding: preparing → in_use",
                "device-return: in_use → returned",
                "repair: in_use → in_service",
                "back-from-repair: in_service → in_stock",
                "restock: returned → in_stock",
                "decommission: returned → scrapped",
                "prepare: in_stock → preparing"
            ]
        );
    }
}
