//! The changes of status that a tenant permits.

use crate::assets::asset::Status;
use crate::values::field_error::ValueError;
use crate::values::json::parse_strict;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The statuses that an asset may change to by PATCH. A status without an entry may change to any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Transitions(BTreeMap<Status, BTreeSet<Status>>);

impl Transitions {
    /// `None` permits all.
    #[must_use]
    pub fn from(&self, status: Status) -> Option<&BTreeSet<Status>> {
        self.0.get(&status)
    }

    /// An object from status to list of statuses.
    ///
    /// # Errors
    ///
    /// Says what the value must be.
    pub fn from_json(text: &str) -> Result<Self, ValueError> {
        serde_json::from_value(parse_strict(text, 2)?).map(Self).map_err(|_| {
            let statuses = Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
            ValueError::new(format!(
                "must be null or an object that maps an asset status to the list of statuses it may change to, each one of {statuses}"
            ))
        })
    }
}
