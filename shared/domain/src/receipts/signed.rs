//! Signed receipts: signed by the service, and verifiable by anyone with the tenant's public keys.

use crate::receipts::key::{Jwks, SigningKey};
use crate::receipts::receipt::{FORMAT, MOVEMENT_FORMAT, MovementReceipt, Receipt};
use crate::values::field_error::ValueError;
use crate::values::json::parse_strict;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The maximum nesting of a receipt that is checked.
const MAX_LEVELS: usize = 32;

/// A receipt with its signature.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignedReceipt {
    /// The receipt, which is what is signed.
    pub receipt: Receipt,
    /// The signature.
    pub signature: Signature,
}

/// A signature over the canonical JSON (RFC 8785) of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReceiptSignature)]
pub struct Signature {
    /// `EdDSA`, with Ed25519.
    pub alg: String,
    /// The id of the tenant's key that signed.
    pub kid: String,
    /// The signature in base64url.
    pub value: String,
}

/// A movement's receipt with its signature.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignedMovementReceipt {
    /// The receipt, which is what is signed.
    pub receipt: MovementReceipt,
    /// The signature.
    pub signature: Signature,
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

/// `text` is a signed receipt of a process instance or a movement.
///
/// # Errors
///
/// Says why the receipt is not valid, such as a signature by none of `keys`.
pub fn check(text: &str, keys: &Jwks) -> Result<Value, ValueError> {
    let Value::Object(mut signed) = parse_strict(text.trim(), MAX_LEVELS)? else {
        return Err(ValueError::new("must be an object"));
    };
    let (receipt, signature) = (signed.remove("receipt"), signed.remove("signature"));
    let (Some(receipt), Some(signature)) = (receipt, signature) else {
        return Err(ValueError::new("must have the members receipt and signature"));
    };
    if !signed.is_empty() {
        return Err(ValueError::new("must have no members besides receipt and signature, since others are not signed"));
    }
    let signature: Signature =
        serde_json::from_value(signature).map_err(|_| ValueError::new("must have a signature with alg, kid and value"))?;
    if signature.alg != "EdDSA" || ![FORMAT, MOVEMENT_FORMAT].iter().any(|format| receipt["format"] == *format) {
        return Err(ValueError::new(format!("must have the format {FORMAT} or {MOVEMENT_FORMAT}, and a signature by EdDSA")));
    }
    let key = keys.find(&signature.kid).ok_or_else(|| ValueError::new("is signed by a key that is not among those given"))?;
    if key.verifies(&canonical(&receipt)?, &signature.value) {
        Ok(receipt)
    } else {
        Err(ValueError::new("has an invalid signature: the receipt was changed, or never signed"))
    }
}
