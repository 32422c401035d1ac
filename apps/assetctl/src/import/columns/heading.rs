//! The identity of an import, so that only the same one is resumed.

use crate::error::{CliError, Result};
use crate::import::columns::owners::Owners;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The journal's first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// Part of every idempotency key.
    pub run_id: String,
    pub sha256: String,
    /// Everything that decides about the requests.
    pub options: BTreeMap<String, String>,
    pub owners: Owners,
}

impl Heading {
    /// Checks that an import with the heading `expected` can go on where this one was interrupted.
    ///
    /// # Errors
    ///
    /// Returns [`CliError::Usage`] if the file or the options differ.
    pub fn check(&self, expected: &Self, path: &Path) -> Result<()> {
        if self.sha256 != expected.sha256 {
            return Err(CliError::Usage(format!(
                "the file has changed since its import was interrupted, so it can't be resumed. Restore the file; or delete {} and \
                 start again, with --match if rows may have been imported already.",
                path.display()
            )));
        }
        let names = self.options.keys().chain(expected.options.keys().filter(|name| !self.options.contains_key(*name)));
        let text = |options: &BTreeMap<String, String>, name| {
            options.get(name).map_or("not set".to_owned(), |value| format!("{value:?}"))
        };
        let differences: Vec<String> = names
            .filter(|name| self.options.get(*name) != expected.options.get(*name))
            .map(|name| format!("{name} was {}, is {}", text(&self.options, name), text(&expected.options, name)))
            .collect();
        if differences.is_empty() {
            return Ok(());
        }
        Err(CliError::Usage(format!("resume with the same options as before: {}", differences.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heading(sha256: &str, options: &[(&str, &str)]) -> Heading {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Heading { run_id: "r".into(), sha256: sha256.into(), options, owners: Owners::default() }
    }

    #[test]
    fn only_the_same_import_is_resumed() {
        let (found, path) = (heading("abc", &[("match", "none")]), Path::new("a.csv.assetctl"));
        assert!(found.check(&Heading { run_id: "other".into(), ..found.clone() }, path).is_ok());
        let changed = found.check(&heading("def", &[("match", "none")]), path).unwrap_err().to_string();
        assert!(changed.contains("has changed"), "{changed}");
        let differing = found.check(&heading("abc", &[("match", "id"), ("map", "a=b")]), path).unwrap_err().to_string();
        assert!(differing.contains("match was \"none\", is \"id\"; map was not set, is \"a=b\""), "{differing}");
    }
}
