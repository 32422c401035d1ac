//! Process definitions: what is done with an asset, step by step, and what it is afterwards (contract 7).

mod steps;
mod system;
pub mod values;

pub use steps::{MAX_STEPS, Step, StepKind, Steps};
pub use system::{SYSTEM, SystemProcess};

use super::asset::Status;
use super::field_error::ValueError;
use super::id::ProcessId;
use super::record::{Kind, Record, Unique};
use super::scope::words;
use super::text::{Name, Notes};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::str::FromStr;

words! {
    /// Whether a process can be started.
    ProcessStatus, "active, inactive", {
        /// It can.
        Active = "active",
        /// It can't; what runs goes on.
        Inactive = "inactive",
    }
}

/// A name for URLs: `[a-z0-9]` and single hyphens between, at most 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$", examples("employee-onboarding"))]
pub struct Slug(String);

/// Longest slug.
const LONGEST_SLUG: usize = 64;

impl Slug {
    /// A slug made of `name`: what is no ASCII letter or digit becomes a hyphen. `nth` above 1 sets it apart.
    #[must_use]
    pub fn of(name: &str, nth: u32) -> Self {
        let words = name.to_lowercase();
        let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let suffix = if nth > 1 { format!("-{nth}") } else { String::new() };
        let mut slug = words.collect::<Vec<_>>().join("-");
        slug.truncate(LONGEST_SLUG - suffix.len());
        let slug = slug.trim_end_matches('-');
        Self(format!("{}{suffix}", if slug.is_empty() { "process" } else { slug }))
    }

    /// The slug.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Slug {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let fits = text.len() <= LONGEST_SLUG && text.split('-').all(word);
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| ValueError::new("must be up to 64 of a-z and 0-9, with single hyphens between"))
    }
}

super::field_error::text_form!(Slug, |slug| slug.0);

/// A process definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Which one.
    pub id: ProcessId,
    /// What it is called.
    pub name: Name,
    /// Its name in URLs; unique in the tenant, never changes.
    pub slug: Slug,
    /// What it is for.
    pub description: Notes,
    /// The status that an asset must have for it to start.
    pub trigger_status: Status,
    /// The status that the asset has once it is completed.
    pub target_status: Status,
    /// Whether every tenant has it from the start.
    pub is_system: bool,
    /// Whether it can be started.
    pub status: ProcessStatus,
    /// What is asked, in order.
    pub steps: Steps,
}

/// What a PATCH changes.
#[derive(Debug, Clone, Default)]
pub struct ProcessChange {
    /// The new name.
    pub name: Option<Name>,
    /// The new description.
    pub description: Option<Notes>,
    /// The new status to start from.
    pub trigger_status: Option<Status>,
    /// The new status to end in.
    pub target_status: Option<Status>,
    /// The new steps, for what is started from now on.
    pub steps: Option<Steps>,
    /// Whether it can be started from now on.
    pub status: Option<ProcessStatus>,
}

/// Only the status of a system process can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("only the status of a system process can change")]
pub struct SystemProcessFixed;

impl Process {
    /// The process as `change` makes it.
    ///
    /// # Errors
    ///
    /// [`SystemProcessFixed`] when a system process would become another.
    pub fn changed(&self, change: &ProcessChange) -> Result<Self, SystemProcessFixed> {
        let change = change.clone();
        let next = Self {
            id: self.id,
            slug: self.slug.clone(),
            is_system: self.is_system,
            name: change.name.unwrap_or_else(|| self.name.clone()),
            description: change.description.unwrap_or_else(|| self.description.clone()),
            trigger_status: change.trigger_status.unwrap_or(self.trigger_status),
            target_status: change.target_status.unwrap_or(self.target_status),
            steps: change.steps.unwrap_or_else(|| self.steps.clone()),
            status: change.status.unwrap_or(self.status),
        };
        let same = Self { status: self.status, ..next.clone() } == *self;
        if self.is_system && !same { Err(SystemProcessFixed) } else { Ok(next) }
    }
}

impl Record for Process {
    const KIND: Kind = Kind::Process;
    type Id = ProcessId;

    fn id(&self) -> ProcessId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("slug".to_owned(), json!(self.slug)),
            ("description".to_owned(), json!(self.description)),
            ("trigger_status".to_owned(), json!(self.trigger_status)),
            ("target_status".to_owned(), json!(self.target_status)),
            ("is_system".to_owned(), json!(self.is_system)),
            ("status".to_owned(), json!(self.status)),
            ("steps".to_owned(), json!(self.steps.as_slice())),
        ])
    }

    fn unique(&self) -> Vec<Unique> {
        vec![Unique { field: "slug", value: self.slug.as_str().to_owned(), kept: false }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::Id;
    use crate::domain::time::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn a_slug_is_made_of_a_name() {
        assert_eq!(Slug::of("Employee Onboarding!", 1).as_str(), "employee-onboarding");
        assert_eq!(Slug::of("Übergabe", 2).as_str(), "bergabe-2");
        assert_eq!(Slug::of("日本", 1).as_str(), "process");
        for wrong in ["", "A", "a--b", "-a", "a-", "a_b", &"a".repeat(65)] {
            assert!(wrong.parse::<Slug>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_name_makes_a_slug(name: String, nth in 1u32..1000) {
            let slug = Slug::of(&name, nth);
            prop_assert_eq!(slug.as_str().parse::<Slug>(), Ok(slug.clone()));
        }
    }

    #[test]
    fn a_system_process_changes_its_status_only() {
        let id = ProcessId::new(Timestamp::from_millis(0), [0; 10]);
        let process = SYSTEM[0].process(id).expect("a process");
        let off = ProcessChange { status: Some(ProcessStatus::Inactive), ..ProcessChange::default() };
        assert_eq!(process.changed(&off).map(|p| p.status), Ok(ProcessStatus::Inactive));
        let renamed = ProcessChange { name: "x".parse().ok(), ..off.clone() };
        assert_eq!(process.changed(&renamed), Err(SystemProcessFixed));
        let same = ProcessChange { name: Some(process.name.clone()), ..off };
        assert!(process.changed(&same).is_ok(), "sending back what was read is no change");
        let own = Process { is_system: false, ..process };
        assert_eq!(own.changed(&renamed).map(|p| p.name.to_string()), Ok("x".into()));
    }
}
