//! What a request says of itself beside its body: the key that makes it repeatable, and the state that it expects
//! (contract 6 and 8).

use super::field_error::ValueError;
use super::hex;
use super::id::ApiKeyId;
use super::instance::ImageName;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::str::FromStr;
use uuid::Uuid;

/// What a client calls a request, so that it can send it again: 1 to 255 printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl FromStr for IdempotencyKey {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if printable && (1..=255).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ValueError::new("must be 1 to 255 printable ASCII characters"))
        }
    }
}

impl IdempotencyKey {
    /// The key as part of a table's key: hashed, so that it has one length.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::sha256(&self.0)
    }
}

/// A request that may come again. StoredResponse per API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// The API key that sent it.
    pub by: ApiKeyId,
    /// What the client calls it.
    pub key: IdempotencyKey,
    /// What it asked for, hashed: another request under the same key is a mistake.
    pub fingerprint: String,
}

impl IdempotentRequest {
    /// The claim of a request to `path` with `body`.
    #[must_use]
    pub fn new(by: ApiKeyId, key: IdempotencyKey, path: &str, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(path);
        hash.update([0]);
        hash.update(body);
        Self { by, key, fingerprint: hex::of(&hash.finalize()) }
    }
}

/// An answer that is kept for when its request comes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The header `Location`.
    pub location: Option<String>,
    /// The version that the header `ETag` names.
    pub version: Option<u64>,
    /// The body, without secrets, with the paths of signatures instead of their images.
    pub body: String,
    /// The paths that stood for images in the answer, each with the image.
    pub images: Vec<(String, ImageName)>,
}

/// The versions that a change is meant for: the header `If-Match` (RFC 9110 §13.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedVersions {
    /// `*`: whatever it is now.
    Any,
    /// One of these.
    Versions(Vec<u64>),
}

impl ExpectedVersions {
    /// Reads the header. An entity tag is `"version-hash"`; of one that has another form, or is weak, no version is
    /// expected, so it matches nothing.
    ///
    /// # Errors
    ///
    /// It is no list of entity tags.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        if text.trim() == "*" {
            return Ok(Self::Any);
        }
        Ok(Self::Versions(entity_tags(text)?.into_iter().filter_map(version_of).collect()))
    }

    /// Whether a thing of this version is what was expected.
    #[must_use]
    pub fn holds(&self, version: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Versions(versions) => versions.contains(&version),
        }
    }
}

/// What a change expects of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precondition {
    /// The thing that the request's path names.
    pub of: Uuid,
    /// Its version.
    pub expected: ExpectedVersions,
}

/// How many hexadecimal digits of the body's hash an entity tag has.
const HASH: usize = 16;

/// The entity tag of a body that shows a thing of this version: strong, since the body's hash is part of it.
#[must_use]
pub fn entity_tag(version: u64, body: &[u8]) -> String {
    format!("\"{version}-{}\"", &hex::sha256(body)[..HASH])
}

fn version_of(tag: &str) -> Option<u64> {
    let (version, hash) = tag.strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
    let is_ours = hash.len() == HASH && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    version.parse::<u64>().ok().filter(|number| is_ours && number.to_string() == version)
}

/// Whether the header `If-None-Match` names this entity tag, by the weak comparison (RFC 9110 §13.1.2).
///
/// # Errors
///
/// It is no list of entity tags.
pub fn none_match_names(header: &str, tag: &str) -> Result<bool, ValueError> {
    if header.trim() == "*" {
        return Ok(true);
    }
    Ok(entity_tags(header)?.iter().any(|named| named.strip_prefix("W/").unwrap_or(named) == tag))
}

/// Splits a list of entity tags: `"a", W/"b"`.
fn entity_tags(text: &str) -> Result<Vec<&str>, ValueError> {
    let refusal = || ValueError::new("must be * or a list of entity tags, such as \"3-1f0e9a2b4c5d6e7f\"");
    let mut tags = Vec::new();
    let mut rest = text.trim();
    loop {
        let opening = if rest.starts_with("W/") { 2 } else { 0 };
        let inner = rest.get(opening..).and_then(|quoted| quoted.strip_prefix('"')).ok_or_else(refusal)?;
        let closing = inner.find('"').ok_or_else(refusal)?;
        let (tag, after) = rest.split_at(opening + closing + 2);
        tags.push(tag);
        let after = after.trim_start();
        if after.is_empty() {
            return Ok(tags);
        }
        rest = after.strip_prefix(',').ok_or_else(refusal)?.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_is_printable_ascii() {
        for good in ["a", " ~", &"x".repeat(255)] {
            assert!(good.parse::<IdempotencyKey>().is_ok(), "{good}");
        }
        for bad in ["", "ä", "a\tb", "\u{7f}", &"x".repeat(256)] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn entity_tags_are_read_as_the_rfc_writes_them() {
        assert_eq!(entity_tags(r#""a""#), Ok(vec![r#""a""#]));
        assert_eq!(entity_tags(r#" "a,b" ,W/"c",  "" "#), Ok(vec![r#""a,b""#, r#"W/"c""#, r#""""#]));
        for bad in ["", "a", r#""a"#, r#""a" "b""#, r#""a","#, r#"w/"a""#, "W/", "ä"] {
            assert!(entity_tags(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tag_names_its_version_and_its_body() {
        let tag = entity_tag(12, b"body");
        assert!(ExpectedVersions::parse(&tag).is_ok_and(|expected| expected.holds(12) && !expected.holds(1)));
        assert!(
            ExpectedVersions::parse(&format!("W/{tag}")).is_ok_and(|expected| !expected.holds(12)),
            "weak tags match nothing"
        );
        assert!(ExpectedVersions::parse(&format!("\"old\", {tag}")).is_ok_and(|expected| expected.holds(12)));
        for foreign in ["\"12-x\"", "\"012-0123456789abcdef\"", "\"+12-0123456789abcdef\"", "\"12-0123456789ABCDEF\""] {
            assert!(ExpectedVersions::parse(foreign).is_ok_and(|expected| !expected.holds(12)), "{foreign}");
        }
        assert!(ExpectedVersions::parse("*").is_ok_and(|expected| expected.holds(7)));
        assert_eq!(none_match_names(&format!("\"x\", W/{tag}"), &tag), Ok(true));
        assert_eq!(none_match_names(&entity_tag(12, b"other"), &tag), Ok(false));
    }

    #[test]
    fn path_and_body_make_the_fingerprint() {
        let by = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("an id");
        let key: IdempotencyKey = "k".parse().expect("a key");
        let of = |path, body: &[u8]| IdempotentRequest::new(by, key.clone(), path, body).fingerprint;
        assert_eq!(of("/v1/assets", b"{}"), of("/v1/assets", b"{}"));
        assert_ne!(of("/v1/assets", b"{}"), of("/v1/users", b"{}"));
        assert_ne!(of("/v1/assets", b"{}"), of("/v1/assets", b"{ }"));
    }
}
