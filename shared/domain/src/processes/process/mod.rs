//! Process definitions: the steps of a process, and the status that an asset has before and after it.

mod step;
mod steps;
mod system;
pub mod values;

pub use step::{Step, StepKind, StepType};
pub use steps::{MAX_STEPS, Steps};
pub use system::{SYSTEM_PROCESSES, SystemProcess};

use crate::assets::asset::Status;
use crate::record::{Kind, Record, Reference, Requirement, Unique, fields};
use crate::values::field_error::ValueError;
use crate::values::id::{Id, ProcessId};
use crate::values::string_enum::string_enum;
use crate::values::text::{Name, Notes};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::str::FromStr;

string_enum! {
    /// Whether a process can be started.
    ProcessStatus {
        /// It can be started.
        Active = "active",
        /// It can't be started. Instances in progress continue.
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
            .ok_or_else(|| ValueError::new("must be up to 64 characters of a-z and 0-9, with single hyphens between them"))
    }
}

crate::values::field_error::text_form!(Slug, |slug| slug.0);

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

/// `None` leaves a field as it is.
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

    /// Only an active process can be started.
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
}
