//! API keys: the stored record, scopes, the roles that limit users' keys, the text of a credential, and the use of a rate limit.
//!
//! The text of an API key or signing link is a prefix, followed by its ID, the tenant's ID, the secret and a checksum in base62.
//! The ID comes first, so that the first 12 characters, which lists of keys show, differ from key to key. With the checksum,
//! secret scanners can recognise a credential, and a mistyped one is rejected without a database read.

use crate::record::{Kind, Record, fields};
use crate::values::base62::{self, WIDTH};
use crate::values::field_error::{ValueError, nearest_first};
use crate::values::hex;
use crate::values::id::{ApiKeyId, Id, LinkId, TenantId, UserId};
use crate::values::string_enum::string_enum;
use crate::values::text::Name;
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;

/// Default rate limit, in requests per minute.
pub const DEFAULT_RATE_LIMIT: u32 = 600;
/// Maximum rate limit, in requests per minute.
pub const MAX_RATE_LIMIT: u32 = 1_000_000;
/// Maximum time for which a replaced secret still works: 7 days.
pub const MAX_GRACE_SECONDS: u32 = 7 * 24 * 3600;

/// Maximum number of other keys whose limits a new key shares in its first minute. For each of them, every request in that minute
/// is counted once more.
const MAX_SHARED_LIMITS: usize = 3;

/// SHA-256 of a secret, in lower-case hexadecimal. `Debug` doesn't disclose it.
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
    pub until: Timestamp,
}

/// The rate limit of another key, which requests also count against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLimit {
    pub key: ApiKeyId,
    pub rate_limit_per_minute: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub name: Name,
    /// The granted scopes. At each use, the scopes of a bound key are limited to its owner's role.
    pub scopes: Scopes,
    /// The user that the key is bound to; `None` for tenant keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    pub hash: SecretHash,
    /// Works until [`PreviousSecret::until`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret: Option<PreviousSecret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When the key was last used, with a precision of one hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    pub rate_limit_per_minute: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<ApiKeyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// In the key's first minute, its requests also count against these limits, so that nobody gets around a limit by creating
    /// keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_minute: Vec<SharedLimit>,
}

impl ApiKey {
    /// Creates a tenant key that doesn't expire.
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

    /// Limits the key for requests with the replaced secret: the key expires with that secret, so these requests can't create
    /// anything that lasts longer, or rotate the key.
    #[must_use]
    pub fn in_grace(self) -> Self {
        let until = self.previous_secret.as_ref().map(|previous| previous.until);
        Self { expires_at: [self.expires_at, until].into_iter().flatten().min(), ..self }
    }

    /// Returns the hashes of the valid secrets; none once the key has expired.
    pub fn accepted_hashes(&self, now: Timestamp) -> Vec<&SecretHash> {
        if self.expires_at.is_some_and(|end| end <= now) {
            return Vec::new();
        }
        let previous = self.previous_secret.as_ref().filter(|previous| now < previous.until).map(|previous| &previous.hash);
        std::iter::once(&self.hash).chain(previous).collect()
    }

    /// Returns the scopes that the key has now. `role` is the role of the user that the key is bound to.
    pub fn effective_scopes(&self, role: Option<Role>) -> Scopes {
        match (self.user_id, role) {
            (None, _) => self.scopes.clone(),
            (Some(_), Some(role)) => self.scopes.iter().copied().filter(|scope| role.allows(*scope)).collect(),
            (Some(_), None) => Scopes::new(),
        }
    }

    /// Replaces the secret. The old one works until `until`.
    #[must_use]
    pub fn rotated(&self, hash: SecretHash, now: Timestamp, until: Timestamp) -> Self {
        // The replaced secret ends before the key does, so that it can't grant all of the key's rights and rotate it again.
        let until = self.expires_at.map_or(until, |end| until.min(end.plus(-TimeDelta::milliseconds(1))));
        let previous_secret = (until > now).then(|| PreviousSecret { hash: self.hash.clone(), until });
        Self { hash, previous_secret, rotated_at: Some(now), ..self.clone() }
    }

    pub fn shared_limits(&self, now: Timestamp) -> &[SharedLimit] {
        if window(self.id.timestamp()) == window(now) { &self.first_minute } else { &[] }
    }

