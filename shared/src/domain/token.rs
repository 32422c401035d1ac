//! The text of an API key: `apl_`, then key id, tenant id, secret and checksum in base62 (contract 3).
//!
//! The key's id comes first, so that the first 12 characters, which lists show, differ from key to key.

use super::api_key::SecretHash;
use super::base62::{self, WIDTH};
use super::hex;
use super::id::{ApiKeyId, Id, TenantId};
use subtle::ConstantTimeEq;

/// What every key begins with, for secret scanners.
pub const PREFIX: &str = "apl_";
/// Digits of the CRC-32: 62^6 is above 2^32.
const CHECK_WIDTH: usize = 6;
const BODY: usize = 4 * WIDTH;

/// 256 random bits. Prints as nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// From random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// What is stored of it. Plain SHA-256 does: there is nothing to guess in 256 random bits.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash(hex::sha256(self.0))
    }

    /// Whether one of `accepted` is this secret's hash, in a time that tells nothing of where they differ.
    #[must_use]
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

/// A key's text, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The partition that its record lives in.
    pub tenant: TenantId,
    /// Which key.
    pub key: ApiKeyId,
    /// What proves it.
    pub secret: Secret,
}

impl Token {
    /// Puts a key together.
    #[must_use]
    pub fn new(tenant: TenantId, key: ApiKeyId, secret: Secret) -> Self {
        Self { tenant, key, secret }
    }

    /// The text to be sent as `Authorization: Bearer …`. Not `Display`, so that nothing prints it by accident.
    #[must_use]
    pub fn expose(&self) -> String {
        let (high, low) = self.secret.0.split_at(16);
        let half = |bytes: &[u8]| base62::encode(bytes.iter().fold(0, |n, &b| n << 8 | u128::from(b)), WIDTH);
        let body = format!("{PREFIX}{}{}{}{}", self.key.short(), self.tenant.short(), half(high), half(low));
        let check = base62::encode(u128::from(crc32fast::hash(body.as_bytes())), CHECK_WIDTH);
        body + &check
    }

    /// Takes a text apart; `None` unless it is exactly what [`Token::expose`] gives. Reads nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == BODY + CHECK_WIDTH && digits.is_ascii())?;
        let body = &text[..PREFIX.len() + BODY];
        let check = base62::decode(&digits[BODY..])?;
        if check != u128::from(crc32fast::hash(body.as_bytes())) {
            return None;
        }
        let chunk = |place: usize| base62::decode(&digits[place * WIDTH..(place + 1) * WIDTH]);
        let mut secret = [0; 32];
        secret[..16].copy_from_slice(&chunk(2)?.to_be_bytes());
        secret[16..].copy_from_slice(&chunk(3)?.to_be_bytes());
        let id = |place| Some(uuid::Uuid::from_u128(chunk(place)?));
        Some(Self { tenant: TenantId::from_uuid(id(1)?), key: ApiKeyId::from_uuid(id(0)?), secret: Secret(secret) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::api_key::prefix;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_token_reads_back(tenant: u128, key: u128, secret: [u8; 32]) {
            let id = uuid::Uuid::from_u128;
            let token = Token::new(TenantId::from_uuid(id(tenant)), ApiKeyId::from_uuid(id(key)), Secret(secret));
            let text = token.expose();
            prop_assert!(text.starts_with(&prefix(token.key)));
            prop_assert_eq!(Token::parse(&text), Some(token));
        }

        #[test]
        fn a_mistyped_token_is_refused(secret: [u8; 32], place in 4usize..98, digit in "[0-9A-Za-z]") {
            let text = Token::new(TenantId::from_uuid(uuid::Uuid::nil()), ApiKeyId::from_uuid(uuid::Uuid::max()), Secret(secret)).expose();
            let mut wrong = text.clone();
            wrong.replace_range(place..=place, &digit);
            prop_assert_eq!(Token::parse(&wrong).is_some(), wrong == text);
        }

        #[test]
        fn parsing_never_panics(text in "(apl_)?.{0,100}") {
            let _ = Token::parse(&text);
        }
    }

    #[test]
    fn a_secret_is_recognised_by_its_hash_and_never_printed() {
        let secret = Secret::new([7; 32]);
        assert!(secret.is_one_of(&[&Secret::new([1; 32]).hash(), &secret.hash()]));
        assert!(!secret.is_one_of(&[&Secret::new([1; 32]).hash()]));
        assert!(!secret.is_one_of(&[]));
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
