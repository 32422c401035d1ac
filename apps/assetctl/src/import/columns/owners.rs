//! Users by their names in a file.

use std::collections::BTreeMap;

/// The ID of the user with each name, or the error of the rows that have it.
#[derive(Debug, Default)]
pub struct Owners(BTreeMap<String, Result<String, String>>);

impl Owners {
    pub fn add(&mut self, name: &str, owner: Result<String, String>) {
        self.0.insert(name.to_owned(), owner);
    }

    pub fn id(&self, name: &str) -> Result<String, String> {
        self.0.get(name).cloned().unwrap_or_else(|| Err(format!("{name:?} was not looked up")))
    }
}
