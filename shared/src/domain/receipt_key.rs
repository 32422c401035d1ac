//! The keys that a tenant's receipts are signed with: Ed25519, one current, and the public halves of those before.

use super::field_error::{ValueError, text_form};
use super::id::ReceiptKeysId;
use super::record::{Kind, Record};
use super::time::Timestamp;
use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// How long a seed and a public key are (RFC 8032 §5.1.5).
pub const KEY_LENGTH: usize = 32;

/// The public half of a key. As text: base64url without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; KEY_LENGTH]);

impl std::str::FromStr for PublicKey {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bytes = URL_SAFE_NO_PAD.decode_to_vec(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| ValueError::new("must be 32 bytes in base64url"))
    }
}

text_form!(PublicKey, |key| URL_SAFE_NO_PAD.encode_to_string(key.0));

impl PublicKey {
    /// The name of the key: its thumbprint (RFC 7638, RFC 8037 appendix A.3).
    #[must_use]
    pub fn kid(self) -> String {
        let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, String::from(self));
        URL_SAFE_NO_PAD.encode_to_string(Sha256::digest(jwk))
    }

    /// Whether `signature`, in base64url, is this key's for `text`.
    #[must_use]
    pub fn signed(self, text: &str, signature: &str) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode_to_vec(signature) else { return false };
        UnparsedPublicKey::new(&ED25519, self.0).verify(text.as_bytes(), &signature).is_ok()
    }
}

/// A whole key. Never shown, so that it has no `Debug` text either.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key of a seed.
    ///
    /// # Errors
    ///
    /// The seed has not 32 bytes.
    pub fn of(seed: &[u8]) -> Result<Self, ValueError> {
        Ed25519KeyPair::from_seed_unchecked(seed).map(Self).map_err(|_| ValueError::new("must be a seed of 32 bytes"))
    }

    /// Its public half.
    ///
    /// # Errors
    ///
    /// Never, since the key is a key.
    pub fn public(&self) -> Result<PublicKey, ValueError> {
        let bytes = self.0.public_key().as_ref().try_into();
        bytes.map(PublicKey).map_err(|_| ValueError::new("must be 32 bytes"))
    }

    /// Its signature of `text`, in base64url.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode_to_string(self.0.sign(text.as_bytes()))
    }
}

/// A seed that only whoever sealed it can read. As text: base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EncryptedSeed(pub Vec<u8>);

impl std::fmt::Debug for EncryptedSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncryptedSeed(…)")
    }
}

impl std::str::FromStr for EncryptedSeed {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        STANDARD.decode_to_vec(text).map(Self).map_err(|_| ValueError::new("must be base64"))
    }
}

text_form!(EncryptedSeed, |sealed| STANDARD.encode_to_string(sealed.0));

/// The key that signs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentKey {
    /// What signatures are checked with.
    pub public_key: PublicKey,
    /// What signatures are made with.
    pub sealed: EncryptedSeed,
    /// Who sealed it.
    pub sealed_by: String,
    /// Since when it signs.
    pub since: Timestamp,
}

/// A key that signs no more. Its secret half is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredKey {
    /// What its signatures are checked with.
    pub public_key: PublicKey,
    /// Since when it signed.
    pub since: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

/// All keys of a tenant: one record, so that there is one current key and no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptKeys {
    /// Names the record's history.
    pub id: ReceiptKeysId,
    /// The one that signs.
    pub current: CurrentKey,
    /// Those before, oldest first.
    pub retired: Vec<RetiredKey>,
}

impl ReceiptKeys {
    /// A tenant's first key.
    #[must_use]
    pub fn first(id: ReceiptKeysId, key: CurrentKey) -> Self {
        Self { id, current: key, retired: Vec::new() }
    }

    /// The keys once `next` signs. What the old one signed stays verifiable; nothing more can be signed with it.
    #[must_use]
    pub fn rotated(&self, next: CurrentKey) -> Self {
        let CurrentKey { public_key, since, .. } = self.current;
        let mut retired = self.retired.clone();
        retired.push(RetiredKey { public_key, since, until: next.since });
        Self { id: self.id, current: next, retired }
    }
}

impl Record for ReceiptKeys {
    const KIND: Kind = Kind::ReceiptKeys;
    type Id = ReceiptKeysId;

    fn id(&self) -> ReceiptKeysId {
        self.id
    }

    fn audit(&self) -> Map<String, Value> {
        let retired = |key: &RetiredKey| json!({"kid": key.public_key.kid(), "since": key.since, "until": key.until});
        Map::from_iter([
            ("kid".to_owned(), json!(self.current.public_key.kid())),
            ("sealed_by".to_owned(), json!(self.current.sealed_by)),
            ("retired".to_owned(), self.retired.iter().map(retired).collect()),
        ])
    }
}

