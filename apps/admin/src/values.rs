//! Values of the command line, and the errors of wrong ones.

use shared::domain::record::Kind;
use shared::domain::values::id::{ApiKeyId, UserId};
use shared::domain::values::suggestions::nearest_first;
use uuid::Uuid;

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// # Errors
///
/// A text with an example, also for a key instead of its ID.
pub fn key_id(text: &str) -> Result<ApiKeyId, String> {
    text.parse().map_err(|_| {
        let what = if text.starts_with("apl_") { "must be the ID of the key, not the key itself" } else { "must be an ID" };
        format!("{what}, such as {ID}; `admin key list` shows it")
    })
}

pub fn record_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| format!("must be an ID, such as {ID}; `admin check` shows it"))
}

/// # Errors
///
/// A text with an example.
pub fn user_id(text: &str) -> Result<UserId, String> {
    text.parse().map_err(|_| format!("must be an ID, such as {ID}"))
}

/// `text` is the noun.
///
/// # Errors
///
/// Returns a text with the nearest one, and with all.
pub fn kind(text: &str) -> Result<Kind, String> {
    let nouns = || Kind::ALL.iter().map(|kind| kind.noun());
    Kind::ALL.iter().copied().find(|kind| kind.noun() == text).ok_or_else(|| {
        let nearest = nearest_first(text, nouns()).first().copied().unwrap_or_default();
        format!("did you mean {nearest}? It must be one of {}", nouns().collect::<Vec<_>>().join(", "))
    })
}

/// # Errors
///
/// A text with an example.
pub fn parameter(text: &str) -> Result<(String, u64), String> {
    let parts = text.split_once('=').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    parts.ok_or_else(|| "must be a name and a number, such as ReservedConcurrency=20".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_told_what_is_right() {
        assert!(key_id(ID).is_ok() && record_id(ID).is_ok());
        assert_eq!(key_id("ci").unwrap_err(), format!("must be an ID, such as {ID}; `admin key list` shows it"));
        assert!(key_id("apl_0351f4Sj").unwrap_err().contains("not the key itself"));
        assert!(user_id(ID).is_ok() && user_id("ada@example.com").unwrap_err().contains(ID));
        assert!(record_id("AST-1").unwrap_err().contains(ID));
        assert!(kind("assets").unwrap_err().starts_with("did you mean asset? It must be one of "));
    }
}
