//! Users by their names in a file.

use crate::import::columns::values::folded;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The candidates that an error names.
const MAX_CANDIDATES: usize = 5;

/// A user as the service lists it.
#[derive(Debug, Clone, Deserialize)]
pub struct User {
    pub id: String,
    pub display_name: String,
    pub email: String,
    pub is_active: bool,
}

/// The user of each name, as far as there is exactly one. The journal keeps them, so that an import is resumed with the same rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owners(BTreeMap<String, Owner>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    Id(String),
    /// The error of rows with this name.
    Refused(String),
}

impl Owners {
    pub fn add(&mut self, name: &str, owner: Owner) {
        self.0.insert(name.to_owned(), owner);
    }

    /// The ID of the user, or the error for the row.
    pub fn id(&self, name: &str) -> Result<String, String> {
        match self.0.get(name) {
            Some(Owner::Id(id)) => Ok(id.clone()),
            Some(Owner::Refused(detail)) => Err(detail.clone()),
            None => Err(format!("{name:?} was not looked up")),
        }
    }
}

impl Owner {
    /// The one active user with this display name, in either order, or with this e-mail address. `users` have all of its words, and
    /// `similar` some.
    #[must_use]
    pub fn decide(name: &str, users: &[User], similar: &[User]) -> Self {
        let called: Vec<&User> = users.iter().filter(|user| is_called(user, name)).collect();
        let active: Vec<&User> = called.iter().copied().filter(|user| user.is_active).collect();
        Self::Refused(match (active.as_slice(), called.as_slice()) {
            ([user], _) => return Self::Id(user.id.clone()),
            ([], []) if users.is_empty() && similar.is_empty() => format!("{name:?} is not the name of a user"),
            ([], []) => {
                let candidates: Vec<&User> = if users.is_empty() { similar } else { users }.iter().collect();
                format!("{name:?} is not the name of a user; similar: {}", listed(&candidates))
            }
            ([], inactive) => format!("{name:?} is not the name of an active user; inactive: {}", listed(inactive)),
            (several, _) => format!("{name:?} is the name of {} active users: {}", several.len(), listed(several)),
        })
    }
}

fn listed(users: &[&User]) -> String {
    let more = users.len().saturating_sub(MAX_CANDIDATES);
    let mut texts: Vec<String> =
        users.iter().take(MAX_CANDIDATES).map(|user| format!("{} <{}>", user.display_name, user.email)).collect();
    texts.extend((more > 0).then(|| format!("{more} more")));
    texts.join(", ")
}

fn is_called(user: &User, name: &str) -> bool {
    plain(&user.display_name) == plain(name) || folded(&user.email) == folded(name.trim())
}

/// `Lovelace, Ada` and `Ada Lovelace` become `ada lovelace`.
fn plain(name: &str) -> String {
    let parts: Vec<&str> = name.split(',').map(str::trim).collect();
    let ordered = match parts.as_slice() {
        [last, first] if !last.is_empty() && !first.is_empty() => format!("{first} {last}"),
        _ => name.to_owned(),
    };
    folded(&ordered.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The words to search for, and the longest of them.
#[must_use]
pub fn search(name: &str) -> (String, Option<&str>) {
    let words: Vec<&str> = name.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()).collect();
    (words.join(" "), words.iter().copied().max_by_key(|word| word.chars().count()).filter(|_| words.len() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str, display_name: &str, is_active: bool) -> User {
        User { id: id.into(), display_name: display_name.into(), email: format!("{id}@example.com"), is_active }
    }

    fn decide(name: &str) -> Result<String, String> {
        let users = [
            user("ada", "Ada Lovelace", true),
            user("old", "Ada Lovelace", false),
            user("king", "Ada Lovelace-King", true),
            user("alan1", "Alan Turing", true),
            user("alan2", "Turing, Alan", true),
            user("grace", "Hopper, Grace", false),
        ];
        let mut owners = Owners::default();
        owners.add(name, Owner::decide(name, &users, &[]));
        owners.id(name)
    }

    #[test]
    fn one_active_user_with_exactly_that_name_is_found_in_either_order() {
        for name in ["Ada Lovelace", "Lovelace, Ada", "LOVELACE,  ada", "ada@example.com"] {
            assert_eq!(decide(name).as_deref(), Ok("ada"), "{name}");
        }
    }

    #[test]
    fn all_others_are_refused_with_the_candidates() {
        let ambiguous =
            "\"Alan Turing\" is the name of 2 active users: Alan Turing <alan1@example.com>, Turing, Alan <alan2@example.com>";
        assert_eq!(decide("Alan Turing"), Err(ambiguous.into()));
        let inactive = "\"Grace Hopper\" is not the name of an active user; inactive: Hopper, Grace <grace@example.com>";
        assert_eq!(decide("Grace Hopper"), Err(inactive.into()));
        for name in ["Lovelace Ada", "Ada", "Ada Lovelace-"] {
            let unknown = decide(name).unwrap_err();
            assert!(unknown.contains("is not the name of a user; similar: Ada Lovelace <ada@example.com>,"), "{unknown}");
            assert!(unknown.ends_with(", 1 more"), "{unknown}");
        }
        assert_eq!(Owner::decide("Bob", &[], &[]), Owner::Refused("\"Bob\" is not the name of a user".into()));
    }

    #[test]
    fn searches_have_words_without_commas() {
        assert_eq!(search("Lovelace, Ada"), ("Lovelace Ada".into(), Some("Lovelace")));
        assert_eq!(search("ada@example.com"), ("ada@example.com".into(), None));
    }
}
