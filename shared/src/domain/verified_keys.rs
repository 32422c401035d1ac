//! The API keys that a function instance has verified lately.
//!
//! They decide when the reads of a request may begin: with the check of its key, or after it. They never decide what a
//! request may do, or what it is answered: for that, every request's key is verified in the table.

use super::api_key::SecretHash;
use super::id::{ApiKeyId, TenantId};
use super::time::Timestamp;
use super::token::Token;
use chrono::TimeDelta;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// For how long after a key's last verification reads begin early.
const MAX_AGE: TimeDelta = TimeDelta::minutes(15);
/// How many keys are remembered: a few hundred bytes each.
const MAX_KEYS: usize = 1_000;

type VerifiedKey = (TenantId, ApiKeyId, SecretHash);

/// The keys with the times of their last verifications.
#[derive(Debug, Default)]
pub struct VerifiedKeys(Mutex<HashMap<VerifiedKey, Timestamp>>);

impl VerifiedKeys {
    /// Returns whether the key was verified with this secret not long ago, and has not been refused since.
    #[must_use]
    pub fn contains(&self, token: &Token, now: Timestamp) -> bool {
        self.keys().get(&verified_key(token)).is_some_and(|at| at.plus(MAX_AGE) > now)
    }

    /// Remembers that the key was verified.
    pub fn insert(&self, token: &Token, now: Timestamp) {
        let mut keys = self.keys();
        if keys.len() >= MAX_KEYS {
            keys.retain(|_, at| at.plus(MAX_AGE) > now);
        }
        // Rare, and it costs each key one request whose reads begin late.
        if keys.len() >= MAX_KEYS {
            keys.clear();
        }
        keys.insert(verified_key(token), now);
    }

    /// Forgets a key that was refused.
    pub fn remove(&self, token: &Token) {
        self.keys().remove(&verified_key(token));
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<VerifiedKey, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verified_key(token: &Token) -> VerifiedKey {
    (token.tenant, token.key, token.secret.hash())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::Id;
    use crate::domain::token::Secret;

    fn token(key: u16, secret: u8) -> Token {
        let at = Timestamp::from_millis(0);
        let [high, low] = key.to_be_bytes();
        let id = ApiKeyId::new(at, [high, low, 0, 0, 0, 0, 0, 0, 0, 0]);
        Token::new(TenantId::new(at, [1; 10]), id, Secret::new([secret; 32]))
    }

    #[test]
    fn a_verified_key_is_known_with_its_secret_until_it_is_refused_or_unused_for_long() {
        let (keys, start) = (VerifiedKeys::default(), Timestamp::from_millis(0));
        keys.insert(&token(1, 1), start);
        assert!(keys.contains(&token(1, 1), start));
        assert!(!keys.contains(&token(1, 2), start), "another secret");
        assert!(!keys.contains(&token(2, 1), start), "another key");
        keys.remove(&token(1, 2));
        assert!(keys.contains(&token(1, 1), start.plus(MAX_AGE - TimeDelta::milliseconds(1))));
        assert!(!keys.contains(&token(1, 1), start.plus(MAX_AGE)));
        keys.remove(&token(1, 1));
        assert!(!keys.contains(&token(1, 1), start));
    }

    #[test]
    fn the_number_of_keys_is_limited() {
        let (keys, start) = (VerifiedKeys::default(), Timestamp::from_millis(0));
        for key in 0..3_000 {
            keys.insert(&token(key, 1), start);
            assert!(keys.keys().len() <= MAX_KEYS && keys.contains(&token(key, 1), start));
        }
    }
}
