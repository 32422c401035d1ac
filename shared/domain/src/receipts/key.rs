//! Signed receipts, which anyone can verify with the tenant's public keys, and the Ed25519 keys that sign them: the current key
//! pair, and the public keys of earlier ones.

use crate::receipts::receipt::{FORMAT, MOVEMENT_FORMAT, MovementReceipt, Receipt};
use crate::record::{Kind, Record, fields};
use crate::values::field_error::{ValueError, text_form};
use crate::values::id::ReceiptKeysId;
use crate::values::json::parse_strict;
use crate::values::time::Timestamp;
use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// The length in bytes of a seed and of a public key (RFC 8032 §5.1.5).
pub const KEY_BYTES: usize = 32;
/// Maximum nesting of a receipt to verify.
const MAX_LEVELS: usize = 32;

/// A public key. Its text form is base64url without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; KEY_BYTES]);

impl std::str::FromStr for PublicKey {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bytes = URL_SAFE_NO_PAD.decode_to_vec(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| ValueError::new("must be 32 bytes in base64url"))
    }
}

text_form!(PublicKey, |key| URL_SAFE_NO_PAD.encode_to_string(key.0));

impl PublicKey {
    /// Returns the key's thumbprint (RFC 7638, RFC 8037 appendix A.3).
    pub fn kid(self) -> String {
        let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, String::from(self));
        URL_SAFE_NO_PAD.encode_to_string(Sha256::digest(jwk))
    }

    /// Verifies a signature in base64url.
    pub fn verifies(self, text: &str, signature: &str) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode_to_vec(signature) else { return false };
        UnparsedPublicKey::new(&ED25519, self.0).verify(text.as_bytes(), &signature).is_ok()
    }
}

/// A private key. Not `Debug`, so nothing prints it by accident.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Creates a key from its seed.
    ///
    /// # Errors
    ///
    /// Returns an error unless the seed has 32 bytes.
    pub fn from_seed(seed: &[u8]) -> Result<Self, ValueError> {
        Ed25519KeyPair::from_seed_unchecked(seed).map(Self).map_err(|_| ValueError::new("must be a seed of 32 bytes"))
    }

    /// Returns the public key.
    ///
    /// # Errors
    ///
    /// Returns an error if the public key doesn't have 32 bytes, as every Ed25519 key does.
    pub fn public(&self) -> Result<PublicKey, ValueError> {
        let bytes = self.0.public_key().as_ref().try_into();
        bytes.map(PublicKey).map_err(|_| ValueError::new("must be 32 bytes"))
    }

    /// Returns the signature in base64url.
    pub fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode_to_string(self.0.sign(text.as_bytes()))
    }
}

/// A seed encrypted with a key outside the table. Its text form is base64.
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

text_form!(EncryptedSeed, |seed| STANDARD.encode_to_string(seed.0));

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentKey {
    pub public_key: PublicKey,
    pub encrypted_seed: EncryptedSeed,
    /// Name of the key encryption provider that encrypted the seed.
    pub encrypted_by: String,
    /// When the key started signing.
    pub since: Timestamp,
}

/// A key that no longer signs. Its seed has been deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredKey {
    pub public_key: PublicKey,
    pub since: Timestamp,
    pub until: Timestamp,
}

/// The keys of a tenant. One record, so that there is exactly one current key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptKeys {
    pub id: ReceiptKeysId,
    pub current: CurrentKey,
    /// The earlier keys, oldest first.
    pub retired: Vec<RetiredKey>,
}

impl ReceiptKeys {
    pub fn new(id: ReceiptKeysId, key: CurrentKey) -> Self {
        Self { id, current: key, retired: Vec::new() }
    }

    /// Replaces the current key. The old key still verifies its signatures, but signs no more receipts.
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

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, current, retired } = self;
        let CurrentKey { public_key, encrypted_seed: _, encrypted_by, since: _ } = current;
        let retired_key = |key: &RetiredKey| {
            let RetiredKey { public_key, since, until } = key;
            json!({"kid": public_key.kid(), "since": since, "until": until})
        };
        fields([
            ("kid", json!(public_key.kid())),
            ("encrypted_by", json!(encrypted_by)),
            ("retired", retired.iter().map(retired_key).collect()),
        ])
    }
}

/// A public key as a JSON Web Key (RFC 7517, RFC 8037).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Jwk {
    /// `OKP`.
    pub kty: String,
    /// `Ed25519`.
    pub crv: String,
    /// The public key in base64url.
    pub x: String,
    /// ID of the key: its thumbprint (RFC 7638).
    pub kid: String,
    /// `EdDSA`.
    pub alg: String,
    /// `sig`.
    #[serde(rename = "use")]
    pub usage: String,
    /// When the key started signing.
    pub since: Timestamp,
    /// When the key stopped signing; null for the current key.
    #[schema(required)]
    pub until: Option<Timestamp>,
}

impl Jwk {
    fn new(key: PublicKey, since: Timestamp, until: Option<Timestamp>) -> Self {
        let [kty, crv, alg, usage] = ["OKP", "Ed25519", "EdDSA", "sig"].map(str::to_owned);
        Self { kty, crv, x: key.into(), kid: key.kid(), alg, usage, since, until }
    }
}

