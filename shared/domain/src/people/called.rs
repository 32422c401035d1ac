//! Users by the names that people call them.

use fields::compared::compatible;
use serde::Deserialize;

/// Maximum number of users in an error.
const MAX_LISTED: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Called {
    pub id: String,
    pub display_name: String,
    pub email: String,
    pub is_active: bool,
}

/// Returns the only active user with this display name, in either word order, or with this e-mail address. `users` contain all words
/// of the name, and `similar` some of them.
///
/// # Errors
///
/// Describes a name that no active user has, or several, with the candidates.
pub fn only<'a>(name: &str, users: &'a [Called], similar: &[Called]) -> Result<&'a Called, String> {
    let key = name_key(name);
    let called: Vec<&Called> = users.iter().filter(|user| is_called(user, name, &key)).collect();
    let active: Vec<&Called> = called.iter().copied().filter(|user| user.is_active).collect();
    Err(match (active.as_slice(), called.as_slice()) {
        ([user], _) => return Ok(user),
        ([], []) if users.is_empty() && similar.is_empty() => format!("{name:?} is not the name of a user"),
        ([], []) => {
            let candidates: Vec<&Called> = if users.is_empty() { similar } else { users }.iter().collect();
            format!("{name:?} is not the name of a user; similar: {}", listed(&candidates))
        }
        ([], inactive) => format!("{name:?} is not the name of an active user; inactive: {}", listed(inactive)),
        (several, _) => format!("{name:?} is the name of {} active users: {}", several.len(), listed(several)),
    })
}

fn listed(users: &[&Called]) -> String {
    let more = users.len().saturating_sub(MAX_LISTED);
    let mut texts: Vec<String> =
        users.iter().take(MAX_LISTED).map(|user| format!("{} <{}>", user.display_name, user.email)).collect();
    texts.extend((more > 0).then(|| format!("{more} more")));
    texts.join(", ")
}

fn is_called(user: &Called, name: &str, key: &str) -> bool {
    name_key(&user.display_name) == key || compatible(&user.email) == compatible(name.trim())
}

/// Normalizes a name: `Lovelace, Ada` and `Ada Lovelace` become `ada lovelace`.
pub fn name_key(name: &str) -> String {
    let parts: Vec<&str> = name.split(',').map(str::trim).collect();
    let ordered = match parts.as_slice() {
        [last, first] if !last.is_empty() && !first.is_empty() => format!("{first} {last}"),
        _ => name.to_owned(),
    };
    fields::compared::name_key(&ordered)
}

/// Returns the words of a name, and the longest one if there are several.
pub fn words(name: &str) -> (String, Option<&str>) {
    let words: Vec<&str> = name.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()).collect();
    (words.join(" "), words.iter().copied().max_by_key(|word| word.chars().count()).filter(|_| words.len() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str, display_name: &str, is_active: bool) -> Called {
        Called { id: id.into(), display_name: display_name.into(), email: format!("{id}@example.com"), is_active }
    }

    fn only(name: &str) -> Result<String, String> {
        let users = [
            user("ada", "Ada Lovelace", true),
            user("old", "Ada Lovelace", false),
            user("king", "Ada Lovelace-King", true),
            user("alan1", "Alan Turing", true),
            user("alan2", "Turing, Alan", true),
            user("grace", "Hopper, Grace", false),
        ];
        super::only(name, &users, &[]).map(|user| user.id.clone())
    }

    #[test]
    fn one_active_user_with_exactly_that_name_is_found_in_either_order() {
        for name in ["Ada Lovelace", "Lovelace, Ada", "LOVELACE,  ada", "ada@example.com"] {
            assert_eq!(only(name).as_deref(), Ok("ada"), "{name}");
        }
    }

    #[test]
    fn ambiguous_names_of_users_are_refused_with_the_candidates() {
        let ambiguous =
            "\"Alan Turing\" is the name of 2 active users: Alan Turing <alan1@example.com>, Turing, Alan <alan2@example.com>";
        assert_eq!(only("Alan Turing"), Err(ambiguous.into()));
        let inactive = "\"Grace Hopper\" is not the name of an active user; inactive: Hopper, Grace <grace@example.com>";
        assert_eq!(only("Grace Hopper"), Err(inactive.into()));
        for name in ["Lovelace Ada", "Ada", "Ada Lovelace-"] {
            let unknown = only(name).err().unwrap_or_default();
            assert!(unknown.contains("is not the name of a user; similar: Ada Lovelace <ada@example.com>,"), "{unknown}");
            assert!(unknown.ends_with(", 1 more"), "{unknown}");
        }
        assert_eq!(super::only("Bob", &[], &[]), Err("\"Bob\" is not the name of a user".into()));
    }

    #[test]
    fn searches_have_words_without_commas() {
        assert_eq!(words("Lovelace, Ada"), ("Lovelace Ada".into(), Some("Lovelace")));
        assert_eq!(words("ada@example.com"), ("ada@example.com".into(), None));
    }
}