    /// Returns the limits that a key created by this one at `now` shares in its first minute. `None` if there are too many; then
    /// this key can't create keys until the next minute.
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

/// Returns the first 12 characters of a key's text, which identify the key and disclose nothing about its secret.
pub fn prefix(id: ApiKeyId) -> String {
    format!("apl_{}", &id.short()[..8])
}

/// The ID of a kind of credential. The checksum includes the kind's prefix, so one kind can't be used as another.
pub trait Credential: Id {
    /// The text that every credential of this kind starts with, for secret scanners.
    const PREFIX: &'static str;
}

impl Credential for ApiKeyId {
    const PREFIX: &'static str = "apl_";
}

impl Credential for LinkId {
    const PREFIX: &'static str = "sgn_";
}

/// Number of digits of the CRC-32 checksum: 62^6 is above 2^32.
const CHECKSUM_WIDTH: usize = 6;
/// Number of digits of two IDs and a 256-bit secret.
const BODY_WIDTH: usize = 4 * WIDTH;

/// A secret of 256 random bits. `Debug` doesn't disclose them.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Hashes the secret. Plain SHA-256 suffices, because 256 random bits can't be guessed.
    pub fn hash(&self) -> SecretHash {
        SecretHash(hex::sha256(self.0))
    }

    /// Returns the HMAC-SHA256 of `parts` under the secret, in lower-case hexadecimal. Only the holder of the secret can
    /// compute it.
    pub fn authenticate(&self, parts: &[&[u8]]) -> String {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        parts.iter().for_each(|part| context.update(part));
        hex::encode(context.sign().as_ref())
    }

    /// Whether one of the hashes is the hash of the secret. Compares in constant time.
    pub fn is_one_of(&self, accepted: &[&SecretHash]) -> bool {
        let own = self.hash();
        accepted.iter().fold(false, |found, hash| found | bool::from(own.0.as_bytes().ct_eq(hash.0.as_bytes())))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

pub type Token = BearerToken<ApiKeyId>;

pub type LinkToken = BearerToken<LinkId>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerToken<C> {
    /// The tenant, whose partition has the credential's record.
    pub tenant: TenantId,
    pub id: C,
    pub secret: Secret,
}

impl<C: Credential> BearerToken<C> {
    pub fn new(tenant: TenantId, id: C, secret: Secret) -> Self {
        Self { tenant, id, secret }
    }

    /// Returns the text that clients send as `Authorization: Bearer …`. Not `Display`, so nothing prints it by accident.
    pub fn expose(&self) -> String {
        let (high, low) = self.secret.0.split_at(16);
        let half = |bytes: &[u8]| base62::encode(bytes.iter().fold(0, |n, &b| n << 8 | u128::from(b)), WIDTH);
        let body = format!("{}{}{}{}{}", C::PREFIX, self.id.short(), self.tenant.short(), half(high), half(low));
        let checksum = base62::encode(u128::from(crc32fast::hash(body.as_bytes())), CHECKSUM_WIDTH);
        body + &checksum
    }

    /// Parses exactly the texts that [`BearerToken::expose`] returns. Needs no database read.
    pub fn parse(text: &str) -> Option<Self> {
        let digits =
            text.strip_prefix(C::PREFIX).filter(|digits| digits.len() == BODY_WIDTH + CHECKSUM_WIDTH && digits.is_ascii())?;
        let body = &text[..C::PREFIX.len() + BODY_WIDTH];
        let checksum = base62::decode(&digits[BODY_WIDTH..])?;
        if checksum != u128::from(crc32fast::hash(body.as_bytes())) {
            return None;
        }
        let chunk = |index: usize| base62::decode(&digits[index * WIDTH..(index + 1) * WIDTH]);
        let mut secret = [0; 32];
        secret[..16].copy_from_slice(&chunk(2)?.to_be_bytes());
        secret[16..].copy_from_slice(&chunk(3)?.to_be_bytes());
        let id = |index| Some(uuid::Uuid::from_u128(chunk(index)?));
        Some(Self { tenant: TenantId::from_uuid(id(1)?), id: C::from_uuid(id(0)?), secret: Secret(secret) })
    }
}

string_enum! {
    /// A permission of an API key.
    Scope {
        /// List and read assets and their history.
        AssetsRead = "assets:read",
        /// Create, change and delete assets.
        AssetsWrite = "assets:write",
        /// Read process definitions, process instances and movements.
        ProcessesRead = "processes:read",
        /// Define, start, advance and cancel processes.
        ProcessesWrite = "processes:write",
        /// List and read users.
        UsersRead = "users:read",
        /// Create, change and delete users.
        UsersWrite = "users:write",
        /// Read asset types, manufacturers and models.
        CatalogRead = "catalog:read",
        /// Change asset types, manufacturers and models.
        CatalogWrite = "catalog:write",
        /// Read the tenant's settings.
        SettingsRead = "settings:read",
        /// Change the tenant's settings.
        SettingsWrite = "settings:write",
        /// List and read API keys, but never their secrets.
        KeysRead = "keys:read",
        /// Create, rotate and revoke API keys.
        KeysWrite = "keys:write",
        /// Read all events of the tenant.
        EventsRead = "events:read",
        /// List and read webhooks and their deliveries, but never their secrets.
        WebhooksRead = "webhooks:read",
        /// Create, change, delete and test webhooks, and retry deliveries.
        WebhooksWrite = "webhooks:write",
    }
}

pub type Scopes = BTreeSet<Scope>;

string_enum! {
    /// The role of a user, which limits the scopes of keys bound to the user. Each role includes the permissions of lower roles.
    Role {
        /// Reads assets, processes, users, the catalog and settings.
        Viewer = "viewer",
        /// Also runs processes.
        Helpdesk = "helpdesk",
        /// Also changes assets and the catalog.
        Technician = "technician",
        /// Has every scope.
        Admin = "admin",
    }
}

impl Role {
    pub fn allows(self, scope: Scope) -> bool {
        use Scope::{AssetsRead, AssetsWrite, CatalogRead, CatalogWrite, EventsRead, KeysRead, KeysWrite};
        use Scope::{
            ProcessesRead, ProcessesWrite, SettingsRead, SettingsWrite, UsersRead, UsersWrite, WebhooksRead, WebhooksWrite,
        };
        let lowest = match scope {
            AssetsRead | ProcessesRead | UsersRead | CatalogRead | SettingsRead => Self::Viewer,
            ProcessesWrite => Self::Helpdesk,
            AssetsWrite | CatalogWrite => Self::Technician,
            UsersWrite | SettingsWrite | KeysRead | KeysWrite | EventsRead | WebhooksRead | WebhooksWrite => Self::Admin,
        };
        self >= lowest
    }
}

/// Parses comma-separated scopes, for the operator's command line.
///
/// # Errors
///
/// Returns an error that suggests the scope most similar to an unknown one, and lists all scopes.
pub fn parse_list(text: &str) -> Result<Scopes, ValueError> {
    text.split(',').map(str::trim).map(|scope| scope.parse().map_err(|error| unknown(scope, &error))).collect()
}

fn unknown(scope: &str, error: &ValueError) -> ValueError {
    let nearest = nearest_first(scope, Scope::ALL.iter().map(|known| known.as_str()));
    let nearest = nearest.first().copied().unwrap_or_default();
    ValueError::new(format!("{scope:?} is not a scope; did you mean {nearest}? Each {error}"))
}

/// Length of the window in which requests are counted.
pub const WINDOW_SECONDS: i64 = 60;
/// Returns the number of the window, counted from 1970.
pub fn window(at: Timestamp) -> i64 {
    at.millis().div_euclid(WINDOW_SECONDS * 1000)
}

pub fn end_of_window(at: Timestamp) -> Timestamp {
    Timestamp::from_millis((window(at) + 1) * WINDOW_SECONDS * 1000)
}

/// The use of a rate limit in the current window, including the current request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The limit, in requests per window.
    pub limit: u32,
    /// Number of used requests; `None` if they couldn't be counted.
    pub used: Option<u64>,
    /// The start of the next window, as Unix time in seconds.
    pub reset: i64,
    /// Seconds until the next window starts, at least 1.
    pub wait: i64,
}

impl Rate {
    pub fn new(limit: u32, used: Option<u64>, at: Timestamp) -> Self {
        let reset = (window(at) + 1) * WINDOW_SECONDS;
        let wait = (reset * 1000 - at.millis() + 999).div_euclid(1000).max(1);
        Self { limit, used, reset, wait }
    }