/// A public key as others read it (RFC 7517, RFC 8037).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Jwk {
    /// `OKP`.
    pub kty: String,
    /// `Ed25519`.
    pub crv: String,
    /// The public key in base64url.
    pub x: String,
    /// The key's name: its thumbprint (RFC 7638).
    pub kid: String,
    /// `EdDSA`.
    pub alg: String,
    /// `sig`.
    #[serde(rename = "use")]
    pub usage: String,
    /// Since when it signs.
    pub since: Timestamp,
    /// Until when it signed; null for the current one.
    #[schema(required)]
    pub until: Option<Timestamp>,
}

impl Jwk {
    fn new(key: PublicKey, since: Timestamp, until: Option<Timestamp>) -> Self {
        let [kty, crv, alg, usage] = ["OKP", "Ed25519", "EdDSA", "sig"].map(str::to_owned);
        Self { kty, crv, x: key.into(), kid: key.kid(), alg, usage, since, until }
    }
}

/// Public keys as others read them, the current one first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Jwks {
    /// The keys.
    pub keys: Vec<Jwk>,
}

impl From<&ReceiptKeys> for Jwks {
    fn from(keys: &ReceiptKeys) -> Self {
        let current = Jwk::new(keys.current.public_key, keys.current.since, None);
        let retired = keys.retired.iter().rev().map(|key| Jwk::new(key.public_key, key.since, Some(key.until)));
        Self { keys: std::iter::once(current).chain(retired).collect() }
    }
}

impl Jwks {
    /// The key of this name, if it is one that receipts are signed with.
    #[must_use]
    pub fn find(&self, kid: &str) -> Option<PublicKey> {
        let known = self.keys.iter().filter(|key| key.kty == "OKP" && key.crv == "Ed25519" && key.kid == kid);
        // The name is the key's thumbprint: a set that says otherwise is not ours.
        known.filter_map(|key| key.x.parse::<PublicKey>().ok()).find(|key| key.kid() == kid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::Id;

    fn key(seed: u8, at: i64) -> CurrentKey {
        let public_key = SigningKey::of(&[seed; KEY_LENGTH]).and_then(|key| key.public()).expect("a key");
        let sealed = EncryptedSeed(b"secret".to_vec());
        CurrentKey { public_key, sealed, sealed_by: "local".into(), since: Timestamp::from_millis(at) }
    }

    /// RFC 8037 appendix A.
    #[test]
    fn keys_and_signatures_are_those_of_the_standard() {
        let seed = URL_SAFE_NO_PAD.decode_to_vec("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").expect("base64url");
        let key = SigningKey::of(&seed).expect("a seed");
        let public = key.public().expect("a key");
        assert_eq!(String::from(public), "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        assert_eq!(public.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        let signed = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        assert_eq!(key.sign(signed), signature);
        assert!(public.signed(signed, signature));
        assert!(!public.signed("something else", signature) && !public.signed(signed, "hgyY") && !public.signed(signed, "%"));
    }

    #[test]
    fn a_rotation_keeps_public_halves_only() {
        let keys = ReceiptKeys::first(ReceiptKeysId::new(Timestamp::from_millis(1), [0; 10]), key(1, 1));
        let rotated = keys.rotated(key(2, 5)).rotated(key(3, 9));
        let text = serde_json::to_string(&rotated.retired).expect("json");
        assert!(!text.contains("sealed"));
        let jwks = Jwks::from(&rotated);
        let untils: Vec<_> = jwks.keys.iter().map(|key| key.until.map(Timestamp::millis)).collect();
        assert_eq!(untils, [None, Some(9), Some(5)]);
        for seed in 1..=3 {
            let public = key(seed, 0).public_key;
            assert_eq!(jwks.find(&public.kid()), Some(public));
        }
        assert_eq!(jwks.find(&key(4, 0).public_key.kid()), None);
    }

    #[test]
    fn a_key_under_anothers_name_is_none() {
        let keys = ReceiptKeys::first(ReceiptKeysId::new(Timestamp::from_millis(1), [0; 10]), key(1, 1));
        let mut jwks = Jwks::from(&keys);
        let kid = jwks.keys[0].kid.clone();
        jwks.keys[0].x = key(2, 0).public_key.into();
        assert_eq!(jwks.find(&kid), None);
    }

    #[test]
    fn nothing_secret_is_printed_or_told() {
        let keys = ReceiptKeys::first(ReceiptKeysId::new(Timestamp::from_millis(1), [0; 10]), key(1, 1));
        let sealed = String::from(keys.current.sealed.clone());
        assert!(!format!("{keys:?}").contains(&sealed));
        assert!(!serde_json::to_string(&keys.audit()).expect("json").contains(&sealed));
    }
}