/// A set of public keys (RFC 7517 §5), the current key first.
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
    /// Finds an Ed25519 key by its ID.
    pub fn find(&self, kid: &str) -> Option<PublicKey> {
        let candidates = self.keys.iter().filter(|key| key.kty == "OKP" && key.crv == "Ed25519" && key.kid == kid);
        // The ID must be the key's thumbprint, or the set could pass off one key as another.
        candidates.filter_map(|key| key.x.parse::<PublicKey>().ok()).find(|key| key.kid() == kid)
    }
}

/// A receipt with its signature.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignedReceipt {
    /// The signed receipt.
    pub receipt: Receipt,
    /// Signature of the receipt.
    pub signature: Signature,
}

/// A movement's receipt with its signature.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignedMovementReceipt {
    /// The signed receipt.
    pub receipt: MovementReceipt,
    /// Signature of the receipt.
    pub signature: Signature,
}

/// A signature over the canonical JSON (RFC 8785) of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReceiptSignature)]
pub struct Signature {
    /// `EdDSA`, with Ed25519.
    pub alg: String,
    /// ID of the tenant's signing key.
    pub kid: String,
    /// The signature in base64url.
    pub value: String,
}

impl Signature {
    /// Signs the canonical JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the receipt has no canonical form.
    pub fn of(receipt: &impl Serialize, key: &SigningKey) -> Result<Self, ValueError> {
        let text = canonical(receipt)?;
        Ok(Self { alg: "EdDSA".into(), kid: key.public()?.kid(), value: key.sign(&text) })
    }
}

fn canonical(receipt: &impl Serialize) -> Result<String, ValueError> {
    serde_json_canonicalizer::to_string(receipt).map_err(|_| ValueError::new("must have a canonical form"))
}

/// Verifies `text`, a signed receipt of a process instance or movement, and returns the receipt without the signature.
///
/// # Errors
///
/// Returns a [`ValueError`] when the receipt is invalid, for example if none of `keys` has signed it.
pub fn check(text: &str, keys: &Jwks) -> Result<Value, ValueError> {
    let Value::Object(mut signed) = parse_strict(text.trim(), MAX_LEVELS)? else {
        return Err(ValueError::new("must be an object"));
    };
    let (receipt, signature) = (signed.remove("receipt"), signed.remove("signature"));
    let (Some(receipt), Some(signature)) = (receipt, signature) else {
        return Err(ValueError::new("must have the members receipt and signature"));
    };
    if !signed.is_empty() {
        return Err(ValueError::new("must have no members besides receipt and signature, because others are not signed"));
    }
    let signature: Signature =
        serde_json::from_value(signature).map_err(|_| ValueError::new("must have a signature with alg, kid and value"))?;
    if signature.alg != "EdDSA" || ![FORMAT, MOVEMENT_FORMAT].iter().any(|format| receipt["format"] == *format) {
        return Err(ValueError::new(format!("must have the format {FORMAT} or {MOVEMENT_FORMAT}, and an EdDSA signature")));
    }
    let key = keys.find(&signature.kid).ok_or_else(|| ValueError::new("is signed by a key that is not among the given keys"))?;
    if key.verifies(&canonical(&receipt)?, &signature.value) {
        Ok(receipt)
    } else {
        Err(ValueError::new("has an invalid signature: the receipt was changed, or never signed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::id::Id;

    fn key(seed: u8, at: i64) -> CurrentKey {
        let public_key = SigningKey::from_seed(&[seed; KEY_BYTES]).and_then(|key| key.public()).expect("a key");
        let encrypted_seed = EncryptedSeed(b"secret".to_vec());
        CurrentKey { public_key, encrypted_seed, encrypted_by: "local".into(), since: Timestamp::from_millis(at) }
    }

    /// Checks the keys of RFC 8037 appendix A.
    #[test]
    fn keys_and_signatures_match_the_standards_example() {
        let seed = URL_SAFE_NO_PAD.decode_to_vec("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").expect("base64url");
        let key = SigningKey::from_seed(&seed).expect("a seed");
        let public = key.public().expect("a key");
        assert_eq!(String::from(public), "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        assert_eq!(public.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        let signed = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        assert_eq!(key.sign(signed), signature);
        assert!(public.verifies(signed, signature));
        assert!(
            !public.verifies("something else", signature) && !public.verifies(signed, "hgyY") && !public.verifies(signed, "%")
        );
    }

    #[test]
    fn a_rotation_keeps_only_the_public_keys_of_earlier_keys() {
        let keys = ReceiptKeys::new(ReceiptKeysId::new(Timestamp::from_millis(1), [0; 10]), key(1, 1));
        let rotated = keys.rotated(key(2, 5)).rotated(key(3, 9));
        let text = serde_json::to_string(&rotated.retired).expect("json");
        assert!(!text.contains("seed"));
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
    fn a_key_under_the_id_of_another_is_not_found() {
        let keys = ReceiptKeys::new(ReceiptKeysId::new(Timestamp::from_millis(1), [0; 10]), key(1, 1));
        let mut jwks = Jwks::from(&keys);
        let kid = jwks.keys[0].kid.clone();
        jwks.keys[0].x = key(2, 0).public_key.into();
        assert_eq!(jwks.find(&kid), None);
    }

    #[test]
    fn debug_text_and_history_do_not_disclose_the_encrypted_seed() {
        let keys = ReceiptKeys::new(ReceiptKeysId::new(Timestamp::from_millis(1), [0; 10]), key(1, 1));
        let seed = String::from(keys.current.encrypted_seed.clone());
        assert!(!format!("{keys:?}").contains(&seed));
        assert!(!serde_json::to_string(&keys.history_fields()).expect("json").contains(&seed));
    }
}
