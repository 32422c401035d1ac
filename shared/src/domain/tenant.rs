//! A tenant and its settings (contract 5).

use super::asset::Status;
use super::asset_tag::{TagPrefix, TagTemplate};
use super::field_error::ValueError;
use super::id::TenantId;
use super::json::parse_strict;
use super::record::{Kind, Patch, Record};
use super::text::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Which status an asset may move to by PATCH. A status that is not named may become any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Transitions(BTreeMap<Status, BTreeSet<Status>>);

impl Transitions {
    /// What `status` may become; `None`: anything.
    #[must_use]
    pub fn from(&self, status: Status) -> Option<&BTreeSet<Status>> {
        self.0.get(&status)
    }

    /// Reads the JSON text of an object from status to list of statuses.
    ///
    /// # Errors
    ///
    /// Says what an acceptable value is.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_value(parse_strict(text, 2)?).map(Self).map_err(|_| {
            ValueError::new("must be an object from an asset status to the list of statuses that it may become, or null")
        })
    }
}

/// An organisation, with what it has decided for itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    /// Which one.
    pub id: TenantId,
    /// What it is called.
    pub name: Name,
    /// What `{PREFIX}` stands for in tags.
    pub asset_tag_prefix: TagPrefix,
    /// How tags look.
    pub asset_tag_template: TagTemplate,
    /// How a PATCH may move an asset; `None`: any way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_transitions: Option<Transitions>,
}

/// What a PATCH of the settings changes.
#[derive(Debug, Clone, Default)]
pub struct TenantChange {
    /// The new name.
    pub name: Option<Name>,
    /// The new prefix, for tags from now on.
    pub asset_tag_prefix: Option<TagPrefix>,
    /// The new template, for tags from now on.
    pub asset_tag_template: Option<TagTemplate>,
    /// The new limits on moves.
    pub status_transitions: Patch<Transitions>,
}

impl Tenant {
    /// A tenant with the settings that every tenant begins with.
    #[must_use]
    pub fn new(id: TenantId, name: Name) -> Self {
        Self {
            id,
            name,
            asset_tag_prefix: TagPrefix::default(),
            asset_tag_template: TagTemplate::default(),
            status_transitions: None,
        }
    }

    /// The tenant as `change` makes it.
    #[must_use]
    pub fn changed(&self, change: &TenantChange) -> Self {
        let change = change.clone();
        Self {
            id: self.id,
            name: change.name.unwrap_or_else(|| self.name.clone()),
            asset_tag_prefix: change.asset_tag_prefix.unwrap_or_else(|| self.asset_tag_prefix.clone()),
            asset_tag_template: change.asset_tag_template.unwrap_or_else(|| self.asset_tag_template.clone()),
            status_transitions: change.status_transitions.or(self.status_transitions.clone()),
        }
    }
}

impl Record for Tenant {
    const KIND: Kind = Kind::Tenant;
    type Id = TenantId;

    fn id(&self) -> TenantId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("asset_tag_prefix".to_owned(), json!(self.asset_tag_prefix)),
            ("asset_tag_template".to_owned(), json!(self.asset_tag_template)),
            ("status_transitions".to_owned(), json!(self.status_transitions)),
        ])
    }
}

/// How far a counter of tags has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRange {
    /// The tag with `{N}` for its number.
    pub pattern: String,
    /// The number given last.
    pub last_number: u64,
    /// How many digits a number has at least.
    pub width: u64,
}

impl NumberRange {
    /// How many numbers fit before the tag takes a digit more.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        10u64.saturating_pow(u32::try_from(self.width).unwrap_or(u32::MAX)).saturating_sub(1)
    }
}