    /// Returns the number of remaining requests; `None` if the number of used requests is unknown.
    pub fn remaining(&self) -> Option<u64> {
        Some(u64::from(self.limit).saturating_sub(self.used?))
    }

    /// Whether the limit is exceeded. False for a request that couldn't be counted.
    pub fn is_exceeded(&self) -> bool {
        self.used.is_some_and(|used| used > self.limit.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::grant::GrantError;
    use crate::samples::time as at;
    use proptest::prelude::*;

    fn key() -> ApiKey {
        let id = ApiKeyId::new(Timestamp::from_millis(0), [0; 10]);
        let scopes = Scope::ALL.iter().copied().collect();
        ApiKey::new(id, "k".parse().expect("a name"), scopes, SecretHash("new".into()), DEFAULT_RATE_LIMIT)
    }

    #[test]
    fn an_expired_key_accepts_no_secret() {
        let key = ApiKey { expires_at: Some(at(10)), ..key() };
        assert_eq!(key.accepted_hashes(at(9)).len(), 1);
        assert!(key.accepted_hashes(at(10)).is_empty());
    }

    #[test]
    fn the_previous_secret_works_until_its_grace_period_ends() {
        let rotated = key().rotated(SecretHash("newer".into()), at(10), at(20));
        assert_eq!(rotated.accepted_hashes(at(19)).len(), 2);
        assert_eq!(rotated.accepted_hashes(at(20)), [&SecretHash("newer".into())]);
        assert_eq!(key().rotated(SecretHash("newer".into()), at(10), at(10)).previous_secret, None);
    }

    #[test]
    fn a_replaced_secret_cannot_rotate_the_key_even_if_the_key_expires_first() {
        for (expires_at, until) in [(None, at(20)), (Some(at(30)), at(20)), (Some(at(20)), at(20)), (Some(at(20)), at(30))] {
            let key = ApiKey { expires_at, ..key() }.rotated(SecretHash("newer".into()), at(10), until);
            let (replaced, scopes) = (key.clone().in_grace(), key.scopes.clone());
            let refused = replaced.rights(&scopes).check_grant(&key.rights(&scopes));
            assert!(matches!(refused, Err(GrantError::Expiry(_))), "{expires_at:?} {until:?}: {refused:?}");
        }
    }

    #[test]
    fn debug_text_and_history_do_not_disclose_a_secrets_hash() {
        assert!(!format!("{:?}", key()).contains("new"));
        assert!(!serde_json::to_string(&key().history_fields()).expect("json").contains("new"));
    }

    proptest! {
        #[test]
        fn a_token_reads_back(tenant: u128, key: u128, secret: [u8; 32]) {
            let id = uuid::Uuid::from_u128;
            let token = Token::new(TenantId::from_uuid(id(tenant)), ApiKeyId::from_uuid(id(key)), Secret(secret));
            let text = token.expose();
            prop_assert!(text.starts_with(&prefix(token.id)));
            prop_assert_eq!(Token::parse(&text), Some(token));
        }

        #[test]
        fn a_mistyped_token_is_refused(secret: [u8; 32], index in 4usize..98, digit in "[0-9A-Za-z]") {
            let text = Token::new(TenantId::from_uuid(uuid::Uuid::nil()), ApiKeyId::from_uuid(uuid::Uuid::max()), Secret(secret)).expose();
            let mut wrong = text.clone();
            wrong.replace_range(index..=index, &digit);
            prop_assert_eq!(Token::parse(&wrong).is_some(), wrong == text);
        }

        #[test]
        fn parsing_never_panics(text in "(apl_)?.{0,100}") {
            let _ = Token::parse(&text);
        }
    }

    #[test]
    fn each_role_allows_more_than_the_one_before() {
        let allowed = |role: Role| Scope::ALL.iter().filter(|s| role.allows(**s)).map(|s| s.as_str()).collect::<Vec<_>>();
        assert_eq!(allowed(Role::Viewer), ["assets:read", "processes:read", "users:read", "catalog:read", "settings:read"]);
        assert_eq!(allowed(Role::Helpdesk).len(), 6);
        assert!(allowed(Role::Helpdesk).contains(&"processes:write"));
        assert_eq!(allowed(Role::Technician).len(), 8);
        assert!(["assets:write", "catalog:write"].iter().all(|scope| allowed(Role::Technician).contains(scope)));
        assert_eq!(allowed(Role::Admin).len(), Scope::ALL.len());
    }

    #[test]
    fn a_list_with_an_unknown_scope_is_refused() {
        assert_eq!(parse_list("assets:read, keys:write").map(|s| s.len()), Ok(2));
        assert!(parse_list("assets:read,").is_err());
        let unknown = parse_list("keys:read,asset:read").unwrap_err().to_string();
        assert!(
            unknown.starts_with("\"asset:read\" is not a scope; did you mean assets:read? Each must be one of "),
            "{unknown}"
        );
    }

    #[test]
    fn the_last_allowed_request_leaves_none_and_the_next_one_exceeds_the_limit() {
        let at = Timestamp::from_millis(1_772_704_859_001);
        let rate = Rate::new(3, Some(3), at);
        assert_eq!((rate.remaining(), rate.is_exceeded()), (Some(0), false));
        assert_eq!((rate.reset, rate.wait), (1_772_704_860, 1));
        let rate = Rate::new(3, Some(4), at);
        assert_eq!((rate.remaining(), rate.is_exceeded()), (Some(0), true));
        let begun = Rate::new(3, Some(0), Timestamp::from_millis(1_772_704_860_000));
        assert_eq!((begun.reset, begun.wait), (1_772_704_920, 60));
    }

    #[test]
    fn a_request_that_could_not_be_counted_does_not_exceed_the_limit() {
        let rate = Rate::new(3, None, Timestamp::from_millis(1_772_704_860_000));
        assert_eq!((rate.remaining(), rate.is_exceeded(), rate.reset), (None, false, 1_772_704_920));
    }
}
