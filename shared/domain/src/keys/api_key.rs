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

/// Divides the limit to get the number of requests that all instances together can hold unused.
const HELD_PART: u64 = 10;
/// Divides the allowance for unused requests to get a share. With larger shares, the first few instances would leave nothing for
/// the others.
const SHARE_PART: u64 = 8;
/// Minimum number of unused requests in a share, but at most half of the allowance. Matters for small limits.
const MIN_UNUSED: u64 = 3;

/// The counter of a credential in one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// Number of requests taken by instances.
    pub taken: u64,
    /// Upper bound on how many of the taken requests are still unused.
    pub held: u64,
}

/// Requests that an instance takes at once: the change to the counter, and its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of requests: the current one, and the ones that the instance will hold.
    pub requests: u64,
    /// Number of requests of earlier shares that are used up and no longer held.
    pub used_up: u64,
    /// Condition: maximum number of requests taken before.
    pub max_taken: u64,
    /// Condition: maximum number of requests held before; `None` if the share adds no held requests.
    pub max_held: Option<u64>,
}

/// A function instance's lease: it takes several requests of a credential's minute at once, and counts them locally.
///
/// A counter in the table has the number of requests taken in that minute. A share is only added if the limit isn't exceeded, so
/// even many instances don't let more requests through. Unused requests are lost when the minute ends. To limit the loss, the
/// counter also tracks how many requests can be unused, and the same condition keeps that number within a tenth of the limit. In
/// the last quarter of the limit, requests are taken one at a time, and instances use up the ones they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    window: i64,
    limit: u64,
    /// The counter after the instance's last write.
    counter: Counter,
    /// Requests that the instance can let through without a write.
    left: u64,
    /// The instance's part of the counter's held requests.
    held: u64,
}

impl Lease {
    pub fn new(limit: u32, at: Timestamp) -> Self {
        Self { window: window(at), limit: limit.into(), counter: Counter::default(), left: 0, held: 0 }
    }

    /// Whether the lease is for this minute and this limit. Other leases can't be used.
    pub fn is_for(&self, limit: u32, at: Timestamp) -> bool {
        (self.window, self.limit) == (window(at), limit.into())
    }

    /// Returns the number of the minute, counted from 1970.
    pub fn window(&self) -> i64 {
        self.window
    }

    /// Counts a request. Returns the number of used requests known to the instance: above the limit if the limit is used up.
    ///
    /// # Errors
    ///
    /// Returns the share to take first if nothing is left.
    pub fn count(&mut self) -> Result<u64, Share> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return Ok(self.used());
        }
        if self.counter.taken >= self.limit { Ok(self.limit + 1) } else { Err(self.next_share()) }
    }

    /// Counts a request after taking a share, which left the counter at `counter`. Returns the same as [`Lease::count`].
    pub fn add(&mut self, share: Share, counter: Counter) -> u64 {
        let unused = share.requests - 1;
        self.left += unused;
        self.held += unused;
        // The responses of concurrent writes can arrive in any order.
        self.counter = Counter { taken: counter.taken.max(self.counter.taken), held: counter.held };
        self.used()
    }

    /// Counts a request for which not even [`Share::single`] could be taken. Returns the same as [`Lease::count`].
    pub fn exhaust(&mut self) -> u64 {
        self.counter.taken = self.limit;
        self.limit + 1
    }

    fn used(&self) -> u64 {
        self.counter.taken - self.left
    }

    /// Returns the next share to take: the current request, plus a part of the allowance for unused requests.
    fn next_share(&mut self) -> Share {
        // Reset before the write: if the write's outcome is unknown, the requests count as held until the minute ends.
        let used_up = std::mem::take(&mut self.held);
        let max_held = self.limit / HELD_PART;
        let max_taken = self.limit / 4 * 3;
        let holdable = max_held.saturating_sub(self.counter.held.saturating_sub(used_up));
        let unused =
            (holdable / SHARE_PART).max(MIN_UNUSED).min(holdable / 2).min(max_taken.saturating_sub(self.counter.taken + 1));
        let single = Share { requests: 1, used_up, max_taken: self.limit - 1, max_held: None };
        match unused {
            0 => single,
            _ => Share {
                requests: unused + 1,
                max_taken: max_taken - (unused + 1),
                max_held: Some(max_held + used_up - unused),
                ..single
            },
        }
    }
}

