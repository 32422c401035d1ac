//! Users by their names in a file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The ID of the user with each name, or the error of the rows that have it. The journal keeps them, so that an import is resumed
/// with the same rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owners(BTreeMap<String, Result<String, String>>);

impl Owners {
    pub fn add(&mut self, name: &str, owner: Result<String, String>) {
        self.0.insert(name.to_owned(), owner);
    }

    pub fn id(&self, name: &str) -> Result<String, String> {
        self.0.get(name).cloned().unwrap_or_else(|| Err(format!("{name:?} was not looked up")))
    }
}
