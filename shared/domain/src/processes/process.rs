//! Process definitions: the steps of a process, their JSON form in requests, and the asset's status before and after the process.
//! Every new tenant has the system processes. Also each step: its JSON form, the values that it accepts, and the stored form of
//! these values.

use crate::assets::asset::Status;
use crate::record::{Kind, Record, Reference, Requirement, Unique, fields, record_change};
use crate::tenants::tenant::Language;
use crate::values::field_error::{ErrorCode, ValueError, pointer_token, text_form, unknown_name};
use crate::values::hex;
use crate::values::id::{Id, ProcessId, UserId};
use crate::values::json::{parse_object, parse_strict};
use crate::values::signature_image::{DecodedImages, SignatureImage};
use crate::values::string_enum::string_enum;
use crate::values::text::{Line, Name, Notes, Statement, composed, single_spaced};
use crate::values::time::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::str::FromStr;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

string_enum! {
    /// Whether a process can be started.
    ProcessStatus {
        Active = "active",
        /// Instances in progress continue.
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

const MAX_SLUG_CHARS: usize = 64;

impl Slug {
    /// Converts a name: characters other than ASCII letters and digits become hyphens. An `nth` above 1 is appended, to make the
    /// slug unique.
    pub fn from_name(name: &str, nth: u32) -> Self {
        let words = name.to_lowercase();
        let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let suffix = if nth > 1 { format!("-{nth}") } else { String::new() };
        let mut slug = words.collect::<Vec<_>>().join("-");
        slug.truncate(MAX_SLUG_CHARS - suffix.len());
        let slug = slug.trim_end_matches('-');
        Self(format!("{}{suffix}", if slug.is_empty() { "process" } else { slug }))
    }

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
    /// Whether this is a system process, which every new tenant has.
    pub is_system: bool,
    pub status: ProcessStatus,
    pub steps: Steps,
}

record_change! {
    ProcessChange of Process::with {
        set name: Name,
        set description: Notes,
        set trigger_status: Status,
        set target_status: Status,
        set steps: Steps,
        set status: ProcessStatus,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Only the status of a system process can change.")]
pub struct SystemProcessFixed;

impl Process {
    pub fn unique_slug(slug: &Slug) -> Unique {
        Unique { field: "slug", value: slug.as_str().to_owned(), reserved_after_deletion: false }
    }

    pub fn reference(field: &'static str, id: ProcessId) -> Reference {
        Reference::new(field, Kind::Process, id.uuid()).requiring(ProcessStatus::Active.requirement())
    }

    /// Returns the process definition with the change applied.
    ///
    /// # Errors
    ///
    /// Returns [`SystemProcessFixed`] if anything but the status of a system process would change.
    pub fn changed(&self, change: &ProcessChange) -> Result<Self, SystemProcessFixed> {
        let next = self.with(change);
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
const MAX_KEY_CHARS: usize = 64;

/// The steps of a process: 1 to 50 steps with different keys. A `complete` step can only be the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = Vec<Step>)]
#[schema(as = ProcessSteps)]
pub struct Steps(Vec<Step>);

impl Steps {
    pub fn as_slice(&self) -> &[Step] {
        &self.0
    }

    /// Returns the hash of the steps' JSON text, which identifies them in the table.
    pub fn hash(&self) -> String {
        hex::sha256(String::from(self.clone()))
    }

    /// Parses the steps of a request.
    ///
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

    /// Reads a step; `None` if it is unreadable. `keys` has the keys of earlier steps.
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
    let entries: Vec<String> = entries.into_iter().map(String::from).collect();
    let distinct = entries.iter().collect::<BTreeSet<_>>().len();
    (distinct == entries.len()).then_some(entries)
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
            || ValueError::form("must be a lower-case letter followed by lower-case letters, digits or _, at most 64 characters");
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
    /// Returns the slug, which is the same in every tenant.
    pub fn slug(&self) -> Slug {
        Slug::from_name(self.name, 1)
    }

    /// Builds the process definition.
    ///
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

/// Maximum length of the choices listed in an error, in bytes.
const MAX_NAMED_BYTES: usize = 1_000;
/// The default statement of a signature step.
const DEFAULT_STATEMENT: &str = "I confirm what is stated above.";

/// Returns the default statement as signers read it.
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
    /// Whether a value is required; `None` stands for the default of the step's kind.
    pub required: Option<bool>,
    pub kind: StepKind,
}

/// The kind of value that a step asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// The ID of an active user.
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
    /// A step without a value, which completes the process. Can only be the last step.
    Complete,
    Text,
    /// Multi-line text.
    Textarea,
    Select {
        options: Vec<String>,
    },
    Date,
    /// A confirmation, whose value is `true`.
    Confirmation,
}

string_enum! {
    /// The type of a step.
    StepType {
        UserPicker = "user_picker",
        Checklist = "checklist",
        Signature = "signature",
        Complete = "complete",
        Text = "text",
        Textarea = "textarea",
        Select = "select",
        Date = "date",
        Confirmation = "confirmation",
    }
}

impl Step {
    /// Whether a value is required. For a checklist, whether all entries are required.
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.kind == StepKind::Confirmation)
    }

    pub fn is_signature(&self) -> bool {
        matches!(self.kind, StepKind::Signature { .. })
    }

    /// Returns the default statement in a language other than English. `None` for a custom statement, which is not translated.
    pub fn translated_statement(&self, language: Language) -> Option<&'static str> {
        let is_default = matches!(&self.kind, StepKind::Signature { statement } if **statement == *DEFAULT_STATEMENT);
        (is_default && language != Language::English).then(|| default_statement(language))
    }

    /// Returns the signature step with the statement that a signer read.
    #[must_use]
    pub fn with_statement(self, statement: &str) -> Self {
        Self { kind: StepKind::Signature { statement: Statement::from_stored(statement.to_owned()) }, ..self }
    }

    /// Checks a submitted value. The error describes valid values.
    pub(crate) fn check(&self, value: &Value, checks: &Checks<'_>) -> Result<CheckedValue, ValueError> {
        let text = || value.as_str().ok_or_else(|| ValueError::form("must be a string"));
        let checked = match &self.kind {
            StepKind::UserPicker => check_user(text()?, checks.active_users)?,
            StepKind::Checklist { items } => self.check_entries(value, items)?,
            StepKind::Signature { .. } => return checks.images.image(text()?).map(CheckedValue::Signature),
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
        let item = |entry: &Value| chosen(entry, items);
        let entries: Option<Vec<&String>> = value.as_array().and_then(|list| list.iter().map(item).collect());
        let entries = entries.ok_or_else(invalid)?;
        if entries.iter().collect::<BTreeSet<_>>().len() != entries.len() {
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
    /// Creates a kind of step. `None` unless `items` are given exactly for a checklist, `options` exactly for a select, and a
    /// `statement` only for a signature.
    fn new(
        step_type: StepType,
        mut items: Option<Vec<String>>,
        mut options: Option<Vec<String>>,
        mut statement: Option<Statement>,
    ) -> Option<Self> {
        let kind = match step_type {
            StepType::Checklist => Self::Checklist { items: items.take()? },
            StepType::Select => Self::Select { options: options.take()? },
            StepType::Signature => {
                let default = || Statement::from_stored(DEFAULT_STATEMENT.to_owned());
                Self::Signature { statement: statement.take().unwrap_or_else(default) }
            }
            StepType::UserPicker => Self::UserPicker,
            StepType::Complete => Self::Complete,
            StepType::Text => Self::Text,
            StepType::Textarea => Self::Textarea,
            StepType::Date => Self::Date,
            StepType::Confirmation => Self::Confirmation,
        };
        // Whatever is left belongs to another type.
        (items.is_none() && options.is_none() && statement.is_none()).then_some(kind)
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

/// Further data that values are checked against, besides the steps.
pub(crate) struct Checks<'a> {
    /// Must contain the picked user, if active.
    pub(crate) active_users: &'a BTreeSet<UserId>,
    pub(crate) images: &'a DecodedImages,
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
    let unknown = || ValueError::coded(ErrorCode::UnknownReference, "must be the ID of an active user of this tenant");
    if is_active { Ok(json!(user)) } else { Err(unknown()) }
}

fn check_true(value: &Value) -> Result<Value, ValueError> {
    if *value == json!(true) { Ok(json!(true)) } else { Err(ValueError::coded(ErrorCode::Required, "must be true")) }
}

fn check_option(value: &Value, options: &[String]) -> Result<Value, ValueError> {
    let unknown = || ValueError::coded(ErrorCode::UnknownValue, format!("must be one of {}", named(options)));
    chosen(value, options).map(|option| json!(option)).ok_or_else(unknown)
}

/// Finds a choice among the definition's entries or options. Normalizes it like these, so clients can send a choice as they wrote
/// it in the definition.
fn chosen<'a>(value: &Value, choices: &'a [String]) -> Option<&'a String> {
    let sent = composed(value.as_str()?);
    choices.iter().find(|choice| single_spaced(choice) == single_spaced(&sent))
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
    use crate::samples::user;
    use crate::values::id::Id;
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
            {"type": "checklist", "key": "list", "label": "List", "required": false, "items": ["a", "b"]},
            {"type": "select", "key": "one", "label": "One", "required": true, "options": ["x"]},
            {"type": "signature", "key": "sign", "label": "Sign", "statement": "I got it.\nAll of it."},
            {"type": "signature", "key": "sign_2", "label": "Sign"}, {"type": "text", "key": "t", "label": "T"},
            {"type": "textarea", "key": "ta", "label": "T"}, {"type": "date", "key": "d", "label": "D"},
            {"type": "confirmation", "key": "c", "label": "C"}, {"type": "complete", "key": "end_1", "label": "Done"}
        ]);
        assert!(StepType::ALL.iter().all(|known| json.to_string().contains(known.as_str())));
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

    /// Checks a value. User 1 is active.
    fn check(required: Option<bool>, kind: &StepKind, value: &Value) -> Result<CheckedValue, String> {
        let step = Step { key: "k".into(), label: "L".parse().expect("a label"), required, kind: kind.clone() };
        let checks = Checks { active_users: &BTreeSet::from([user(1)]), images: &DecodedImages::default() };
        step.check(value, &checks).map_err(|error| error.to_string())
    }

    fn accepted(value: Value) -> Result<CheckedValue, String> {
        Ok(CheckedValue::Value(value))
    }

    #[test]
    fn the_kind_of_a_step_decides_which_values_it_accepts() {
        let checklist = StepKind::Checklist { items: vec!["a".into(), "b".into()] };
        let select = StepKind::Select { options: vec!["x".into(), "y".into()] };
        // Choices are accepted in the form in which the definition was sent.
        let composed_items = StepKind::Checklist { items: vec!["ü".into(), "x".into()] };
        let composed_option = StepKind::Select { options: vec!["ü".into()] };
        let spaced_option = StepKind::Select { options: vec!["a  b".into()] };
        for (kind, same, changed, refused) in [
            (StepKind::UserPicker, json!([user(1)]), json!([]), json!([user(2), "ada", 1, null])),
            (checklist, json!([[], ["b"], ["b", "a"]]), json!([]), json!([["a", "a"], ["c"], [1], "a", {"a": true}])),
            (StepKind::Complete, json!([true]), json!([]), json!([false, "true", 1])),
            (StepKind::Confirmation, json!([true]), json!([]), json!([false, "true", 1])),
            (StepKind::Text, json!(["ä".repeat(255)]), json!([["  ä  ", "ä"]]), json!(["ä".repeat(256), "a\nb", 1, ["a"]])),
            (StepKind::Textarea, json!([" a\nb "]), json!([]), json!(["x".repeat(10_001), "a\u{7}", 1])),
            (select, json!(["y"]), json!([]), json!(["z", ["x"], 0])),
            (
                composed_items,
                json!([]),
                json!([[["u\u{308}"], ["ü"]], [[" x ", "ü"], ["x", "ü"]]]),
                json!([["ü", "u\u{308}"], ["u"]]),
            ),
            (composed_option, json!([]), json!([["u\u{308} ", "ü"]]), json!(["u", ["ü"]])),
            (spaced_option, json!(["a  b"]), json!([["a\u{a0}b", "a  b"]]), json!(["ab"])),
            (StepKind::Date, json!(["2028-02-29"]), json!([]), json!(["2027-02-29", "2028-02-29T00:00:00Z", 20280229])),
        ] {
            let list = |values: Value| values.as_array().cloned().unwrap_or_default();
            let same = list(same).into_iter().map(|value| (value.clone(), value));
            for (sent, stored) in same.chain(list(changed).into_iter().map(|pair| (pair[0].clone(), pair[1].clone()))) {
                assert_eq!(check(None, &kind, &sent), accepted(stored), "{kind:?} {sent}");
            }
            for value in list(refused) {
                assert!(check(None, &kind, &value).is_err(), "{kind:?} {value}");
            }
        }
    }

    #[test]
    fn a_required_checklist_needs_all_its_entries() {
        let kind = StepKind::Checklist { items: vec!["a".into(), "b".into()] };
        assert_eq!(check(Some(true), &kind, &json!(["b", "a"])), accepted(json!(["b", "a"])));
        let error = Err("must contain all entries of the checklist: a, b".to_owned());
        assert_eq!(check(Some(true), &kind, &json!(["a"])), error);
    }

    #[test]
    fn required_text_must_not_be_blank() {
        for kind in [StepKind::Text, StepKind::Textarea] {
            assert_eq!(check(None, &kind, &json!("")), accepted(json!("")));
            assert_eq!(check(Some(true), &kind, &json!(" ")), Err("must not be empty".to_owned()));
        }
    }

    #[test]
    fn only_a_confirmation_is_required_by_default() {
        let is_required =
            |required, kind| Step { key: "k".into(), label: "L".parse().expect("a label"), required, kind }.is_required();
        assert!(is_required(None, StepKind::Confirmation) && !is_required(Some(false), StepKind::Confirmation));
        assert!(!is_required(None, StepKind::Text) && is_required(Some(true), StepKind::Text));
    }
}