impl Share {
    /// Returns a share of only the current request, which can be taken until the limit is used up; `None` if this share is
    /// already for a single request.
    #[must_use]
    pub fn single(self, limit: u32) -> Option<Self> {
        let single = Self { requests: 1, max_taken: u64::from(limit) - 1, max_held: None, ..self };
        (self.requests > 1).then_some(single)
    }

    pub fn change_of_held(&self) -> i64 {
        (self.requests - 1).cast_signed() - self.used_up.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::time as at;
    use proptest::array::uniform10;
    use proptest::prelude::*;
    use std::collections::HashMap;

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

    const MINUTE: i64 = 60_000;

    /// The table's counters by minute, with conditional writes.
    #[derive(Default)]
    struct Table(HashMap<i64, Counter>);

    impl Table {
        fn take(&mut self, window: i64, share: Share) -> Option<Counter> {
            let counter = self.0.entry(window).or_default();
            let is_permitted = counter.taken <= share.max_taken && share.max_held.is_none_or(|most| counter.held <= most);
            is_permitted.then(|| {
                counter.taken += share.requests;
                counter.held = counter.held.checked_add_signed(share.change_of_held()).expect("held requests");
                *counter
            })
        }

        /// Counts a request like an instance that receives every response. Also returns the number of writes.
        fn count(&mut self, lease: &mut Lease, limit: u32) -> (u64, usize) {
            let share = match lease.count() {
                Ok(used) => return (used, 0),
                Err(share) => share,
            };
            let shares: Vec<Share> = std::iter::once(share).chain(share.single(limit)).collect();
            for (writes, share) in shares.iter().enumerate() {
                if let Some(counter) = self.take(lease.window, *share) {
                    return (lease.add(*share, counter), writes + 1);
                }
            }
            (lease.exhaust(), shares.len())
        }
    }

    #[test]
    fn one_instance_uses_exactly_the_limit_and_knows_what_remains() {
        for limit in [1, 2, 5, 10, 19, 20, 60, 600, 1_000_000] {
            let (mut table, mut lease, mut writes) = (Table::default(), Lease::new(limit, at(0)), 0);
            for n in 1..=u64::from(limit) {
                let (used, written) = table.count(&mut lease, limit);
                assert_eq!(used, n, "limit {limit}");
                writes += written;
            }
            for _ in 0..3 {
                assert_eq!(table.count(&mut lease, limit), (u64::from(limit) + 1, 0), "limit {limit}");
            }
            // Another instance finds the limit used up after one or two writes.
            let mut other = Lease::new(limit, at(0));
            let refused: Vec<_> = (0..3).map(|_| table.count(&mut other, limit)).collect();
            assert!(refused.iter().all(|(used, _)| *used == u64::from(limit) + 1), "limit {limit}");
            assert!((1..=2).contains(&refused[0].1) && refused[1..].iter().all(|(_, written)| *written == 0), "{refused:?}");
            assert!(limit < 100 || writes <= limit as usize * 2 / 5, "limit {limit}: {writes} writes");
        }
    }

    #[test]
    fn shares_are_large_first_and_single_in_the_last_quarter() {
        let share = |taken, held| {
            let lease = Lease { counter: Counter { taken, held }, ..Lease::new(600, at(0)) };
            let share = { lease }.count().expect_err("nothing is left");
            (share.requests, share.max_taken, share.max_held)
        };
        assert_eq!(share(0, 0), (8, 442, Some(53)));
        assert_eq!(share(100, 30), (4, 446, Some(57)), "another instance holds some");
        assert_eq!(share(100, 60), (1, 599, None), "others hold as much as possible");
        assert_eq!(share(444, 0), (6, 444, Some(55)), "up to the last quarter");
        assert_eq!(share(449, 0), (1, 599, None));
        assert_eq!(share(599, 0), (1, 599, None));
        let (mut table, mut lease) = (Table::default(), Lease::new(600, at(0)));
        let writes: usize = (0..100).map(|_| table.count(&mut lease, 600).1).sum();
        assert_eq!(writes, 13, "for the first 100 requests");
    }

    #[test]
    fn what_an_instance_has_used_up_it_can_hold_again() {
        let (mut table, mut lease) = (Table::default(), Lease::new(600, at(0)));
        for _ in 0..8 {
            table.count(&mut lease, 600);
        }
        let share = lease.count().expect_err("nothing is left");
        assert_eq!((share.requests, share.used_up, share.change_of_held()), (8, 7, 0));
        // The write's outcome is unknown: the used-up requests count as held until the minute ends.
        assert_eq!(lease.count().expect_err("nothing is left").used_up, 0);
    }

    #[test]
    fn a_lease_is_for_its_minute_and_its_limit() {
        let lease = Lease::new(600, at(MINUTE - 1));
        assert!(lease.is_for(600, at(0)) && !lease.is_for(600, at(MINUTE)) && !lease.is_for(601, at(0)));
    }

    /// Requests to random instances, with clocks up to a second apart. Instances freeze during a write, and writes fail or lose
    /// their response.
    #[derive(Debug, Clone)]
    enum Step {
        Request {
            instance: usize,
        },
        /// The write takes effect, and its response arrives later or never.
        Freeze {
            instance: usize,
            is_answered: bool,
        },
        Failure {
            instance: usize,
        },
        Thaw,
        Time {
            millis: i64,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let instance = || 0..10_usize;
        let step = prop_oneof![
            60 => instance().prop_map(|instance| Step::Request { instance }),
            3 => (instance(), any::<bool>()).prop_map(|(instance, is_answered)| Step::Freeze { instance, is_answered }),
            2 => instance().prop_map(|instance| Step::Failure { instance }),
            3 => Just(Step::Thaw),
            5 => (0..2_000_i64).prop_map(|millis| Step::Time { millis }),
        ];
        proptest::collection::vec(step, 0..1_500)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        #[test]
        fn random_instances_never_let_more_through_than_the_limit(limit in 1..300_u32, skews in uniform10(0..1_000_i64), steps in steps()) {
            let mut now = 0;
            let mut table = Table::default();
            let mut leases: Vec<Lease> = skews.iter().map(|skew| Lease::new(limit, at(*skew))).collect();
            let mut frozen: Vec<(usize, i64, Share, Counter)> = Vec::new();
            let mut let_through: HashMap<i64, u64> = HashMap::new();
            // Requests in shares whose response was lost, by minute. No instance uses them.
            let mut lost: HashMap<i64, u64> = HashMap::new();
            for step in steps {
                let instance = match step {
                    Step::Time { millis } => {
                        now += millis;
                        continue;
                    }
                    Step::Thaw => {
                        for (instance, window, share, counter) in frozen.drain(..) {
                            // The request counts in the minute of its arrival; the rest of the share is useless in other minutes.
                            *let_through.entry(window).or_default() += 1;
                            if leases[instance].window == window {
                                leases[instance].add(share, counter);
                            }
                        }
                        continue;
                    }
                    Step::Request { instance } | Step::Freeze { instance, .. } | Step::Failure { instance } => instance,
                };
                let time = at(now + skews[instance]);
                let lease = &mut leases[instance];
                if !lease.is_for(limit, time) {
                    *lease = Lease::new(limit, time);
                }
                let used = match step {
                    Step::Request { .. } => table.count(lease, limit).0,
                    Step::Freeze { is_answered, .. } => match lease.count() {
                        Ok(used) => used,
                        Err(share) => {
                            match table.take(lease.window, share) {
                                Some(counter) if is_answered => frozen.push((instance, lease.window, share, counter)),
                                Some(_) => *lost.entry(lease.window).or_default() += share.requests,
                                None => {}
                            }
                            continue;
                        }
                    },
                    // The request is let through without being counted: there is no guarantee while the table fails.
                    Step::Failure { .. } => match lease.count() {
                        Ok(used) => used,
                        Err(_) => continue,
                    },
                    Step::Thaw | Step::Time { .. } => continue,
                };
                if used <= limit.into() {
                    *let_through.entry(lease.window).or_default() += 1;
                } else {
                    // Early rejections: at most the requests held elsewhere, in flight, or lost with a response.
                    let waiting = frozen.iter().filter(|(_, window, ..)| *window == lease.window).count() as u64;
                    let lost = lost.get(&lease.window).copied().unwrap_or_default();
                    let missing = u64::from(limit) - let_through.get(&lease.window).copied().unwrap_or_default();
                    prop_assert!(missing <= u64::from(limit) / HELD_PART + waiting + lost, "{missing} of {limit} refused");
                }
            }
            for (window, count) in let_through {
                prop_assert!(count <= limit.into(), "{count} of {limit} in minute {window}");
            }
        }
    }
}
