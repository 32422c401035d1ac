//! API keys as the table stores them.

use crate::keys::lease::window;
use crate::keys::scope::{Role, Scopes};
use crate::record::{Kind, Record, fields};
use crate::values::id::{ApiKeyId, Id, UserId};
use crate::values::text::Name;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Requests per minute.
pub const DEFAULT_RATE_LIMIT: u32 = 600;
/// In requests per minute.
pub const MAX_RATE_LIMIT: u32 = 1_000_000;
/// 7 days.
pub const MAX_GRACE_SECONDS: u32 = 7 * 24 * 3600;

/// The maximum number of keys that share the minute of a key's creation with it. Each costs every request of that minute a count.
const MAX_SHARED_LIMITS: usize = 3;

/// SHA-256 of a secret, in lower-case hexadecimal. Its `Debug` text does not disclose it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretHash(pub String);

impl std::fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    pub hash: SecretHash,
    /// End of the grace period.
    pub until: Timestamp,
}

/// The rate limit of another key, against which requests count as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLimit {
    pub key: ApiKeyId,
    pub rate_limit_per_minute: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub name: Name,
    /// The scopes it was given. Those of a bound key are limited to its owner's role at each use.
    pub scopes: Scopes,
    /// The user that it is bound to; `None` for a key of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    pub hash: SecretHash,
    /// The previous secret, which works for a time after a rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret: Option<PreviousSecret>,
    /// When it stops working; `None` if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, with a precision of an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// In requests per minute.
    pub rate_limit_per_minute: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<ApiKeyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// In the minute of its creation, its requests also count against these limits, so that creating keys is no way to send more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_minute: Vec<SharedLimit>,
}

impl ApiKey {
    /// Creates a key of the tenant that does not expire.
    #[must_use]
    pub fn new(id: ApiKeyId, name: Name, scopes: Scopes, hash: SecretHash, rate_limit_per_minute: u32) -> Self {
        Self {
            id,
            name,
            scopes,
            user_id: None,
            hash,
            previous_secret: None,
            expires_at: None,
            last_used_at: None,
            rate_limit_per_minute,
            created_by: None,
            rotated_at: None,
            first_minute: Vec::new(),
        }
    }

    /// The key as its replaced secret uses it: it expires when that secret stops working, so that nothing it creates lives
    /// longer, and it can't rotate the key.
    #[must_use]
    pub fn in_grace(self) -> Self {
        let until = self.previous_secret.as_ref().map(|previous| previous.until);
        Self { expires_at: [self.expires_at, until].into_iter().flatten().min(), ..self }
    }

    /// No hash once the key has expired.
    #[must_use]
    pub fn accepted_hashes(&self, now: Timestamp) -> Vec<&SecretHash> {
        if self.expires_at.is_some_and(|end| end <= now) {
            return Vec::new();
        }
        let previous = self.previous_secret.as_ref().filter(|previous| now < previous.until).map(|previous| &previous.hash);
        std::iter::once(&self.hash).chain(previous).collect()
    }

    /// `role` belongs to the user that the key is bound to.
    #[must_use]
    pub fn effective_scopes(&self, role: Option<Role>) -> Scopes {
        match (self.user_id, role) {
            (None, _) => self.scopes.clone(),
            (Some(_), Some(role)) => self.scopes.iter().copied().filter(|scope| role.allows(*scope)).collect(),
            (Some(_), None) => Scopes::new(),
        }
    }

    /// The old one keeps working until `until`.
    #[must_use]
    pub fn rotated(&self, hash: SecretHash, now: Timestamp, until: Timestamp) -> Self {
        let previous_secret = (until > now).then(|| PreviousSecret { hash: self.hash.clone(), until });
        Self { hash, previous_secret, rotated_at: Some(now), ..self.clone() }
    }

    #[must_use]
    pub fn shared_limits(&self, now: Timestamp) -> &[SharedLimit] {
        if window(self.id.timestamp()) == window(now) { &self.first_minute } else { &[] }
    }

    /// The limits that a key shares in its first minute if this key creates it at `now`; `None` if there would be too many, so
    /// that this key must wait for the next minute.
    #[must_use]
    pub fn limits_of_new_key(&self, now: Timestamp) -> Option<Vec<SharedLimit>> {
        let own = SharedLimit { key: self.id, rate_limit_per_minute: self.rate_limit_per_minute };
        let shared: Vec<SharedLimit> = std::iter::once(own).chain(self.shared_limits(now).iter().copied()).collect();
        (shared.len() <= MAX_SHARED_LIMITS).then_some(shared)
    }
}

