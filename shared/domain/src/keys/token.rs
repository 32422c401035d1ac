//! The text of a credential (an API key or a signing link): its prefix, then its id, the tenant's id, the secret and a checksum
//! in base62.
//!
//! The credential's id comes first, so that the first 12 characters, which lists of keys show, differ from key to key. The
//! checksum lets secret scanners recognise a credential, and a mistyped one is refused without a database read.

use crate::keys::api_key::SecretHash;
use crate::values::base62::{self, WIDTH};
use crate::values::hex;
use crate::values::id::{ApiKeyId, Id, LinkId, TenantId};
use ring::hmac;
use subtle::ConstantTimeEq;

/// The identifier of a kind of credential. One kind can't be used as another: the checksum includes the prefix.
pub trait Credential: Id {
    /// The text that every credential of this kind begins with, for secret scanners.
    const PREFIX: &'static str;
}

impl Credential for ApiKeyId {
    const PREFIX: &'static str = "apl_";
}

impl Credential for LinkId {
    const PREFIX: &'static str = "sgn_";
}

/// Digits of the CRC-32 checksum: 62^6 is above 2^32.
const CHECKSUM_WIDTH: usize = 6;
/// Digits of two ids and a secret of twice 128 bits.
const BODY_WIDTH: usize = 4 * WIDTH;

/// 256 random bits. Its `Debug` text does not disclose them.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Plain SHA-256 suffices, since 256 random bits can't be guessed.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash(hex::sha256(self.0))
    }

    /// HMAC-SHA256 under the secret, in lower-case hexadecimal. Only the holder of the secret can compute it.
    #[must_use]
    pub fn authenticate(&self, parts: &[&[u8]]) -> String {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        parts.iter().for_each(|part| context.update(part));
        hex::encode(context.sign().as_ref())
    }

    /// Compares in constant time.
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

pub type Token = BearerToken<ApiKeyId>;

pub type LinkToken = BearerToken<LinkId>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerToken<C> {
    /// The tenant that the credential belongs to, which gives the partition of its record.
    pub tenant: TenantId,
    pub id: C,
    pub secret: Secret,
}

impl<C: Credential> BearerToken<C> {
    #[must_use]
    pub fn new(tenant: TenantId, id: C, secret: Secret) -> Self {
        Self { tenant, id, secret }
    }

    /// The text that clients send as `Authorization: Bearer …`. Not `Display`, so that nothing prints it by accident.
    #[must_use]
    pub fn expose(&self) -> String {
        let (high, low) = self.secret.0.split_at(16);
        let half = |bytes: &[u8]| base62::encode(bytes.iter().fold(0, |n, &b| n << 8 | u128::from(b)), WIDTH);
        let body = format!("{}{}{}{}{}", C::PREFIX, self.id.short(), self.tenant.short(), half(high), half(low));
        let checksum = base62::encode(u128::from(crc32fast::hash(body.as_bytes())), CHECKSUM_WIDTH);
        body + &checksum
    }

    /// `None` unless the text is exactly what [`BearerToken::expose`] returns. Reads nothing from the table.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::api_key::prefix;
    use proptest::prelude::*;

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
    fn a_link_is_no_api_key_and_an_api_key_is_no_link() {
        let id = uuid::Uuid::from_u128(7);
        let link = LinkToken::new(TenantId::from_uuid(id), LinkId::from_uuid(id), Secret([7; 32])).expose();
        let key = Token::new(TenantId::from_uuid(id), ApiKeyId::from_uuid(id), Secret([7; 32])).expose();
        assert!(LinkToken::parse(&link).is_some() && Token::parse(&key).is_some());
        for (text, other) in [(&link, link.replace("sgn_", "apl_")), (&key, key.replace("apl_", "sgn_"))] {
            for text in [text, &other] {
                let kinds = [Token::parse(text).is_some(), LinkToken::parse(text).is_some()];
                assert_eq!(kinds, [*text == key, *text == link], "{text}");
            }
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
