//! Keys that this instance has verified recently, so that a request's reads can run beside the check of its key. The cache never
//! affects permissions or responses.

use crate::domain::keys::api_key::{ApiKey, Scope, Scopes, SecretHash, Token};
use crate::domain::values::id::{ApiKeyId, TenantId, UserId};
use crate::domain::values::time::Timestamp;
use chrono::TimeDelta;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// For this long after a key's last verification, a request's reads can start before the check of the key completes.
const EARLY_READS_FOR: TimeDelta = TimeDelta::minutes(15);
/// Maximum number of cached keys, which take less than a kilobyte each. To make room for another key, the cache drops outdated
/// keys or, if there are none, all keys.
const MAX_KEYS: usize = 1_000;

type VerifiedKey = (TenantId, ApiKeyId, SecretHash);

/// The cached values that a key's check starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownKey {
    pub rate_limit: u32,
    /// `None` for a tenant key.
    pub owner: Option<UserId>,
}

impl From<&ApiKey> for KnownKey {
    fn from(key: &ApiKey) -> Self {
        Self { rate_limit: key.rate_limit_per_minute, owner: key.user_id }
    }
}

#[derive(Debug)]
struct Permission {
    at: Timestamp,
    scopes: Scopes,
    key: KnownKey,
    /// Time until which all requests exceed the key's rate limit.
    exhausted_until: Timestamp,
}

/// A cache of recently verified keys.
#[derive(Debug, Default)]
pub struct VerifiedKeys(Mutex<HashMap<VerifiedKey, Permission>>);

impl VerifiedKeys {
    /// Returns the key if a request that needs these scopes will probably be permitted: the key was recently verified with this
    /// secret and these scopes, has not been rejected since, and is not known to have exceeded its rate limit.
    #[must_use]
    pub fn permits(&self, token: &Token, scopes: &[Scope], now: Timestamp) -> Option<KnownKey> {
        let is_permitted = |known: &Permission| {
            let has_scopes = scopes.iter().all(|scope| known.scopes.contains(scope));
            known.at.plus(EARLY_READS_FOR) > now && has_scopes && known.exhausted_until <= now
        };
        self.keys().get(&verified_key(token)).filter(|known| is_permitted(known)).map(|known| known.key)
    }

    pub fn insert(&self, token: &Token, scopes: Scopes, key: KnownKey, now: Timestamp) {
        let mut keys = self.keys();
        if let Some(known) = keys.get_mut(&verified_key(token)) {
            (known.at, known.scopes, known.key) = (now, scopes, key);
            return;
        }
        if keys.len() >= MAX_KEYS {
            keys.retain(|_, known| known.at.plus(EARLY_READS_FOR) > now);
        }
        // Clearing the cache is rare. The next request with each key then reads nothing early.
        if keys.len() >= MAX_KEYS {
            keys.clear();
        }
        keys.insert(verified_key(token), Permission { at: now, scopes, key, exhausted_until: now });
    }

    pub fn exhaust(&self, token: &Token, until: Timestamp) {
        if let Some(known) = self.keys().get_mut(&verified_key(token)) {
            known.exhausted_until = until;
        }
    }

    pub fn remove(&self, token: &Token) {
        self.keys().remove(&verified_key(token));
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<VerifiedKey, Permission>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verified_key(token: &Token) -> VerifiedKey {
    (token.tenant, token.id, token.secret.hash())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::keys::api_key::Secret;
    use crate::domain::values::id::Id;

    const KEY: KnownKey = KnownKey { rate_limit: 600, owner: None };

    fn token(key: u16, secret: u8) -> Token {
        let at = Timestamp::from_millis(0);
        let [high, low] = key.to_be_bytes();
        let id = ApiKeyId::new(at, [high, low, 0, 0, 0, 0, 0, 0, 0, 0]);
        Token::new(TenantId::new(at, [1; 10]), id, Secret::new([secret; 32]))
    }

    fn is_known(keys: &VerifiedKeys, token: &Token, at: Timestamp) -> bool {
        keys.permits(token, &[Scope::AssetsRead], at).is_some()
    }

    #[test]
    fn a_verified_key_is_known_with_its_secret_until_it_is_refused_or_unused_for_long() {
        let (keys, start) = (VerifiedKeys::default(), Timestamp::from_millis(0));
        keys.insert(&token(1, 1), Scopes::from([Scope::AssetsRead]), KEY, start);
        assert!(is_known(&keys, &token(1, 1), start));
        assert!(!is_known(&keys, &token(1, 2), start), "another secret");
        assert!(!is_known(&keys, &token(2, 1), start), "another key");
        assert_eq!(keys.permits(&token(1, 1), &[Scope::AssetsWrite], start), None, "another scope");
        assert_eq!(keys.permits(&token(1, 1), &[], start), Some(KEY), "without a scope");
        keys.remove(&token(1, 2));
        assert!(is_known(&keys, &token(1, 1), start.plus(EARLY_READS_FOR - TimeDelta::milliseconds(1))));
        assert!(!is_known(&keys, &token(1, 1), start.plus(EARLY_READS_FOR)));
        keys.remove(&token(1, 1));
        assert!(!is_known(&keys, &token(1, 1), start));
    }

    #[test]
    fn a_key_that_exceeds_its_rate_is_permitted_nothing_until_the_rate_permits_it_again() {
        let (keys, start) = (VerifiedKeys::default(), Timestamp::from_millis(0));
        keys.insert(&token(1, 1), Scopes::from([Scope::AssetsRead]), KEY, start);
        keys.exhaust(&token(1, 1), start.plus_seconds(5));
        keys.insert(&token(1, 1), Scopes::from([Scope::AssetsRead]), KEY, start);
        assert!(!is_known(&keys, &token(1, 1), start.plus_seconds(4)));
        assert!(is_known(&keys, &token(1, 1), start.plus_seconds(5)));
    }

    #[test]
    fn the_number_of_keys_is_limited() {
        let (keys, start) = (VerifiedKeys::default(), Timestamp::from_millis(0));
        for key in 0..3_000 {
            keys.insert(&token(key, 1), Scopes::from([Scope::AssetsRead]), KEY, start);
            assert!(keys.keys().len() <= MAX_KEYS && is_known(&keys, &token(key, 1), start));
        }
    }
}