impl Record for ApiKey {
    const KIND: Kind = Kind::ApiKey;
    const PERSONAL_FIELDS: &'static [&'static str] = &["name"];
    type Id = ApiKeyId;

    fn id(&self) -> ApiKeyId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self {
            id: _,
            name,
            scopes,
            user_id,
            hash: _,
            previous_secret,
            expires_at,
            last_used_at: _,
            rate_limit_per_minute,
            created_by: _,
            rotated_at,
            first_minute: _,
        } = self;
        let replaced_until = previous_secret.as_ref().map(|previous| previous.until);
        fields([
            ("name", json!(name)),
            ("scopes", json!(scopes)),
            ("user_id", json!(user_id)),
            ("expires_at", json!(expires_at)),
            ("rate_limit_per_minute", json!(rate_limit_per_minute)),
            ("rotated_at", json!(rotated_at)),
            ("replaced_until", json!(replaced_until)),
        ])
    }
}

/// The first 12 characters of a key's text, by which people recognise it. They contain nothing of its secret.
#[must_use]
pub fn prefix(id: ApiKeyId) -> String {
    format!("apl_{}", &id.short()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::scope::{Role, Scope};

    fn key() -> ApiKey {
        let id = ApiKeyId::new(Timestamp::from_millis(0), [0; 10]);
        let scopes = Scope::ALL.iter().copied().collect();
        ApiKey::new(id, "k".parse().expect("a name"), scopes, SecretHash("new".into()), DEFAULT_RATE_LIMIT)
    }

    #[test]
    fn an_expired_key_accepts_no_secret() {
        let at = Timestamp::from_millis;
        let key = ApiKey { expires_at: Some(at(10)), ..key() };
        assert_eq!(key.accepted_hashes(at(9)).len(), 1);
        assert!(key.accepted_hashes(at(10)).is_empty());
    }

    #[test]
    fn the_previous_secret_works_until_its_grace_period_ends() {
        let at = Timestamp::from_millis;
        let rotated = key().rotated(SecretHash("newer".into()), at(10), at(20));
        assert_eq!(rotated.accepted_hashes(at(19)).len(), 2);
        assert_eq!(rotated.accepted_hashes(at(20)), [&SecretHash("newer".into())]);
        assert_eq!(key().rotated(SecretHash("newer".into()), at(10), at(10)).previous_secret, None);
    }

    #[test]
    fn a_bound_key_is_limited_to_its_owners_role() {
        let id = UserId::new(Timestamp::from_millis(0), [0; 10]);
        let bound = ApiKey { user_id: Some(id), ..key() };
        assert_eq!(bound.effective_scopes(Some(Role::Viewer)).len(), 5);
        assert_eq!(bound.effective_scopes(Some(Role::Admin)).len(), Scope::ALL.len());
        assert!(bound.effective_scopes(None).is_empty());
        assert_eq!(key().effective_scopes(None).len(), Scope::ALL.len());
    }

    #[test]
    fn a_new_key_shares_the_limits_of_those_that_created_it_in_the_same_minute() {
        let key = |millis: i64, random: u8, first_minute| {
            let id = ApiKeyId::new(Timestamp::from_millis(millis), [random; 10]);
            ApiKey { id, rate_limit_per_minute: random.into(), first_minute, ..key() }
        };
        let keys = |limits: &[SharedLimit]| limits.iter().map(|limit| limit.rate_limit_per_minute).collect::<Vec<_>>();
        let at = Timestamp::from_millis;
        let mut newest = key(0, 9, Vec::new());
        for (random, shared) in [(8, vec![9]), (7, vec![8, 9]), (6, vec![7, 8, 9])] {
            let first_minute = newest.limits_of_new_key(at(59_999)).expect("not too many");
            newest = key(1, random, first_minute);
            assert_eq!(keys(newest.shared_limits(at(59_999))), shared);
        }
        assert_eq!(newest.limits_of_new_key(at(59_999)), None, "too many");
        assert!(newest.shared_limits(at(60_000)).is_empty());
        assert_eq!(newest.limits_of_new_key(at(60_000)).as_deref().map(keys), Some(vec![6]));
    }

    #[test]
    fn debug_text_and_history_do_not_disclose_a_secrets_hash() {
        assert!(!format!("{:?}", key()).contains("new"));
        assert!(!serde_json::to_string(&key().history_fields()).expect("json").contains("new"));
    }
}
