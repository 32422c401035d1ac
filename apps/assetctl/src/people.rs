//! Users by the names that people have for them.

use crate::error::Result;
use crate::http::client::Client;
use crate::http::request::{JSON, get, unreadable};
use crate::output::folded;
use serde::Deserialize;

/// The service's maximum.
const LIMIT: usize = 100;
/// Longer texts are no names.
const MAX_CHARS: usize = 200;
/// The candidates that an error names.
const MAX_CANDIDATES: usize = 5;

/// A user as the service lists it.
#[derive(Debug, Clone, Deserialize)]
pub struct User {
    id: String,
    display_name: String,
    email: String,
    is_active: bool,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<User>,
}

/// The users, to be searched by words in their names and e-mail addresses.
pub enum Directory<'c> {
    /// The service searches.
    Service(&'c Client),
    /// All users were read, each with the text that is searched.
    Copy(Vec<(String, User)>),
}

impl<'c> Directory<'c> {
    /// Reads all users: mostly one request, as a part of an export has more than 10,000.
    pub async fn read(client: &'c Client) -> Result<Self> {
        let (mut users, mut url) = (Vec::new(), client.url("users/export", &[("format", "ndjson")])?);
        loop {
            let reply = get(client, &url, "application/x-ndjson").await?;
            for user in serde_json::Deserializer::from_slice(&reply.body).into_iter::<User>() {
                let user = user.map_err(|_| unreadable())?;
                users.push((folded(&format!("{}\n{}", user.display_name, user.email)), user));
            }
            match reply.next {
                Some(link) => url = client.follow(&url, &link)?,
                None => return Ok(Self::Copy(users)),
            }
        }
    }

    /// The ID of the one active user with this name, or the candidates.
    pub async fn find(&self, name: &str) -> Result<Result<String, String>> {
        let (words, longest) = search(name);
        if words.is_empty() || name.chars().count() > MAX_CHARS || name.contains(char::is_control) {
            return Ok(decide(name, &[], &[]));
        }
        let users = self.users(&words).await?;
        let similar = match longest {
            Some(word) if users.is_empty() => self.users(word).await?,
            _ => Vec::new(),
        };
        Ok(decide(name, &users, &similar))
    }

    /// All whose name or e-mail address has these words.
    async fn users(&self, words: &str) -> Result<Vec<User>> {
        let client = match self {
            Self::Service(client) => client,
            Self::Copy(users) => {
                let folded = folded(words);
                let has_words = |text: &str| folded.split(' ').all(|word| text.contains(word));
                return Ok(users.iter().filter(|(text, _)| has_words(text)).map(|(_, user)| user.clone()).collect());
            }
        };
        let mut users = Vec::new();
        for page in 1_u32.. {
            let query = [("q", words), ("page", &page.to_string()), ("limit", &LIMIT.to_string())];
            let reply = get(client, &client.url("users", &query)?, JSON).await?;
            let Page { data } = serde_json::from_slice(&reply.body).map_err(|_| unreadable())?;
            let is_last = data.len() < LIMIT;
            users.extend(data);
            if is_last {
                break;
            }
        }
        Ok(users)
    }
}

/// The one active user with this display name, in either order, or with this e-mail address. `users` have all of its words, and
/// `similar` some.
fn decide(name: &str, users: &[User], similar: &[User]) -> Result<String, String> {
    let called: Vec<&User> = users.iter().filter(|user| is_called(user, name)).collect();
    let active: Vec<&User> = called.iter().copied().filter(|user| user.is_active).collect();
    Err(match (active.as_slice(), called.as_slice()) {
        ([user], _) => return Ok(user.id.clone()),
        ([], []) if users.is_empty() && similar.is_empty() => format!("{name:?} is not the name of a user"),
        ([], []) => {
            let candidates: Vec<&User> = if users.is_empty() { similar } else { users }.iter().collect();
            format!("{name:?} is not the name of a user; similar: {}", listed(&candidates))
        }
        ([], inactive) => format!("{name:?} is not the name of an active user; inactive: {}", listed(inactive)),
        (several, _) => format!("{name:?} is the name of {} active users: {}", several.len(), listed(several)),
    })
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
fn search(name: &str) -> (String, Option<&str>) {
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
        super::decide(name, &users, &[])
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
        assert_eq!(super::decide("Bob", &[], &[]), Err("\"Bob\" is not the name of a user".into()));
    }

    #[test]
    fn searches_have_words_without_commas() {
        assert_eq!(search("Lovelace, Ada"), ("Lovelace Ada".into(), Some("Lovelace")));
        assert_eq!(search("ada@example.com"), ("ada@example.com".into(), None));
    }
}
