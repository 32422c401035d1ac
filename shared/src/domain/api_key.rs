//! API keys as the table keeps them (contract 3).

use super::id::{ApiKeyId, Id, UserId};
use super::record::{Kind, Record};
use super::scope::{Scope, Scopes};
use super::text::Name;
use super::time::Timestamp;
use super::user::User;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a key may ask for in a minute unless it says otherwise (contract 8).
pub const DEFAULT_RATE_LIMIT: u32 = 600;
/// The most that a key can be allowed in a minute.
pub const MAX_RATE_LIMIT: u32 = 1_000_000;
/// How long the old secret may go on after a rotation, in seconds: 7 days.
pub const MAX_GRACE_SECONDS: u32 = 7 * 24 * 3600;

/// SHA-256 of a secret, in lower-case hexadecimal. Never shown, so that it has no `Debug` text either.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretHash(pub String);

impl std::fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// A secret that a rotation replaced, and how long it still works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    /// Of the old secret.
    pub hash: SecretHash,
    /// From when on it is refused.
    pub until: Timestamp,
}

/// An API key's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Which one.
    pub id: ApiKeyId,
    /// What it is for.
    pub name: Name,
    /// What it was given; a bound key's are cut to its owner's role at each use.
    pub scopes: Scopes,
    /// Whom it is bound to; `None` for a key of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// Of its secret.
    pub hash: SecretHash,
    /// The secret before, while it still works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<PreviousSecret>,
    /// From when on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// How many requests a minute.
    pub rate_limit_per_minute: u32,
    /// The key that made it; `None` for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<ApiKeyId>,
    /// When its secret was last replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
}

impl ApiKey {
    /// A new key of the tenant that does not expire.
    #[must_use]
    pub fn new(id: ApiKeyId, name: Name, scopes: Scopes, hash: SecretHash, rate_limit_per_minute: u32) -> Self {
        Self {
            id,
            name,
            scopes,
            user_id: None,
            hash,
            replaced: None,
            expires_at: None,
            last_used_at: None,
            rate_limit_per_minute,
            created_by: None,
            rotated_at: None,
        }
    }

    /// The hashes that a secret may have at `now`: none once the key has expired.
    #[must_use]
    pub fn accepted(&self, now: Timestamp) -> Vec<&SecretHash> {
        if self.expires_at.is_some_and(|end| end <= now) {
            return Vec::new();
        }
        let old = self.replaced.as_ref().filter(|old| now < old.until).map(|old| &old.hash);
        std::iter::once(&self.hash).chain(old).collect()
    }

    /// What the key may do, when `owner` is the user that it is bound to.
    #[must_use]
    pub fn effective_scopes(&self, owner: Option<&User>) -> Scopes {
        match (self.user_id, owner) {
            (None, _) => self.scopes.clone(),
            (Some(_), Some(user)) => self.scopes.iter().copied().filter(|scope| user.role.allows(*scope)).collect(),
            (Some(_), None) => Scopes::new(),
        }
    }

    /// The key with another secret; the old one works on until `until`.
    #[must_use]
    pub fn rotated(&self, hash: SecretHash, now: Timestamp, until: Timestamp) -> Self {
        let replaced = (until > now).then(|| PreviousSecret { hash: self.hash.clone(), until });
        Self { hash, replaced, rotated_at: Some(now), ..self.clone() }
    }

    /// The first of `wanted` that `held` lacks: nobody grants what they don't have.
    #[must_use]
    pub fn first_lacking(wanted: &Scopes, held: &Scopes) -> Option<Scope> {
        wanted.difference(held).next().copied()
    }
}

impl Record for ApiKey {
    const KIND: Kind = Kind::ApiKey;
    type Id = ApiKeyId;

    fn id(&self) -> ApiKeyId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("scopes".to_owned(), json!(self.scopes)),
            ("user_id".to_owned(), json!(self.user_id)),
            ("expires_at".to_owned(), json!(self.expires_at)),
            ("rate_limit_per_minute".to_owned(), json!(self.rate_limit_per_minute)),
            ("rotated_at".to_owned(), json!(self.rotated_at)),
            ("replaced_until".to_owned(), json!(self.replaced.as_ref().map(|old| old.until))),
        ])
    }
}

/// The first characters of a key's text: enough to recognise it, none of its secret.
#[must_use]
pub fn prefix(id: ApiKeyId) -> String {
    format!("apl_{}", &id.short()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::scope::Role;

    fn key() -> ApiKey {
        let id = ApiKeyId::new(Timestamp::from_millis(0), [0; 10]);
        let scopes = Scope::ALL.iter().copied().collect();
        ApiKey::new(id, "k".parse().expect("a name"), scopes, SecretHash("new".into()), DEFAULT_RATE_LIMIT)
    }

    #[test]
    fn an_expired_key_accepts_no_secret() {
        let at = Timestamp::from_millis;
        let key = ApiKey { expires_at: Some(at(10)), ..key() };
        assert_eq!(key.accepted(at(9)).len(), 1);
        assert!(key.accepted(at(10)).is_empty());
    }

    #[test]
    fn the_old_secret_works_until_its_grace_is_over() {
        let at = Timestamp::from_millis;
        let rotated = key().rotated(SecretHash("newer".into()), at(10), at(20));
        assert_eq!(rotated.accepted(at(19)).len(), 2);
        assert_eq!(rotated.accepted(at(20)), [&SecretHash("newer".into())]);
        assert_eq!(key().rotated(SecretHash("newer".into()), at(10), at(10)).replaced, None);
    }

    #[test]
    fn a_bound_key_is_cut_to_its_owners_role() {
        let id = UserId::new(Timestamp::from_millis(0), [0; 10]);
        let bound = ApiKey { user_id: Some(id), ..key() };
        let owner = |role| User {
            id,
            email: "a@b.c".parse().expect("an address"),
            display_name: "A".parse().expect("a name"),
            role,
            is_active: true,
        };
        assert_eq!(bound.effective_scopes(Some(&owner(Role::Viewer))).len(), 5);
        assert_eq!(bound.effective_scopes(Some(&owner(Role::Admin))).len(), 13);
        assert!(bound.effective_scopes(None).is_empty());
        assert_eq!(key().effective_scopes(None).len(), 13);
    }

    #[test]
    fn nothing_of_a_secret_is_printed() {
        assert!(!format!("{:?}", key()).contains("new"));
        assert!(!serde_json::to_string(&key().audit()).expect("json").contains("new"));
    }
}
